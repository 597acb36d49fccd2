"""What waits for a decision, who decides it, what the decision changes, and taking it back."""

from collections.abc import Iterator
from typing import Any

import pytest

import kektor
from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor, ActorKind, Receipt
from kektor.handles import MemoryHandle
from tests.support.embedders import HashingEmbedder

OLD, NEW = "The staging server listens on port 8080", "The staging server listens on port 8081"
QUESTION = "Which port does the staging server listen on?"


@pytest.fixture
def db() -> Iterator[kektor.Database]:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        db.create_index("team", policy={"agent_writes": "propose"}, embedder="custom", dim=64)
        yield db


def _as(db: kektor.Database, kind: str, rights: tuple[str, ...] = ("read", "write")) -> MemoryHandle:
    principal = Principal(Actor(ActorKind(kind), kind), frozenset(rights), (Grant(),))
    return MemoryHandle(db.operations, principal, "team")


@pytest.fixture
def person(db: kektor.Database) -> MemoryHandle:
    return _as(db, "human")


@pytest.fixture
def agent(db: kektor.Database) -> MemoryHandle:
    return _as(db, "agent", ("read", "write", "review", "admin"))


@pytest.fixture
def other(person: MemoryHandle) -> Iterator[str]:
    """A neighbour that no decision here may touch."""
    made = str(person.remember("The printer is in room 4").id)
    yield made
    left = person.get(made)
    assert (left.status, left.trust, left.version) == ("current", "accepted", 1)
    assert not [review for review in person.reviews(status="all") for memory in review.memories if memory.id == made]


def _waits(mem: MemoryHandle, status: str = "open") -> list[tuple[str, str, list[str]]]:
    return [(r.kind, r.status, [memory.text for memory in r.memories]) for r in mem.reviews(status=status)]


def _state(mem: MemoryHandle) -> Any:
    """Every memory in every state, without what a decision is kept in."""
    shown = mem.list(include=["superseded", "archived", "proposed", "rejected"]).items
    return [(m.id, m.status, m.trust, m.lineage, m.version, m.supersedes, m.superseded_by, m.tags) for m in shown]


def _texts(mem: MemoryHandle) -> list[str]:
    return [memory.text for memory in mem.list().items]


def test_a_proposal_waits_until_it_is_accepted(person: MemoryHandle, agent: MemoryHandle, other: str) -> None:
    made = agent.remember("The launch is on Friday")
    assert made.outcome == "proposed"
    assert _waits(person) == [("proposed", "open", ["The launch is on Friday"])]
    assert "The launch is on Friday" not in _texts(person)
    done = person.review(str(made.id), decision="accept", note="saw the plan")
    assert (done.outcome, done.id) == ("accepted", made.id)
    assert _waits(person) == []
    assert "The launch is on Friday" in _texts(person)
    (decided,) = person.reviews(status="decided")
    assert decided.decided is not None
    assert (decided.decided.decision, decided.decided.note, decided.decided.actor.kind) == (
        "accept", "saw the plan", "human",
    )  # fmt: skip


def test_a_rejected_proposal_does_not_come_back(person: MemoryHandle, agent: MemoryHandle, other: str) -> None:
    made = agent.remember("The launch is on Friday")
    assert person.review(str(made.id), decision="reject").outcome == "rejected"
    with pytest.raises(kektor.Blocked):
        agent.remember("the launch is on FRIDAY")
    assert _waits(person) == []


def test_an_accepted_replacement_is_the_next_version(person: MemoryHandle, agent: MemoryHandle, other: str) -> None:
    old = person.remember(OLD, tags=["infra"])
    person.link(str(old.id), "near", other)
    made = agent.evolve(str(old.id), NEW)
    (waiting,) = person.reviews()
    assert (waiting.replaces, made.of) == (old.id, old.id)
    before = _state(person)
    done = person.review(str(made.id), decision="accept")
    assert (done.outcome, done.id, done.version, done.of) == ("superseded", made.id, 2, old.id)
    assert [m.text for m in person.history(str(old.id))] == [OLD, NEW]
    assert person.get(str(old.id), resolve="head").id == made.id
    assert NEW in _texts(person)
    assert OLD not in _texts(person)
    assert [edge.dst for edge in person.edges(str(made.id), direction="out", rel="near")] == [other]
    # And back.
    assert person.review(str(made.id), decision="undo").outcome == "undone"
    assert _state(person) == before
    assert OLD in _texts(person)
    assert [m.text for m in person.history(str(old.id))] == [OLD]
    assert [edge.dst for edge in person.edges(str(old.id), direction="out", rel="near")] == [other]
    assert [r.id for r in person.reviews()] == [made.id]


def test_an_accepted_correction_rejects_the_old_value(person: MemoryHandle, agent: MemoryHandle, other: str) -> None:
    old = person.remember(OLD)
    made = agent.correct(str(old.id), NEW)
    person.review(str(made.id), decision="accept")
    assert person.get(str(old.id)).trust == "rejected"
    with pytest.raises(kektor.Blocked):
        person.remember(OLD)
    person.review(str(made.id), decision="undo")
    assert person.get(str(old.id)).trust == "accepted"
    assert person.remember(OLD).outcome == "duplicate"


def test_a_proposal_about_what_changed_meanwhile_is_a_conflict(person: MemoryHandle, agent: MemoryHandle) -> None:
    old = person.remember(OLD)
    made = agent.evolve(str(old.id), NEW)
    head = person.evolve(str(old.id), "The staging server is gone")
    with pytest.raises(kektor.Conflict) as refused:
        person.review(str(made.id), decision="accept")
    assert refused.value.details == {"head": head.id}
    assert person.review(str(made.id), decision="reject").outcome == "rejected"


def _contested(person: MemoryHandle) -> tuple[Receipt, Receipt]:
    old = person.remember(OLD)
    new = person.remember(NEW)
    assert new.outcome == "conflict"
    assert _waits(person) == [("contested", "open", [NEW, OLD])]
    return old, new


@pytest.mark.parametrize("how", ["changed", "wrong"])
def test_accepting_the_newer_of_two_replaces_the_older(person: MemoryHandle, how: str, other: str) -> None:
    old, new = _contested(person)
    before = _state(person)
    done = person.review(str(new.reflection), decision="accept", how=how)
    assert (done.outcome, done.id, done.of) == ("superseded", new.id, old.id)
    assert (person.get(str(new.id)).trust, _waits(person)) == ("accepted", [])
    assert person.get(str(old.id)).trust == ("rejected" if how == "wrong" else "contested")
    assert [hit.memory.id for hit in person.recall(QUESTION, k=1)] == [new.id]
    assert person.recall(OLD, k=1).hits[0].resolved_from == old.id
    person.review(str(new.reflection), decision="undo")
    assert _state(person) == before
    assert _waits(person) == [("contested", "open", [NEW, OLD])]


def test_rejecting_the_newer_of_two_believes_the_older(person: MemoryHandle, other: str) -> None:
    old, new = _contested(person)
    before = _state(person)
    assert person.review(str(new.id), decision="reject").outcome == "rejected"
    assert person.get(str(old.id)).trust == "accepted"
    assert _waits(person) == []
    with pytest.raises(kektor.Blocked):
        person.remember(NEW)
    person.review(str(new.reflection), decision="undo")
    assert _state(person) == before
    assert person.remember(NEW).outcome == "duplicate"


def test_both_may_be_true(person: MemoryHandle, other: str) -> None:
    old, new = _contested(person)
    before = _state(person)
    person.review(str(new.reflection), decision="accept", keep="both")
    assert [person.get(str(r.id)).trust for r in (old, new)] == ["accepted", "accepted"]
    person.review(str(new.reflection), decision="undo")
    assert _state(person) == before
    person.retract(str(old.id))
    assert person.get(str(new.id)).trust == "accepted"


@pytest.mark.parametrize("decision", ["edit", "merge"])
def test_one_text_may_take_the_place_of_both(person: MemoryHandle, decision: str, other: str) -> None:
    old, new = _contested(person)
    before = _state(person)
    text = "The staging server listens on port 8080 and 8081"
    done = person.review(str(new.reflection), decision=decision, text=text)
    assert text in _texts(person)
    assert {OLD, NEW} & set(_texts(person)) == set()
    assert {person.get(str(r.id)).superseded_by for r in (old, new)} == {done.id}
    person.review(str(new.reflection), decision="undo")
    assert [line for line in _state(person) if line[0] != done.id] == before
    assert text not in _texts(person)
    assert person.get(str(old.id), resolve="head").id == old.id


def test_an_edited_proposal_says_what_the_reviewer_wrote(person: MemoryHandle, agent: MemoryHandle) -> None:
    made = agent.remember("The launch is on Friday", tags=["plan"])
    done = person.review(str(made.id), decision="edit", text="The launch is on Monday")
    kept = person.get(str(done.id))
    assert (kept.text, kept.trust, kept.tags, kept.actor.kind) == (
        "The launch is on Monday", "accepted", ["plan"], "human",
    )  # fmt: skip
    assert _waits(person) == []
    assert _texts(person) == ["The launch is on Monday"]


def test_a_merged_proposal_adds_its_tags(person: MemoryHandle, agent: MemoryHandle) -> None:
    there = person.remember("The launch is on Friday", tags=["plan"])
    made = agent.remember("We launch on Friday", tags=["launch"])
    before = _state(person)
    person.review(str(made.id), decision="merge", into=there.id)
    assert person.get(str(there.id)).tags == ["plan", "launch"]
    assert _waits(person) == []
    person.review(str(made.id), decision="undo")
    assert _state(person) == before


def test_a_question_waits_with_what_it_is_about(person: MemoryHandle, agent: MemoryHandle) -> None:
    made = agent.remember("The launch is on Friday")
    with pytest.raises(kektor.Invalid):
        person.review(str(made.id), decision="ask")
    person.review(str(made.id), decision="ask", note="This week's Friday?")
    (asked,) = person.reviews(status="asked")
    assert (asked.question, [m.id for m in asked.memories]) == ("This week's Friday?", [made.id])
    assert len(person.reviews()) == 1
    person.review(asked.id, decision="accept")
    assert person.reviews() == []
    assert person.get(str(made.id)).trust == "accepted"


def test_an_agent_suggests_and_a_person_decides(db: kektor.Database, person: MemoryHandle, agent: MemoryHandle) -> None:
    made = agent.remember("The launch is on Friday")
    with pytest.raises(kektor.Forbidden):
        agent.review(str(made.id), decision="accept")
    with pytest.raises(kektor.Forbidden):
        _as(db, "service").review(str(made.id), decision="accept")
    assert agent.review(str(made.id), decision="accept", note="it says so", propose=True).outcome == "proposed"
    (waiting,) = person.reviews()
    assert waiting.suggested is not None
    assert (waiting.suggested.decision, waiting.suggested.actor.kind) == ("accept", "agent")
    assert person.get(str(made.id)).trust == "proposed"
    reviewer = _as(db, "service", ("read", "write", "review"))
    assert reviewer.review(waiting.id, decision="accept").outcome == "accepted"


def test_what_came_after_a_decision_is_not_undone_with_it(person: MemoryHandle) -> None:
    _, new = _contested(person)
    person.review(str(new.reflection), decision="accept")
    person.evolve(str(new.id), "The staging server listens on port 9000")
    with pytest.raises(kektor.Conflict) as refused:
        person.review(str(new.reflection), decision="undo")
    assert refused.value.details == {"id": new.id}


def test_nothing_is_decided_twice_or_unasked(person: MemoryHandle, other: str) -> None:
    _, new = _contested(person)
    person.review(str(new.reflection), decision="reject")
    for review in (str(new.reflection), str(new.id), other):
        with pytest.raises(kektor.Conflict):
            person.review(review, decision="accept")
    with pytest.raises(kektor.NotFound):
        person.review("nothing", decision="accept")
    with pytest.raises(kektor.Invalid):
        person.review(other, decision="reject", text="What would that be?")


def test_an_erased_memory_leaves_no_review(person: MemoryHandle) -> None:
    old, new = _contested(person)
    person.review(str(new.reflection), decision="reject")
    person.forget(ids=[str(old.id)], mode="erase")
    assert person.reviews(status="all") == []
