"""A statement as it held, and as it was known: every read that takes the two times."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import kektor
from kektor.handles import MemoryHandle
from tests.support.embedders import HashingEmbedder


class Told(NamedTuple):
    memory: MemoryHandle
    first: str
    second: str
    before: str


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    """The port was 8080 from 2022 and 8081 from 2024; then it turned out to have been 8088 all the time until then."""
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        memory = db.memory()
        first = memory.remember("the port is 8080", valid_from="2022", valid_to="2023").id or ""
        second = memory.remember("the port is 8081", valid_from="2024").id or ""
        before = memory.get(second).recorded_at
        memory.correct(first, "the port is 8088")
        memory.evolve(second, "the port is 8090", valid_from="2025")
        yield Told(memory, first, second, before)


def test_a_get_by_time_answers_the_version_that_held(told: Told) -> None:
    memory = told.memory
    assert memory.get(told.second, as_of="2024-06").text == "the port is 8081"
    assert memory.get(told.second, as_of="2026").text == "the port is 8090"
    assert memory.get(told.first, as_of="2022-06").text == "the port is 8088"
    assert memory.get(told.first, as_of="2022-06", known_at=told.before).text == "the port is 8080"
    assert memory.get(told.second, as_of="2026", known_at=told.before).text == "the port is 8081"
    with pytest.raises(kektor.NotFound, match=r"no version of .* held at 2019") as missing:
        memory.get(told.second, as_of="2019")
    assert missing.value.field == "as_of"


def test_what_was_known_knows_nothing_of_what_came_later(told: Told) -> None:
    now, then = told.memory.get(told.first), told.memory.get(told.first, known_at=told.before)
    assert (now.status, now.trust, now.superseded_by is None) == ("superseded", "rejected", False)
    assert (then.status, then.trust, then.superseded_by, then.retired_at) == ("current", "accepted", None, None)
    assert told.memory.get(told.second, resolve="head", known_at=told.before).text == "the port is 8081"
    assert told.memory.get(told.second, resolve="head").text == "the port is 8090"
    with pytest.raises(kektor.NotFound):
        told.memory.get(told.first, known_at="2020")


def test_a_get_takes_one_way_of_choosing_a_version(told: Told) -> None:
    with pytest.raises(kektor.Invalid, match="give one of them"):
        told.memory.get(told.first, resolve="head", as_of="2024")
    with pytest.raises(kektor.Invalid, match="unknown field 'when'"):
        told.memory.get(told.first, when="2024")


@pytest.mark.parametrize(
    ("when", "texts"),
    [
        ({}, {"8090"}),
        ({"as_of": "2022-06"}, {"8088"}),
        ({"as_of": "2024-06"}, {"8081"}),
        ({"known_at": "before"}, {"8081"}),
        ({"known_at": "before", "as_of": "2022-06"}, {"8080"}),
        ({"known_at": "before", "as_of": "2026"}, {"8081"}),
        ({"known_at": "2020"}, set()),
    ],
)
def test_every_read_answers_alike_at_a_time(told: Told, when: dict[str, Any], texts: set[str]) -> None:
    when = {name: told.before if value == "before" else value for name, value in when.items()}
    memory = told.memory
    listed = {item.text[-4:] for item in memory.list(**when).items}
    recalled = {hit.memory.text[-4:] for hit in memory.recall("port", **when)}
    planned = memory.recall("port", mode="plan", plan={"stages": [{"match": "port"}]}, **when)
    assert listed == recalled == {hit.memory.text[-4:] for hit in planned} == texts
    assert memory.count(**when) == len(texts)


def test_statistics_count_what_was_shown(told: Told) -> None:
    operations, principal = told.memory._operations, told.memory._principal
    assert operations.index_stats("default", principal).shown == {"memory": 1}
    assert operations.index_stats("default", principal, as_of="2022-06").shown == {"memory": 1}
    assert operations.index_stats("default", principal, known_at="2020").shown == {}
