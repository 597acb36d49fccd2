"""Whatever a program passes, the library answers or raises one of its own errors, which names what is wrong."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import kektor
from kektor.ingest import IngestMessagesRequest
from kektor.memory import requests as rq
from tests.support.embedders import HashingEmbedder

HALF = "\ud800"
"""Half of a surrogate pair: a Python string, and no Unicode text."""

WRONG: list[Any] = [
    *(5, -1, 2**70, 1.5, math.nan, True, None, "", " ", "x", HALF, b"x", object(), [], [None], [5], [HALF], [[]], {}),
    *({"a": 1}, {5: 1}, {HALF: 1}, {"user": HALF}, [{}], [{5: 1}], (1, 2, 3), {1, 2}, np.zeros(2), "\x00"),
]


@pytest.fixture(scope="module")
def db() -> Iterator[kektor.Database]:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as database:
        database.create_index("v", dim=2)
        yield database


def _fields(kind: Any, *but: str) -> list[str]:
    return [name for name in kind.__struct_fields__ if name not in ("index", *but)]


def _calls() -> dict[str, tuple[Callable[[kektor.Database, dict[str, Any]], Any], list[str]]]:
    """By method: how it is called with one argument replaced, and the arguments it has."""

    def mem(name: str, *positional: str, **good: Any) -> Callable[[kektor.Database, dict[str, Any]], Any]:
        def call(db: kektor.Database, given: dict[str, Any]) -> Any:
            arguments = {**good, **given}
            values = [arguments.pop(p) for p in positional]
            return getattr(db.memory(user="alice"), name)(*values, **arguments)

        return call

    def idx(name: str, *positional: str, **good: Any) -> Callable[[kektor.Database, dict[str, Any]], Any]:
        def call(db: kektor.Database, given: dict[str, Any]) -> Any:
            arguments = {**good, **given}
            values = [arguments.pop(p) for p in positional]
            return getattr(db.index("v"), name)(*values, **arguments)

        return call

    verbs = _fields(rq.VerbRequest)
    return {
        "remember": (mem("remember", "text", text="A stone"), _fields(rq.RememberRequest)),
        "recall": (mem("recall", "query", query="Which stone?"), _fields(rq.RecallRequest)),
        "get": (mem("get", "id", id="m"), ["id", "resolve", "scope", "as_of", "known_at", "tz"]),
        "history": (mem("history", "id", id="m"), ["id", "scope"]),
        "evidence": (mem("evidence", "id", id="m"), ["id", "scope"]),
        "count": (mem("count"), _fields(rq.ListRequest)),
        "list": (mem("list"), _fields(rq.ListRequest)),
        "evolve": (mem("evolve", "id", "text", id="m", text="A rock"), ["id", *_fields(rq.EvolveRequest)]),
        "correct": (mem("correct", "id", "text", id="m", text="A rock"), ["id", *_fields(rq.EvolveRequest)]),
        **{
            verb: (mem(verb, "id", id="m"), ["id", *verbs])
            for verb in ("retract", "archive", "restore", "pin", "unpin")
        },
        "update": (mem("update", "id", id="m", tags=["t"]), ["id", *_fields(rq.UpdateRequest)]),
        "confirm": (mem("confirm", "id", id="m"), ["id", *_fields(rq.ConfirmRequest)]),
        "reinforce": (mem("reinforce", "ids", ids=["m"]), _fields(rq.ReinforceRequest)),
        "forget": (mem("forget", ids=["gone"]), _fields(rq.ForgetRequest)),
        "lift": (mem("lift", "id", id="t"), ["id", *_fields(rq.LiftRequest)]),
        "share": (mem("share", "id", id="m", to={"scope": {"user": "bob"}}), ["id", *_fields(rq.ShareRequest)]),
        "start_session": (mem("start_session", "id", id="s"), _fields(rq.StartSessionRequest)),
        "end_session": (mem("end_session", "session", session="s"), ["session", *_fields(rq.EndSessionRequest)]),
        "sessions": (mem("sessions"), ["limit", "cursor"]),
        "reviews": (mem("reviews"), ["status"]),
        "review": (mem("review", "id", id="r", decision="accept"), ["id", *_fields(rq.ReviewRequest)]),
        "kv get": (lambda db, given: db.memory(user="alice").kv.get(given["key"]), ["key"]),
        "kv put": (
            lambda db, given: db.memory(user="alice").kv.put(**{"key": "k", "value": 1, **given}),
            ["key", *_fields(rq.PutKvRequest, "scope")],
        ),
        "kv delete": (
            lambda db, given: db.memory(user="alice").kv.delete(**{"key": "gone", **given}),
            ["key", *_fields(rq.DropKvRequest, "scope")],
        ),
        "ingest_messages": (
            mem("ingest_messages", "messages", messages=[{"role": "user", "content": "hi"}], session="s"),
            _fields(IngestMessagesRequest),
        ),
        "link": (mem("link", "src", "rel", "dst", src="m", rel="near", dst="n"), _fields(rq.EdgeIn)),
        "unlink": (mem("unlink", "src", "rel", "dst", src="m", rel="near", dst="n"), ["src", "rel", "dst"]),
        "edges": (mem("edges", "id", id="m"), ["id", *_fields(rq.EdgesRequest)]),
        "neighbours": (mem("neighbours", "id", id="m"), ["id", *_fields(rq.EdgesRequest)]),
        "traverse": (mem("traverse", "root", root="m"), _fields(rq.TraverseRequest)),
        "path": (mem("path", "src", "dst", src="m", dst="n"), _fields(rq.PathRequest)),
        "upsert": (
            idx("upsert", "ids", ids=["a"], vectors=[[1, 0]]),
            ["ids", "vectors", "texts", "metadata", "tags", "idempotency_key"],
        ),
        "delete": (idx("delete", "ids", ids=["gone"], missing_ok=True), ["ids", "missing_ok", "scope"]),
        "get nodes": (idx("get", "ids", ids=["a"]), ["ids", "scope"]),
        "vectors": (idx("vectors", "ids", ids=["a"]), ["ids", "scope"]),
        "count nodes": (idx("count"), ["filter"]),
        "search": (idx("search", vector=[1, 0]), _fields(rq.SearchRequest, "with_memories")),
        "search_batch": (
            idx("search_batch", "vectors", vectors=[[1, 0]]),
            ["vectors", "k", "ef", "filter", "threads"],
        ),
        "memory": (lambda db, given: db.memory(**given).list(), ["index", "user", "agent", "project"]),
        "index": (lambda db, given: db.index(given["name"]), ["name"]),
        "drop_index": (lambda db, given: db.drop_index(given["name"]), ["name"]),
        "create_index": (
            lambda db, given: db.create_index(**{"name": "w", "dim": 2, **given}),
            [n for n in rq.CreateIndexRequest.__struct_fields__ if n != "embedder"],
        ),
        "open": (lambda db, given: kektor.open(**{"path": ":memory:", **given}).close(), ["sync", "actor"]),
    }  # fmt: skip


CALLS = _calls()


@pytest.mark.parametrize("method", CALLS)
def test_a_wrong_value_is_an_error_of_ours_that_names_the_argument(db: kektor.Database, method: str) -> None:
    mem = db.memory(user="alice")
    for node_id in ("m", "n"):
        if not mem.list(filter={"eq": ["id", node_id]}).items:
            mem.remember(f"The stone {node_id}", id=node_id)
    call, arguments = CALLS[method]
    for name in arguments:
        for value in WRONG:
            try:
                call(db, {name: value})
            except kektor.Internal as error:
                pytest.fail(f"{method}({name}={value!r}) is called a defect: {error}")
            except kektor.Invalid as error:
                assert error.field is not None, f"{method}({name}={value!r}) names no field: {error}"
            except kektor.KektorError:
                pass
            except Exception as error:  # noqa: BLE001 - any of them is the defect looked for
                pytest.fail(f"{method}({name}={value!r}) raises {error!r}")


NAMED = [
    ("get", {"id": 5}, "id"),
    ("evolve", {"id": 5}, "id"),
    ("reinforce", {"ids": "seed"}, "ids"),
    ("reinforce", {"ids": 5}, "ids"),
    ("forget", {"ids": "ab", "mode": "erase"}, "ids"),
    ("forget", {"ids": [5]}, "ids[0]"),
    ("ingest_messages", {"messages": "abc"}, "messages"),
    ("ingest_messages", {"messages": [5]}, "messages[0]"),
    ("ingest_messages", {"session": HALF}, "session"),
    ("memory", {"user": 5}, "user"),
    ("memory", {"index": 5}, "index"),
    ("delete", {"ids": "abc"}, "ids"),
    ("get nodes", {"ids": "abc"}, "ids"),
    ("vectors", {"ids": None}, "ids"),
    ("upsert", {"ids": "q"}, "ids"),
    ("upsert", {"metadata": [None]}, "metadata[0]"),
    ("upsert", {"metadata": [{5: 1}]}, "metadata[0]"),
    ("upsert", {"tags": ["x"]}, "tags[0]"),
    ("search_batch", {"k": "x"}, "k"),
    ("search_batch", {"threads": 0}, "threads"),
    ("search_batch", {"threads": -1}, "threads"),
    ("search_batch", {"filter": 5}, "filter"),
    ("remember", {"metadata": {5: 1}}, "metadata"),
    ("remember", {"metadata": {"a": HALF}}, "metadata.a"),
    ("remember", {"layer": HALF}, "layer"),
    ("remember", {"session": HALF}, "session"),
    ("remember", {"reason": HALF}, "reason"),
    ("remember", {"idempotency_key": HALF}, "idempotency_key"),
    ("remember", {"claim": ("a", HALF, "b")}, "claim[1]"),
    ("remember", {"claim": {"subject": "a", "predicate": "b", "object": HALF}}, "claim.object"),
    ("remember", {"scope": {"user": HALF}}, "scope.user"),
    ("recall", {"query": HALF}, "query"),
    ("retract", {"reason": HALF}, "reason"),
    ("link", {"rel": HALF}, "edges[0].rel"),
    ("open", {"path": 5}, "path"),
    ("open", {"path": ""}, "path"),
    ("open", {"sync": 5}, "sync"),
    ("open", {"actor": "alice"}, "actor"),
    ("open", {"actor": kektor.Actor("robot", "r")}, "actor"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("method", "given", "field"), NAMED, ids=lambda value: ascii(value)[:50])
def test_the_argument_at_fault_is_named(db: kektor.Database, method: str, given: dict[str, Any], field: str) -> None:
    with pytest.raises(kektor.Invalid) as refused:
        CALLS[method][0](db, given)
    assert refused.value.field is not None
    assert refused.value.field.startswith(field)


def test_one_id_is_not_taken_letter_by_letter(db: kektor.Database) -> None:
    mem, idx = db.memory(user="zoe"), db.index("v")
    for letter in "ab":
        mem.remember(f"Letter {letter}", id=letter)
        idx.upsert([letter], vectors=[[1, 0]])
    for call in (
        lambda: mem.forget(ids="ab", mode="erase"),
        lambda: mem.reinforce("ab"),
        lambda: idx.delete("ab"),
        lambda: idx.upsert("ab", vectors=[[0, 1], [0, 1]]),
    ):
        with pytest.raises(kektor.Invalid, match="ids"):
            call()
    assert [mem.get(letter).access.count for letter in "ab"] == [0, 0]
    assert [node.status for node in idx.get(["a", "b"]) if node is not None] == ["current"] * 2


def test_what_python_calls_a_sequence_is_taken(db: kektor.Database) -> None:
    """Tuples, sets, generators and arrays of ids are as good as a list."""
    idx = db.index("v")
    ids = np.array(["s1", "s2"])
    idx.upsert(ids, vectors=np.eye(2), metadata=({"n": 1}, {"n": 2}), tags=(("t",), ()))
    assert [node.metadata for node in idx.get(("s1", "s2")) if node is not None] == [{"n": 1}, {"n": 2}]
    assert idx.delete(node_id for node_id in ("s1", "s2")).ids == ["s1", "s2"]  # type: ignore[arg-type]


def test_an_actor_given_as_text_is_held_to_its_kind() -> None:
    """The kind decides what is believed: the word is as good as the member, and nothing else is."""
    with kektor.open(":memory:", embedder=HashingEmbedder(), actor=kektor.Actor("agent", "bot")) as db:  # type: ignore[arg-type]
        db.create_index("careful", policy={"agent_writes": "propose"})
        assert db.memory("careful").remember("The moon is cheese").outcome == "proposed"
