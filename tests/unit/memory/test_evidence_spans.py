"""Where a quote stands: as given, and never anywhere else."""

from collections.abc import Iterator
from typing import Any

import pytest

import kektor
from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor
from kektor.engine.view import ScopeRule
from kektor.handles import MemoryHandle
from tests.support.embedders import HashingEmbedder

SAID = "tea or coffee, then tea again"


@pytest.fixture
def db() -> Iterator[kektor.Database]:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as database:
        yield database


@pytest.fixture
def source(db: kektor.Database) -> str:
    answer = db.memory(user="alice").ingest_messages([{"role": "user", "content": SAID}], session="s")
    assert answer.ids is not None
    return answer.ids[0]


@pytest.mark.parametrize(
    ("given", "span"),
    [
        ({"quote": "tea"}, (0, 3)),
        ({"quote": "tea", "start": 0}, (0, 3)),
        ({"quote": "tea", "start": 20}, (20, 23)),
        ({"quote": "tea", "end": 23}, (20, 23)),
        ({"quote": "tea", "start": 20, "end": 23}, (20, 23)),
        ({"start": 7, "end": 13}, (7, 13)),
    ],
)
def test_a_span_is_where_it_was_said_to_be(
    db: kektor.Database, source: str, given: dict[str, Any], span: tuple[int, int]
) -> None:
    mem = db.memory(user="alice")
    mem.remember("Alice drinks tea", id="tea", evidence=[{"source": source, **given}])
    (kept,) = mem.get("tea").evidence
    assert (kept.start, kept.end) == span
    assert kept.quote == SAID[slice(*span)]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"quote": "tea", "start": 10}, "quote"),
        ({"quote": "tea", "end": 10}, "quote"),
        ({"quote": "tea", "end": 2}, "end"),
        ({"quote": "tea", "start": 27}, "start"),
        ({"quote": "tea", "start": 20, "end": 22}, "quote"),
        ({"quote": "coffee", "start": -1}, "start"),
        ({"quote": "coffee", "end": -7}, "end"),
        ({"start": 3, "end": 3}, "start"),
        ({"start": 9, "end": 4}, "start"),
        ({"start": 0, "end": 999}, "start"),
        ({"start": 7}, "quote"),
        ({}, "quote"),
        ({"quote": ""}, "quote"),
        ({"quote": "milk"}, "quote"),
        ({"quote": "tea", "source": "nowhere"}, "source"),
    ],
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_span_that_is_not_there_is_refused_by_place(
    db: kektor.Database, source: str, given: dict[str, Any], field: str, place: int
) -> None:
    mem = db.memory(user="alice")
    good = [{"source": source, "quote": "coffee"}] * place
    with pytest.raises(kektor.Invalid) as refused:
        mem.remember("Alice drinks tea", evidence=[*good, {"source": source, **given}])
    assert refused.value.field == f"evidence[{place}].{field}"
    assert mem.list().items == []


def test_what_another_wrote_on_a_shared_source_stays_without_the_quote(db: kektor.Database) -> None:
    """Who may change what is shared erases it; what rests on it out of reach is not theirs to take."""
    (source,) = (
        db.memory().ingest_messages([{"role": "user", "content": "The zephyr gate opens"}], session="s").ids or []
    )
    for user in ("alice", "bob"):
        quote = {"source": source, "quote": "zephyr gate"}
        db.memory(user=user).remember(f"{user} may enter", id="gate", evidence=[quote])
    grant = Grant("default", ScopeRule(user="alice"), shared=True)
    alice = MemoryHandle(db.operations, Principal(Actor(), frozenset({"read", "write"}), (grant,)), "default")
    taken = alice.forget(ids=[source], mode="erase")
    assert [node.text for node in taken.derived] == ["alice may enter"]
    assert "bob" not in str(taken)
    his = db.memory(user="bob").get("gate")
    assert (his.text, his.evidence) == ("bob may enter", [])
    assert "zephyr" not in str(db.memory().list(include=["superseded"], kinds=["memory", "source"]))
