"""Long queries, and text search on stricter terms."""

import random
from collections.abc import Iterator

import pytest

import kektor
from kektor.engine.long_query import MOST_TERMS, shortened
from kektor.handles import IndexHandle
from tests.support.databases import plain_database
from tests.support.embedders import HashingEmbedder

TEXTS = {
    "a": "Dana took the train to Lisbon",
    "b": "the Lisbon train was late, said Dana",
    "c": "Dana's train to Lisbon left",
    "d": "to train a dog in Lisbon",
}


@pytest.fixture(scope="module")
def index() -> Iterator[IndexHandle]:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        made = db.create_index("t", dim=2)
        made.upsert(list(TEXTS), texts=list(TEXTS.values()))
        yield made


@pytest.mark.parametrize(
    ("text", "match", "expected"),
    [
        ("train Dana", "any", {"a", "b", "c", "d"}),
        ("train Dana", "all", {"a", "b", "c"}),
        ("TRAIN TO lisbon", "phrase", {"a", "c"}),
        ("Lisbon train", "phrase", {"b"}),
        ("train AND dog", "all", set()),
        ("train zebra", "all", set()),
        ("a dog in Lisbon", "phrase", {"d"}),
    ],
)
def test_what_must_occur(index: IndexHandle, text: str, match: str, expected: set[str]) -> None:
    assert {hit.memory.id for hit in index.search(text=text, match=match)} == expected


def test_a_match_needs_a_text(index: IndexHandle) -> None:
    with pytest.raises(kektor.Invalid, match="needs a text"):
        index.search([1, 0], match="all")


def test_of_a_long_query_the_rarest_terms_are_asked_for() -> None:
    pen = random.Random(3)
    common = [f"common{number}" for number in range(400)]
    with kektor.open(":memory:", embedder=HashingEmbedder()) as local, plain_database() as plain:
        for db in (local, plain):
            made = db.create_index("t", dim=2)
            ids = [f"n{number}" for number in range(30)]
            texts = [" ".join(common[number::3]) for number in range(29)] + ["needle in a common1 stack"]
            made.upsert(ids, texts=texts)
        words = [*common, "needle", *["absent"] * 50]
        pen.shuffle(words)
        query = " ".join(words)
        found = [
            [(h.memory.id, round(h.score, 3)) for h in db.index("t").search(text=query, k=30)] for db in (local, plain)
        ]
        assert found[0][0][0] == found[1][0][0]
        assert dict(found[0]) == pytest.approx(dict(found[1]), abs=2e-3)
        assert "n29" in dict(found[0])


def test_a_long_query_keeps_its_terms_and_their_number() -> None:
    held = {f"w{number}": number for number in range(1, 501)}
    query = " ".join([*held, "w1", "nowhere"])
    short = shortened(query, terms_of=str.split, frequency=lambda term: held.get(term, 0), documents=1000)
    words = short.split()
    assert len(set(words)) == MOST_TERMS
    assert words.count("w1") == 2
    assert "nowhere" not in words
    few = "w1 w2 " * 1000
    assert shortened(few, terms_of=str.split, frequency=lambda term: 1, documents=10) == few
