"""An id that is shared and one's own as well: `scope` says which is meant, and every route takes it."""

from collections.abc import Iterator
from typing import Any

import pytest

import kektor
from tests.support.embedders import HashingEmbedder
from tests.support.rest import LiveServer, live_server

OWN, SHARED = {"user": "alice"}, {"shared": True}


@pytest.fixture
def db() -> Iterator[kektor.Database]:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as database:
        database.memory().remember("The gate code is 1111", id="code")
        database.memory(user="alice").remember("Alice's gate code is 2222", id="code")
        database.memory(user="alice", agent="bot").remember("The bot's gate code is 3333", id="code")
        yield database


@pytest.fixture
def live(db: kektor.Database) -> Iterator[LiveServer]:
    with live_server(db) as server:
        yield server


def test_without_a_scope_the_answer_lists_those_to_choose_from(db: kektor.Database) -> None:
    mem = db.memory(user="alice")
    for call in (lambda: mem.get("code"), lambda: mem.archive("code"), lambda: mem.forget(ids=["code"])):
        with pytest.raises(kektor.Conflict) as refused:
            call()
        assert refused.value.field == "scope"
        named = refused.value.details["scopes"]
        assert sorted(map(str, named)) == sorted(map(str, [SHARED, OWN, {"user": "alice", "agent": "bot"}]))
        texts = {mem.get("code", scope=scope).text for scope in named}
        assert len(texts) == 3


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (OWN, "Alice's gate code is 2222"),
        (SHARED, "The gate code is 1111"),
        ({"user": "alice", "agent": "bot"}, "The bot's gate code is 3333"),
    ],
)
def test_a_scope_that_is_given_is_exactly_that(db: kektor.Database, scope: dict[str, Any], text: str) -> None:
    mem = db.memory()
    assert mem.get("code", scope=scope).text == text
    assert [version.text for version in mem.history("code", scope=scope)] == [text]
    assert mem.evidence("code", scope=scope) == []
    mem.update("code", tags=["seen"], scope=scope)
    mem.reinforce(["code"], scope=scope)
    evolved = mem.evolve("code", f"{text}, since today", scope=scope)
    assert mem.get("code", resolve="head", scope=scope).id == evolved.id
    mem.archive(evolved.id or "", scope=scope)
    gone = mem.forget(ids=["code"], mode="erase", scope=scope)
    assert {node.text for node in gone.matched} == {text, f"{text}, since today"}
    left = mem.list(include=["superseded", "archived"]).items
    assert len(left) == 2
    assert all(memory.tags == [] for memory in left)


def test_a_caller_without_the_right_reads_what_is_shared_and_leaves_it(db: kektor.Database) -> None:
    mem = db.memory(user="alice")
    assert mem.get("code", scope=SHARED).text == "The gate code is 1111"
    with pytest.raises(kektor.Forbidden):
        mem.archive("code", scope=SHARED)
    for scope in (None, SHARED, OWN):
        assert db.memory(user="bob").get("code", scope=scope).text == "The gate code is 1111"


def test_shared_is_no_member_of_a_scope_with_others(db: kektor.Database) -> None:
    with pytest.raises(kektor.Invalid) as refused:
        db.memory().get("code", scope={"user": "alice", "shared": True})
    assert refused.value.field == "scope.shared"


def test_what_is_shared_can_be_listed_and_written_alone(db: kektor.Database) -> None:
    mem = db.memory()
    assert [memory.text for memory in mem.list(scope=SHARED).items] == ["The gate code is 1111"]
    mem.remember("The door code is 4444", id="door", scope=SHARED)
    assert mem.get("door").scope.user is None
    with pytest.raises(kektor.Forbidden):
        db.memory(user="alice").remember("Written for all", scope=SHARED)


def test_raw_nodes_are_told_apart_too(db: kektor.Database) -> None:
    db.create_index("v", dim=2)
    for user in ("alice", "bob"):
        db.memory("v", user=user).remember(f"{user} is here", id="n")
    idx = db.index("v")
    with pytest.raises(kektor.Conflict):
        idx.get(["n"])
    with pytest.raises(kektor.Conflict):
        idx.vectors(["n"])
    (node,) = idx.get(["n"], scope={"user": "bob"})
    assert node is not None
    assert node.text == "bob is here"


def test_rest_takes_the_scope_in_the_query_and_in_the_body(live: LiveServer) -> None:
    for query in ("", "?user=nobody&shared=true", "?shared=maybe"):
        assert live.http.get(f"/v1/memories/code{query}").status_code in (400, 409)
    answers = {
        "shared=true": "The gate code is 1111",
        "user=alice": "Alice's gate code is 2222",
        "user=alice&agent=bot": "The bot's gate code is 3333",
    }
    for query, text in answers.items():
        assert live.ok(live.http.get(f"/v1/memories/code?{query}"))["text"] == text
        assert live.ok(live.http.get(f"/v1/memories/code/history?{query}"))["items"][0]["text"] == text
        assert live.ok(live.http.get(f"/v1/indexes/default/nodes/code?{query}"))["text"] == text
    live.error(live.http.post("/v1/memories/code/archive", json={}), 409, "conflict", "scope")
    live.ok(live.http.post("/v1/memories/code/archive", json={"scope": OWN}))
    live.ok(live.http.delete("/v1/memories/code?shared=true"))
    status = {query: live.http.get(f"/v1/memories/code?{query}").json().get("status") for query in answers}
    assert status == {"shared=true": None, "user=alice": "archived", "user=alice&agent=bot": "current"}
