"""MCP over HTTP: the same tools on the server's own port, by the official client; nothing is kept between requests."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import mcp
import pytest
from mcp.client.client import Client

from kektor_server.mcp.profiles import REGISTRY
from tests.support.doors import Machine, wait_for

_ACCEPT = "application/json, text/event-stream"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    machine = Machine(tmp_path_factory.mktemp("http"))
    with machine.server("serve", "--port", "0") as running:
        yield running["url"]
    machine.halt()
    assert machine.processes() == []


def with_client(url: str, work: Callable[[Client], Awaitable[Any]], *, mode: str = "auto") -> Any:
    async def run() -> Any:
        info = mcp.Implementation(name="official", version="2")
        async with Client(url, mode=mode, client_info=info, read_timeout_seconds=60) as client:
            return await work(client)

    return asyncio.run(run())


def post(url: str, method: str, params: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return httpx.post(url, json=message, headers={"accept": _ACCEPT, **headers}, timeout=60)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_profile_is_listed_and_a_memory_goes_in_and_comes_out(server: str, mode: str) -> None:
    async def work(client: Client) -> None:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == REGISTRY.profiles["core"]
        saved = await client.call_tool("remember", {"text": f"Dana keeps the {mode} lighthouse"})
        assert not saved.is_error
        found = await client.call_tool("recall", {"query": f"Who keeps the {mode} lighthouse?"})
        assert f"Dana keeps the {mode} lighthouse" in found.content[0].text
        node_id = saved.structured_content["id"]
        memory = await client.call_tool("read_memory", {"id": node_id})
        assert memory.structured_content["actor"] == {"kind": "agent", "channel": "mcp"}
        wrong = await client.call_tool("read_memory", {"id": "nobody"})
        assert wrong.is_error
        assert (wrong.meta or {})["kektor/error"]["code"] == "not_found"
        text = (await client.read_resource(f"kektor://default/memory/{node_id}")).contents[0].text
        assert "lighthouse" in text
        with pytest.raises(mcp.MCPError):
            await client.read_resource("kektor://default/memory/nobody")
        prompt = await client.get_prompt("recall_protocol", {"task": "move"})
        assert prompt.messages[0].content.text.endswith("about to begin: move\n")

    with_client(f"{server}/mcp", work, mode=mode)


@pytest.mark.parametrize("profile", REGISTRY.profiles)
def test_the_profile_is_a_part_of_the_path(server: str, profile: str) -> None:
    async def work(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    assert with_client(f"{server}/mcp/{profile}", work) == REGISTRY.profiles[profile]


def test_a_tool_of_another_profile_is_refused_and_so_is_an_unknown_profile(server: str) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(mcp.MCPError):
            await client.call_tool("delete_index", {"name": "default", "confirm": True})

    with_client(f"{server}/mcp", work)
    assert post(f"{server}/mcp/everything", "tools/list").status_code == 404
    assert httpx.get(f"{server}/mcp").status_code == 405


def test_a_long_call_tells_how_far_it_is(server: str) -> None:
    entities = [{"name": f"Thing {n}", "entityType": "thing", "observations": []} for n in range(4)]
    told: list[tuple[float, float | None, str | None]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def work(client: Client) -> None:
        result = await client.call_tool("create_entities", {"entities": entities}, progress_callback=heard)
        assert not result.is_error

    with_client(f"{server}/mcp/reference", work)
    assert told == [(n, 4, f"Thing {n}") for n in range(4)]


def test_a_listener_hears_of_a_change(server: str) -> None:
    async def work(client: Client) -> None:
        uri = "kektor://default/map"
        async with client.listen(resource_subscriptions=[uri]) as events:
            await client.call_tool("remember", {"text": "Something new on the map of the coast"})
            async with asyncio.timeout(30):
                async for event in events:
                    assert event.uri == uri
                    return

    with_client(f"{server}/mcp", work)


def test_a_page_of_another_origin_and_a_rebound_name_are_refused(server: str) -> None:
    assert post(f"{server}/mcp", "tools/list", origin="https://evil.example").status_code == 403
    assert post(f"{server}/mcp", "tools/list", host="evil.example").status_code == 403
    assert post(f"{server}/mcp", "tools/list").status_code == 200


def test_a_client_goes_on_after_a_restart_without_a_session(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    headers = {"mcp-protocol-version": "2025-11-25"}
    saved = {"name": "remember", "arguments": {"text": "Dana owns the Henderson account"}}
    asked = {"name": "recall", "arguments": {"query": "Who owns the Henderson account?"}}
    with machine.server("serve", "--port", "0") as running:
        first = post(f"{running['url']}/mcp", "tools/call", saved, **headers)
        assert "mcp-session-id" not in first.headers
    with machine.server("serve", "--port", "0") as running:
        again = post(f"{running['url']}/mcp", "tools/call", asked, **headers)
        assert "Dana owns the Henderson account" in again.text
    machine.halt()
    assert machine.processes() == []


def test_a_server_with_a_listener_ends_when_told_to(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    with machine.server("serve", "--port", "0") as running:

        async def work(client: Client) -> None:
            async with client.listen(resource_subscriptions=["kektor://default/map"]):
                running["process"].terminate()
                await asyncio.to_thread(running["process"].wait, 60)

        with suppress(Exception):  # however the client takes it, the server has ended
            with_client(f"{running['url']}/mcp", work)
        wait_for(lambda: running["process"].poll() is not None, "the end")
        assert running["process"].returncode == 0
    machine.halt()
    assert machine.processes() == []


def test_it_says_where_a_token_is_taken(server: str) -> None:
    told = httpx.get(f"{server}/.well-known/oauth-protected-resource/mcp").json()
    assert told["resource"] == f"{server}/mcp"
    assert told["bearer_methods_supported"] == ["header"]
    assert json.dumps(told)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Callable[..., str]]]:
    """A server that asks for tokens, and a way to make one."""
    machine = Machine(tmp_path_factory.mktemp("guarded"))
    with machine.server("serve", "--port", "0", "--auth") as running:

        def token(*flags: str) -> str:
            return str(machine.json("token", "create", *flags)["token"])

        yield running["url"], token
    machine.halt()
    assert machine.processes() == []


def tool(url: str, name: str, arguments: dict[str, Any], token: str) -> dict[str, Any]:
    """The result of a tool, asked for by hand."""
    answer = post(f"{url}/mcp", "tools/call", {"name": name, "arguments": arguments}, authorization=f"Bearer {token}")
    assert answer.status_code == 200, answer.text
    text = answer.text if answer.text.startswith("{") else answer.text.split("data: ", 1)[1].splitlines()[0]
    result: dict[str, Any] = json.loads(text)["result"]
    return result


def test_who_brings_no_token_is_told_where_one_is_asked_for(guarded: tuple[str, Callable[..., str]]) -> None:
    url, token = guarded
    for headers in ({}, {"authorization": "Bearer nonsense"}, {"authorization": "Basic YTpi"}):
        refused = post(f"{url}/mcp", "tools/list", **headers)
        assert refused.status_code == 401
        where = f"{url}/.well-known/oauth-protected-resource/mcp"
        assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{where}"'
        assert httpx.get(where).json()["resource"] == f"{url}/mcp"
    allowed = token("--role", "read")
    assert post(f"{url}/mcp", "tools/list", authorization=f"Bearer {allowed}").status_code == 200


def test_a_token_reaches_what_it_grants_and_acts_as_an_agent(guarded: tuple[str, Callable[..., str]]) -> None:
    url, token = guarded
    alice = token("--role", "read", "--role", "write", "--kind", "human", "--user", "alice")
    bob = token("--role", "read", "--role", "write", "--user", "bob")
    reader = token("--role", "read", "--user", "alice")
    saved = tool(url, "remember", {"text": "Alice keeps the harbour keys"}, alice)["structuredContent"]["id"]
    memory = tool(url, "read_memory", {"id": saved}, reader)["structuredContent"]
    assert (memory["scope"]["user"], memory["actor"]["kind"]) == ("alice", "agent")
    assert tool(url, "read_memory", {"id": saved}, bob)["isError"]
    assert "harbour" not in json.dumps(tool(url, "recall", {"query": "Who keeps the harbour keys?"}, bob))
    refused = tool(url, "remember", {"text": "A reader writes"}, reader)
    assert refused["_meta"]["kektor/error"]["code"] == "forbidden"
    assert "harbour" in json.dumps(tool(url, "recall", {"query": "Who keeps the harbour keys?"}, reader))


def test_a_token_that_may_everything_gets_no_more_than_its_profile(guarded: tuple[str, Callable[..., str]]) -> None:
    url, token = guarded
    admin = token("--role", "admin")
    asked = {"name": "create_index", "arguments": {"name": "ledger", "dim": 3}}
    headers = {"authorization": f"Bearer {admin}"}
    assert "error" in post(f"{url}/mcp", "tools/call", asked, **headers).text
    made = post(f"{url}/mcp/admin", "tools/call", asked, **headers)
    assert '"name":"ledger"' in made.text.replace(" ", "").replace("\\", "")
    reader = token("--role", "read")
    asked = {"name": "configure_index", "arguments": {"name": "ledger", "policy": {"write": "frozen"}}}
    refused = post(f"{url}/mcp/admin", "tools/call", asked, authorization=f"Bearer {reader}")
    assert "forbidden" in refused.text
