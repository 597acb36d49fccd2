"""What VectorIndex answers, refuses and forgets: exact bits, exact counts, k results."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kektor_native import VectorIndex

from tests.support.vector_samples import (
    METRICS,
    NO_SLOT,
    Floats,
    Slots,
    bitmap,
    checkpoint,
    clustered,
    exact_scores,
    figure,
    filled,
    recall,
    slots_of,
)


@pytest.fixture(scope="module")
def data() -> Floats:
    return clustered(6_000, 32)


@pytest.fixture(scope="module")
def queries() -> Floats:
    return clustered(60, 32, seed=5)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("link", [False, True])
def test_search_finds_the_best_with_their_exact_scores(metric: str, link: bool, data: Floats, queries: Floats) -> None:
    data = data if link else data[:4_000]
    index = filled(data, metric, link)
    expected = exact_scores(metric, queries, data)
    found, scores = index.search_batch(queries, 10, ef=100)
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
        found, scores = index.search(vectors[0], 60, ef=60)
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
    left, _ = index.search(copies[0], 10, ef=20)
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
    found, _ = index.search_batch(queries, 10, ef=100)
    place = {int(slot): i for i, slot in enumerate(slots)}
    rows = np.vectorize(place.__getitem__)(found)
    assert recall(rows.astype(np.uint32), exact_scores("cosine", queries, data)) >= 0.99
    assert int(slots[0]) in index
    assert next(s for s in range(300_000) if s not in place) not in index


def test_a_slot_far_beyond_the_others_works_like_any(data: Floats, tmp_path: Path) -> None:
    far = [1, 70_000, 50_000_000, 4_294_967_294]
    index = VectorIndex(32)
    index.add(slots_of(far), data[:4], lsn=1)
    index.link()
    assert index.validate() == []
    checkpoint(index, tmp_path / "c")
    for each in (index, VectorIndex.open(str(tmp_path / "c"))):
        assert sorted(each.search(data[0], 10)[0].tolist()) == far
        assert each.search(data[3], 1, filter=bitmap(far))[0].tolist() == far[3:]
        assert each.remove(slots_of(far[2:]), lsn=2, erase=True) == 2
        assert sorted(each.search(data[0], 10)[0].tolist()) == far[:2]


def test_an_answer_that_fits_no_memory_is_an_error_and_not_the_end(data: Floats) -> None:
    index = filled(data[:100])
    with pytest.raises(MemoryError):
        index.search_batch(data[:50], 2**60)
    with pytest.raises(MemoryError):
        index.search_batch(data[:50], 2**44)
    assert len(index.search(data[0], 2**60)[0]) == 100


# ---------------------------------------------------------------- filters


@pytest.fixture(scope="module")
def large() -> tuple[Floats, Floats, VectorIndex]:
    vectors, probes = clustered(20_000, 64), clustered(100, 64, seed=7)
    return vectors, probes, filled(vectors)


@pytest.mark.parametrize("ef", [None, 40])
@pytest.mark.parametrize("share", [0.95, 0.5, 0.3, 0.1, 0.01, 0.001, 0.0001])
@pytest.mark.parametrize("mask", ["random", "clustered"])
def test_filtered_search_keeps_its_recall_at_every_selectivity(
    share: float, mask: str, ef: int | None, large: tuple[Floats, Floats, VectorIndex]
) -> None:
    vectors, probes, index = large
    count = int(len(vectors) * share)
    if mask == "random":
        passing = np.random.default_rng(3).choice(len(vectors), count, replace=False)
    else:
        passing = np.argsort(-exact_scores("cosine", vectors[11:12], vectors)[0])[:count]
    scores = np.full((len(probes), len(vectors)), -np.inf)
    scores[:, passing] = exact_scores("cosine", probes, vectors[passing])
    found, _ = index.search_batch(probes, 10, ef=ef, filter=bitmap(passing))
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
        index.search(data[0].astype(np.float64), 3)
    with pytest.raises(TypeError, match="uint32"):
        index.remove(np.array([1], np.int64), lsn=2)
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
    misaligned = np.frombuffer(b"\0" + data[:3].tobytes(), np.float32, offset=1).reshape(3, 32)
    assert not misaligned.flags.aligned
    index.add(slots_of([300, 301, 302]), misaligned, lsn=2)
    assert index.vectors(slots_of([300, 301, 302])).tobytes() == data[:3].tobytes()
    assert index.search(misaligned[1], 1)[1][0] > 0.999999
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
    assert figure(index, "erased") == 2
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


def test_stats_tell_what_there_is(data: Floats) -> None:
    index = filled(data)
    index.remove(slots_of(range(10)), lsn=2)
    stats = index.stats()
    levels = stats["levels"]
    assert isinstance(levels, list)
    assert [stats[name] for name in ("live", "removed", "linked", "unlinked")] == [5_990, 10, 6_000, 0]
    assert levels[0] == 6_000
    assert levels == sorted(levels, reverse=True)
    assert 5 < figure(index, "mean_degree") <= 32
    assert figure(index, "bytes_rows") >= data.nbytes
