"""Bad input is answered with the error object naming the field, and nothing is stored.

Every request here spoils one that is good: `test_the_good_requests_are_good` sends those, and each of them changes
what is stored, so that "nothing was stored" means something.
"""

from collections.abc import Iterator
from copy import deepcopy
from itertools import count
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.rest import LiveServer, live_server


class Good(NamedTuple):
    """A request that succeeds; `{memory}`, `{source}` in the path stand for ids of the fixture."""

    method: str
    path: str
    body: dict[str, Any]
    writes: bool = True


GOOD = {
    "remember": Good("POST", "/v1/memories", {"text": "a new fact", "tags": ["a"], "metadata": {"k": 1}}),
    "update": Good("PATCH", "/v1/memories/{memory}", {"tags": ["other"]}),
    "evolve": Good("POST", "/v1/memories/{memory}/evolve", {"text": "it changed", "valid_from": "2026-01-01"}),
    "correct": Good("POST", "/v1/memories/{memory}/correct", {"text": "it was otherwise"}),
    "retract": Good("POST", "/v1/memories/{memory}/retract", {"reason": "misspoke"}),
    "archive": Good("POST", "/v1/memories/{memory}/archive", {}),
    "pin": Good("POST", "/v1/memories/{memory}/pin", {}),
    "confirm": Good("POST", "/v1/memories/{memory}/confirm", {}),
    "reinforce": Good("POST", "/v1/memories/{memory}/reinforce", {}),
    "forget": Good("POST", "/v1/forget", {"ids": ["{memory}"], "mode": "erase"}),
    "delete": Good("DELETE", "/v1/memories/{memory}", {}),
    "ingest": Good("POST", "/v1/ingest/messages", {"session": "s2", "messages": [{"role": "user", "content": "hi"}]}),
    "recall": Good("POST", "/v1/recall", {"query": "what is known?"}, writes=False),
    "list": Good("GET", "/v1/memories", {}, writes=False),
    "get": Good("GET", "/v1/memories/{memory}", {}, writes=False),
    "create_index": Good("POST", "/v1/indexes", {"name": "new", "dim": 4}),
    "configure": Good("PATCH", "/v1/indexes/v", {"policy": {"write": "gated"}}),
    "upsert": Good("POST", "/v1/indexes/v/nodes", {"nodes": [{"id": "n", "vector": [1, 2, 3], "text": "t"}]}),
    "patch": Good("PATCH", "/v1/indexes/v/nodes/x", {"metadata": {"k": 2}}),
    "delete_node": Good("DELETE", "/v1/indexes/v/nodes/x", {}),
    "query": Good("POST", "/v1/indexes/v/nodes/query", {}, writes=False),
    "search": Good("POST", "/v1/indexes/v/search", {"vector": [1, 0, 0]}, writes=False),
    "batch": Good("POST", "/v1/indexes/v/search/batch", {"vectors": [[1, 0, 0], [0, 1, 0]]}, writes=False),
    "link": Good("POST", "/v1/indexes/v/edges", {"edges": [{"src": "x", "rel": "r", "dst": "y"}]}),
    "unlink": Good("DELETE", "/v1/indexes/v/edges", {"src": "y", "rel": "old", "dst": "x"}),
    "edges": Good("GET", "/v1/indexes/v/nodes/x/edges", {}, writes=False),
    "traverse": Good("POST", "/v1/indexes/v/graph/traverse", {"root": "x"}, writes=False),
    "path": Good("POST", "/v1/indexes/v/graph/path", {"src": "x", "dst": "y"}, writes=False),
    "subgraph": Good("POST", "/v1/indexes/v/graph/subgraph", {"roots": ["x"]}, writes=False),
    "analyse": Good("POST", "/v1/indexes/v/graph/analyse", {"algorithm": "components"}, writes=False),
}

CONTROLS = count()
MB2 = "x" * 2_000_000


class Bad(NamedTuple):
    """`change` replaces or adds members of the good body, ... removes one; `params` is a query string."""

    good: str
    change: dict[str, Any]
    field: str | None
    status: int = 400
    code: str = "invalid"
    params: str = ""


def node(**parts: Any) -> dict[str, Any]:
    return {"nodes": [{"id": "n", "vector": [1, 2, 3], "text": "t", **parts}]}


def edge(**parts: Any) -> dict[str, Any]:
    return {"edges": [{"src": "x", "rel": "r", "dst": "y", **parts}]}


def message(**parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "hi", **parts}]}


BAD = [
    Bad("path", {"cost": "miles"}, "cost"),
    Bad("path", {"max_depth": 0}, "max_depth"),
    Bad("path", {"dst": "nobody"}, "dst", 404, "not_found"),
    Bad("link", edge(valid_from="2020", valid_to="2010"), "edges[0].valid_to"),
    Bad("path", {"limit": 0}, "limit"),
    Bad("subgraph", {"roots": []}, "roots"),
    Bad("subgraph", {"roots": ["x", "nobody"]}, "roots[1]", 404, "not_found"),
    Bad("subgraph", {"depth": 33}, "depth"),
    Bad("analyse", {"algorithm": "magic"}, "algorithm"),
    Bad("analyse", {"sample": 0}, "sample"),
    Bad("analyse", {"edge_filter": "weight >"}, "edge_filter"),
    Bad("traverse", {"edge_filter": "tags = 'a'"}, "edge_filter"),
    Bad("edges", {}, "cursor", params="cursor=s3"),
    Bad("edges", {}, "limit", params="limit=0"),
    # Wrong types
    Bad("remember", {"text": 5}, "text"),
    Bad("remember", {"text": None}, "text"),
    Bad("remember", {"tags": "a"}, "tags"),
    Bad("remember", {"tags": [1]}, "tags[0]"),
    Bad("remember", {"metadata": []}, "metadata"),
    Bad("remember", {"pinned": "yes"}, "pinned"),
    Bad("remember", {"pinned": 1}, "pinned"),
    Bad("remember", {"scope": "alice"}, "scope"),
    Bad("remember", {"scope": {"user": 1}}, "scope.user"),
    Bad("remember", {"claim": ["a", "b"]}, "claim"),
    Bad("remember", {"valid_from": []}, "valid_from"),
    Bad("remember", {"index": 7}, "index"),
    Bad("update", {"tags": {}}, "tags"),
    Bad("update", {"expected_version": "1"}, "expected_version"),
    Bad("evolve", {"expected_version": 1.5}, "expected_version"),
    Bad("forget", {"ids": "a"}, "ids"),
    Bad("forget", {"dry_run": "no"}, "dry_run"),
    Bad("recall", {"k": "8"}, "k"),
    Bad("recall", {"k": 8.0}, "k"),
    Bad("recall", {"explain": "yes"}, "explain"),
    Bad("upsert", node(vector="1,2,3"), "nodes[0].vector"),
    Bad("upsert", node(vector=[1, "2", 3]), "nodes[0].vector[1]"),
    Bad("upsert", node(vector=[1, None, 3]), "nodes[0].vector[1]"),
    Bad("upsert", node(id=5), "nodes[0].id"),
    Bad("upsert", {"nodes": {}}, "nodes"),
    Bad("search", {"vector": {}}, "vector"),
    Bad("search", {"k": True}, "k"),
    Bad("batch", {"vectors": [1, 0, 0]}, "vectors[0]"),
    Bad("link", edge(weight="heavy"), "edges[0].weight"),
    Bad("link", edge(props=[]), "edges[0].props"),
    Bad("create_index", {"dim": "4"}, "dim"),
    Bad("create_index", {"dim": 4.5}, "dim"),
    Bad("ingest", {"messages": [1]}, "messages[0]"),
    Bad("ingest", message(role="robot"), "messages[0].role"),
    # Unknown and missing fields
    Bad("remember", {"txet": "typo"}, "txet"),
    Bad("remember", {"text": ...}, "text"),
    Bad("remember", {"scope": {"team": "x"}}, "scope.team"),
    Bad("remember", {"claim": {"subject": "a", "predicate": "b", "object": "c", "more": 1}}, "claim.more"),
    Bad("update", {"text": "not this way"}, "text"),
    Bad("evolve", {"text": ...}, "text"),
    Bad("correct", {"why": "x"}, "why"),
    Bad("retract", {"text": "x"}, "text"),
    Bad("archive", {"forever": True}, "forever"),
    Bad("pin", {"pinned": True}, "pinned"),
    Bad("confirm", {"note": "x"}, "note"),
    Bad("reinforce", {"expected_version": 1}, "expected_version"),
    Bad("forget", {"ids": ...}, "ids"),
    Bad("forget", {"all": True}, "all"),
    Bad("recall", {"query": ...}, "query"),
    Bad("recall", {"top_k": 3}, "top_k"),
    Bad("upsert", node(vectors=[1]), "nodes[0].vectors"),
    Bad("upsert", {"nodes": ...}, "nodes"),
    Bad("patch", {"id": "other"}, "id"),
    Bad("search", {"limit": 3}, "limit"),
    Bad("batch", {"vectors": ...}, "vectors"),
    Bad("link", edge(type="r"), "edges[0].type"),
    Bad("link", {"edges": [{"src": "x", "rel": "r"}]}, "edges[0].dst"),
    Bad("unlink", {"rel": ...}, "rel"),
    Bad("traverse", {"root": ...}, "root"),
    Bad("path", {"to": "y"}, "to"),
    Bad("create_index", {"name": ...}, "name"),
    Bad("create_index", {"dimension": 4}, "dimension"),
    Bad("create_index", {"policy": {"reads": "x"}}, "policy.reads"),
    Bad("configure", {"dim": 5}, "dim"),
    Bad("ingest", message(text="hi"), "messages[0].text"),
    Bad("list", {}, "flter", params="flter=x"),
    Bad("get", {}, "head", params="head=true"),
    Bad("delete", {}, "force", params="force=1"),
    Bad("recall", {}, "k", params="k=3"),
    # Queries of the wrong type
    Bad("list", {}, "limit", params="limit=ten"),
    Bad("list", {}, "limit", params="limit=10&limit=20"),
    Bad("get", {}, "resolve", params="resolve=tail"),
    Bad("delete", {}, "mode", params="mode=shred"),
    Bad("edges", {}, "direction", params="direction=up"),
    Bad("list", {}, "user", params="user=%ff"),
    Bad("list", {}, "scope.user", params="user="),
    # Ranges
    Bad("recall", {"k": 0}, "k"),
    Bad("recall", {"k": 1001}, "k"),
    Bad("recall", {"budget_tokens": 0}, "budget_tokens"),
    Bad("list", {}, "limit", params="limit=0"),
    Bad("list", {}, "cursor", params="cursor=nonsense"),
    Bad("query", {"limit": 1001}, "limit"),
    Bad("search", {"k": 0}, "k"),
    Bad("search", {"ef": 0}, "ef"),
    Bad("search", {"text": "x", "alpha": 1.5}, "alpha"),
    Bad("batch", {"k": -1}, "k"),
    Bad("traverse", {"depth": 0}, "depth"),
    Bad("traverse", {"limit": 0}, "limit"),
    Bad("path", {"max_depth": 99}, "max_depth"),
    Bad("create_index", {"dim": 0}, "dim"),
    Bad("create_index", {"dim": 1_000_000}, "dim"),
    Bad("create_index", {"m": 1}, "m"),
    Bad("create_index", {"ef_construction": 1}, "ef_construction"),
    Bad("create_index", {"text": {"k1": -1}}, "text.k1"),
    Bad("create_index", {"text": {"b": 5}}, "text.b"),
    Bad("create_index", {"layers": {"work": {"weight": -1}}}, "layers.work.weight"),
    # Choices
    Bad("recall", {"history": "sometimes"}, "history"),
    Bad("recall", {"mode": "psychic"}, "mode"),
    Bad("recall", {"include": ["erased"]}, "include"),
    Bad("recall", {"kinds": ["idea"]}, "kinds"),
    Bad("recall", {"tz": "Mars/Olympus"}, "tz"),
    Bad("forget", {"mode": "shred"}, "mode"),
    Bad("create_index", {"metric": "hamming"}, "metric"),
    Bad("create_index", {"precision": "i4"}, "precision"),
    Bad("create_index", {"text": {"language": "klingon"}}, "text.language"),
    Bad("create_index", {"text": {"language": "ENGLISH"}}, "text.language"),
    Bad("create_index", {"text": {"language": ""}}, "text.language"),
    Bad("create_index", {"policy": {"write": "maybe"}}, "policy.write"),
    Bad("configure", {"policy": {"evidence": "none"}}, "policy.evidence"),
    Bad("configure", {"layers": {"semantic": {"half_life_days": -1}}}, "layers.semantic.half_life_days"),
    Bad("create_index", {"embedder": "oracle"}, "embedder"),
    # Unknown index, unknown id
    Bad("search", {}, "index", 404, "not_found"),
    Bad("upsert", {}, "index", 404, "not_found"),
    Bad("link", {}, "index", 404, "not_found"),
    Bad("traverse", {}, "index", 404, "not_found"),
    Bad("configure", {}, "index", 404, "not_found"),
    Bad("recall", {"index": "nowhere"}, "index", 404, "not_found"),
    Bad("list", {}, "index", 404, "not_found", params="index=nowhere"),
    Bad("update", {"index": "nowhere"}, "index", 404, "not_found"),
    Bad("evolve", {"index": "nowhere"}, "index", 404, "not_found"),
    Bad("retract", {"index": "nowhere"}, "index", 404, "not_found"),
    Bad("forget", {"index": "nowhere"}, "index", 404, "not_found"),
    Bad("forget", {"ids": ["nobody"]}, "id", 404, "not_found"),
    Bad("forget", {"ids": ["{memory}", "nobody"]}, "id", 404, "not_found"),
    Bad("link", edge(dst="nobody"), "dst", 404, "not_found"),
    Bad(
        "link",
        {"edges": [{"src": "x", "rel": "r", "dst": "y"}, {"src": "no", "rel": "r", "dst": "y"}]},
        "src",
        404,
        "not_found",
    ),
    Bad("unlink", {"rel": "never"}, "rel", 404, "not_found"),
    Bad("traverse", {"root": "nobody"}, "root", 404, "not_found"),
    Bad("remember", {"index": "no spaces"}, "index"),
    Bad("remember", {"index": ""}, "index"),
    Bad("create_index", {"name": "-dash"}, "name"),
    Bad("create_index", {"name": "x" * 65}, "name"),
    # Vectors
    Bad("upsert", node(vector=[1, 2]), "nodes[0].vector"),
    Bad("upsert", node(vector=[]), "nodes[0].vector"),
    Bad("upsert", node(vector=[0, 0, 0]), "nodes[0].vector"),
    Bad("upsert", node(vector=[1e300, 0, 0]), "nodes[0].vector"),
    Bad(
        "upsert", {"nodes": [{"id": "a", "vector": [1, 2, 3]}, {"id": "b", "vector": [1, 2, 3, 4]}]}, "nodes[1].vector"
    ),
    Bad("patch", {"vector": [1]}, "vector"),
    Bad("patch", {"vector": [0, 0, 0]}, "vector"),
    Bad("search", {"vector": [1, 0]}, "vector"),
    Bad("search", {"vector": [0, 0, 0]}, "vector"),
    Bad("search", {"vector": [-1e300, 0, 0]}, "vector"),
    Bad("search", {"vector": ...}, "vector"),
    Bad("batch", {"vectors": [[1, 0, 0], [1, 0]]}, "vectors[1]"),
    Bad("batch", {"vectors": [[1, 0, 0], [0, 0, 0]]}, "vectors"),
    Bad("batch", {"vectors": [[1e300, 0, 0]]}, "vectors"),
    Bad("batch", {"vectors": []}, "vectors"),
    # Texts
    Bad("remember", {"text": ""}, "text"),
    Bad("remember", {"text": " \n\t"}, "text"),
    Bad("remember", {"text": MB2}, "text", 413, "too_large"),
    Bad("evolve", {"text": ""}, "text"),
    Bad("correct", {"text": MB2}, "text", 413, "too_large"),
    Bad("correct", {"text": "The kettle is on."}, "text"),
    Bad("recall", {"query": ""}, "query"),
    Bad("recall", {"query": MB2}, "query", 413, "too_large"),
    Bad("search", {"text": ""}, "text"),
    Bad("upsert", node(text=MB2), "nodes[0].text", 413, "too_large"),
    Bad("ingest", message(content=""), "messages[0].content"),
    Bad("ingest", message(content=MB2), "messages[0].content", 413, "too_large"),
    Bad("ingest", {"session": ""}, "session"),
    Bad("ingest", {"messages": []}, "messages"),
    # Ids, tags, layers, scopes, metadata
    Bad("remember", {"id": ""}, "id"),
    Bad("remember", {"id": "a b"}, "id"),
    Bad("remember", {"id": "a/b"}, "id"),
    Bad("remember", {"id": ".."}, "id"),
    Bad("remember", {"id": "x" * 257}, "id"),
    Bad("remember", {"id": "a\u0000b"}, "id"),
    Bad("remember", {"tags": ["ok", " "]}, "tags"),
    Bad("remember", {"tags": ["x" * 2000]}, "tags", 413, "too_large"),
    Bad("remember", {"layer": ""}, "layer"),
    Bad("remember", {"scope": {"user": " "}}, "scope.user"),
    Bad("remember", {"metadata": {"": 1}}, "metadata"),
    Bad("remember", {"metadata": {"big": 1 << 70}}, "metadata.big"),
    Bad("remember", {"metadata": {"k": MB2}}, "metadata", 413, "too_large"),
    Bad("remember", {"claim": ["a", "", "c"]}, "claim.predicate"),
    Bad("remember", {"evidence": [{"source": "nowhere", "quote": "q"}]}, "evidence[0].source"),
    Bad("remember", {"evidence": [{"source": "{source}", "quote": "never said"}]}, "evidence[0].quote"),
    Bad("remember", {"evidence": [{"source": "{source}", "start": 5, "end": 500}]}, "evidence[0].start"),
    Bad("confirm", {"evidence": "nowhere"}, "evidence"),
    Bad("forget", {"ids": []}, "ids"),
    Bad("upsert", {"nodes": []}, "nodes"),
    Bad("link", {"edges": []}, "edges"),
    Bad("link", edge(rel="supersedes"), "rel"),
    Bad("patch", {"metadata": ...}, None),
    # Duplicate ids
    Bad("upsert", {"nodes": [{"id": "d", "vector": [1, 2, 3]}, {"id": "d", "vector": [3, 2, 1]}]}, "nodes[1].id"),
    Bad("remember", {"id": "{memory}"}, "id", 409, "conflict"),
    Bad("create_index", {"name": "v"}, "name", 409, "conflict"),
    # Versions
    Bad("update", {"expected_version": 9}, "expected_version", 409, "conflict"),
    Bad("evolve", {"expected_version": 0}, "expected_version", 409, "conflict"),
    Bad("evolve", {"expected_version": 1 << 80}, "expected_version", 409, "conflict"),
    # Filters
    Bad("list", {}, "filter", params="filter=tags%20CONTAINS"),
    Bad("list", {}, "filter", params="filter=%7B%22eq%22%3A"),
    Bad("list", {}, "filter", params="filter=nosuchfield%20%3D%201"),
    Bad("recall", {"filter": "((layer = 'x')"}, "filter"),
    Bad("recall", {"filter": {"eq": ["layer"]}}, "filter"),
    Bad("recall", {"filter": {"xor": []}}, "filter"),
    Bad("recall", {"filter": 5}, "filter"),
    Bad("query", {"filter": "layer = "}, "filter"),
    Bad("search", {"filter": "n >"}, "filter"),
    Bad("batch", {"filter": "'"}, "filter"),
    Bad("traverse", {"filter": "AND"}, "filter"),
    # Dates
    Bad("remember", {"occurred_at": "yesterday-ish"}, "occurred_at"),
    Bad("remember", {"valid_from": "2026-02-30"}, "valid_from"),
    Bad("remember", {"valid_to": "2026-13"}, "valid_to"),
    Bad("remember", {"valid_from": 1_700_000_000_000}, "valid_from"),
    Bad("remember", {"valid_from": "2026", "valid_to": "2025"}, "valid_to"),
    Bad("evolve", {"valid_from": "soon"}, "valid_from"),
    Bad("recall", {"as_of": "2026-99"}, "as_of"),
    Bad("recall", {"known_at": ""}, "known_at"),
    Bad("recall", {"now": "never"}, "now"),
    Bad("list", {}, "as_of", params="as_of=1700000000000"),
    Bad("edges", {}, "known_at", params="known_at=x"),
    Bad("traverse", {"as_of": "x"}, "as_of"),
    Bad("path", {"known_at": "x"}, "known_at"),
    Bad("link", edge(valid_from="x"), "edges[0].valid_from"),
    Bad("ingest", message(at="x"), "messages[0].at"),
]

UNKNOWN_INDEX = {"search", "upsert", "link", "traverse", "configure"}
"""Those whose index stands in the path: `Bad` with an unchanged body asks for another one."""


@pytest.fixture(scope="module")
def filled() -> Iterator[LiveServer]:
    with live_server() as live:
        fill(live)
        yield live


@pytest.fixture
def fresh(live: LiveServer) -> LiveServer:
    fill(live)
    return live


def fill(live: LiveServer) -> None:
    """Something of everything, so that every good request has what it speaks of."""
    live.ok(live.http.post("/v1/memories", json={"id": "m1", "text": "The kettle is on."}), 201)
    talk = {"session": "s1", "messages": [{"role": "user", "content": "The kettle is on, I said."}]}
    live.ok(live.http.post("/v1/ingest/messages", json=talk), 201)
    live.ok(live.http.post("/v1/indexes", json={"name": "v", "dim": 3}), 201)
    nodes = [{"id": "x", "vector": [1, 0, 0]}, {"id": "y", "vector": [0, 1, 0], "metadata": {"n": 1}}]
    live.ok(live.http.post("/v1/indexes/v/nodes", json={"nodes": nodes}), 201)
    live.ok(live.http.post("/v1/indexes/v/edges", json={"edges": [{"src": "y", "rel": "old", "dst": "x"}]}), 201)


def send(
    live: LiveServer, good: Good, body: dict[str, Any], *, path: str | None = None, params: str = ""
) -> httpx.Response:
    names = {"{memory}": "m1", "{source}": source_of(live)}
    path = (path or good.path).replace("{memory}", "m1")
    takes_body = good.method in ("POST", "PATCH") or path.endswith("/edges")
    return live.http.request(
        good.method,
        f"{path}?{params}" if params else path,
        json=replaced(body, names) if takes_body and good.method != "GET" else None,
    )


def source_of(live: LiveServer) -> str:
    return live.ok(live.http.get("/v1/memories?kinds=source"))["items"][0]["id"]


def replaced(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: replaced(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [replaced(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value


def spoilt(bad: Bad) -> dict[str, Any]:
    body = {**deepcopy(GOOD[bad.good].body), **bad.change}
    return {name: value for name, value in body.items() if value is not ...}


def name_of(bad: Bad) -> str:
    change = bad.params or str(bad.change)
    return f"{bad.good}-{change[:50]}" if change != "{}" else f"{bad.good}-unknown-index"


@pytest.mark.parametrize("name", GOOD)
def test_the_good_requests_are_good(fresh: LiveServer, name: str) -> None:
    good = GOOD[name]
    before = fresh.stored()
    answer = send(fresh, good, good.body)
    assert answer.status_code in (200, 201), answer.text
    assert (fresh.stored() != before) is good.writes


@pytest.mark.parametrize("bad", BAD, ids=name_of)
def test_a_bad_request_names_the_field_and_stores_nothing(filled: LiveServer, bad: Bad) -> None:
    good = GOOD[bad.good]
    before = filled.stored()
    path = None
    if not bad.change and not bad.params and bad.good in UNKNOWN_INDEX:
        path = good.path.replace("/v", "/nowhere", 2).replace("/nowhere1", "/v1")
    answer = send(filled, good, spoilt(bad), path=path, params=bad.params)
    filled.error(answer, bad.status, bad.code, bad.field)
    assert filled.stored() == before
    filled.ok(filled.http.post("/v1/memories", json={"text": f"control {next(CONTROLS)}"}), 201)
    assert filled.stored() != before


RAW_BODIES = [
    (b"", "empty"),
    (b"{", "cut short"),
    (b"null", "null"),
    (b"[]", "a list"),
    (b'"text"', "a text"),
    (b'{"text": "a"} x', "trailing"),
    (b'{"text": NaN}', "NaN"),
    (b'{"text": "a", "metadata": {"k": NaN}}', "NaN inside"),
    (b'{"text": "a", "metadata": {"k": Infinity}}', "Infinity"),
    (b'{"text": "a", "metadata": {"k": 1e999}}', "too large a number"),
    (b'{"text": "\xff\xfe"}', "not UTF-8"),
    (b'{"text": "\xed\xa0\x80"}', "an encoded surrogate"),
    (b'{"text": "\\ud800"}', "half a surrogate pair"),
    (b'{"text": "a\x00b"}', "a raw control character"),
    (b'\xef\xbb\xbf{"text": "a"}', "a byte order mark"),
    (b"{'text': 'a'}", "single quotes"),
    (b'{"text": "a", "metadata": ' + b'{"k":' * 5000 + b"1" + b"}" * 5000 + b"}", "too deep to parse"),
]


@pytest.mark.parametrize("body", [body for body, _ in RAW_BODIES], ids=[name for _, name in RAW_BODIES])
def test_a_body_that_is_no_json_object_is_invalid(filled: LiveServer, body: bytes) -> None:
    before = filled.stored()
    answer = filled.http.post("/v1/memories", content=body, headers={"content-type": "application/json"})
    assert filled.error(answer, 400, "invalid", answer.json()["error"]["field"])["message"]
    assert filled.stored() == before


def test_json_nested_beyond_the_limit_is_too_large(filled: LiveServer) -> None:
    before = filled.stored()
    deep: Any = 1
    for _ in range(70):
        deep = [deep]
    answer = filled.http.post("/v1/memories", json={"text": "a", "metadata": {"k": deep}})
    filled.error(answer, 413, "too_large", "metadata.k")
    assert filled.stored() == before


@pytest.mark.parametrize("vector", [b"[NaN, 0, 1]", b"[Infinity, 0, 1]", b"[1e999, 0, 1]"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/indexes/v/nodes", b'{"nodes": [{"id": "n", "vector": %s}]}'),
        ("/v1/indexes/v/search", b'{"vector": %s}'),
        ("/v1/indexes/v/search/batch", b'{"vectors": [%s]}'),
    ],
)
def test_a_vector_of_what_json_has_no_number_for_is_invalid(
    filled: LiveServer, path: str, body: bytes, vector: bytes
) -> None:
    before = filled.stored()
    answer = filled.http.post(path, content=body % vector, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid"
    assert filled.stored() == before


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/x-msgpack"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "application/json", "idempotency-key": ""},
        {"content-type": "application/json", "idempotency-key": "x" * 300},
    ],
    ids=str,
)
def test_headers_that_declare_something_else_are_invalid(filled: LiveServer, headers: dict[str, str]) -> None:
    before = filled.stored()
    answer = filled.http.post("/v1/memories", content=b'{"text": "declared wrongly"}', headers=headers)
    filled.error(answer, 400, "invalid", "idempotency_key" if "idempotency-key" in headers else None)
    assert filled.stored() == before


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", 'application/json;charset="UTF-8"', "Application/JSON"]
)
def test_json_may_be_declared_in_any_of_its_spellings(live: LiveServer, kind: str) -> None:
    answer = live.http.post("/v1/memories", content='{"text": "café"}'.encode(), headers={"content-type": kind})
    live.ok(answer, 201)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/memories/..",
        "/v1/memories/%2e%2e",
        "/v1/memories/a%2Fb",
        "/v1/memories/a%00b",
        "/v1/memories/%ff",
        "/v1/memories/%20",
        "/v1/memories/" + "x" * 300,
        "/v1/indexes/..",
        "/v1/indexes/a%2Fb",
        "/v1/indexes/%00",
        "/v1/indexes/" + "x" * 65,
        "/v1/indexes/v/nodes/%2e",
    ],
)
def test_a_path_that_can_name_nothing_is_invalid(filled: LiveServer, path: str) -> None:
    answer = filled.raw("GET", path)
    assert filled.error(answer, 400, "invalid", answer.json()["error"]["field"])["field"] in ("id", "index")


@pytest.mark.parametrize("path", ["/v1/memories/", "/v1/memories//history", "//v1/memories", "/v1", "/v1/../healthz"])
def test_a_path_of_no_route_is_not_found(filled: LiveServer, path: str) -> None:
    filled.error(filled.raw("GET", path), 404, "not_found")


def test_an_encoded_path_is_decoded_once(live: LiveServer) -> None:
    for node_id in ("100%", "a%2Fb", "käse", "a+b", "query"):
        live.ok(live.http.post("/v1/memories", json={"id": node_id, "text": f"called {node_id}"}), 201)
    for encoded, node_id in (("100%25", "100%"), ("a%252Fb", "a%2Fb"), ("k%C3%A4se", "käse"), ("a+b", "a+b")):
        assert live.ok(live.raw("GET", f"/v1/memories/{encoded}"))["id"] == node_id
    live.error(live.raw("GET", "/v1/memories/a%2Fb"), 400, "invalid", "id")
