"""A date is told as it was given: a year never becomes its first of January."""

import pytest

import kektor
from tests.support.embedders import HashingEmbedder


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("2024", "2024"),
        ("2024-03", "2024-03"),
        ("2024-03-09", "2024-03-09"),
        ("2024-03-09T23:30:00Z", "2024-03-09"),
        ("2024-03-09T23:30:00-05:00", "2024-03-10"),
        (1_709_992_800, "2024-03-09"),
    ],
)
def test_a_partial_date_is_told_as_given(given: str | int, told: str) -> None:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        mem = db.memory(user="alice")
        mem.remember("The bridge was painted green", id="bridge", occurred_at=given)
        assert mem.get("bridge").occurred_label == told
        context = mem.recall("What happened to the bridge?").context
        assert f"occurred {told} " in context
        mem.ingest_messages([{"role": "user", "content": "The tower was painted grey", "at": given}], session="s")
        assert f"said {told} by" in mem.recall("What happened to the tower?").context


def test_a_day_in_a_zone_is_that_day() -> None:
    """Midnight in Rome is the day before in UTC: the day that was said is the one told."""
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        mem = db.memory(user="alice")
        mem.remember("The bridge was painted green", occurred_at="2024-05-03", tz="Europe/Rome")
        assert "occurred 2024-05-03 " in mem.recall("What happened to the bridge?").context


def test_what_has_no_date_is_told_by_when_it_was_recorded() -> None:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        mem = db.memory(user="alice")
        mem.remember("The bridge is green", id="bridge")
        memory = mem.get("bridge")
        assert memory.occurred_label is None
        assert f"recorded {memory.recorded_at[:10]} " in mem.recall("Which colour is the bridge?").context
