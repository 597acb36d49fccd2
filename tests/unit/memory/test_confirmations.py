"""What confirms a memory: a person's word, or a source that the database can check."""

from collections.abc import Iterator

import pytest

import kektor
from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor, ActorKind
from kektor.handles import MemoryHandle
from tests.support.embedders import HashingEmbedder


@pytest.fixture
def db() -> Iterator[kektor.Database]:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        yield db


def _as(db: kektor.Database, kind: str) -> MemoryHandle:
    principal = Principal(Actor(ActorKind(kind), kind), frozenset({"read", "write"}), (Grant(),))
    return MemoryHandle(db.operations, principal, "default")


def _said(mem: MemoryHandle, text: str, role: str = "user") -> str:
    said = mem.ingest_messages([{"role": role, "content": text}], session=f"{role}-{len(text)}")
    assert said.ids
    return said.ids[0]


def test_a_source_said_since_confirms_and_makes_fresh(db: kektor.Database) -> None:
    person, agent = _as(db, "human"), _as(db, "agent")
    person.remember("The gate code is 5512", id="gate")
    agent.confirm("gate", evidence=_said(person, "I used 5512 at the gate just now"))
    assert person.get("gate").freshness.confirmations == 1
    person.confirm("gate")
    assert person.get("gate").freshness.confirmations == 2


@pytest.mark.parametrize(
    ("who", "role", "text"),
    [
        ("agent", "user", "The gate code is 5512, says the user"),
        ("human", "assistant", "The gate code is 5512, I am sure"),
        ("human", "user", "The gate code is not 5512"),
        ("human", "user", "Good morning. The gate code isn't 5512 any more"),
    ],
)
def test_an_agents_own_word_and_a_denial_confirm_nothing(db: kektor.Database, who: str, role: str, text: str) -> None:
    person, agent = _as(db, "human"), _as(db, "agent")
    person.remember("The gate code is 5512", id="gate")
    source = _said(_as(db, who), text, role)
    with pytest.raises(kektor.Invalid) as refused:
        agent.confirm("gate", evidence=source)
    assert refused.value.field == "evidence"
    assert person.get("gate").freshness.confirmations == 0


def test_an_agent_needs_a_source_and_an_old_one_is_none(db: kektor.Database) -> None:
    person, agent = _as(db, "human"), _as(db, "agent")
    old = _said(person, "The gate code is 5512")
    person.remember("The gate code is 5512", id="gate")
    for evidence in (None, old, "gate"):
        with pytest.raises(kektor.Invalid):
            agent.confirm("gate", evidence=evidence)
    person.recall("What is the gate code?")
    assert person.get("gate").freshness.confirmations == 0
