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


def test_a_question_that_only_a_retracted_sentence_answers_has_no_answer(alice: MemoryHandle) -> None:
    first = _told(alice)
    question = "Who is badly allergic to peanuts?"
    assert _SAID in [hit.memory.text for hit in alice.recall(question)]
    alice.retract(first, reason="it was a misunderstanding")
    found = alice.recall(question)
    assert all(hit.memory.text != _SAID for hit in found)
    assert found.hits or found.status == "no_match"
    assert _TWIN in [hit.memory.text for hit in alice.recall("Who is badly allergic to walnuts?")]


def test_a_plan_finds_nothing_that_was_taken_back(alice: MemoryHandle) -> None:
    first = _told(alice)
    plan = {"stages": [{"name": "a", "match": {"any": "peanuts walnuts"}, "kinds": ["source", "memory"]}]}
    before = alice.recall("allergies", mode="plan", plan=plan).context
    assert _SAID in before
    assert _TWIN in before
    alice.retract(first, reason="it was a misunderstanding")
    after = alice.recall("allergies", mode="plan", plan=plan).context
    assert "peanuts" not in after
    assert _TWIN in after


def test_a_key_that_leads_to_nothing_seen_is_not_named(alice: MemoryHandle) -> None:
    gone = alice.remember("The merger is planned for May", keys=["Project Moonrise"]).id
    alice.remember("The picnic is planned for June", keys=["Project Sunrise"])
    asked = "Tell me of the project of Zebulon"
    assert set(alice.recall(asked).nearest_keys) == {"Project Moonrise", "Project Sunrise"}
    assert gone is not None
    alice.retract(gone, reason="there is none")
    assert alice.recall(asked).nearest_keys == ["Project Sunrise"]
