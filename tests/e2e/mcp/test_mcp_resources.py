"""Resources, prompts, progress and cancellation: what an MCP server has besides tools."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.doors import Machine, wait_for
from tests.support.mcp_client import MODERN, RawClient
from tests.support.mcp_results import done

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.fixture
def client(shared: Machine, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    client = RawClient(shared, "--project", request.node.name, "--tools", "all")
    client.initialize()
    yield client
    client.end()


def read(client: RawClient, uri: str) -> str:
    (content,) = client.request("resources/read", {"uri": uri})["result"]["contents"]
    assert (content["uri"], content["mimeType"]) == (uri, "text/markdown")
    return str(content["text"])


def test_a_memory_is_read_by_its_address_with_its_labels(client: RawClient) -> None:
    listed = client.request("resources/templates/list")["result"]["resourceTemplates"]
    assert [each["uriTemplate"] for each in listed] == ["kektor://{index}/memory/{id}", "kektor://{index}/map"]
    saved = done(client, "remember", text="Dana <owns> the Henderson account")[1]["id"]
    text = read(client, f"kektor://default/memory/{saved}")
    assert "Dana &lt;owns&gt; the Henderson account" in text
    assert saved in text
    assert "data" in text.lower()


def test_a_map_tells_how_much_there_is_what_is_pinned_and_what_came_last(client: RawClient) -> None:
    assert "nothing yet" in read(client, "kektor://default/map")
    for number in range(45):
        done(client, "remember", text=f"Order {number} was shipped from Bergen")
    pinned = done(client, "remember", text="Never ship on a Sunday")[1]["id"]
    done(client, "pin_memory", id=pinned)
    text = read(client, "kektor://default/map")
    assert "46 memory" in text
    pinned_part, latest = text.split("## Latest")
    assert "Never ship on a Sunday" in pinned_part
    assert "Order 44 was shipped" in latest
    assert "Order 3 was shipped" not in latest


@pytest.mark.parametrize(
    "uri", ["kektor://default/memory/nobody", "kektor://default/nothing", "kektor://nowhere/map", "file:///etc/passwd"]
)
def test_what_is_not_there_is_an_error_of_the_protocol(client: RawClient, uri: str) -> None:
    assert client.request("resources/read", {"uri": uri})["error"]["code"] == -32002
    assert client.request("resources/read", {"uri": uri, "_meta": MODERN})["error"]["code"] == -32602
    assert client.request("resources/subscribe", {"uri": uri})["error"]["code"] == -32002


def test_a_resource_of_another_scope_is_not_there(shared: Machine, client: RawClient) -> None:
    saved = done(client, "remember", text="Dana owns the Henderson account")[1]["id"]
    stranger = RawClient(shared, "--project", "elsewhere")
    stranger.initialize()
    asked = {"uri": f"kektor://default/memory/{saved}"}
    assert stranger.request("resources/read", asked)["error"]["code"] == -32002
    assert "Henderson" not in read(stranger, "kektor://default/map")
    stranger.end()
    assert read(client, asked["uri"])


def test_a_subscriber_hears_of_a_change_and_of_no_other(shared: Machine, client: RawClient) -> None:
    ids = [done(client, "remember", text=f"{name} owns the Henderson account")[1]["id"] for name in ("Dana", "Ulf")]
    uri = f"kektor://default/memory/{ids[0]}"
    assert client.request("resources/subscribe", {"uri": uri})["result"] == {}
    done(client, "update_memory", id=ids[1], tags=["other"])
    done(client, "correct", id=ids[0], text="Erik owns the Henderson account")
    told = client.unnamed()
    assert told == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
    assert client.request("resources/unsubscribe", {"uri": uri})["result"] == {}
    assert client.request("resources/subscribe", {"uri": "kektor://default/map"})["result"] == {}
    done(client, "remember", text="Something new on the map")
    assert client.unnamed()["params"] == {"uri": "kektor://default/map"}


def test_a_subscription_of_the_newer_era_is_acknowledged_and_ends_with_its_request(client: RawClient) -> None:
    uri = "kektor://default/map"
    wanted = {"notifications": {"resourceSubscriptions": [uri], "toolsListChanged": True}, "_meta": MODERN}
    asked = client.begin("subscriptions/listen", wanted)
    acknowledged = client.unnamed()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {
        "notifications": {"resourceSubscriptions": [uri]},
        "_meta": {SUBSCRIPTION: asked},
    }
    done(client, "remember", text="Something new on the map")
    assert client.unnamed()["params"] == {"uri": uri, "_meta": {SUBSCRIPTION: asked}}
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": asked}})
    client.request("resources/subscribe", {"uri": uri})
    done(client, "remember", text="Something newer")
    assert client.unnamed()["params"] == {"uri": uri}
    assert asked not in client.answered()


def test_a_subscriber_hears_of_what_changed_while_the_daemon_was_replaced(machine: Machine) -> None:
    client = RawClient(machine)
    client.initialize()
    saved = done(client, "remember", text="Dana owns the Henderson account")[1]["id"]
    uri = f"kektor://default/memory/{saved}"
    client.request("resources/subscribe", {"uri": uri})
    machine.halt_daemons()
    done(client, "retract", id=saved)
    assert client.unnamed()["params"] == {"uri": uri}


def prompt(client: RawClient, name: str, **arguments: str) -> str:
    result = client.request("prompts/get", {"name": name, "arguments": arguments})["result"]
    (message,) = result["messages"]
    assert message["role"] == "user"
    return str(message["content"]["text"])


def test_prompts_are_texts_with_their_arguments_put_in(client: RawClient) -> None:
    listed = client.request("prompts/list")["result"]["prompts"]
    assert [each["name"] for each in listed] == ["memory_instructions", "recall_protocol", "session_wrapup"]
    assert all("text" not in each for each in listed)
    assert "recall" in prompt(client, "memory_instructions")
    assert "{task}" not in prompt(client, "recall_protocol")
    assert prompt(client, "recall_protocol", task="Move {the} feed").endswith("about to begin: Move {the} feed\n")
    assert "Above all: the feed" in prompt(client, "session_wrapup", focus="the feed")
    for params in ({"name": "nobody"}, {"name": "session_wrapup", "arguments": {"task": "x"}}):
        assert client.request("prompts/get", params)["error"]["code"] == -32602


ENTITIES = [{"name": f"Thing {n}", "entityType": "thing", "observations": [f"Fact {n}"]} for n in range(6)]


def test_a_long_call_tells_how_far_it_is_when_asked(client: RawClient) -> None:
    params: dict[str, Any] = {"name": "create_entities", "arguments": {"entities": ENTITIES}}
    asked = client.begin("tools/call", {**params, "_meta": {"progressToken": "p1"}})
    assert not client.answer(asked)["result"].get("isError")
    told = [client.unnamed() for _ in ENTITIES]
    assert {message["method"] for message in told} == {"notifications/progress"}
    assert [message["params"] for message in told] == [
        {"progressToken": "p1", "progress": n, "total": len(ENTITIES), "message": f"Thing {n}"}
        for n in range(len(ENTITIES))
    ]
    quick = client.begin("tools/call", {"name": "read_graph", "arguments": {}, "_meta": {"progressToken": 2}})
    assert client.answer(quick)["result"]["structuredContent"]["entities"] == ENTITIES


def test_a_cancelled_call_stops_between_its_steps(client: RawClient) -> None:
    many = [{**ENTITIES[0], "name": f"Thing {n}"} for n in range(400)]
    params = {"name": "create_entities", "arguments": {"entities": many}, "_meta": {"progressToken": 1}}
    asked = client.begin("tools/call", params)
    client.unnamed()
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": asked}})

    def count() -> int:
        return len(done(client, "read_graph")[1]["entities"])

    def settled() -> bool:
        before = count()
        return 0 < before == count()

    wait_for(settled, "the call to stop")
    assert count() < len(many)
    assert asked not in client.answered()
