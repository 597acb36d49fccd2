"""One score from several sides, on scales that do not depend on how many candidates there are."""

from collections.abc import Sequence
from typing import NamedTuple

from kektor.engine.records import NodeKey
from kektor.memory.recall.candidates import Candidate

__all__ = ["WEIGHTS", "Fused", "Weights", "fuse"]


class Weights(NamedTuple):
    """What each side adds: BM25 as a share of the best match, the cosine as it is, and of a message's better
    neighbour the share that the message borrows."""

    text: float = 1.0
    vector: float = 2.0
    beside: float = 0.4


WEIGHTS = Weights()


class Fused(NamedTuple):
    """A candidate with its score and the parts that add up to it."""

    candidate: Candidate
    score: float
    parts: dict[str, float]


def fuse(candidates: Sequence[Candidate], weights: Weights = WEIGHTS) -> list[Fused]:
    """Best first; equal scores in the order of content, then id, never of storage.

    Ranks would throw away how far apart two candidates are, which is most of what either side knows. What is said
    right before or after an answer is often the answer: a question and its reply share few words.
    """
    best_text = max((candidate.text for candidate in candidates), default=0.0)
    own = {candidate.key: _own(candidate, best_text, weights) for candidate in candidates}
    fused = [_fused(candidate, own, weights) for candidate in candidates]
    return sorted(fused, key=lambda f: (-f.score, f.candidate.node.digest, f.candidate.node.id))


_EXACT = 100.0
"""A node named by its id outranks whatever resembles the words."""


def _own(candidate: Candidate, best_text: float, weights: Weights) -> dict[str, float]:
    parts = {
        "text": weights.text * candidate.text / best_text if best_text > 0 else 0.0,
        "vector": weights.vector * max(0.0, candidate.vector or 0.0),
    }
    if candidate.exact:
        parts["key"] = _EXACT
    return parts


def _fused(candidate: Candidate, own: dict[NodeKey, dict[str, float]], weights: Weights) -> Fused:
    parts = dict(own[candidate.key])
    lent = [sum(own[key].values()) for key in candidate.beside if key in own]
    if lent:
        parts["beside"] = weights.beside * min(max(lent), _EXACT)
    return Fused(candidate, sum(parts.values()), parts)
