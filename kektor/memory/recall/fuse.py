"""One score from several: each side standardised over the candidates, then added with its weight."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from kektor.memory.recall.candidates import Candidate

__all__ = ["WEIGHTS", "Fused", "Weights", "fuse"]


class Weights(NamedTuple):
    """How much each side counts, in standard deviations."""

    vector: float = 1.0
    text: float = 1.0


WEIGHTS = Weights()


class Fused(NamedTuple):
    """A candidate with its score and the parts that add up to it."""

    candidate: Candidate
    score: float
    parts: dict[str, float]


def fuse(candidates: Sequence[Candidate], weights: Weights = WEIGHTS) -> list[Fused]:
    """Best first; equal scores in the order of content, then id, never of storage.

    Ranks would throw away how far apart two candidates are, which is most of what either side knows.
    """
    vectors = _standardise([c.vector for c in candidates])
    texts = _standardise([c.text for c in candidates])
    fused = []
    for candidate, vector, text in zip(candidates, vectors, texts, strict=True):
        parts = {"vector": weights.vector * vector, "text": weights.text * text}
        if candidate.exact:
            parts["key"] = _EXACT
        fused.append(Fused(candidate, sum(parts.values()), parts))
    return sorted(fused, key=lambda f: (-f.score, f.candidate.node.digest, f.candidate.node.id))


_EXACT = 100.0
"""A node named by its id outranks whatever resembles the words."""


def _standardise(values: Sequence[float | None]) -> list[float]:
    """Zero mean and unit deviation over those that have a value; the others count as the lowest."""
    known = [value for value in values if value is not None]
    if not known:
        return [0.0] * len(values)
    mean = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known))
    if deviation < 1e-9:
        return [0.0] * len(values)
    lowest = (min(known) - mean) / deviation
    return [lowest if value is None else (value - mean) / deviation for value in values]
