"""Vectors, filters and small tools that the tests of VectorIndex share."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from kektor_native import Bitmap, Chunk, VectorIndex
from numpy.typing import NDArray
from pyroaring import BitMap

Metric = Literal["cosine", "l2", "dot"]
METRICS: list[Metric] = ["cosine", "l2", "dot"]
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
        return np.asarray(q @ x.T)
    if metric == "l2":
        return np.asarray(-((q[:, None, :] - x[None, :, :]) ** 2).sum(-1))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return np.asarray(q @ (x / np.linalg.norm(x, axis=1, keepdims=True)).T)


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


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


def figure(index: VectorIndex, name: str) -> float:
    value = index.stats()[name]
    assert not isinstance(value, list)
    return value
