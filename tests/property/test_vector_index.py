"""VectorIndex against the simplest model there is: a dict of vectors, scanned."""

import tempfile
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kektor_native import Bitmap, VectorIndex
from numpy.typing import NDArray
from pyroaring import BitMap

Metric = Literal["cosine", "l2", "dot"]
METRICS: list[Metric] = ["cosine", "l2", "dot"]


def score(metric: Metric, query: NDArray[np.float32], vector: NDArray[np.float32]) -> float:
    q, x = query.astype(np.float64), vector.astype(np.float64)
    if metric == "dot":
        return float(q @ x)
    if metric == "l2":
        return -float(((q - x) ** 2).sum())
    return float(q @ x / (np.linalg.norm(q) * np.linalg.norm(x)))


class Model(RuleBasedStateMachine):
    """Adds, removes, checkpoints and searches in any order; few rows, so that every answer must be exact."""

    @initialize(metric=st.sampled_from(METRICS), dim=st.integers(1, 40), m=st.sampled_from([2, 4, 16]))
    def start(self, metric: Metric, dim: int, m: int) -> None:
        self.metric: Metric = metric
        self.dim = dim
        self.index = VectorIndex(dim, metric=metric, m=m, ef_construction=20)
        self.live: dict[int, NDArray[np.float32]] = {}
        self.used: set[int] = set()
        self.lsn = 0
        self.folder = tempfile.TemporaryDirectory()
        self.checkpoints = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def vectors(self, seed: int, n: int) -> NDArray[np.float32]:
        # Few distinct values, so that equal vectors and equal scores occur.
        rng = np.random.default_rng(seed)
        found = rng.integers(-2, 3, (n, self.dim)).astype(np.float32)
        found[~found.any(axis=1), 0] = 1
        return found

    @rule(seed=st.integers(0, 2**32), n=st.integers(0, 60), spread=st.sampled_from([1, 3, 1000]))
    def add(self, seed: int, n: int, spread: int) -> None:
        rng = np.random.default_rng(seed)
        start = max(self.used, default=-1) + 1
        slots = start + rng.permutation(n).astype(np.uint32) * spread
        vectors = self.vectors(seed, n)
        self.lsn += 1
        self.index.add(slots.astype(np.uint32), vectors, lsn=self.lsn)
        self.live.update(zip(slots.tolist(), vectors, strict=True))
        self.used.update(slots.tolist())

    @precondition(lambda self: self.used)
    @rule(data=st.data(), erase=st.booleans())
    def remove(self, data: st.DataObject, erase: bool) -> None:
        slots = data.draw(st.lists(st.sampled_from(sorted(self.used)), max_size=40))
        self.lsn += 1
        removed = self.index.remove(np.array(slots, np.uint32), lsn=self.lsn, erase=erase)
        assert removed == len(set(slots) & set(self.live))
        for slot in slots:
            self.live.pop(slot, None)

    @precondition(lambda self: self.used)
    @rule(data=st.data())
    def add_taken(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(sorted(self.used)))
        fresh = max(self.used) + 1
        with pytest.raises(ValueError, match=f"slot {slot} is taken"):
            self.index.add(np.array([fresh, slot], np.uint32), self.vectors(1, 2), lsn=10**6)

    @rule()
    def link(self) -> None:
        self.index.link()

    @rule(written=st.booleans(), reopen=st.booleans())
    def checkpoint(self, written: bool, reopen: bool) -> None:
        folder = Path(self.folder.name) / str(self.checkpoints)
        self.checkpoints += 1
        folder.mkdir()
        for chunk in self.index.freeze(self.lsn):
            self.index.write(chunk, str(folder / chunk.name))
        self.index.release(written)
        if reopen:
            self.index = VectorIndex.open(str(folder))

    @rule(seed=st.integers(0, 2**32), k=st.integers(1, 80), share=st.sampled_from([None, 0.1, 0.5, 0.9]))
    def search(self, seed: int, k: int, share: float | None) -> None:
        query = self.vectors(seed, 1)[0]
        rng = np.random.default_rng(seed)
        passing = None
        bitmap = None
        if share is not None:
            passing = {slot for slot in range(max(self.used, default=0) + 5) if rng.random() < share}
            bitmap = Bitmap(BitMap(passing).serialize())
        slots, scores = self.index.search(query, k, filter=bitmap)
        matching = {s: score(self.metric, query, v) for s, v in self.live.items() if passing is None or s in passing}
        assert len(slots) == len(set(slots.tolist())) == min(k, len(matching))
        assert set(slots.tolist()) <= set(matching)
        expected = sorted(matching.values(), reverse=True)[: len(slots)]
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
        for slot, found in zip(slots.tolist(), scores.tolist(), strict=True):
            assert abs(found - matching[slot]) <= 1e-5 * max(1, abs(found))
        ranked = [(-found, slot) for slot, found in zip(slots.tolist(), scores.tolist(), strict=True)]
        assert ranked == sorted(ranked)

    @invariant()
    def counts_and_bits_are_exact(self) -> None:
        if not hasattr(self, "index"):
            return
        assert len(self.index) == len(self.live)
        assert self.index.applied_lsn == self.lsn
        assert self.index.validate() == []
        if self.live:
            slots = np.array(list(self.live), np.uint32)
            assert self.index.vectors(slots).tobytes() == np.stack(list(self.live.values())).tobytes()


TestModel = pytest.mark.filterwarnings("ignore")(Model.TestCase)
TestModel.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


@settings(max_examples=60, deadline=None)
@given(
    dim=st.integers(1, 70),
    n=st.integers(1, 50),
    seed=st.integers(0, 2**32),
    exponent=st.integers(-18, 15),
    metric=st.sampled_from(METRICS),
)
def test_scores_are_those_of_f64_within_rounding(dim: int, n: int, seed: int, exponent: int, metric: Metric) -> None:
    rng = np.random.default_rng(seed)
    vectors = (rng.standard_normal((n, dim)) * 10.0**exponent).astype(np.float32)
    query = (rng.standard_normal(dim) * 10.0**exponent).astype(np.float32)
    index = VectorIndex(dim, metric=metric)
    index.add(np.arange(n, dtype=np.uint32), vectors, lsn=1)
    got = index.scores(query, np.arange(n, dtype=np.uint32))
    # The rounding of a sum is bounded by the sum of magnitudes, not by the sum.
    bound = 1.0 if metric == "cosine" else float((np.abs(query).max() + np.abs(vectors).max()) ** 2) * dim
    for found, vector in zip(got.tolist(), vectors, strict=True):
        assert abs(found - score(metric, query, vector)) <= 4e-7 * bound * (1 + dim / 32) + 1e-44


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(3_000, 5_000),
    m=st.integers(4, 24),
    seed=st.integers(0, 2**32),
    share=st.floats(0.0, 1.0),
    metric=st.sampled_from(METRICS),
)
def test_a_graph_answers_nearly_as_the_scan_does(n: int, m: int, seed: int, share: float, metric: Metric) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, 6)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scan = VectorIndex(6, metric=metric, m=m)
    graph = VectorIndex(6, metric=metric, m=m)
    for index in (scan, graph):
        index.add(np.arange(n, dtype=np.uint32), vectors, lsn=1)
    graph.link()
    passing = np.flatnonzero(rng.random(n) < share)
    bitmap = Bitmap(BitMap(passing.tolist()).serialize())
    queries = rng.standard_normal((20, 6)).astype(np.float32)
    for chosen in (None, bitmap):
        exact, _ = scan.search_batch(queries, 10, filter=chosen)
        found, _ = graph.search_batch(queries, 10, ef=80, filter=chosen)
        hits = sum(len(set(a) & set(b) - {0xFFFFFFFF}) for a, b in zip(exact.tolist(), found.tolist(), strict=True))
        assert hits >= 0.95 * int((exact != 0xFFFFFFFF).sum())
