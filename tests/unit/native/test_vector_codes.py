"""The codes that walks read: never seen in an answer, derived from the vectors, gone with them."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from kektor_native import VectorIndex

from tests.support.vector_samples import (
    METRICS,
    Floats,
    bitmap,
    checkpoint,
    clustered,
    exact_scores,
    figure,
    filled,
    recall,
    slots_of,
)

OLD = Path(__file__).parents[2] / "support" / "checkpoints" / "vectors-format-1"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("change", ["as it is", "far from the origin", "of very different norms"])
def test_walks_on_codes_find_what_walks_on_vectors_would(metric: str, change: str) -> None:
    """Neither where the data lies nor how long its vectors are costs recall."""
    data, queries = clustered(6_000, 48), clustered(60, 48, seed=5)
    if change == "far from the origin":
        data, queries = data + 200, queries + 200
    elif change == "of very different norms":
        data = data * (10.0 ** np.random.default_rng(2).uniform(-3, 3, (len(data), 1))).astype(np.float32)
        queries = queries * np.float32(1e-4)
    index = filled(data, metric)
    assert figure(index, "bytes_codes") > 0
    expected = exact_scores(metric, queries, data)
    found, scores = index.search_batch(queries, 10, ef=100)
    kept = np.take_along_axis(expected, found.astype(int), 1)
    # Far from the origin neighbours differ in digits that f32 sums no longer hold.
    best = -np.sort(-expected, axis=1)[:, :10]
    tolerance = 1e-4 * np.abs(best).max() if change == "far from the origin" else 0.0
    assert np.mean(kept >= best[:, -1:] - tolerance) >= 0.98
    np.testing.assert_allclose(scores, kept, rtol=1e-3, atol=1e-5 * np.abs(best).max())


@pytest.mark.parametrize("metric", METRICS)
def test_a_scan_on_codes_answers_as_a_scan_of_vectors(metric: str) -> None:
    data, queries = clustered(9_000, 64), clustered(50, 64, seed=5)
    index = filled(data, metric)
    passing = np.arange(0, 9_000, 6)
    expected = np.full((50, 9_000), -np.inf)
    expected[:, passing] = exact_scores(metric, queries, data[passing])
    found, scores = index.search_batch(queries, 10, filter=bitmap(passing))
    assert recall(found, expected) >= 0.999
    for query, row, row_scores in zip(queries, found, scores, strict=True):
        assert index.scores(query, row).tobytes() == row_scores.tobytes()


def test_a_checkpoint_from_before_there_were_codes_opens_and_gets_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((120, 32)).astype(np.float32)
    shutil.copytree(OLD, tmp_path / "old")
    index = VectorIndex.open(str(tmp_path / "old"))
    assert index.validate() == []
    assert (len(index), index.applied_lsn, index.m) == (118, 4, 4)
    left = [slot for slot in range(120) if slot not in (3, 4)]
    expected = exact_scores("cosine", vectors[:10] + 0.1, vectors)
    expected[:, [3, 4]] = -np.inf
    assert recall(index.search_batch(vectors[:10] + np.float32(0.1), 10)[0], expected) == 1.0
    assert index.vectors(slots_of(left)).tobytes() == vectors[left].tobytes()
    index.link()
    names = {chunk.name for chunk in checkpoint(index, tmp_path / "new", 5)}
    assert "codes-00000.chunk" in names
    again = VectorIndex.open(str(tmp_path / "new"))
    assert again.validate() == []
    assert len(again) == 118


def test_codes_are_zeroed_with_their_vector_and_survive_a_checkpoint(tmp_path: Path) -> None:
    data = clustered(600, 32)
    index = filled(data)
    index.remove(slots_of(range(0, 600, 2)), lsn=2, erase=True)
    checkpoint(index, tmp_path / "c", 2)
    opened = VectorIndex.open(str(tmp_path / "c"))
    assert opened.validate() == []
    stride = 64
    content = (tmp_path / "c" / "codes-00000.chunk").read_bytes()[64:]
    rows = [content[at : at + stride] for at in range(0, 600 * stride, stride)]
    assert [any(row) for row in rows] == [False, True] * 300


def test_codes_that_are_not_those_of_their_vector_are_named(tmp_path: Path) -> None:
    index = filled(clustered(300, 32))
    checkpoint(index, tmp_path / "c", 1)
    path = tmp_path / "c" / "codes-00000.chunk"
    content = bytearray(path.read_bytes())
    content[64 + 64 * 17 + 3] ^= 0x40
    path.write_bytes(bytes(content))
    opened = VectorIndex.open(str(tmp_path / "c"))
    assert opened.validate() == ["slot 17: the codes are not those of the vector"]
    found, _ = opened.search(clustered(300, 32)[17], 5)
    assert len(found) == 5


def test_low_dimensions_are_walked_as_they_are() -> None:
    data: Floats = clustered(5_000, 8, intrinsic=4)
    assert figure(filled(data), "bytes_codes") == 0
