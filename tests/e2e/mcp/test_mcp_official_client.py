"""The official client lists and calls every tool, in both eras."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import mcp
import pytest
from mcp.client.client import Client

from tests.support.doors import Machine


def with_client(machine: Machine, mode: str, work: Callable[[Client], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        command, *arguments = [*machine.command, "mcp", "--data", str(machine.data)]
        parameters = mcp.StdioServerParameters(command=command, args=arguments, env=machine.env)
        info = mcp.Implementation(name="official", version="2")
        async with Client(parameters, mode=mode, client_info=info, read_timeout_seconds=60) as client:
            return await work(client)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")]
)
def test_every_tool_is_listed_and_called(machine: Machine, mode: str, version: str) -> None:
    async def work(client: Client) -> None:
        assert client.protocol_version == version
        listed = {tool.name for tool in (await client.list_tools()).tools}

        async def call(name: str, **arguments: Any) -> dict[str, Any]:
            listed.discard(name)
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result
            assert result.structured_content is not None  # which the client has held against the schema
            return result.structured_content

        await call("start_session", id="handover")
        await call("review")
        dana = await call("remember", text="Dana owns the Henderson account")
        erik = await call("remember", text="Erik maintains the ferry timetable")
        assert (await call("recall", query="Who owns the Henderson account?"))["hits"][0]["id"] == dana["id"]
        assert (await call("read_memory", id=dana["id"]))["text"] == "Dana owns the Henderson account"
        priya = await call("correct", id=dana["id"], text="Priya owns the Henderson account")
        await call("link", src=priya["id"], rel="works_with", dst=erik["id"])
        assert len((await call("explore", id=priya["id"]))["nodes"]) >= 2
        await call("retract", id=erik["id"], reason="misheard")
        assert (await call("forget", ids=[priya["id"]], mode="archive"))["matched"]
        await call("end_session", session="handover")
        assert listed == {"confirm"}  # an agent confirms with a source, and there is none here
        result = await client.call_tool("confirm", {"id": dana["id"], "evidence": "nobody"})
        assert result.is_error

    with_client(machine, mode, work)


def test_an_error_of_a_tool_is_a_result_that_a_model_can_read(machine: Machine) -> None:
    async def work(client: Client) -> None:
        result = await client.call_tool("read_memory", {"id": "nobody"})
        assert result.is_error
        assert "nobody" in result.content[0].text
        with pytest.raises(mcp.MCPError):
            await client.call_tool("no_such_tool", {})

    with_client(machine, "auto", work)
