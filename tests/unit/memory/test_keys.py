"""Keys lead to memories by names that their texts do not have, and lead less after a dismissal."""

from collections.abc import Iterator

import pytest

import kektor
from kektor.handles import MemoryHandle


@pytest.fixture
def mem() -> Iterator[MemoryHandle]:
    with kektor.open(":memory:") as db:
        mem = db.memory(user="alice")
        keys = ["Henderson", {"concept": "key accounts", "type": "topic", "aliases": ["HND-7"]}]
        mem.remember("Dana owns the Henderson account", id="owner", keys=keys)
        mem.remember("The plants are watered on Mondays", id="plants")
        yield mem


def test_a_key_leads_to_a_memory_by_its_alias(mem: MemoryHandle) -> None:
    answer = mem.recall("Who looks after HND-7?")
    assert [hit.memory.id for hit in answer][:1] == ["owner"]
    assert answer.hits[0].connected_keys == ["Henderson", "key accounts"]
    assert answer.hits[0].scores["key"] > 0
    assert mem.recall("When are the plants watered?").hits[0].connected_keys == []


def test_a_name_is_one_key_in_a_scope(mem: MemoryHandle) -> None:
    mem.remember("Henderson is in Leeds", id="leeds", keys=["henderson", "Leeds"])
    keys = {node.text: node.id for node in mem.list(kinds=["key"]).items}
    assert sorted(keys) == ["Henderson", "Leeds", "key accounts"]
    assert [edge.dst for edge in mem.edges(keys["Henderson"], direction="out", rel="routes_to")] == [
        "owner", "leeds",
    ]  # fmt: skip


def test_a_dismissed_way_counts_for_less_and_is_never_severed(mem: MemoryHandle) -> None:
    before = mem.recall("Who looks after HND-7?").hits[0].scores["key"]
    assert mem.dismiss("owner", "hnd-7").outcome == "dismissed"
    after = mem.recall("Who looks after HND-7?").hits[0].scores["key"]
    assert 0 < after < before
    for _ in range(3):
        told = mem.dismiss("owner", "key accounts")
    assert told.warnings
    ways = {edge.src: edge.weight for edge in mem.edges("owner", direction="in", rel="routes_to")}
    assert sorted(ways.values()) == [0.1, 1.0]
    assert mem.recall("Who owns the Henderson account?").hits[0].memory.id == "owner"
    assert mem.get("owner").version == 1
    with pytest.raises(kektor.NotFound):
        mem.dismiss("plants", "key accounts")


def test_the_next_version_keeps_its_keys_and_erasing_takes_them(mem: MemoryHandle) -> None:
    head = mem.evolve("owner", "Priya owns the Henderson account")
    assert mem.recall("Who looks after HND-7?").hits[0].memory.id == head.id
    mem.forget(ids=[str(head.id)], mode="erase")
    assert [node.text for node in mem.list(kinds=["key"]).items] == []
    assert mem.get("plants").status == "current"


def test_a_miss_names_the_nearest_keys(mem: MemoryHandle) -> None:
    answer = mem.recall("zorblax Henderson qwerty")
    if answer.status == "no_match":
        assert answer.nearest_keys == ["Henderson"]
    assert mem.recall("blorp gnarfle").nearest_keys == []


@pytest.mark.parametrize("keys", [[""], ["12345"], ["x" * 81], ["a b c d e f g h i"], [f"k{n}" for n in range(33)]])
def test_a_key_is_a_short_name(mem: MemoryHandle, keys: list[str]) -> None:
    with pytest.raises(kektor.Invalid):
        mem.remember("The kettle is red", keys=keys)
    assert "The kettle is red" not in [memory.text for memory in mem.list().items]


def test_another_scopes_keys_lead_nowhere(mem: MemoryHandle) -> None:
    with kektor.open(":memory:") as db:
        db.memory(user="alice").remember("Dana owns the Henderson account", keys=["HND-7"])
        bob = db.memory(user="bob")
        bob.remember("Erik owns the Miller account")
        answer = bob.recall("Who looks after HND-7?")
        assert "Dana" not in answer.context
        assert "HND-7" not in answer.nearest_keys
