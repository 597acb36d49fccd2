"""What was taken back speaks in no part of an answer: neither in its hits nor in what it says about a question."""

from collections.abc import Iterator

import pytest

import kektor
from kektor.handles import MemoryHandle

_SAID = "Marco is allergic to peanuts"
_TWIN = "Rosa is allergic to walnuts"


@pytest.fixture
def alice() -> Iterator[MemoryHandle]:
    with kektor.open(":memory:") as db:
        yield db.memory(user="alice")


def _told(alice: MemoryHandle) -> str:
    """A memory and its twin, each with the message it rests on; returns the id of the first."""
    talk = [{"role": "user", "content": text} for text in (_SAID, _TWIN, "Priya met Marco and Rosa at the pier")]
    sources = alice.ingest_messages(talk, session="pier").ids
    assert sources is not None
    ids = [
        alice.remember(text, evidence=[{"source": source, "quote": text}]).id
        for text, source in zip((_SAID, _TWIN), sources, strict=False)
    ]
    assert ids[0] is not None
    return ids[0]


def test_whose_fact_a_retracted_sentence_told_is_not_said(alice: MemoryHandle) -> None:
    first = _told(alice)
    asked = {"Is Priya allergic to peanuts?": "Marco", "Is Priya allergic to walnuts?": "Rosa"}
    for question, person in asked.items():
        assert alice.recall(question).premise.wrong_subject == [person]
    alice.retract(first, reason="it was a misunderstanding")
    taken_back = alice.recall("Is Priya allergic to peanuts?")
    assert "Marco" not in taken_back.premise.wrong_subject
    assert not any("peanuts" in text for text in (taken_back.context, *(miss.text for miss in taken_back.near_misses)))
    control = alice.recall("Is Priya allergic to walnuts?")
    assert control.premise.wrong_subject == ["Rosa"]
    assert _TWIN in [miss.text for miss in control.near_misses]


def test_a_name_that_only_a_retracted_sentence_had_is_not_suggested(alice: MemoryHandle) -> None:
    source, twin = alice.ingest_messages(
        [
            {"role": "user", "content": "Henrietta keeps the bees"},
            {"role": "user", "content": "Wilhelmina keeps the goats"},
        ],
        session="farm",
    ).ids or ("", "")
    kept = alice.remember(
        "Henrietta keeps the bees", evidence=[{"source": source, "quote": "Henrietta keeps the bees"}]
    )
    assert alice.recall("What does Henriette keep?").nearest_keys == ["henrietta"]
    alice.retract(kept.id, reason="she does not")
    assert alice.recall("What does Henriette keep?").nearest_keys == []
    assert alice.recall("What does Wilhelmine keep?").nearest_keys == ["wilhelmina"]
    assert alice.get(twin).text == "Wilhelmina keeps the goats"
