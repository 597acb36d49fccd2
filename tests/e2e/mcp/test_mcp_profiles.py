"""The tools beyond the core: lists and details for agents, whole indexes for whoever administers."""

from collections.abc import Iterator
from typing import Any

import pytest

from kektor_server.mcp.profiles import REGISTRY
from tests.support.doors import Machine
from tests.support.mcp_client import RawClient
from tests.support.mcp_results import done, failed


@pytest.fixture
def agent(shared: Machine, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    client = RawClient(shared, "--project", request.node.name, "--tools", "agent")
    client.initialize()
    yield client
    client.end()


@pytest.mark.parametrize("profile", REGISTRY.profiles)
def test_a_relay_lists_the_tools_of_its_profile(shared: Machine, profile: str) -> None:
    client = RawClient(shared, "--tools", profile)
    client.initialize()
    listed = [tool["name"] for tool in client.request("tools/list")["result"]["tools"]]
    assert listed == REGISTRY.profiles[profile]
    client.end()


def test_a_tool_of_another_profile_is_not_there(shared: Machine) -> None:
    client = RawClient(shared)
    client.initialize()
    asked = {"name": "delete_index", "arguments": {"name": "default", "confirm": True}}
    assert client.request("tools/call", asked)["error"]["code"] == -32602
    client.end()


def test_lists_are_short_page_and_name_what_is_longer(agent: RawClient) -> None:
    for number in range(5):
        done(agent, "remember", text=f"Order {number} was shipped", tags=["even" if number % 2 == 0 else "odd"])
    long = "The protocol of the meeting: " + "and then somebody said something. " * 40
    done(agent, "remember", text=long)
    text, page = done(agent, "list_memories", limit=4)
    assert [item["text"] for item in page["items"]] == [f"Order {n} was shipped" for n in range(4)]
    assert "Order 3 was shipped" in text
    assert f"cursor={page['next_cursor']}" in text
    text, rest = done(agent, "list_memories", limit=4, cursor=page["next_cursor"])
    assert "next_cursor" not in rest
    last = rest["items"][-1]
    assert (last["text"], last["length"]) == (long[:200], len(long))
    assert len(text) < len(long)
    assert done(agent, "read_memory", id=last["id"])[1]["text"] == long
    _, odd = done(agent, "list_memories", filter="tags CONTAINS 'odd'")
    assert [item["text"] for item in odd["items"]] == ["Order 1 was shipped", "Order 3 was shipped"]
    assert failed(agent, "list_memories", limit=0)["field"] == "limit"


def test_a_history_tells_every_version_and_a_list_shows_what_was_archived_on_request(agent: RawClient) -> None:
    first = done(agent, "remember", text="Dana owns the Henderson account")[1]["id"]
    second = done(agent, "correct", id=first, text="Erik owns the Henderson account")[1]["id"]
    text, history = done(agent, "history", id=second)
    assert [(item["text"], item["status"]) for item in history["items"]] == [
        ("Dana owns the Henderson account", "superseded"),
        ("Erik owns the Henderson account", "current"),
    ]
    assert "Dana owns" in text
    assert done(agent, "archive_memory", id=second, reason="closed")[1]["id"] == second
    assert done(agent, "list_memories")[1]["items"] == []
    shown = done(agent, "list_memories", include=["archived"])[1]["items"]
    assert [item["id"] for item in shown] == [second]
    done(agent, "restore_memory", id=second)
    assert [item["id"] for item in done(agent, "list_memories")[1]["items"]] == [second]


def test_details_change_without_a_new_version(agent: RawClient) -> None:
    saved = done(agent, "remember", text="The bakery opens at seven", tags=["old"])[1]["id"]
    assert done(agent, "update_memory", id=saved, tags=["shop"], metadata={"floor": 1})[1]["id"] == saved
    done(agent, "pin_memory", id=saved)
    memory = done(agent, "read_memory", id=saved)[1]
    assert (memory["tags"], memory["metadata"], memory["pinned"], memory["version"]) == (
        ["shop"], {"floor": 1}, True, 1,
    )  # fmt: skip
    done(agent, "pin_memory", id=saved, pinned=False)
    assert done(agent, "read_memory", id=saved)[1]["pinned"] is False
    assert failed(agent, "pin_memory", id=saved, pinned="yes")["code"] == "invalid"


def test_the_graph_step_by_step(agent: RawClient) -> None:
    ids = [done(agent, "remember", text=f"{name} works at the ferry")[1]["id"] for name in ("Ana", "Ben", "Cleo")]
    done(agent, "link", src=ids[0], rel="trained", dst=ids[1])
    done(agent, "link", src=ids[1], rel="trained", dst=ids[2])
    _, edges = done(agent, "edges", id=ids[1], direction="in")
    assert [(edge["src"], edge["rel"], edge["dst"]) for edge in edges["items"]] == [(ids[0], "trained", ids[1])]
    text, path = done(agent, "find_path", src=ids[0], dst=ids[2])
    assert [node["id"] for node in path["nodes"]] == ids
    assert "Ben works at the ferry" in text
    _, around = done(agent, "subgraph", roots=[ids[0]])
    assert {node["id"] for node in around["nodes"]} == set(ids[:2])
    done(agent, "unlink", src=ids[1], rel="trained", dst=ids[2])
    assert done(agent, "find_path", src=ids[0], dst=ids[2])[1] == {"nodes": [], "edges": []}
    assert failed(agent, "unlink", src=ids[1], rel="trained", dst=ids[2])["code"] == "not_found"


def test_search_finds_without_judging_and_evidence_names_what_was_said(shared: Machine, agent: RawClient) -> None:
    saved = done(agent, "remember", text="The lighthouse keeper is called Zephyrine")[1]["id"]
    text, found = done(agent, "search", text="lighthouse", k=3)
    assert found["hits"][0]["id"] == saved
    assert "Zephyrine" in text
    assert done(agent, "search", text="lighthouse", filter="tags CONTAINS 'none'")[1] == {"hits": []}
    assert done(agent, "evidence", id=saved) == ("it rests on no source", {"items": []})


def test_an_index_of_its_own_from_its_making_to_its_end(shared: Machine) -> None:
    admin = RawClient(shared, "--tools", "admin")
    admin.initialize()
    made = done(admin, "create_index", name="ledger", policy={"agent_writes": "accept"})[1]
    assert made["name"] == "ledger"
    assert failed(admin, "create_index", name="ledger")["code"] == "conflict"
    saved = done(admin, "remember", text="The ledger was opened", index="ledger")[1]
    assert [item["name"] for item in done(admin, "list_indexes")[1]["items"]].count("ledger") == 1
    assert done(admin, "stats", index="ledger")[1]["nodes"] == 1
    assert done(admin, "checkpoint")[1]["lsn"] >= saved["lsn"]
    done(admin, "configure_index", name="ledger", policy={"write": "gated"})
    assert failed(admin, "remember", text="one more", index="ledger")["code"] == "blocked"
    refused = failed(admin, "delete_index", name="ledger")
    assert (refused["field"], "1 nodes" in refused["message"]) == ("confirm", True)
    done(admin, "configure_index", name="ledger", policy={"write": "open"})
    done(admin, "delete_index", name="ledger", confirm=True)
    assert failed(admin, "stats", index="ledger")["code"] == "not_found"
    admin.end()


def test_an_administrator_confined_to_a_scope_has_no_power_over_whole_indexes(shared: Machine) -> None:
    confined = RawClient(shared, "--tools", "admin", "--user", "alice")
    confined.initialize()
    done(confined, "remember", text="Alice keeps the keys")
    for tool, arguments in (
        ("stats", {}),
        ("configure_index", {"name": "default", "policy": {"write": "frozen"}}),
        ("delete_index", {"name": "default", "confirm": True}),
    ):
        refused: dict[str, Any] = failed(confined, tool, **arguments)
        assert refused["code"] == "forbidden", tool
    assert done(confined, "recall", query="Who keeps the keys?")[1]["hits"]
    confined.end()
