"""What is checked and computed on the arrays that come out of a model."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kektor.errors import Unavailable

__all__ = ["Vectors", "as_vectors", "merge_windows", "unit"]

Vectors: TypeAlias = NDArray[np.float32]


def as_vectors(raw: Any, *, count: int, dim: int | None, source: str) -> Vectors:
    """`raw` as float32 of shape (count, dim), or `Unavailable` that says what `source` did wrong.

    `dim=None` accepts any size, the same for every row. Infinite and NaN values are refused. Always a copy.

    >>> as_vectors([[3, 4]], count=1, dim=2, source="the model").dtype
    dtype('float32')
    """
    try:
        with np.errstate(over="ignore"):  # too large for float32 becomes infinite, which is refused below
            vectors = np.array(raw, dtype=np.float32, order="C")
    except (TypeError, ValueError) as error:
        raise Unavailable(f"{source} returned something that is not an array of numbers: {error}") from error
    if vectors.ndim != 2 or len(vectors) != count or vectors.shape[1] == 0:
        raise Unavailable(
            f"{source} returned an array of shape {vectors.shape} for {count} text(s); "
            f"expected ({count}, {dim or 'dim'})"
        )
    if dim is not None and vectors.shape[1] != dim:
        raise Unavailable(
            f"{source} returned vectors of {vectors.shape[1]} dimensions, expected {dim}",
            details={"dim": int(vectors.shape[1]), "expected": dim},
        )
    if not np.isfinite(vectors).all():
        raise Unavailable(f"{source} returned a vector with NaN or infinite values")
    return vectors


def unit(vectors: Vectors, *, source: str) -> Vectors:
    """`vectors` scaled in place to length 1; a zero vector has no direction and is `Unavailable`."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        raise Unavailable(f"{source} returned a zero vector, which has no direction to compare")
    np.divide(vectors, lengths, out=vectors)
    return vectors


def merge_windows(vectors: Vectors, counts: list[int]) -> Vectors:
    """One row per text from one row per window: the mean of each run of `counts[i]` rows.

    Windows of one text have equal length (see `kektor.models.windows`), so the plain mean is the
    length-weighted one.

    >>> merge_windows(np.float32([[1, 0], [0, 1], [4, 4]]), [2, 1]).tolist()
    [[0.5, 0.5], [4.0, 4.0]]
    """
    if len(vectors) == len(counts):
        return vectors
    starts = np.cumsum([0, *counts[:-1]])
    merged = np.add.reduceat(vectors, starts, axis=0)
    merged /= np.asarray(counts, dtype=np.float32)[:, None]
    return merged
