"""What VectorIndex promises: exact bits, exact counts, k results, safe threads, checkpoints that tell damage."""

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kektor_native import Bitmap, Chunk, CorruptFile, VectorIndex
from numpy.typing import NDArray
from pyroaring import BitMap

METRICS = ["cosine", "l2", "dot"]
NO_SLOT = 0xFFFFFFFF

Floats = NDArray[np.float32]
Slots = NDArray[np.uint32]


def slots_of(values: Iterable[int]) -> Slots:
    return np.array(list(values), np.uint32)


def bitmap(slots: Iterable[int]) -> Bitmap:
    return Bitmap(BitMap([int(slot) for slot in slots]).serialize())


def clustered(n: int, dim: int, seed: int = 0, intrinsic: int = 12) -> Floats:
    """Vectors of a low intrinsic dimension, as embeddings have."""
    rng = np.random.default_rng(seed)
    basis = np.random.default_rng(99).standard_normal((intrinsic, dim))
    points = rng.standard_normal((n, intrinsic)) @ basis + 0.05 * rng.standard_normal((n, dim))
    return points.astype(np.float32)


def exact_scores(metric: str, queries: Floats, vectors: Floats) -> NDArray[np.float64]:
    q, x = queries.astype(np.float64), vectors.astype(np.float64)
    if metric == "dot":
        return q @ x.T
    if metric == "l2":
        return -((q[:, None, :] - x[None, :, :]) ** 2).sum(-1)
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return q @ (x / np.linalg.norm(x, axis=1, keepdims=True)).T


def recall(found: Slots, scores: NDArray[np.float64], k: int = 10) -> float:
    """Share of the k best that were found; -inf marks what must not be found."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    passing = np.take_along_axis(scores, best, 1) > -np.inf
    hits = [len(set(f.tolist()) & set(b[p].tolist())) for f, b, p in zip(found, best, passing, strict=True)]
    return sum(hits) / int(passing.sum())


def filled(vectors: Floats, metric: str = "cosine", link: bool = True, **options: Any) -> VectorIndex:
    index = VectorIndex(vectors.shape[1], metric=metric, **options)  # type: ignore[arg-type]
    index.add(np.arange(len(vectors), dtype=np.uint32), vectors, lsn=1)
    if link:
        index.link()
    return index


def checkpoint(index: VectorIndex, folder: Path, lsn: int = 1) -> list[Chunk]:
    folder.mkdir()
    chunks = index.freeze(lsn)
    for chunk in chunks:
        length, digest = index.write(chunk, str(folder / chunk.name))
        assert (folder / chunk.name).stat().st_size == length
        assert len(digest) == 64
    index.release(True)
    return chunks


@pytest.fixture(scope="module")
def data() -> Floats:
    return clustered(6_000, 32)


@pytest.fixture(scope="module")
def queries() -> Floats:
    return clustered(60, 32, seed=5)


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("link", [False, True])
def test_search_finds_the_best_with_their_exact_scores(metric: str, link: bool, data: Floats, queries: Floats) -> None:
    index = filled(data, metric, link)
    expected = exact_scores(metric, queries, data)
    found, scores = index.search_batch(queries, 10, ef=200)
    assert recall(found, expected) >= (0.99 if link else 1.0)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, found.astype(int), 1), rtol=2e-5, atol=2e-5)
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("metric", METRICS)
def test_scores_and_both_searches_agree_to_the_bit(metric: str, data: Floats, queries: Floats) -> None:
    index = filled(data, metric)
    found, scores = index.search_batch(queries, 7, ef=64)
    for query, row, row_scores in zip(queries, found, scores, strict=True):
        one, one_scores = index.search(query, 7, ef=64)
        assert one.tolist() == row.tolist()
        assert one_scores.tobytes() == row_scores.tobytes()
        assert index.scores(query, row).tobytes() == row_scores.tobytes()


def test_a_vector_finds_itself_first_with_the_best_score(data: Floats) -> None:
    for metric, best in [("cosine", 1.0), ("l2", 0.0)]:
        index = filled(data, metric)
        for slot in (0, 17, 5_999):
            found, scores = index.search(data[slot], 1)
            assert found.tolist() == [slot]
            assert abs(scores[0] - best) < 1e-6


def test_vectors_come_back_bit_for_bit(data: Floats) -> None:
    odd = data[:4].copy()
    odd[0] *= 1e-20
    odd[1] *= 1e18
    odd[2, 0] = -0.0
    index = filled(np.concatenate([odd, data]), "cosine")
    order = slots_of([2, 0, 3, 1, 4])
    assert index.vectors(order).tobytes() == np.concatenate([odd, data])[order].tobytes()
    assert index.vectors(slots_of([])).shape == (0, 32)


def test_cosine_holds_for_norms_at_the_ends_of_the_range() -> None:
    base = clustered(50, 16)
    scaled = base * (10.0 ** np.linspace(-30, 35, 50))[:, None]
    index = filled(scaled.astype(np.float32), "cosine")
    expected = exact_scores("cosine", base[:5], scaled.astype(np.float32))
    for query, row in zip(base[:5], expected, strict=True):
        for factor in (1e-25, 1.0, 1e25):
            got = index.scores((query * factor).astype(np.float32), np.arange(50, dtype=np.uint32))
            np.testing.assert_allclose(got, row, atol=1e-5)


@pytest.mark.parametrize("metric", ["dot", "l2"])
def test_sums_beyond_the_range_of_f32_are_ordered_and_never_nan(metric: str) -> None:
    vectors = np.array([[3e38, 3e38], [3e38, -3e38], [-3e38, -3e38], [0.5, 0.25]], np.float32)
    index = filled(vectors, metric)
    found, scores = index.search(np.array([3e38, 3e38], np.float32), 4)
    assert not np.isnan(scores).any()
    assert sorted(found.tolist()) == [0, 1, 2, 3]
    assert found[0] == 0
    if metric == "dot":
        assert found.tolist() == [0, 3, 1, 2]
        assert scores.tolist() == [np.inf, np.float32(2.25e38), 0.0, -np.inf]


def test_equal_scores_are_ordered_by_slot() -> None:
    rng = np.random.default_rng(1)
    vectors = np.repeat(clustered(50, 16), 40, axis=0)
    order = rng.permutation(len(vectors)).astype(np.uint32)
    for link in (False, True):
        index = VectorIndex(16)
        index.add(order, vectors[order], lsn=1)
        if link:
            index.link()
        found, scores = index.search(vectors[0], 60, ef=400)
        assert [(-s, f) for s, f in zip(scores.tolist(), found.tolist(), strict=True)] == sorted(
            (-s, f) for s, f in zip(scores.tolist(), found.tolist(), strict=True)
        )
        if not link:
            assert found[:40].tolist() == list(range(40))


@pytest.mark.parametrize("link", [False, True])
def test_ten_thousand_copies_of_one_vector_neither_hide_nor_lose_anything(link: bool) -> None:
    others = clustered(2_000, 16, seed=3)
    copies = np.repeat(others[:1] * 0.7 + 0.1, 10_000, axis=0).astype(np.float32)
    index = VectorIndex(16, metric="l2")
    index.add(np.arange(1_000, dtype=np.uint32), others[:1_000], lsn=1)
    index.add(np.arange(1_000, 11_000, dtype=np.uint32), copies, lsn=2)
    index.add(np.arange(11_000, 12_000, dtype=np.uint32), others[1_000:], lsn=3)
    if link:
        index.link()
    assert len(index) == 12_000
    assert index.validate() == []
    found, scores = index.search(copies[0], 100)
    assert scores.tolist() == [0.0] * 100
    assert len(set(found.tolist())) == 100
    probes = others[::20]
    nearest, _ = index.search_batch(probes, 1)
    expected = [slot if slot < 1_000 else slot + 10_000 for slot in range(0, 2_000, 20)]
    assert np.mean(nearest[:, 0] == expected) >= 0.98
    assert index.remove(np.arange(1_000, 10_990, dtype=np.uint32), lsn=4) == 9_990
    left, _ = index.search(copies[0], 10, ef=400)
    assert len(set(left.tolist()) & set(range(10_990, 11_000))) >= 8


@pytest.mark.parametrize("dim", [1, 2, 3, 65_536])
def test_dimensions_from_one_to_the_greatest(dim: int) -> None:
    vectors = np.random.default_rng(dim).standard_normal((40, dim)).astype(np.float32)
    for metric in METRICS:
        index = filled(vectors, metric)
        expected = exact_scores(metric, vectors[:3], vectors)
        found, scores = index.search_batch(vectors[:3], 40)
        assert found.shape == (3, 40)
        rows = np.take_along_axis(expected, found.astype(int), 1)
        np.testing.assert_allclose(scores, rows, rtol=1e-4, atol=1e-4)
        assert index.vectors(slots_of([39])).tobytes() == vectors[39:].tobytes()


def test_empty_index_and_k_beyond_it(data: Floats) -> None:
    index = VectorIndex(32)
    found, scores = index.search(data[0], 10)
    assert found.tolist() == [] == scores.tolist()
    assert index.search_batch(data[:2], 3)[0].tolist() == [[NO_SLOT] * 3] * 2
    assert index.validate() == []
    for link in (False, True):
        index = filled(data[:50], link=link)
        found, _ = index.search(data[0], 1_000)
        assert sorted(found.tolist()) == list(range(50))
        found, _ = index.search(data[0], 0)
        assert found.tolist() == []
        slots, scores = index.search_batch(data[:1], 60)
        assert slots[0, 50:].tolist() == [NO_SLOT] * 10
        assert np.isnan(scores[0, 50:]).all()
        assert not np.isnan(scores[0, :50]).any()


def test_slots_may_arrive_with_gaps_and_in_any_order(data: Floats, queries: Floats) -> None:
    rng = np.random.default_rng(8)
    slots = rng.choice(300_000, len(data), replace=False).astype(np.uint32)
    index = VectorIndex(32)
    index.add(slots, data, lsn=1)
    index.link()
    assert index.validate() == []
    found, _ = index.search_batch(queries, 10, ef=200)
    place = {int(slot): i for i, slot in enumerate(slots)}
    rows = np.vectorize(place.__getitem__)(found)
    assert recall(rows.astype(np.uint32), exact_scores("cosine", queries, data)) >= 0.99
    assert int(slots[0]) in index
    assert next(s for s in range(300_000) if s not in place) not in index


# ---------------------------------------------------------------- filters


@pytest.fixture(scope="module")
def large() -> tuple[Floats, Floats, VectorIndex]:
    vectors, probes = clustered(20_000, 64), clustered(100, 64, seed=7)
    return vectors, probes, filled(vectors)


@pytest.mark.parametrize("share", [0.95, 0.5, 0.1, 0.01, 0.001, 0.0001])
@pytest.mark.parametrize("mask", ["random", "clustered"])
def test_filtered_search_keeps_its_recall_at_every_selectivity(
    share: float, mask: str, large: tuple[Floats, Floats, VectorIndex]
) -> None:
    vectors, probes, index = large
    count = int(len(vectors) * share)
    if mask == "random":
        passing = np.random.default_rng(3).choice(len(vectors), count, replace=False)
    else:
        passing = np.argsort(-exact_scores("cosine", vectors[11:12], vectors)[0])[:count]
    scores = np.full((len(probes), len(vectors)), -np.inf)
    scores[:, passing] = exact_scores("cosine", probes, vectors[passing])
    found, _ = index.search_batch(probes, 10, filter=bitmap(passing))
    assert (found[:, : min(10, count)] != NO_SLOT).all()
    assert (found[:, min(10, count) :] == NO_SLOT).all()
    assert set(found.ravel().tolist()) - {NO_SLOT} <= set(passing.tolist())
    assert recall(found, scores) >= 0.97


def test_k_results_whenever_k_slots_pass(large: tuple[Floats, Floats, VectorIndex]) -> None:
    _, probes, index = large
    for count in (1, 9, 10, 11, 300, 5_000):
        passing = bitmap(range(0, count * 3, 3))
        for ef in (1, 10):
            found, _ = index.search_batch(probes[:20], 10, ef=ef, filter=passing)
            assert ((found != NO_SLOT).sum(axis=1) == min(count, 10)).all()
    found, _ = index.search(probes[0], 10_000, ef=1)
    assert len(found) == 10_000
    assert len(index.search(probes[0], 10, filter=bitmap([]))[0]) == 0
    assert len(index.search(probes[0], 10, filter=bitmap([900_000]))[0]) == 0
    assert index.search(probes[0], 10, filter=bitmap([900_000, 5]))[0].tolist() == [5]


# ---------------------------------------------------------------- refusals


def test_what_cannot_be_stored_is_refused_by_row_and_changes_nothing(data: Floats) -> None:
    index = filled(data[:100])
    before = index.freeze(1)
    index.release(False)
    good = data[100:103].copy()

    def refused(slots: Slots, vectors: Floats, said: str) -> None:
        with pytest.raises(ValueError, match=said):
            index.add(slots, vectors, lsn=99)

    for bad, said in [
        (np.nan, "component 3 is NaN"),
        (np.inf, "component 3 is inf"),
        (-np.inf, "component 3 is -inf"),
    ]:
        broken = good.copy()
        broken[1, 3] = bad
        refused(slots_of([200, 201, 202]), broken, rf"row 1 \(slot 201\): {said}")
    broken = good.copy()
    broken[2] = 0
    refused(slots_of([200, 201, 202]), broken, r"row 2 \(slot 202\): a zero vector")
    refused(slots_of([200, 201, 200]), good, "row 2: slot 200 occurs twice")
    refused(slots_of([200, 99, 201]), good, "row 1: slot 99 is taken")
    refused(slots_of([200, NO_SLOT, 201]), good, "row 1: slot 4294967295 is reserved")
    refused(slots_of([200, 201]), good, "2 slots and 3 vectors")
    refused(slots_of([200, 201, 202]), good[:, :31], "vectors have 31 components, the index has 32")
    index.remove(slots_of([5]), lsn=2)
    refused(slots_of([5]), good[:1], "row 0: slot 5 is taken")

    assert len(index) == 99
    assert index.applied_lsn == 2
    assert 200 not in index
    assert [c.name for c in index.freeze(3)] == [c.name for c in before]
    index.release(False)
    assert index.validate() == []
    index.add(slots_of([200, 201, 202]), good, lsn=3)
    assert len(index) == 102


def test_zero_vectors_are_fine_where_they_mean_something(data: Floats) -> None:
    for metric in ("l2", "dot"):
        index = filled(np.concatenate([np.zeros((1, 32), np.float32), data[:50]]), metric)
        assert index.scores(data[0], slots_of([0])).shape == (1,)
        assert index.validate() == []


def test_bad_queries_are_refused(data: Floats) -> None:
    index = filled(data[:100])
    nan = data[0].copy()
    nan[2] = np.nan
    for query, said in [
        (nan, "query: component 2 is NaN"),
        (np.zeros(32, np.float32), "query: a zero vector"),
        (data[0, :5].copy(), "query has 5 components, the index has 32"),
    ]:
        with pytest.raises(ValueError, match=said):
            index.search(query, 3)
        with pytest.raises(ValueError, match=said):
            index.scores(query, slots_of([1]))
    with pytest.raises(ValueError, match="row 1: query: component 2 is NaN"):
        index.search_batch(np.stack([data[0], nan]), 3)
    with pytest.raises(ValueError, match="ef is 0"):
        index.search(data[0], 3, ef=0)
    with pytest.raises(TypeError, match="float32"):
        index.search(data[0].astype(np.float64), 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="uint32"):
        index.remove(np.array([1], np.int64), lsn=2)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        index.search(data[0], -1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dim": 0}, "dim is 0"),
        ({"dim": 65_537}, "dim is 65537"),
        ({"metric": "manhattan"}, 'metric is "manhattan"'),
        ({"precision": "f8"}, 'precision is "f8"'),
        ({"m": 1}, "m is 1"),
        ({"ef_construction": 0}, "ef_construction is 0"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        VectorIndex(**{"dim": 4, **options})


def test_slots_that_are_not_live_have_no_vector_and_no_score(data: Floats) -> None:
    index = filled(data[:100])
    index.remove(slots_of([7]), lsn=2)
    for slot in (7, 100, 4_000_000_000):
        with pytest.raises(KeyError, match=f"slot {slot}"):
            index.vectors(slots_of([1, slot]))
        with pytest.raises(KeyError, match=f"slot {slot}"):
            index.scores(data[0], slots_of([1, slot]))
        assert slot not in index
    assert index.vectors(slots_of([1])).shape == (1, 32)


def test_arrays_of_any_layout_are_read_as_what_they_show(data: Floats) -> None:
    index = VectorIndex(32)
    index.add(np.arange(0, 200, 2, dtype=np.uint32)[::-1], np.asfortranarray(data[:100]), lsn=1)
    assert index.vectors(slots_of([198, 0])).tobytes() == data[[0, 99]].tobytes()
    wide = np.repeat(data[3], 2)
    assert index.search(wide[::2], 1)[0].tolist() == [198 - 6]


# ---------------------------------------------------------------- removal


def test_removed_slots_are_unreachable_at_once_even_the_entry() -> None:
    vectors = clustered(300, 16)
    for trial in range(60):
        index = filled(vectors)
        gone = set()
        for lsn in range(5):
            # The best node for a query is as likely the entry as any; removing in a row reaches it.
            slot = int(index.search(vectors[(trial * 5 + lsn) % 300], 1)[0][0])
            assert index.remove(slots_of([slot]), lsn=2 + lsn) == 1
            gone.add(slot)
            found, _ = index.search(vectors[slot], 300)
            assert sorted(found.tolist()) == sorted(set(range(300)) - gone)
            assert len(index) == 300 - len(gone)
        assert index.validate() == []


def test_every_node_removed_then_filled_anew(data: Floats, queries: Floats) -> None:
    index = filled(data[:3_000])
    everything = np.arange(3_000, dtype=np.uint32)
    assert index.remove(everything, lsn=2) == 3_000
    assert index.remove(everything, lsn=3) == 0
    assert len(index) == 0
    assert index.search(queries[0], 10)[0].tolist() == []
    index.add(np.arange(3_000, 6_000, dtype=np.uint32), data[3_000:], lsn=4)
    index.link()
    assert index.validate() == []
    found, _ = index.search_batch(queries, 10, ef=100)
    assert recall(found - 3_000, exact_scores("cosine", queries, data[3_000:])) >= 0.98


@pytest.mark.parametrize("erase", [False, True])
def test_recall_holds_while_half_is_replaced(erase: bool, data: Floats, queries: Floats) -> None:
    index = filled(data)
    removed = np.arange(0, 6_000, 2, dtype=np.uint32)
    index.remove(removed, lsn=2, erase=erase)
    live = np.setdiff1d(np.arange(6_000), removed)
    found, _ = index.search_batch(queries, 10, ef=100)
    scores = np.full((len(queries), 6_000), -np.inf)
    scores[:, live] = exact_scores("cosine", queries, data[live])
    assert recall(found, scores) >= 0.98
    again = clustered(3_000, 32, seed=77)
    index.add(np.arange(6_000, 9_000, dtype=np.uint32), again, lsn=3)
    index.link()
    assert index.validate() == []
    scores = np.concatenate([scores, exact_scores("cosine", queries, again)], axis=1)
    found, _ = index.search_batch(queries, 10, ef=100)
    assert recall(found, scores) >= 0.98


def test_erase_zeroes_the_bytes_and_only_these(data: Floats, tmp_path: Path) -> None:
    index = filled(data[:500])
    index.remove(slots_of([3, 4]), lsn=2)
    assert index.remove(slots_of([4, 5, 777]), lsn=3, erase=True) == 1
    assert index.stats()["erased"] == 2
    checkpoint(index, tmp_path / "c", 3)
    content = b"".join(path.read_bytes() for path in (tmp_path / "c").iterdir())
    for slot, there in [(2, True), (3, True), (4, False), (5, False), (6, True)]:
        assert (data[slot].tobytes() in content) is there
    assert index.validate() == []
    assert index.search(data[5], 500)[0].tolist().count(5) == 0


def test_all_erased_but_a_few_are_still_found(data: Floats) -> None:
    index = filled(data)
    left = slots_of([5, 1_000, 5_999])
    gone = np.setdiff1d(np.arange(6_000, dtype=np.uint32), left)
    index.remove(gone, lsn=2, erase=True)
    for slot in left:
        found, scores = index.search(data[slot], 10)
        assert sorted(found.tolist()) == left.tolist()
        assert found[0] == slot
        assert not np.isnan(scores).any()
    index.add(slots_of(range(6_000, 6_500)), data[:500], lsn=3)
    index.link()
    assert index.validate() == []
    nearest, _ = index.search_batch(data[:500], 1)
    assert np.mean(nearest[:, 0] == np.arange(6_000, 6_500)) >= 0.98


# ---------------------------------------------------------------- building


def test_any_batch_size_gives_the_recall_of_one_by_one() -> None:
    vectors, probes = clustered(10_000, 32, intrinsic=24), clustered(200, 32, seed=4, intrinsic=24)
    expected = exact_scores("cosine", probes, vectors)
    recalls = []
    for first, step in [(10_000, 1), (300, 9_700), (0, 10_000), (0, 700)]:
        index = VectorIndex(32)
        for slot in range(0, first, 1 if step == 1 else first or 1):
            size = 1 if step == 1 else first
            index.add(np.arange(slot, slot + size, dtype=np.uint32), vectors[slot : slot + size], lsn=1)
            if step == 1 and slot % 1_000 == 999:
                index.link()
        index.link()
        for slot in range(first, 10_000, step):
            part = vectors[slot : slot + step]
            index.add(np.arange(slot, slot + len(part), dtype=np.uint32), part, lsn=2)
        index.link()
        assert len(index) == 10_000
        assert index.validate() == []
        recalls.append(recall(index.search_batch(probes, 10, ef=40)[0], expected))
    assert max(recalls) - min(recalls) <= 0.005


def test_a_rebuild_on_one_thread_has_the_same_links(data: Floats, tmp_path: Path) -> None:
    for name in ("a", "b"):
        checkpoint(filled(data, link=False), tmp_path / f"unlinked-{name}")
        index = VectorIndex.open(str(tmp_path / f"unlinked-{name}"))
        index.link(threads=1)
        checkpoint(index, tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert any(name.startswith("links") for name in files)
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_small_index_needs_no_graph_and_a_larger_one_links_in_the_background() -> None:
    vectors = clustered(12_000, 8)
    index = filled(vectors[:8_000], link=False)
    assert index.stats()["linked"] == 0
    index.add(np.arange(8_000, 12_000, dtype=np.uint32), vectors[8_000:], lsn=2)
    wait_until(lambda: index.stats()["linked"] == 12_000)
    assert index.validate() == []


def test_a_long_tail_makes_add_link_what_it_adds() -> None:
    vectors = clustered(40_000, 4)
    index = VectorIndex(4, metric="l2", ef_construction=10, m=4)
    for start in range(0, 40_000, 1_000):
        index.add(np.arange(start, start + 1_000, dtype=np.uint32), vectors[start : start + 1_000], lsn=1)
        assert index.stats()["unlinked"] <= index.stats()["long_tail"]
    assert len(index) == 40_000


def wait_until(condition: Any, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


# ---------------------------------------------------------------- threads


def test_adds_removes_and_searches_from_many_threads(tmp_path: Path) -> None:
    vectors = clustered(16_000, 16)
    index = filled(vectors[:9_000])
    failures: list[str] = []
    stop = threading.Event()
    removed: set[int] = set()
    locked = threading.Lock()

    def adder(part: int) -> None:
        for slot in range(9_000 + part * 3_500, 9_000 + (part + 1) * 3_500, 50):
            index.add(np.arange(slot, slot + 50, dtype=np.uint32), vectors[slot : slot + 50], lsn=slot)
            found, _ = index.search(vectors[slot + 7], 1)
            if found.tolist() != [slot + 7]:
                failures.append(f"{slot + 7} not found right after it was added")

    def remover() -> None:
        for slot in range(0, 4_000, 4):
            index.remove(slots_of([slot]), lsn=slot, erase=slot % 8 == 0)
            with locked:
                removed.add(slot)

    def searcher(seed: int) -> None:
        rng = np.random.default_rng(seed)
        passing = bitmap(range(0, 16_000, 3))
        while not stop.is_set():
            with locked:
                gone = set(removed)
            query = vectors[rng.integers(9_000)]
            found, scores = index.search(query, 10, filter=passing if rng.random() < 0.3 else None)
            if gone & set(found.tolist()):
                failures.append("a removed slot was found")
            if len(found) != 10 or np.isnan(scores).any() or (np.diff(scores) > 0).any():
                failures.append(f"a wrong answer: {found} {scores}")

    def checkpointer() -> None:
        number = 0
        while not stop.is_set():
            folder = tmp_path / str(number)
            checkpoint(index, folder, number)
            problems = VectorIndex.open(str(folder)).validate()
            if problems:
                failures.append(f"checkpoint {number}: {problems[:3]}")
            number += 1

    readers = [threading.Thread(target=searcher, args=(i,)) for i in range(3)]
    readers.append(threading.Thread(target=checkpointer))
    writers = [threading.Thread(target=adder, args=(i,)) for i in range(2)] + [threading.Thread(target=remover)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert failures == []
    assert len(index) == 16_000 - 1_000
    index.link()
    assert index.validate() == []


def thread_names() -> list[str]:
    names = []
    for task in Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:
            continue
    return names


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads Linux's list of threads")
def test_background_threads_end_with_the_index_and_with_the_work() -> None:
    vectors = clustered(30_000, 64)
    index = filled(vectors, link=False)
    wait_until(lambda: "kektor-link" in thread_names())
    del index
    wait_until(lambda: "kektor-link" not in thread_names(), 10)
    index = filled(vectors[:9_000, :4].copy(), "l2", link=False)
    wait_until(lambda: index.stats()["unlinked"] == 0)
    wait_until(lambda: "kektor-link" not in thread_names(), 10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_is_told_to_open_the_index_itself_and_can_make_its_own(data: Floats) -> None:
    index = filled(clustered(20_000, 32), link=False)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            index.search(data[0], 1)
        except RuntimeError as error:
            own = filled(clustered(9_000, 8), link=False)
            while own.stats()["unlinked"]:
                time.sleep(0.01)
            code = 0 if "fork" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert len(index.search(data[0], 5)[0]) == 5


# ---------------------------------------------------------------- checkpoints


@pytest.fixture
def saved(data: Floats, tmp_path: Path) -> tuple[VectorIndex, Path]:
    index = filled(data[:5_000])
    index.add(np.arange(5_000, 6_000, dtype=np.uint32), data[5_000:], lsn=7)
    index.remove(slots_of([10, 5_500]), lsn=8)
    checkpoint(index, tmp_path / "first", 8)
    return index, tmp_path / "first"


def test_an_opened_checkpoint_answers_as_what_was_frozen(
    saved: tuple[VectorIndex, Path], data: Floats, queries: Floats
) -> None:
    index, folder = saved
    opened = VectorIndex.open(str(folder))
    assert opened.validate() == []
    assert (len(opened), opened.applied_lsn, opened.dim, opened.metric) == (5_998, 8, 32, "cosine")
    assert (opened.m, opened.ef_construction, opened.precision) == (16, 200, "f32")
    index.link()
    checkpoint(index, folder.parent / "linked", 8)
    opened = VectorIndex.open(str(folder.parent / "linked"))
    for ef in (1, 40, 200):
        for before, after in zip(
            index.search_batch(queries, 10, ef=ef), opened.search_batch(queries, 10, ef=ef), strict=True
        ):
            assert before.tobytes() == after.tobytes()
    assert opened.search(data[5_700], 1)[0].tolist() == [5_700]
    assert opened.vectors(slots_of([5_999, 0])).tobytes() == data[[5_999, 0]].tobytes()
    assert 10 not in opened


def test_an_opened_index_stays_mutable_and_leaves_its_files_alone(
    saved: tuple[VectorIndex, Path], data: Floats, tmp_path: Path
) -> None:
    _, folder = saved
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    opened = VectorIndex.open(str(folder))
    opened.add(np.arange(6_000, 40_000, dtype=np.uint32), clustered(34_000, 32, seed=1), lsn=9, throttle=False)
    opened.remove(np.arange(100, 200, dtype=np.uint32), lsn=10, erase=True)
    opened.link()
    assert opened.validate() == []
    assert len(opened) == 5_998 + 34_000 - 100
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    checkpoint(opened, tmp_path / "second", 10)
    again = VectorIndex.open(str(tmp_path / "second"))
    assert again.validate() == []
    assert len(again) == len(opened)
    assert again.applied_lsn == 10
    np.testing.assert_array_equal(again.search(data[3], 20)[0], opened.search(data[3], 20)[0])


def test_a_checkpoint_holds_the_moment_of_its_freeze_whatever_is_written_after(
    data: Floats, queries: Floats, tmp_path: Path
) -> None:
    index = filled(data[:4_000])
    expected = index.search_batch(queries, 10, ef=50)
    folder = tmp_path / "c"
    folder.mkdir()
    chunks = index.freeze(5)
    index.add(np.arange(4_000, 6_000, dtype=np.uint32), data[4_000:], lsn=6)
    index.write(chunks[0], str(folder / chunks[0].name))
    index.link()
    index.remove(np.arange(0, 1_000, dtype=np.uint32), lsn=7, erase=True)
    for chunk in chunks[1:]:
        index.write(chunk, str(folder / chunk.name))
    index.release(True)
    opened = VectorIndex.open(str(folder))
    assert opened.validate() == []
    assert (len(opened), opened.applied_lsn) == (4_000, 1)
    for before, after in zip(expected, opened.search_batch(queries, 10, ef=50), strict=True):
        assert before.tobytes() == after.tobytes()
    assert len(index) == 5_000
    assert index.validate() == []


def test_only_what_changed_is_dirty(data: Floats, tmp_path: Path) -> None:
    index = filled(clustered(20_000, 200, seed=2), link=False)
    index.link()
    dirty = lambda chunks: {c.name for c in chunks if c.dirty}  # noqa: E731
    assert dirty(checkpoint(index, tmp_path / "a", 1)) == {p.name for p in (tmp_path / "a").iterdir()}
    assert dirty(checkpoint(index, tmp_path / "b", 2)) == set()
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    index.remove(slots_of([19_999]), lsn=3)
    chunks = index.freeze(3)
    assert dirty(chunks) == {"head.chunk", "states-00000.chunk"}
    index.release(False)
    assert dirty(index.freeze(4)) == {"head.chunk", "states-00000.chunk"}
    index.release(False)
    assert dirty(checkpoint(index, tmp_path / "c", 4)) == {"head.chunk", "states-00000.chunk"}
    index.add(slots_of([20_000]), clustered(1, 200), lsn=5)
    changed = dirty(checkpoint(index, tmp_path / "d", 5))
    assert {"head.chunk", "states-00000.chunk"} < changed
    assert len([name for name in changed if name.startswith("rows")]) == 1
    opened = VectorIndex.open(str(tmp_path / "d"))
    assert opened.validate() == []
    assert dirty(opened.freeze(6)) == set()


def test_unchanged_chunks_may_come_from_an_older_checkpoint(data: Floats, tmp_path: Path) -> None:
    index = filled(clustered(9_000, 500, seed=2), "l2", link=False)
    checkpoint(index, tmp_path / "a", 1)
    index.add(slots_of(range(9_000, 9_050)), clustered(50, 500, seed=3), lsn=2)
    (tmp_path / "b").mkdir()
    linked = 0
    for chunk in index.freeze(2):
        if chunk.dirty:
            index.write(chunk, str(tmp_path / "b" / chunk.name))
        else:
            linked += 1
            os.link(tmp_path / "a" / chunk.name, tmp_path / "b" / chunk.name)
    index.release(True)
    assert linked > 0
    opened = VectorIndex.open(str(tmp_path / "b"))
    assert opened.validate() == []
    assert len(opened) == 9_050


def test_what_was_not_linked_at_the_freeze_is_found_after_opening(tmp_path: Path) -> None:
    vectors = clustered(12_000, 16)
    index = filled(vectors, link=False)
    checkpoint(index, tmp_path / "c", 1)
    opened = VectorIndex.open(str(tmp_path / "c"))
    for slot in range(0, 12_000, 500):
        assert opened.search(vectors[slot], 1)[0].tolist() == [slot]
    wait_until(lambda: opened.stats()["unlinked"] == 0)
    assert opened.stats()["linked"] == 12_000
    assert opened.validate() == []


def test_the_order_of_the_protocol_is_held(data: Floats, tmp_path: Path) -> None:
    index = filled(data[:10])
    with pytest.raises(RuntimeError, match="not frozen"):
        index.release(True)
    chunks = index.freeze(1)
    with pytest.raises(RuntimeError, match="frozen already"):
        index.freeze(2)
    with pytest.raises(ValueError, match="no chunk of this index"):
        index.write(Chunk("other-00000.chunk", True), str(tmp_path / "x"))
    with pytest.raises(ValueError, match="no chunk of this freeze"):
        index.write(Chunk("rows-00009.chunk", True), str(tmp_path / "x"))
    rows = next(c for c in chunks if c.name.startswith("rows"))
    index.write(rows, str(tmp_path / "rows"))
    with pytest.raises(ValueError, match="already written"):
        index.write(rows, str(tmp_path / "again"))
    with pytest.raises(OSError, match="rows"):
        index.write(chunks[0], str(tmp_path / "rows"))
    index.write(chunks[0], str(tmp_path / "head"))
    index.release(False)
    assert all(chunk.dirty for chunk in index.freeze(3))
    index.release(False)


def test_an_empty_index_survives_a_checkpoint(tmp_path: Path) -> None:
    checkpoint(VectorIndex(3, metric="dot", m=8), tmp_path / "c")
    opened = VectorIndex.open(str(tmp_path / "c"))
    assert (len(opened), opened.dim, opened.metric, opened.m) == (0, 3, "dot", 8)
    opened.add(slots_of([0]), np.ones((1, 3), np.float32), lsn=1)
    assert opened.search(np.ones(3, np.float32), 5)[0].tolist() == [0]


# ---------------------------------------------------------------- damage


def test_damaged_cut_and_foreign_files_are_refused_by_name(
    saved: tuple[VectorIndex, Path], data: Floats, tmp_path: Path
) -> None:
    _, folder = saved
    other = VectorIndex(33)
    other.add(slots_of(range(100)), clustered(100, 33), lsn=8)
    checkpoint(other, tmp_path / "other", 8)
    for path in sorted(folder.iterdir()):
        good = path.read_bytes()
        foreign = next(p for p in (tmp_path / "other").iterdir() if p.name.split("-")[0] == path.name.split("-")[0])
        damaged = {
            "cut": good[:-1],
            "longer": good + b"\0",
            "empty": b"",
            "header": good[:30] + bytes([good[30] ^ 1]) + good[31:],
            "foreign": foreign.read_bytes(),
            "kind": (folder / "head.chunk").read_bytes() if path.name != "head.chunk" else b"KEKCHUNK" + bytes(200),
        }
        for name, content in damaged.items():
            if name == "foreign" and path.name == "head.chunk":
                continue
            path.write_bytes(content)
            with pytest.raises(CorruptFile, match=path.name):
                VectorIndex.open(str(folder))
        path.unlink()
        with pytest.raises(CorruptFile, match=path.name):
            VectorIndex.open(str(folder))
        path.write_bytes(good)
    assert VectorIndex.open(str(folder)).validate() == []


def test_a_chunk_of_another_checkpoint_is_noticed(saved: tuple[VectorIndex, Path], tmp_path: Path) -> None:
    index, folder = saved
    index.add(slots_of([6_000]), clustered(1, 32), lsn=9)
    index.link()
    checkpoint(index, tmp_path / "second", 9)
    (folder / "states-00000.chunk").replace(tmp_path / "second" / "states-00000.chunk")
    with pytest.raises(CorruptFile, match="states-00000"):
        VectorIndex.open(str(tmp_path / "second"))


def test_any_flipped_byte_is_refused_or_found_and_never_crashes(saved: tuple[VectorIndex, Path], data: Floats) -> None:
    _, folder = saved
    rng = np.random.default_rng(4)
    found_any = 0
    for path in sorted(folder.iterdir()):
        good = path.read_bytes()
        for _ in range(12):
            content = bytearray(good)
            for at in rng.integers(0, len(good), size=int(rng.integers(1, 40))):
                content[at] ^= int(rng.integers(1, 256))
            path.write_bytes(bytes(content))
            opened, refusal = try_open(folder)
            if opened is None:
                assert path.name in refusal
                continue
            found_any += bool(opened.validate())
            exercise(opened, data)
        path.write_bytes(good)
    assert found_any > 0


@pytest.mark.parametrize("arena", ["links", "upper", "states", "rows"])
def test_chunks_full_of_noise_never_crash_a_search(arena: str, saved: tuple[VectorIndex, Path], data: Floats) -> None:
    _, folder = saved
    rng = np.random.default_rng(6)
    for path in folder.glob(f"{arena}-*"):
        good = path.read_bytes()
        path.write_bytes(good[:64] + rng.integers(0, 256, len(good) - 64, np.uint8).tobytes())
    opened = VectorIndex.open(str(folder))
    assert opened.validate() != []
    exercise(opened, data)


def try_open(folder: Path) -> tuple[VectorIndex | None, str]:
    try:
        return VectorIndex.open(str(folder)), ""
    except CorruptFile as error:
        return None, str(error)


def exercise(index: VectorIndex, data: Floats) -> None:
    """Everything that reads what may be damaged."""
    for i in range(0, 6_000, 600):
        index.search(data[i], 10)
        index.search(data[i], 5, ef=300, filter=bitmap(range(0, 6_000, 2)))
    with contextlib.suppress(CorruptFile, KeyError):
        index.vectors(np.arange(0, 6_000, 7, dtype=np.uint32))
    index.remove(slots_of(range(200)), lsn=50, erase=True)
    with contextlib.suppress(ValueError):
        index.add(slots_of(range(7_000, 7_100)), data[:100], lsn=51)
    index.link()
    index.search_batch(data[:20], 3)
    index.stats()
    index.validate()


def test_a_damaged_vector_is_named_when_it_is_read_and_its_neighbours_are_not_lost(
    saved: tuple[VectorIndex, Path], data: Floats
) -> None:
    _, folder = saved
    path = folder / "rows-00000.chunk"
    content = bytearray(path.read_bytes())
    at = bytes(content).index(data[42].tobytes())
    content[at + 5] ^= 0x10
    path.write_bytes(bytes(content))
    opened = VectorIndex.open(str(folder))
    with pytest.raises(CorruptFile, match="slot 42 does not match its checksum"):
        opened.vectors(slots_of([42]))
    assert opened.vectors(slots_of([41, 43])).tobytes() == data[[41, 43]].tobytes()
    assert opened.validate() == ["slot 42: the vector does not match its checksum", *opened.validate()[1:]]


def test_stats_tell_what_there_is(data: Floats) -> None:
    index = filled(data)
    index.remove(slots_of(range(10)), lsn=2)
    stats = index.stats()
    levels = stats["levels"]
    assert isinstance(levels, list)
    assert (stats["live"], stats["removed"], stats["linked"], stats["unlinked"]) == (5_990, 10, 6_000, 0)
    assert levels[0] == 6_000
    assert levels == sorted(levels, reverse=True)
    assert 5 < float(stats["mean_degree"]) <= 32  # type: ignore[arg-type]
    assert stats["bytes_rows"] >= data.nbytes
