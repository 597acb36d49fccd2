"""The contract: a valid OpenAPI 3.1 document that names every route, and nothing that the server does not do.

Every answer met here is held against the document: its status must be declared, its body must fit the schema, which
is read as closed, so that a field nobody declared is found too.
"""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

import kektor
from kektor.engine.gateway import Principal
from kektor.errors import Unauthenticated
from kektor_server.rest.principal import Headers, everyone
from kektor_server.rest.routes import all_routes
from tests.support.embedders import HashingEmbedder
from tests.support.rest import LiveServer, live_server

Json = dict[str, Any]

ROUTES = """
GET /healthz
GET /readyz
GET /openapi.json
GET /v1/info
GET /metrics
GET POST /v1/indexes
GET PATCH DELETE /v1/indexes/{index}
GET /v1/indexes/{index}/stats
POST /v1/indexes/{index}/nodes
GET PATCH DELETE /v1/indexes/{index}/nodes/{id}
POST /v1/indexes/{index}/nodes/query
POST /v1/indexes/{index}/search
POST /v1/indexes/{index}/search/batch
POST DELETE /v1/indexes/{index}/edges
GET /v1/indexes/{index}/nodes/{id}/edges
POST /v1/indexes/{index}/graph/traverse
GET /v1/indexes/{index}/nodes/{id}/neighbours
POST /v1/indexes/{index}/graph/path
POST /v1/indexes/{index}/graph/subgraph
POST /v1/indexes/{index}/graph/analyse
GET POST /v1/memories
GET PATCH DELETE /v1/memories/{id}
GET /v1/memories/{id}/history
GET /v1/memories/{id}/evidence
POST /v1/memories/{id}/evolve
POST /v1/memories/{id}/correct
POST /v1/memories/{id}/retract
POST /v1/memories/{id}/archive
POST /v1/memories/{id}/restore
POST /v1/memories/{id}/pin
POST /v1/memories/{id}/unpin
POST /v1/memories/{id}/confirm
POST /v1/memories/{id}/reinforce
POST /v1/memories/{id}/dismiss
POST /v1/recall
POST /v1/forget
POST /v1/ingest/messages
POST /v1/memories/{id}/share
GET POST /v1/sessions
POST /v1/sessions/{id}/end
GET /v1/sources
GET /v1/sources/{id}
GET /v1/reviews
POST /v1/reviews/{id}
GET /v1/erasures
GET /v1/erasures/{id}
GET /v1/tombstones
DELETE /v1/tombstones/{id}
GET PUT DELETE /v1/kv/{key}
GET /v1/export
GET /v1/events
GET /.well-known/jwks.json
GET POST /v1/tokens
DELETE /v1/tokens/{jti}
POST /v1/admin/keys/rotate
POST /v1/admin/checkpoint
POST /v1/admin/compact
GET /v1/audit
POST /v1/audit/verify
"""

META: Json = {
    "$comment": "What OpenAPI 3.1 asks of the parts that are used here; nothing else may stand in them.",
    "type": "object",
    "required": ["openapi", "info", "paths"],
    "additionalProperties": False,
    "properties": {
        "openapi": {"pattern": r"^3\.1\.\d+$"},
        "jsonSchemaDialect": {"type": "string", "format": "uri"},
        "info": {
            "type": "object",
            "required": ["title", "version"],
            "additionalProperties": False,
            "properties": {
                "title": {"type": "string"},
                "version": {"type": "string"},
                "description": {"type": "string"},
                "license": {"type": "object", "required": ["name"]},
            },
        },
        "tags": {"type": "array", "items": {"type": "object", "required": ["name"]}, "uniqueItems": True},
        "paths": {
            "patternProperties": {
                "^/": {
                    "additionalProperties": False,
                    "patternProperties": {"^(get|post|put|patch|delete)$": {"$ref": "#/$defs/operation"}},
                }
            },
            "additionalProperties": False,
        },
        "components": {
            "additionalProperties": False,
            "properties": {
                "schemas": {"propertyNames": {"pattern": "^[a-zA-Z0-9._-]+$"}, "type": "object"},
                "securitySchemes": {"type": "object"},
            },
        },
        "security": {"type": "array", "items": {"type": "object"}},
    },
    "$defs": {
        "operation": {
            "type": "object",
            "required": ["operationId", "tags", "summary", "responses"],
            "additionalProperties": False,
            "properties": {
                "operationId": {"type": "string", "pattern": "^[a-z_]+$"},
                "tags": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                "summary": {"type": "string", "minLength": 5},
                "description": {"type": "string"},
                "parameters": {"type": "array", "items": {"$ref": "#/$defs/parameter"}},
                "requestBody": {
                    "type": "object",
                    "required": ["content", "required"],
                    "additionalProperties": False,
                    "properties": {"required": {"type": "boolean"}, "content": {"$ref": "#/$defs/content"}},
                },
                "responses": {
                    "minProperties": 2,
                    "additionalProperties": False,
                    "patternProperties": {"^[1-5][0-9][0-9]$": {"$ref": "#/$defs/response"}},
                },
            },
        },
        "parameter": {
            "type": "object",
            "required": ["name", "in", "schema"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string"},
                "in": {"enum": ["path", "query", "header"]},
                "required": {"type": "boolean"},
                "description": {"type": "string"},
                "style": {"const": "form"},
                "explode": {"type": "boolean"},
                "schema": {"type": "object"},
            },
            "if": {"properties": {"in": {"const": "path"}}},
            "then": {"properties": {"required": {"const": True}}},
        },
        "content": {
            "minProperties": 1,
            "additionalProperties": {
                "type": "object",
                "required": ["schema"],
                "additionalProperties": False,
                "properties": {"schema": {"type": "object"}},
            },
        },
        "response": {
            "type": "object",
            "required": ["description"],
            "additionalProperties": False,
            "properties": {
                "description": {"type": "string", "minLength": 3},
                "headers": {"additionalProperties": {"type": "object", "required": ["schema"]}},
                "content": {"$ref": "#/$defs/content"},
            },
        },
    },
}


class Operation(NamedTuple):
    method: str
    path: str
    described: Json

    @property
    def name(self) -> str:
        name: str = self.described["operationId"]
        return name


class Contract:
    """The document as served."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.operations = [
            Operation(method.upper(), path, described)
            for path, methods in document["paths"].items()
            for method, described in methods.items()
        ]
        closed = close(deepcopy(document))
        self._registry: Any = Registry().with_resource("doc", Resource(closed, DRAFT202012))

    def named(self, name: str) -> Operation:
        return next(operation for operation in self.operations if operation.name == name)

    def check(self, operation: Operation, answer: httpx.Response) -> None:
        """The status is declared, and the body fits what is declared for it."""
        responses = operation.described["responses"]
        assert str(answer.status_code) in responses, f"{operation.name}: {answer.status_code} {answer.text[:300]}"
        media = answer.headers["content-type"]
        assert media in responses[str(answer.status_code)]["content"]
        where = f"#/paths/{pointer(operation.path)}/{operation.method.lower()}/responses/{answer.status_code}"
        schema = {"$ref": f"doc{where}/content/{pointer(media)}/schema"}
        if media == "application/json":
            Draft202012Validator(schema, registry=self._registry).validate(answer.json())


def pointer(part: str) -> str:
    return quote(part.replace("~", "~0").replace("/", "~1"), safe="~")


def close(value: Any) -> Any:
    """Objects with named properties hold no others."""
    if isinstance(value, dict):
        if value.get("type") == "object" and "properties" in value:
            value.setdefault("additionalProperties", False)
        for inner in value.values():
            close(inner)
    elif isinstance(value, list):
        for inner in value:
            close(inner)
    return value


class ExchangeableEmbedder(HashingEmbedder):
    """One that can become another under the same name, as when a model is swapped."""

    @contextmanager
    def exchanged(self) -> Iterator[None]:
        label, self._label = self._label, "another"
        try:
            yield
        finally:
            self._label = label


@pytest.fixture
def embedder() -> ExchangeableEmbedder:
    return ExchangeableEmbedder()


@pytest.fixture
def fresh(embedder: ExchangeableEmbedder) -> Iterator[LiveServer]:
    """A server for a test that changes what the requests speak of."""
    with kektor.open(":memory:", embedder=embedder) as database, live_server(database) as server:
        fill(server)
        yield server


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    with live_server(body_bytes=256 * 1024, buffered_bytes=1 << 20) as server:
        fill(server)
        yield server


@pytest.fixture(scope="module")
def contract(live: LiveServer) -> Contract:
    return Contract(live.ok(live.http.get("/openapi.json")))


def fill(live: LiveServer) -> None:
    """What the requests below speak of."""
    for body in (
        {"id": "m1", "text": "the first fact", "keys": ["k"]},
        {"id": "two", "text": "of alice", "scope": {"user": "alice"}},
        {"id": "two", "text": "of bob", "scope": {"user": "bob"}},
    ):
        live.ok(live.http.post("/v1/memories", json=body), 201)
    live.ok(live.http.post("/v1/indexes", json={"name": "v", "dim": 3}), 201)
    live.ok(live.http.post("/v1/indexes", json={"name": "doomed", "dim": 3}), 201)
    nodes = [{"id": name, "vector": [1, 0, n], "text": name} for n, name in enumerate(("x", "y", "z"))]
    live.ok(live.http.post("/v1/indexes/v/nodes", json={"nodes": nodes}), 201)
    for user in ("alice", "bob"):
        live.ok(live.http.put("/v1/kv/two", json={"value": user, "scope": {"user": user}}))
        both = {"nodes": [{"id": "two", "vector": [1, 1, 1]}], "scope": {"user": user}}
        live.ok(live.http.post("/v1/indexes/v/nodes", json=both), 201)


# The document


def test_the_document_is_openapi(contract: Contract) -> None:
    Draft202012Validator(META).validate(contract.document)
    for schema in contract.document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_reference_leads_somewhere_and_no_schema_is_left_over(contract: Contract) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    named = {f"#/components/schemas/{name}" for name in contract.document["components"]["schemas"]}
    assert set(references(contract.document)) == named


def test_every_route_of_the_interface_is_there_and_no_other(contract: Contract) -> None:
    listed = [line.split() for line in ROUTES.strip().splitlines()]
    expected = {(method, words[-1]) for words in listed for method in words[:-1]}
    assert {(operation.method, operation.path) for operation in contract.operations} == expected


def test_operations_are_named_once_and_their_paths_say_all_their_parameters(contract: Contract) -> None:
    names = [operation.name for operation in contract.operations]
    assert len(names) == len(set(names))
    for operation in contract.operations:
        described = {p["name"] for p in operation.described["parameters"] if p["in"] == "path"}
        assert described == {part[1:-1] for part in operation.path.split("/") if part.startswith("{")}


def test_request_bodies_forbid_what_they_do_not_name(contract: Contract) -> None:
    components = contract.document["components"]["schemas"]
    for operation in contract.operations:
        for content in operation.described.get("requestBody", {"content": {}})["content"].values():
            name = content["schema"]["$ref"].rpartition("/")[2]
            assert components[name]["additionalProperties"] is False, name


# What it declares is reachable


class Ask(NamedTuple):
    body: Json | None = None
    index: str = "v"
    id: str = "m1"
    query: str = ""
    key: str | None = None


def ask(live: LiveServer, operation: Operation, asked: Ask, **headers: str) -> httpx.Response:
    path = operation.path.replace("{index}", quote(asked.index, safe=""))
    for name in ("{id}", "{jti}", "{key}"):
        path = path.replace(name, quote(asked.id, safe=""))
    if asked.key is not None:
        headers["idempotency-key"] = asked.key
    target = f"{path}?{asked.query}"
    with live.http.stream(operation.method, target, json=asked.body, headers=headers) as answer:
        if answer.headers["content-type"] != "text/event-stream":
            answer.read()
        return answer


def edge(src: str = "x", dst: str = "y") -> Json:
    return {"edges": [{"src": src, "rel": "r", "dst": dst}]}


SUCCESS: list[tuple[str, int, Ask]] = [
    ("healthz", 200, Ask()),
    ("readyz", 200, Ask()),
    ("openapi", 200, Ask()),
    ("info", 200, Ask()),
    ("metrics", 200, Ask()),
    ("list_indexes", 200, Ask()),
    ("create_index", 201, Ask({"name": "made", "dim": 2})),
    ("get_index", 200, Ask()),
    ("configure_index", 200, Ask({"layers": {"x": {"half_life_days": 1}}})),
    ("index_stats", 200, Ask()),
    ("delete_index", 200, Ask(index="doomed")),
    ("upsert_nodes", 201, Ask({"nodes": [{"id": "w", "vector": [1, 2, 3]}]})),
    ("upsert_nodes", 200, Ask({"nodes": [{"id": "w", "vector": [1, 2, 3]}]})),
    ("get_node", 200, Ask(id="x")),
    ("get_node", 200, Ask(id="x", query="with_vector=true")),
    ("patch_node", 200, Ask({"tags": ["a"]}, id="w")),
    ("query_nodes", 200, Ask({})),
    ("search", 200, Ask({"vector": [1, 0, 0], "text": "x", "with_memories": True})),
    ("search_batch", 200, Ask({"vectors": [[1, 0, 0]]})),
    ("link", 201, Ask(edge())),
    ("node_edges", 200, Ask(id="x")),
    ("traverse", 200, Ask({"root": "x"})),
    ("path", 200, Ask({"src": "x", "dst": "y"})),
    ("subgraph", 200, Ask({"roots": ["x"]})),
    ("analyse", 200, Ask({"algorithm": "components"})),
    ("neighbours", 200, Ask(id="x")),
    ("unlink", 200, Ask({"src": "x", "rel": "r", "dst": "y"})),
    ("delete_node", 200, Ask(id="w")),
    ("remember", 201, Ask({"text": "a new fact", "claim": ["a", "b", "c"], "occurred_at": "2024"})),
    ("remember", 200, Ask({"text": "a new fact", "claim": ["a", "b", "c"], "occurred_at": "2024"})),
    ("list_memories", 200, Ask()),
    ("get_memory", 200, Ask()),
    ("update_memory", 200, Ask({"tags": ["t"]})),
    ("memory_history", 200, Ask()),
    ("memory_evidence", 200, Ask()),
    ("pin", 200, Ask({})),
    ("unpin", 200, Ask()),
    ("confirm", 200, Ask({})),
    ("reinforce", 200, Ask()),
    ("dismiss", 200, Ask({"key": "k"})),
    ("archive", 200, Ask()),
    ("restore", 200, Ask()),
    ("recall", 200, Ask({"query": "the first fact", "explain": True})),
    ("ingest_messages", 201, Ask({"session": "s", "messages": [{"role": "user", "content": "hi"}]})),
    ("ingest_messages", 200, Ask({"session": "s", "messages": [{"role": "user", "content": "hi"}]})),
    ("start_session", 201, Ask({"id": "talk"})),
    ("start_session", 200, Ask({"id": "talk"})),
    ("list_sessions", 200, Ask()),
    ("list_sources", 200, Ask()),
    ("get_source", 200, Ask(id="{source}")),
    ("end_session", 200, Ask({}, id="s")),
    ("share", 201, Ask({"to": {"scope": {"user": "carol"}}})),
    ("share", 200, Ask({"to": {"scope": {"user": "carol"}}})),
    ("evolve", 200, Ask({"text": "the second fact"})),
    ("correct", 200, Ask({"text": "the third fact"}, id="{head}")),
    ("retract", 200, Ask(id="{head}")),
    ("list_tombstones", 200, Ask()),
    ("lift_tombstone", 200, Ask(id="{stone}")),
    ("forget", 200, Ask({"ids": ["m1"], "mode": "erase", "dry_run": True})),
    ("delete_memory", 200, Ask()),
    ("list_reviews", 200, Ask()),
    ("decide_review", 200, Ask({"decision": "accept"}, id="{review}")),
    ("list_erasures", 200, Ask()),
    ("get_erasure", 200, Ask(id="{erasure}")),
    ("put_kv", 200, Ask({"value": [1, None, "x"]})),
    ("get_kv", 200, Ask()),
    ("delete_kv", 200, Ask()),
    ("export", 200, Ask()),
    ("events", 200, Ask()),
    ("jwks", 200, Ask()),
    ("create_token", 201, Ask({"roles": ["read"], "grants": [{"index": "v", "user": "alice"}]})),
    ("list_tokens", 200, Ask()),
    ("revoke_token", 200, Ask(id="{jti}")),
    ("rotate_keys", 200, Ask({"overlap": "1d"})),
    ("checkpoint", 200, Ask()),
    ("audit", 200, Ask()),
    ("verify_audit", 200, Ask()),
    ("compact", 200, Ask({"wait": True})),
]


def an_open_review(live: LiveServer) -> str:
    """What a conflict leaves to be decided."""
    for port in (8080, 8081):
        claim = ["the gateway", "port", str(port)]
        live.ok(live.http.post("/v1/memories", json={"text": f"The gateway's port is {port}", "claim": claim}), 201)
    review: str = live.ok(live.http.get("/v1/reviews"))["items"][0]["id"]
    return review


LATER: dict[str, Callable[[LiveServer], str]] = {
    "{head}": lambda live: live.ok(live.http.get("/v1/memories/m1?resolve=head"))["id"],
    "{stone}": lambda live: live.ok(live.http.get("/v1/tombstones"))["items"][0]["id"],
    "{review}": an_open_review,
    "{source}": lambda live: live.ok(live.http.get("/v1/sources"))["items"][0]["id"],
    "{erasure}": lambda live: live.ok(live.http.get("/v1/erasures"))["items"][0]["id"],
    "{jti}": lambda live: live.ok(live.http.get("/v1/tokens"))["items"][0]["jti"],
}
"""Ids that come to be on the way."""

MISSING: dict[str, Ask] = {
    "remember": Ask({"text": "x", "index": "nowhere"}),
    "ingest_messages": Ask({"session": "s", "messages": [{"role": "user", "content": "hi"}], "index": "nowhere"}),
    "recall": Ask({"query": "x", "index": "nowhere"}),
    "forget": Ask({"ids": ["nobody"]}),
    "list_memories": Ask(query="index=nowhere"),
    "list_tombstones": Ask(query="index=nowhere"),
    "list_reviews": Ask(query="index=nowhere"),
    "list_sessions": Ask(query="index=nowhere"),
    "list_sources": Ask(query="index=nowhere"),
    "start_session": Ask({"id": "x", "index": "nowhere"}),
    "put_kv": Ask({"value": 1, "index": "nowhere"}),
    "export": Ask(query="index=nowhere"),
}
"""Requests for what is not there, where another path is not enough."""

CLASHES: dict[str, Ask] = {
    "create_index": Ask({"name": "made2", "dim": 3}),
    "forget": Ask({"ids": ["two"], "mode": "erase"}),
    "end_session": Ask({}, id="talk"),
    "traverse": Ask({"root": "two"}),
    "path": Ask({"src": "x", "dst": "two"}),
    "subgraph": Ask({"roots": ["two"]}),
}
"""Conflicts that do not come from an id in several scopes, or from a key that was used for something else."""


def body_for(operation: Operation) -> Json | None:
    """The body of a request that succeeds."""
    return next(asked.body for name, _, asked in SUCCESS if name == operation.name)


def declaring(contract: Contract, status: int) -> list[Operation]:
    return [operation for operation in contract.operations if str(status) in operation.described["responses"]]


def expect(live: LiveServer, contract: Contract, operation: Operation, asked: Ask, status: int, **headers: str) -> None:
    answer = ask(live, operation, asked, **headers)
    assert answer.status_code == status, f"{operation.name}: {answer.status_code} {answer.text[:300]}"
    contract.check(operation, answer)


def test_every_success_is_reached_and_is_as_declared(fresh: LiveServer, contract: Contract) -> None:
    reached: dict[str, set[str]] = {}
    for name, status, asked in SUCCESS:
        if asked.id in LATER:
            asked = asked._replace(id=LATER[asked.id](fresh))
        expect(fresh, contract, contract.named(name), asked, status)
        reached.setdefault(name, set()).add(str(status))
    for operation in contract.operations:
        declared = {status for status in operation.described["responses"] if status < "300"}
        assert reached.get(operation.name) == declared, operation.name


def test_every_400_is_reached(live: LiveServer, contract: Contract) -> None:
    for operation in declaring(contract, 400):
        expect(live, contract, operation, Ask(body_for(operation), query="no_such_parameter=1"), 400)


def test_every_403_is_reached(live: LiveServer, contract: Contract) -> None:
    for operation in declaring(contract, 403):
        expect(live, contract, operation, Ask(), 403, origin="https://evil.example")


def test_every_404_is_reached(live: LiveServer, contract: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    # Writes make the index they name: that it is not there means that somebody dropped it in between.
    monkeypatch.setattr(live.database.operations, "_writable_index", lambda *given: None)
    for operation in declaring(contract, 404):
        asked = MISSING.get(operation.name, Ask(body_for(operation), index="nowhere", id="nobody"))
        expect(live, contract, operation, asked, 404)


def test_every_409_is_reached(fresh: LiveServer, contract: Contract, embedder: ExchangeableEmbedder) -> None:
    for path, body in (
        ("/v1/memories", {"text": "spends a key"}),
        ("/v1/indexes/v/nodes", {"nodes": [{"id": "spends", "vector": [1, 2, 3]}]}),
        ("/v1/indexes", {"name": "made2", "dim": 2}),
    ):
        fresh.ok(fresh.http.post(path, json=body, headers={"idempotency-key": "spent"}), 201)
    fresh.ok(fresh.http.post("/v1/sessions", json={"id": "talk"}), 201)
    for operation in declaring(contract, 409):
        asked = CLASHES.get(operation.name, Ask(body_for(operation), id="two"))
        if operation.name == "recall":
            with embedder.exchanged():
                expect(fresh, contract, operation, asked, 409)
        else:
            expect(fresh, contract, operation, asked._replace(key="spent"), 409)


def test_every_413_is_reached(live: LiveServer, contract: Contract) -> None:
    for operation in declaring(contract, 413):
        expect(live, contract, operation, Ask({"large": "x" * 300_000}), 413)


def test_every_401_is_reached() -> None:
    def authenticate(headers: Headers) -> Principal:
        if b"authorization" not in headers:
            raise Unauthenticated("a token is needed")
        return everyone()(headers)

    with live_server(authenticate=authenticate) as live:
        contract = Contract(live.ok(live.http.get("/openapi.json", headers={"authorization": "Bearer x"})))
        guarded = declaring(contract, 401)
        for operation in contract.operations:
            if operation in guarded:
                expect(live, contract, operation, Ask(), 401)
            else:
                expect(live, contract, operation, Ask(), 200)
                assert operation.described["security"] == []
        assert {op.name for op in contract.operations} - {op.name for op in guarded} == {"healthz", "readyz", "jwks"}


def test_every_429_is_reached() -> None:
    with live_server(rate=0.001) as live:
        contract = Contract(live.ok(live.http.get("/openapi.json")))
        while live.http.get("/v1/info").status_code == 200:
            pass
        assert len(declaring(contract, 429)) == len(contract.operations) - 3
        for operation in declaring(contract, 429):
            expect(live, contract, operation, Ask(), 429)


def test_every_500_is_reached(live: LiveServer, contract: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("broken")

    assert len(declaring(contract, 500)) == len(contract.operations)
    for route in all_routes():
        monkeypatch.setattr(route, "run", broken)
        operation = contract.named(route.name)
        expect(live, contract, operation, Ask(body_for(operation)), 500)


def test_every_503_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, opened = threading.Event(), threading.Event()

    def held(*given: object) -> None:
        entered.set()
        opened.wait(30)

    with live_server(requests=1) as live, ThreadPoolExecutor(1) as pool:
        contract = Contract(live.ok(live.http.get("/openapi.json")))
        monkeypatch.setattr(live.database.operations, "checkpoint", held)
        pool.submit(httpx.post, f"{live.url}/v1/admin/checkpoint", timeout=30)
        try:
            assert entered.wait(30)
            assert len(declaring(contract, 503)) == len(contract.operations)
            for operation in contract.operations:
                expect(live, contract, operation, Ask(), 503)
        finally:
            opened.set()


# What it does not declare does not happen


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
WORDS = st.sampled_from(
    ["", "x", "y", "m1", "two", "v", "default", "alice", "2024", "2024-02-30", "now", "UTC", "memory", "archived", "s0",
     "tags CONTAINS 'a'", "text LIKE '%'", "erase", "custom", "minilm", "\x00", "é/%2F", "a b"]
)  # fmt: skip
TEXTS = WORDS | st.text(max_size=12)
NUMBERS = st.integers(-2, 12) | st.sampled_from([0.5, 1e38, 1e39, 2**63, 2**64, 2**200, 1_000_000, 1_700_000_000_000])

IDS = st.sampled_from(["m1", "m2", "two", "x", "y", "z"])
FLOATS = st.floats(-2, 2, width=32)
TIMES = st.sampled_from(
    ["2024", "2024-02", "2024-02-29", "2025-01-01T10:00:00Z", "2025-01-01T10:00:00+02:00", 1.7e9, 0]
)
SAID = st.sampled_from(["the first fact", "another fact", "x", "tea", "Dana owns the account"]) | st.text(
    st.characters(categories=["L", "N", "P", "S", "So"]), min_size=1, max_size=20
)
FILTERS = st.sampled_from(
    ["tags CONTAINS 'a'", "layer = 'semantic' OR pinned = TRUE", "recorded_at > '2020'", '{"exists": "session"}',
     {"not": {"eq": ["status", "archived"]}}, "NOT EXISTS(metadata.k)"]
)  # fmt: skip
FITTING: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["id", "jti", "key", "src", "dst", "root"], IDS),
    **dict.fromkeys(["text", "query", "content", "session", "title", "speaker"], SAID),
    **dict.fromkeys(["as_of", "known_at", "now", "at", "occurred_at", "valid_from", "valid_to"], TIMES),
    **dict.fromkeys(["user", "agent", "project"], st.sampled_from(["alice", "bob"])),
    **dict.fromkeys(["k", "limit", "ef", "budget_tokens"], st.integers(1, 50)),
    **dict.fromkeys(["depth", "max_depth", "expected_version"], st.integers(1, 3)),
    **dict.fromkeys(["alpha", "weight", "b", "k1"], st.floats(0, 1)),
    **dict.fromkeys(
        ["metadata", "props"], st.dictionaries(st.text("kv", min_size=1), st.integers() | SAID, max_size=3)
    ),
    "ids": st.lists(IDS, min_size=1, max_size=2),
    "index": st.sampled_from(["default", "v"]),
    "name": st.sampled_from(["made", "v", "w1", "w2"]),
    "dim": st.just(3),
    "m": st.just(8),
    "ef_construction": st.just(50),
    "language": st.just("english"),
    "embedder": st.none(),
    "vector": st.lists(FLOATS, min_size=3, max_size=3),
    "vectors": st.lists(st.lists(FLOATS, min_size=3, max_size=3), min_size=1, max_size=3),
    "filter": FILTERS,
    "include": st.lists(st.sampled_from(["superseded", "archived", "proposed", "rejected"]), max_size=2),
    "kinds": st.lists(st.sampled_from(["memory", "source", "session"]), min_size=1, max_size=2),
    "tags": st.lists(SAID, max_size=2),
    "rel": st.sampled_from(["r", "old"]),
    "rels": st.none() | st.just(["r"]),
    "tz": st.sampled_from(["UTC", "Europe/Rome"]),
    "cursor": st.none(),
    "resolve": st.just("head"),
    "evidence": st.just([]),
    "layer": st.sampled_from(["semantic", "episodic"]),
    "idempotency_key": st.none(),
    "policy": st.just({}),
    "layers": st.just({}),
    "nodes": st.lists(
        st.fixed_dictionaries({"id": IDS, "vector": st.lists(FLOATS, min_size=3, max_size=3)}),
        min_size=1,
        max_size=3,
        unique_by=lambda node: node["id"],
    ),
}
"""What fits by the name of a field, so that a good part of the requests gets past the checks."""


class Drawn(NamedTuple):
    """Strategies of the schemas of one document; `wild` ones know only the types, and do not always keep to them."""

    components: Json
    wild: bool

    def value(self, schema: Json, depth: int = 0) -> st.SearchStrategy[Any]:
        fitting = self._fitting(schema, depth)
        return st.one_of(fitting, fitting, fitting, fitting, ANYTHING) if self.wild else fitting

    def named(self, name: str, schema: Json, depth: int = 0) -> st.SearchStrategy[Any]:
        if not self.wild and name in FITTING:
            return FITTING[name]
        return self.value(schema, depth)

    def _fitting(self, schema: Json, depth: int) -> st.SearchStrategy[Any]:
        if "$ref" in schema:
            return self._fitting(self.components[schema["$ref"].rpartition("/")[2]], depth)
        if "anyOf" in schema:
            return st.one_of([self._fitting(part, depth) for part in schema["anyOf"]])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        match schema.get("type"):
            case "string":
                return TEXTS
            case "integer":
                return st.integers(-2, 12) | NUMBERS
            case "number":
                return NUMBERS | st.floats(allow_nan=False, allow_infinity=False)
            case "boolean":
                return st.booleans()
            case "null":
                return st.none()
            case "array":
                return self._array(schema, depth)
            case "object":
                return self._object(schema, depth)
        return ANYTHING

    def _array(self, schema: Json, depth: int) -> st.SearchStrategy[Any]:
        if "prefixItems" in schema:
            return st.tuples(*(self.value(part, depth + 1) for part in schema["prefixItems"])).map(list)
        return st.lists(self.value(schema["items"], depth + 1), max_size=4)

    def _object(self, schema: Json, depth: int) -> st.SearchStrategy[Any]:
        if "properties" not in schema:
            more = schema.get("additionalProperties")
            inner = self.value(more, depth + 1) if isinstance(more, dict) else ANYTHING
            return st.dictionaries(TEXTS, inner, max_size=3)
        required = schema.get("required", [])
        parts = {name: self.named(name, part, depth + 1) for name, part in schema["properties"].items()}
        return st.fixed_dictionaries(
            {name: parts[name] for name in required},
            optional={name: part for name, part in parts.items() if name not in required},
        )


@st.composite
def requests(draw: st.DrawFn, contract: Contract) -> tuple[Operation, str, Any]:
    """An operation, its path and query as they go on the wire, and a body or None."""
    operation = draw(st.sampled_from(contract.operations))
    wild = draw(st.booleans())
    drawn = Drawn(contract.document["components"]["schemas"], wild)
    path, query = operation.path, []
    for parameter in operation.described["parameters"]:
        if parameter["in"] == "path":
            value = draw(TEXTS.filter(bool) if wild else FITTING[parameter["name"]])
            path = path.replace(f"{{{parameter['name']}}}", quote(value, safe=draw(st.sampled_from(["", "%"]))))
        elif parameter["in"] == "query" and draw(st.booleans()):
            value = draw(drawn.named(parameter["name"], parameter["schema"]))
            values = value if isinstance(value, list) else [value]
            query += [
                f"{parameter['name']}={quote(part if isinstance(part, str) else json.dumps(part))}" for part in values
            ]
    body = None
    if "requestBody" in operation.described:
        content = operation.described["requestBody"]["content"]["application/json"]
        body = draw(drawn.value(content["schema"]))
    return operation, f"{path}?{'&'.join(query)}", body


def test_no_request_meets_an_undeclared_answer(fresh: LiveServer, contract: Contract) -> None:
    fill_again(fresh)

    @settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
    @given(requests(contract))
    def answered_as_declared(drawn: tuple[Operation, str, Any]) -> None:
        operation, target, body = drawn
        answer = fresh.raw(operation.method, target, None if body is None else json.dumps(body).encode())
        if answer.status_code in (404, 405) and not known(contract, operation, target):
            return
        contract.check(operation, answer)
        assert answer.status_code < 500, answer.text
        if operation.method == "DELETE" or operation.name in ("forget", "retract", "archive"):
            fill_again(fresh)

    answered_as_declared()


def known(contract: Contract, operation: Operation, target: str) -> bool:
    """Whether the path drawn is one of this operation: an id of a raw slash may be another path."""
    return target.partition("?")[0].count("/") == operation.path.count("/")


def fill_again(live: LiveServer) -> None:
    """What the requests may hit upon, whatever those before have dropped."""
    for body in ({"id": "m1", "text": "the first fact"}, {"id": "m2", "text": "another fact", "tags": ["a"]}):
        live.http.post("/v1/memories", json=body)
    live.http.post("/v1/indexes", json={"name": "v", "dim": 3})
    nodes = [{"id": name, "vector": [1, 0, n], "text": name} for n, name in enumerate(("x", "y", "z"))]
    live.http.post("/v1/indexes/v/nodes", json={"nodes": nodes})
    live.http.post("/v1/indexes/v/edges", json=edge())
