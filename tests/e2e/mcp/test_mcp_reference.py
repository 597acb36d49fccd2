"""The nine tools of the well-known knowledge-graph server do what their users know, over our graph."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.callers.mcp import COMPOSED
from tests.support.doors import Machine
from tests.support.mcp_client import RawClient
from tests.support.mcp_results import done, failed

DANA = {"name": "Dana_Ito", "entityType": "person", "observations": ["Speaks Japanese", "Prefers mornings"]}
PIER = {"name": "Pier 7", "entityType": "place", "observations": []}
WORKS = {"from": "Dana_Ito", "to": "Pier 7", "relationType": "works_at"}


@pytest.fixture
def graph(shared: Machine, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    client = RawClient(shared, "--project", request.node.name, "--tools", "reference")
    client.initialize()
    yield client
    client.end()


def test_entities_observations_and_relations_are_created_once(graph: RawClient) -> None:
    text, made = done(graph, "create_entities", entities=[DANA, PIER])
    assert made == {"entities": [DANA, PIER]}
    assert json.loads(text) == [DANA, PIER]
    changed = {**DANA, "entityType": "robot", "observations": ["Has wheels"]}
    assert done(graph, "create_entities", entities=[changed, PIER])[1] == {"entities": []}
    assert done(graph, "create_relations", relations=[WORKS, WORKS])[1] == {"relations": [WORKS]}
    assert done(graph, "create_relations", relations=[WORKS])[1] == {"relations": []}
    _, added = done(
        graph,
        "add_observations",
        observations=[{"entityName": "Dana_Ito", "contents": ["Prefers mornings", "Keeps bees", "Keeps bees"]}],
    )
    assert added == {"results": [{"entityName": "Dana_Ito", "addedObservations": ["Keeps bees"]}]}
    _, whole = done(graph, "read_graph")
    assert whole == {
        "entities": [{**DANA, "observations": [*DANA["observations"], "Keeps bees"]}, PIER],
        "relations": [WORKS],
    }


def test_nodes_are_found_by_any_of_their_words_and_opened_by_name(graph: RawClient) -> None:
    done(graph, "create_entities", entities=[DANA, PIER])
    done(graph, "create_relations", relations=[WORKS])
    for query, names in (
        ("japanese", ["Dana_Ito"]),
        ("PIER", ["Pier 7"]),
        ("person", ["Dana_Ito"]),
        ("zzyzx", []),
    ):
        found = done(graph, "search_nodes", query=query)[1]
        assert [entity["name"] for entity in found["entities"]] == names, query
    opened = done(graph, "open_nodes", names=["Pier 7", "Dana_Ito", "nobody"])[1]
    assert {entity["name"] for entity in opened["entities"]} == {"Pier 7", "Dana_Ito"}
    assert opened["relations"] == [WORKS]
    assert done(graph, "open_nodes", names=["Pier 7"])[1] == {"entities": [PIER], "relations": []}


def test_what_is_deleted_is_gone_and_may_be_created_again(graph: RawClient) -> None:
    done(graph, "create_entities", entities=[DANA, PIER])
    done(graph, "create_relations", relations=[WORKS])
    done(graph, "delete_observations", deletions=[{"entityName": "Dana_Ito", "observations": ["Speaks Japanese"]}])
    assert done(graph, "open_nodes", names=["Dana_Ito"])[1]["entities"][0]["observations"] == ["Prefers mornings"]
    done(graph, "delete_relations", relations=[WORKS])
    assert done(graph, "read_graph")[1]["relations"] == []
    done(graph, "delete_entities", entityNames=["Dana_Ito", "nobody"])
    assert done(graph, "read_graph")[1] == {"entities": [PIER], "relations": []}
    assert done(graph, "create_entities", entities=[DANA])[1] == {"entities": [DANA]}
    assert done(graph, "read_graph")[1]["entities"] == [PIER, DANA]


def test_what_is_about_nobody_is_refused_by_name(graph: RawClient) -> None:
    done(graph, "create_entities", entities=[PIER])
    unknown = failed(graph, "add_observations", observations=[{"entityName": "Nemo", "contents": ["Lost"]}])
    assert (unknown["code"], "'Nemo'" in unknown["message"]) == ("not_found", True)
    assert failed(graph, "create_relations", relations=[WORKS])["code"] == "not_found"
    assert failed(graph, "create_entities", entities=[{"name": "x"}])["code"] == "invalid"
    assert failed(graph, "create_entities", entities=[{**PIER, "colour": "red"}])["code"] == "invalid"
    assert done(graph, "read_graph")[1] == {"entities": [PIER], "relations": []}


def test_recall_answers_from_the_graph(shared: Machine, request: pytest.FixtureRequest, graph: RawClient) -> None:
    done(graph, "create_entities", entities=[DANA, PIER])
    other = RawClient(shared, "--project", request.node.name)
    other.initialize()
    context, found = done(other, "recall", query="Which language does Dana_Ito speak?")
    assert found["status"] in ("ok", "weak")
    assert "Speaks Japanese" in context
    other.end()


def test_the_graph_of_one_scope_is_not_seen_in_another(shared: Machine, graph: RawClient) -> None:
    done(graph, "create_entities", entities=[DANA])
    stranger = RawClient(shared, "--project", "elsewhere", "--tools", "reference")
    stranger.initialize()
    assert done(stranger, "read_graph")[1] == {"entities": [], "relations": []}
    assert done(stranger, "search_nodes", query="Dana_Ito")[1]["entities"] == []
    assert failed(stranger, "add_observations", observations=[{"entityName": "Dana_Ito", "contents": ["x"]}])
    assert done(stranger, "create_entities", entities=[DANA])[1] == {"entities": [DANA]}
    done(stranger, "delete_entities", entityNames=["Dana_Ito"])
    stranger.end()
    assert done(graph, "read_graph")[1]["entities"] == [DANA]


WRITES: dict[str, dict[str, Any]] = {
    "create_entities": {"entities": [{**DANA, "name": "Somebody new"}]},
    "create_relations": {"relations": [{**WORKS, "relationType": "owns"}]},
    "add_observations": {"observations": [{"entityName": "Dana_Ito", "contents": ["Was late"]}]},
    "delete_entities": {"entityNames": ["Dana_Ito"]},
    "delete_observations": {"deletions": [{"entityName": "Dana_Ito", "observations": ["Speaks Japanese"]}]},
    "delete_relations": {"relations": [WORKS]},
}


def test_no_tool_that_is_composed_of_others_goes_around_the_policy(shared: Machine) -> None:
    admin = RawClient(shared, "--tools", "all")
    admin.initialize()
    done(admin, "create_index", name="graph")
    done(admin, "create_entities", index="graph", entities=[DANA, PIER])
    done(admin, "create_relations", index="graph", relations=[WORKS])
    before = done(admin, "read_graph", index="graph")[1]
    done(admin, "configure_index", name="graph", policy={"write": "gated"})
    whole = {"create_index", "configure_index", "delete_index", "transfer"}
    assert set(WRITES) | whole == set(COMPOSED)
    for tool, arguments in WRITES.items():
        assert failed(admin, tool, index="graph", **arguments)["code"] == "blocked", tool
    assert done(admin, "read_graph", index="graph")[1] == before
    done(admin, "configure_index", name="graph", policy={"write": "open"})
    for tool, arguments in WRITES.items():
        done(admin, tool, index="graph", **arguments)
    assert done(admin, "read_graph", index="graph")[1] != before
    admin.end()
