"""The text index against a naive reference: the same documents, scores and order, whatever came before."""

import math
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyroaring
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kektor_native import Bitmap, TextIndex, analyze, query_terms

# Few words, so that documents share them; some stop words, identifiers and scripts without spaces among them.
WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "the",
    "is",
    "running",
    "TKT-100",
    "TKT-1000",
    "a.b@c.io",
    "猫が好き",
    "서울에서",
]
texts = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
queries = st.lists(st.sampled_from([*WORDS, "zzz", "猫", "ran"]), max_size=5).map(" ".join)
slots = st.one_of(st.integers(0, 40), st.sampled_from([4095, 4096, 5000, 70_000, 2**32 - 2]))


class Reference:
    """BM25F as the formula states it, over everything at once."""

    def __init__(self, weights: list[float], k1: float, b: float) -> None:
        self.weights, self.k1, self.b = weights, k1, b
        self.documents: dict[int, tuple[Counter[str], float]] = {}

    def add(self, slot: int, parts: list[str]) -> None:
        tf: Counter[str] = Counter()
        for part, weight in zip(parts, self.weights, strict=True):
            for term in analyze(part):
                tf[term] += weight  # type: ignore[assignment]
        length = sum(w * len(analyze(p)) for p, w in zip(parts, self.weights, strict=True))
        self.documents[slot] = (tf, length)

    def frequency(self, term: str) -> int:
        return sum(term in tf for tf, _ in self.documents.values())

    def scores(self, query: str) -> dict[int, float]:
        n = len(self.documents)
        mean = sum(length for _, length in self.documents.values()) / n if n else 0.0
        out: dict[int, float] = {}
        for term in query_terms(query):
            df = self.frequency(term)
            idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
            for slot, (tf, length) in self.documents.items():
                if term in tf:
                    norm = self.k1 * (1 - self.b + self.b * length / mean)
                    out[slot] = out.get(slot, 0.0) + idf * tf[term] * (self.k1 + 1) / (tf[term] + norm)
        return out


def ranked(found: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, float]]:
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


def check(index: TextIndex, reference: Reference, query: str, k: int, allowed: set[int] | None) -> None:
    expected = reference.scores(query)
    if allowed is not None:
        expected = {slot: score for slot, score in expected.items() if slot in allowed}
    bitmap = None if allowed is None else Bitmap(pyroaring.BitMap(allowed).serialize())
    everything = ranked(index.search(query, 10_000, filter=bitmap))
    assert {slot for slot, _ in everything} == set(expected)
    for slot, score in everything:
        assert score == pytest.approx(expected[slot], rel=1e-6)
    assert everything == sorted(everything, key=lambda hit: (-hit[1], hit[0]))
    assert ranked(index.search(query, k, filter=bitmap)) == everything[:k]
    asked = np.array([*expected, 3, 99_999, 3], np.uint32)
    for slot, score in zip(asked.tolist(), index.scores(query, asked).tolist(), strict=True):
        whole = reference.scores(query)
        assert score == pytest.approx(whole.get(slot, 0.0), rel=1e-6)


class Changes(RuleBasedStateMachine):
    """Any sequence of adding, replacing, removing, checkpoints and reopening."""

    @initialize(
        weights=st.sampled_from([[1.0], [1.0, 2.5], [0.3, 1.0, 7.0]]),
        k1=st.sampled_from([1.2, 0.0, 2.0]),
        b=st.sampled_from([0.75, 0.0, 1.0]),
    )
    def begin(self, weights: list[float], k1: float, b: float) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.index = TextIndex(fields=[(f"f{i}", w) for i, w in enumerate(weights)], k1=k1, b=b)
        self.reference = Reference(weights, k1, b)
        self.lsn = 0
        self.checkpoints = 0
        self.files: dict[str, Path] = {}
        self.frozen: tuple[list[tuple[str, bool]], Reference] | None = None

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    @rule(slot=slots, parts=st.lists(texts, min_size=3, max_size=3))
    def put(self, slot: int, parts: list[str]) -> None:
        self.lsn += 1
        parts = parts[: len(self.reference.weights)]
        if slot in self.reference.documents:
            with pytest.raises(ValueError, match="taken"):
                self.index.add(slot, parts, lsn=self.lsn)
            assert self.index.remove(slot, lsn=self.lsn)
        self.index.add(slot, parts, lsn=self.lsn)
        self.reference.add(slot, parts)

    @rule(slot=slots, erase=st.booleans())
    def remove(self, slot: int, erase: bool) -> None:
        self.lsn += 1
        there = slot in self.reference.documents
        assert self.index.remove(slot, lsn=self.lsn, erase=erase) == there
        self.reference.documents.pop(slot, None)

    @rule()
    def freeze(self) -> None:
        if self.frozen:
            return
        chunks = self.index.freeze(self.lsn)
        folder = Path(self.folder.name) / str(self.checkpoints)
        folder.mkdir()
        self.checkpoints += 1
        frozen = Reference(self.reference.weights, self.reference.k1, self.reference.b)
        frozen.documents = dict(self.reference.documents)
        self.frozen = ([(chunk.name, chunk.dirty) for chunk in chunks], frozen)
        self.chunks = chunks
        self.target = folder

    @rule(keep=st.sampled_from([True, True, False]), whole=st.booleans(), reopen=st.booleans())
    def finish(self, keep: bool, whole: bool, reopen: bool) -> None:
        if not self.frozen:
            return
        _, frozen = self.frozen
        self.frozen = None
        written: dict[str, Path] = {}
        for chunk in self.chunks:
            path = self.target / chunk.name
            if chunk.dirty or whole:
                length, _ = self.index.write(chunk, str(path))
                assert path.stat().st_size == length
            else:
                path.hardlink_to(self.files[chunk.name])
            written[chunk.name] = path
        self.index.release(keep)
        saved = TextIndex.open(str(self.target))
        assert saved.validate() == []
        assert len(saved) == len(frozen.documents)
        check(saved, frozen, "alpha beta TKT-100 猫", 3, None)
        if keep:
            self.files = written
            if reopen:
                self.index, self.reference = saved, frozen

    @rule(query=queries, k=st.integers(0, 12), allowed=st.none() | st.sets(slots))
    def search(self, query: str, k: int, allowed: set[int] | None) -> None:
        check(self.index, self.reference, query, k, allowed)

    @invariant()
    def counts(self) -> None:
        if not hasattr(self, "index"):
            return
        assert len(self.index) == len(self.reference.documents)
        for term in ("alpha", "the", "tkt-100", "run"):
            assert self.index.document_frequency(term) == self.reference.frequency(term)
        assert self.index.validate() == []


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=400),
    seed=st.integers(0, 2**32),
    k=st.integers(1, 20),
    every=st.integers(1, 7),
    checkpoint=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_k_best_are_those_of_scoring_everything(
    lengths: list[int], seed: int, k: int, every: int, checkpoint: bool
) -> None:
    random = np.random.default_rng(seed)
    vocabulary = [f"w{i}" for i in range(50)]
    weights = 1 / np.arange(1, 51)
    weights /= weights.sum()
    index = TextIndex()
    slot = 0
    for length in lengths * 4:
        slot += int(random.integers(1, every + 1))
        index.add(slot, [" ".join(random.choice(vocabulary, length, p=weights))], lsn=slot)
    with tempfile.TemporaryDirectory() as folder:
        if checkpoint:
            for chunk in index.freeze(slot):
                index.write(chunk, f"{folder}/{chunk.name}")
            index.release(True)
        allowed = pyroaring.BitMap(range(0, slot, 2))
        bitmap = Bitmap(allowed.serialize())
        for count in (1, 2, 4, 7):
            query = " ".join(random.choice(vocabulary, count))
            everything = ranked(index.search(query, slot))
            assert ranked(index.search(query, k)) == everything[:k]
            assert ranked(index.search(query, k, filter=bitmap)) == [h for h in everything if h[0] in allowed][:k]


@given(parts=st.lists(texts, min_size=1, max_size=25), query=queries)
@settings(max_examples=100, deadline=None)
def test_scores_are_those_of_bm25s_up_to_its_constant_factor(parts: list[str], query: str) -> None:
    bm25s = pytest.importorskip("bm25s")
    terms = query_terms(query)
    tokens = [analyze(part) for part in parts]
    vocabulary = {term: i for i, term in enumerate(sorted({t for document in tokens for t in document}))}
    known = [term for term in terms if term in vocabulary]
    index = TextIndex()
    for slot, part in enumerate(parts):
        index.add(slot, [part], lsn=slot + 1)
    found = index.scores(query, np.arange(len(parts), dtype=np.uint32))
    if not known:
        assert not found.any()
        return
    peer = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    peer.index(tokens, show_progress=False)
    np.testing.assert_allclose(found, peer.get_scores(known) * 2.2, rtol=1e-5, atol=1e-6)
