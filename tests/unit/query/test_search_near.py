"""Searching a part of the graph, at a time, and fusing two sides."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import kektor
from kektor.handles import IndexHandle
from tests.support.embedders import HashingEmbedder


@pytest.fixture(scope="module")
def index() -> Iterator[IndexHandle]:
    """A chain a → b → c → d, and e beside it; the nearer to the end, the better it matches."""
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        made = db.create_index("v", dim=2)
        names = list("abcde")
        made.upsert(names, vectors=[[1, 0.5 - n / 10] for n in range(5)], texts=["fish " * (n + 1) for n in range(5)])
        memory = db.memory("v")
        for src, dst in zip("abc", "bcd", strict=True):
            memory.link(src, "next", dst)
        memory.link("a", "likes", "e")
        yield made


QUERY = np.array([1, 0], np.float32)


def found(index: IndexHandle, **graph: Any) -> list[str]:
    by_vector = [hit.memory.id for hit in index.search(QUERY, k=5, graph=graph)]
    assert sorted(by_vector) == sorted(hit.memory.id for hit in index.search(text="fish", k=5, graph=graph))
    return by_vector


def test_only_what_a_walk_reaches_is_searched(index: IndexHandle) -> None:
    assert found(index, root="a", depth=1) == ["e", "b", "a"]
    assert found(index, root="a", depth=2, rels=["next"]) == ["c", "b", "a"]
    assert found(index, root="c", depth=1, direction="in") == ["c", "b"]
    assert found(index, root="c", depth=1, direction="out") == ["d", "c"]
    assert found(index, root="c", depth=0) == ["c"]
    assert [hit.memory.id for hit in index.search(QUERY, k=5)] == ["e", "d", "c", "b", "a"]


def test_the_walk_is_over_all_that_is_seen_and_the_filter_over_what_it_reaches(index: IndexHandle) -> None:
    hits = index.search(QUERY, k=5, graph={"root": "a", "depth": 3}, filter="text LIKE 'fish fish fish fish%'")
    assert [hit.memory.id for hit in hits] == ["e", "d"]


def test_a_root_that_is_not_there_is_named(index: IndexHandle) -> None:
    for graph, error, field in (
        ({"root": "x"}, kektor.NotFound, "graph.root"),
        ({"root": "a", "depth": 33}, kektor.Invalid, "graph.depth"),
        ({"depth": 1}, kektor.Invalid, "graph.root"),
    ):
        with pytest.raises(error) as caught:
            index.search(QUERY, graph=graph)
        assert caught.value.field == field


@pytest.mark.parametrize("fusion", ["convex", "rrf"])
def test_the_parts_of_a_fused_score_add_up(index: IndexHandle, fusion: str) -> None:
    hits = index.search(QUERY, text="fish", k=5, fusion=fusion, alpha=0.75)
    assert len(hits) == 5
    for hit in hits:
        assert hit.scores.keys() == {"vector", "text"}
        assert sum(hit.scores.values()) == pytest.approx(hit.score)
    if fusion == "rrf":
        best = index.search(QUERY, k=1)[0].memory.id
        assert next(h for h in hits if h.memory.id == best).scores["vector"] == pytest.approx(0.75 / 61)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_search_sees_what_was_known_and_what_held_then() -> None:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        memory = db.memory()
        first = memory.remember("the port is 8080", valid_from="2023")
        memory.evolve(first.id or "", "the port is 8081", valid_from="2024")
        index = db.index("default")
        told = memory.get(first.id or "").recorded_at

        def ports(**when: Any) -> list[str]:
            return [hit.memory.text[-4:] for hit in index.search(text="port", **when)]

        assert ports() == ["8081"]
        assert ports(as_of="2023-06") == ["8080"]
        assert ports(known_at=told) == ["8080"]
        assert ports(known_at=told, as_of="2022") == []
