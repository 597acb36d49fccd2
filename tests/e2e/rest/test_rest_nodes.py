"""Indexes, raw nodes, search and the graph, each on its way to success."""

import math

import msgspec
import pytest

from tests.support.rest import LiveServer

INDEX_FIELDS = {
    *("name", "dim", "metric", "precision", "m", "ef_construction", "embedder", "fingerprint", "text", "policy"),
    *("layers", "created_at"),
}


def test_an_index_is_made_listed_configured_and_dropped(live: LiveServer) -> None:
    body = {"name": "docs", "dim": 4, "metric": "l2", "m": 8, "ef_construction": 64, "policy": {"write": "gated"}}
    made = live.ok(live.http.post("/v1/indexes", json=body), 201)
    assert made.keys() == INDEX_FIELDS
    for name in ("name", "dim", "metric", "m", "ef_construction"):
        assert made[name] == body[name]
    assert made["created_at"].endswith("Z")
    assert live.ok(live.http.get("/v1/indexes")) == {"items": [made], "next_cursor": None}
    assert live.ok(live.http.get("/v1/indexes/docs")) == made
    change = {"policy": {"evidence": "require"}, "layers": {"work": {"half_life_days": 7}}}
    changed = live.ok(live.http.patch("/v1/indexes/docs", json=change))
    policy = {"evidence": "require", "agent_writes": "accept", "write": "gated"}
    assert changed["policy"] == {**policy, "single_valued": None, "retention": {}}
    assert changed["layers"]["work"]["half_life_days"] == 7
    assert changed["layers"]["semantic"] == made["layers"]["semantic"]
    assert live.ok(live.http.delete("/v1/indexes/docs"))["outcome"] == "deleted"
    live.error(live.http.get("/v1/indexes/docs"), 404, "not_found", "index")


def test_an_index_without_dim_gets_the_default_embedder(live: LiveServer) -> None:
    made = live.ok(live.http.post("/v1/indexes", json={"name": "docs"}), 201)
    assert made["dim"] == 64
    assert made["embedder"]


def test_an_index_that_exists_is_a_conflict(live: LiveServer) -> None:
    live.ok(live.http.post("/v1/indexes", json={"name": "docs", "dim": 4}), 201)
    live.error(live.http.post("/v1/indexes", json={"name": "docs", "dim": 4}), 409, "conflict", "name")


def test_statistics_count_what_is_there(live: LiveServer, vectors: str) -> None:
    stats = live.ok(live.http.get(f"/v1/indexes/{vectors}/stats"))
    assert {name: stats[name] for name in ("index", "nodes", "vectors", "texts", "edges")} == {
        "index": "v",
        "nodes": 4,
        "vectors": 4,
        "texts": 4,
        "edges": 0,
    }
    assert stats["vector"]
    assert stats["text"]


def test_upserting_says_for_each_node_whether_it_was_there(live: LiveServer, vectors: str) -> None:
    nodes = [{"id": "x", "vector": [1, 0, 0]}, {"id": "new", "vector": [0, 0, 2]}]
    receipt = live.ok(live.http.post("/v1/indexes/v/nodes", json={"nodes": nodes}), 201)
    assert [(item["id"], item["outcome"]) for item in receipt["items"]] == [("x", "updated"), ("new", "created")]
    again = live.ok(live.http.post("/v1/indexes/v/nodes", json={"nodes": nodes}), 200)
    assert again["outcome"] == "updated"


def test_a_node_is_read_with_its_vector_only_when_asked(live: LiveServer, vectors: str) -> None:
    node = live.ok(live.http.get("/v1/indexes/v/nodes/xy"))
    assert "vector" not in node
    assert (node["id"], node["text"], node["metadata"]) == ("xy", "delta wave", {"n": 4, "deep": {"a": 1}})
    with_vector = live.ok(live.http.get("/v1/indexes/v/nodes/xy", params={"with_vector": "true"}))
    assert with_vector.pop("vector") == pytest.approx([1, 1, 0])
    assert with_vector.keys() == node.keys()


def test_patching_a_node_merges_its_metadata(live: LiveServer, vectors: str) -> None:
    change = {"metadata": {"n": None, "extra": [1]}, "tags": ["t"], "text": "delta beam"}
    live.ok(live.http.patch("/v1/indexes/v/nodes/xy", json=change))
    node = live.ok(live.http.get("/v1/indexes/v/nodes/xy"))
    assert (node["metadata"], node["tags"], node["text"]) == ({"deep": {"a": 1}, "extra": [1]}, ["t"], "delta beam")


def test_a_deleted_node_is_gone_and_its_id_free(live: LiveServer, vectors: str) -> None:
    assert live.ok(live.http.delete("/v1/indexes/v/nodes/x"))["outcome"] == "deleted"
    live.error(live.http.get("/v1/indexes/v/nodes/x"), 404, "not_found", "id")
    live.error(live.http.delete("/v1/indexes/v/nodes/x"), 404, "not_found", "id")
    nodes = [{"id": "x", "vector": [0, 1, 1]}]
    live.ok(live.http.post("/v1/indexes/v/nodes", json={"nodes": nodes}), 201)


def test_nodes_are_listed_by_filter_and_without_one(live: LiveServer, vectors: str) -> None:
    def listed(**body: object) -> list[str]:
        page = live.ok(live.http.post("/v1/indexes/v/nodes/query", json=body))
        return [node["id"] for node in page["items"]]

    assert listed() == ["x", "y", "z", "xy"]
    assert listed(filter="metadata.n >= 3") == ["z", "xy"]
    assert listed(filter={"and": [{"eq": ["tags", "axis"]}, {"lt": ["metadata.n", 3]}]}) == ["x", "y"]
    assert listed(limit=2) == ["x", "y"]


def test_a_node_may_be_called_like_a_route(live: LiveServer, vectors: str) -> None:
    nodes = [{"id": "query", "vector": [0, 0, 3]}]
    live.ok(live.http.post("/v1/indexes/v/nodes", json={"nodes": nodes}), 201)
    assert live.ok(live.http.get("/v1/indexes/v/nodes/query"))["id"] == "query"
    assert live.ok(live.http.delete("/v1/indexes/v/nodes/query"))["outcome"] == "deleted"


def test_search_finds_by_vector_by_text_and_by_both(live: LiveServer, vectors: str) -> None:
    def found(**body: object) -> list[str]:
        answer = live.ok(live.http.post("/v1/indexes/v/search", json={"k": 2, **body}))
        return [hit["id"] for hit in answer["hits"]]

    assert found(vector=[1, 0.1, 0]) == ["x", "xy"]
    assert found(text="gamma") == ["z"]
    assert found(vector=[1, 0, 0], text="gamma ray", alpha=1.0)[0] == "x"
    assert found(vector=[1, 0, 0], text="gamma ray", alpha=0.0)[0] == "z"
    assert found(vector=[1, 0.1, 0], filter="tags CONTAINS 'axis'") == ["x", "y"]


def test_search_brings_the_memories_when_asked(live: LiveServer, vectors: str) -> None:
    plain = live.ok(live.http.post("/v1/indexes/v/search", json={"vector": [1, 0, 0], "k": 1}))["hits"][0]
    assert (plain["id"], plain["memory"]) == ("x", None)
    assert plain["score"] == pytest.approx(1.0)
    assert plain["scores"]["vector"] == plain["score"]
    body = {"vector": [1, 0, 0], "k": 1, "with_memories": True}
    full = live.ok(live.http.post("/v1/indexes/v/search", json=body))["hits"][0]
    assert full["memory"]["metadata"] == {"n": 1}


def test_a_batch_answers_row_by_row_what_single_searches_would(live: LiveServer, vectors: str) -> None:
    queries = [[1.0, 0.2, 0.0], [0.1, 0.0, 1.0]]
    body = {"vectors": queries, "k": 3, "filter": "metadata.n < 4"}
    batch = live.ok(live.http.post("/v1/indexes/v/search/batch", json=body))
    for row, query in enumerate(queries):
        single = {"vector": query, "k": 3, "filter": "metadata.n < 4"}
        hits = live.ok(live.http.post("/v1/indexes/v/search", json=single))["hits"]
        assert batch["ids"][row] == [hit["id"] for hit in hits]
        assert batch["scores"][row] == pytest.approx([hit["score"] for hit in hits])
    fewer = live.ok(live.http.post("/v1/indexes/v/search/batch", json={**body, "k": 10}))
    assert [len(row) for row in fewer["ids"]] == [len(row) for row in fewer["scores"]] == [3, 3]


def test_a_batch_may_come_and_go_as_messagepack(live: LiveServer, vectors: str) -> None:
    body = {"vectors": [[1.0, 0.2, 0.0]], "k": 2}
    plain = live.ok(live.http.post("/v1/indexes/v/search/batch", json=body))
    packed = msgspec.msgpack.encode(body)
    for content, headers, expected in (
        (packed, {"content-type": "application/x-msgpack"}, "application/x-msgpack"),
        (packed, {"content-type": "application/x-msgpack", "accept": "application/json"}, "application/json"),
        (msgspec.json.encode(body), {"accept": "application/x-msgpack"}, "application/x-msgpack"),
    ):
        answer = live.http.post("/v1/indexes/v/search/batch", content=content, headers=headers)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == expected
        decode = msgspec.msgpack.decode if expected.endswith("msgpack") else msgspec.json.decode
        assert decode(answer.content) == plain
    bad = {"vectors": [[math.nan, 0.0, 1.0]]}
    answer = live.http.post(
        "/v1/indexes/v/search/batch",
        content=msgspec.msgpack.encode(bad),
        headers={"content-type": "application/x-msgpack"},
    )
    live.error(answer, 400, "invalid", "vectors")


def test_edges_are_added_walked_ended_and_remembered(live: LiveServer, vectors: str) -> None:
    edges = [
        {"src": "x", "rel": "next", "dst": "y", "weight": 0.5, "props": {"why": "order"}, "valid_from": "2024"},
        {"src": "y", "rel": "next", "dst": "z"},
    ]
    receipt = live.ok(live.http.post("/v1/indexes/v/edges", json={"edges": edges}), 201)
    assert receipt["outcome"] == "created"

    def at(node: str, **params: str) -> list[tuple[str, str]]:
        page = live.ok(live.http.get(f"/v1/indexes/v/nodes/{node}/edges", params=params))
        assert page["next_cursor"] is None
        return [(edge["src"], edge["dst"]) for edge in page["items"]]

    assert sorted(at("y")) == [("x", "y"), ("y", "z")]
    assert at("y", direction="out") == [("y", "z")]
    assert at("y", direction="in", rel="next") == [("x", "y")]
    assert at("y", rel="other") == []
    assert at("x", as_of="2023") == []
    edge = live.ok(live.http.get("/v1/indexes/v/nodes/x/edges"))["items"][0]
    assert (edge["weight"], edge["props"], edge["valid_from"][:4]) == (0.5, {"why": "order"}, "2024")
    before = edge["created_at"]

    walk = live.ok(live.http.post("/v1/indexes/v/graph/traverse", json={"root": "x", "depth": 2}))
    assert [(node["memory"]["id"], node["depth"]) for node in walk["nodes"]] == [("x", 0), ("y", 1), ("z", 2)]
    assert (len(walk["edges"]), walk["truncated"]) == (2, False)
    path = live.ok(live.http.post("/v1/indexes/v/graph/path", json={"src": "x", "dst": "z"}))
    assert [node["id"] for node in path["nodes"]] == ["x", "y", "z"]

    gone = live.http.request("DELETE", "/v1/indexes/v/edges", json={"src": "x", "rel": "next", "dst": "y"})
    assert live.ok(gone)["outcome"] == "deleted"
    assert at("x") == []
    assert at("x", known_at=before) == [("x", "y")]
    no_path = live.ok(live.http.post("/v1/indexes/v/graph/path", json={"src": "x", "dst": "z"}))
    assert no_path == {"nodes": [], "edges": [], "cost": None, "truncated": False}


def test_the_graph_pages_and_is_analysed(live: LiveServer, vectors: str) -> None:
    edges = [{"src": "x", "rel": "r", "dst": "y", "weight": 2}, {"src": "x", "rel": "s", "dst": "z", "weight": 3}]
    live.ok(live.http.post("/v1/indexes/v/edges", json={"edges": edges}), 201)
    page = live.ok(live.http.get("/v1/indexes/v/nodes/x/neighbours", params={"limit": 1}))
    assert [item["memory"]["id"] for item in page["items"]] == ["y"]
    rest = {"limit": 1, "cursor": page["next_cursor"]}
    assert [e["dst"] for e in live.ok(live.http.get("/v1/indexes/v/nodes/x/edges", params=rest))["items"]] == ["z"]
    heavy = live.ok(live.http.get("/v1/indexes/v/nodes/x/edges", params={"edge_filter": "weight > 2"}))
    assert [e["dst"] for e in heavy["items"]] == ["z"]
    body = {"roots": ["y", "z"], "depth": 1}
    assert len(live.ok(live.http.post("/v1/indexes/v/graph/subgraph", json=body))["edges"]) == 2
    body = {"src": "y", "dst": "z", "cost": "weight"}
    assert live.ok(live.http.post("/v1/indexes/v/graph/path", json=body))["cost"] == 5
    found = live.ok(live.http.post("/v1/indexes/v/graph/analyse", json={"algorithm": "betweenness", "top": 1}))
    assert [score["id"] for score in found["scores"]] == ["x"]
    refused = live.http.post("/v1/indexes/v/graph/traverse", json={"root": "x", "edge_filter": "colour = 1"})
    live.error(refused, 400, "invalid", "edge_filter")


def test_the_raw_plane_leaves_memories_alone(live: LiveServer) -> None:
    memory_id = live.ok(live.http.post("/v1/memories", json={"text": "a memory"}), 201)["id"]
    live.error(live.http.delete(f"/v1/indexes/default/nodes/{memory_id}"), 409, "conflict", "id")
    change = {"tags": ["x"]}
    live.error(live.http.patch(f"/v1/indexes/default/nodes/{memory_id}", json=change), 409, "conflict", "id")
    assert live.ok(live.http.get(f"/v1/indexes/default/nodes/{memory_id}"))["text"] == "a memory"


def test_a_frozen_index_refuses_writes_and_opens_again(live: LiveServer, vectors: str) -> None:
    live.ok(live.http.patch("/v1/indexes/v", json={"policy": {"write": "frozen"}}))
    nodes = {"nodes": [{"id": "more", "vector": [1, 2, 3]}]}
    error = live.error(live.http.post("/v1/indexes/v/nodes", json=nodes), 409, "blocked")
    assert error["details"] == {"policy": "write"}
    live.error(live.http.get("/v1/indexes/v/nodes/more"), 404, "not_found", "id")
    live.ok(live.http.patch("/v1/indexes/v", json={"policy": {"write": "open"}}))
    live.ok(live.http.post("/v1/indexes/v/nodes", json=nodes), 201)
