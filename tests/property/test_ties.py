"""What scores the same comes in one order, by content and then id, however it was stored: also where k cuts it off."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kektor
from kektor.api import Database
from tests.support.embedders import HashingEmbedder


def stored(entries: list[tuple[str, str]], order: list[int], *, dim: int = 4) -> Database:
    db = kektor.open(":memory:", embedder=HashingEmbedder())
    index = db.create_index("t", dim=dim)
    vectors = np.zeros((len(entries), dim), np.float32)
    vectors[:, 0] = 1
    vectors[: len(entries) // 4, 1] = 1
    for part in np.array_split(np.array(order), 3):
        chosen = [entries[at] for at in part]
        if chosen:
            index.upsert([i for i, _ in chosen], vectors=vectors[part], texts=[text for _, text in chosen])
    return db


def answers(db: Database, k: int) -> list[object]:
    index = db.index("t")
    query = np.array([1, 0, 0, 0], np.float32)
    ids, scores = index.search_batch(np.stack([query, query + 1]), k=k)
    return [
        [hit.memory.id for hit in index.search(text="alpha", k=k)],
        [hit.memory.id for hit in index.search(vector=query, k=k)],
        [hit.memory.id for hit in index.search(vector=query, text="alpha", k=k)],
        [hit.memory.id for hit in index.search(vector=query, text="alpha", k=k, fusion="rrf")],
        [ids.tolist(), np.nan_to_num(scores, nan=-1).tolist()],
    ]


@settings(max_examples=15, deadline=None)
@given(count=st.integers(1, 40), k=st.integers(1, 12), kinds=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_ties_fall_the_same_way_in_any_order_of_insertion(count: int, k: int, kinds: int, seed: int) -> None:
    pen = random.Random(seed)
    entries = [(f"id{number}", f"alpha {chr(97 + number % kinds) * 3}") for number in range(count)]
    found = []
    for _ in range(3):
        order = list(range(count))
        pen.shuffle(order)
        with stored(entries, order) as db:
            found.append(answers(db, k))
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) == min(k, count)  # type: ignore[arg-type]


def test_a_batch_answers_as_single_searches_do() -> None:
    entries = [(f"id{number}", "the same") for number in range(60)]
    with stored(entries, list(range(60))) as db:
        index = db.index("t")
        query = np.array([1, 1, 0, 0], np.float32)
        ids, scores = index.search_batch(query[None], k=20)
        single = index.search(vector=query, k=20)
        assert ids[0].tolist() == [hit.memory.id for hit in single]
        assert scores[0].tolist() == pytest.approx([hit.score for hit in single])


def test_recall_cuts_equal_memories_in_one_order() -> None:
    found = []
    for seed in (1, 2):
        db = kektor.open(":memory:", embedder=HashingEmbedder())
        with db:
            mem = db.memory()
            numbers = list(range(150))
            random.Random(seed).shuffle(numbers)
            for number in numbers:
                mem.remember("the boiler hums", id=f"b{number}")
            found.append([hit.memory.id for hit in mem.recall("the boiler hums", k=5)])
    assert found[0] == found[1]
    assert len(found[0]) == 5
