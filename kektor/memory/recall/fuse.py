"""One score from several signs, on scales that do not depend on how many candidates there are."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kektor.engine.records import Kind, NodeKey
from kektor.engine.ties import tie_order
from kektor.memory.recall.candidates import Candidate
from kektor.memory.recall.question import Question

__all__ = ["WEIGHTS", "Fused", "Weights", "fuse"]


class Weights(NamedTuple):
    """What each sign adds to a score. Tuned by `benchmarks/memory/tune.py` on development dialogues.

    `text` is for BM25 as a share of the best match, `vector` for the cosine, `beside` and `near` for the best score
    one and two messages away, `speaker` for a message of somebody the question names, `when` for a time expression
    where the question asks for a time, `length` for every e-fold of words beyond a short message.
    """

    text: float = 1.67
    vector: float = 2.0
    beside: float = 0.73
    near: float = 0.61
    speaker: float = 1.0
    when: float = 0.83
    length: float = 0.43


WEIGHTS = Weights()
_EXACT = 100.0
"""A node named by its id outranks whatever resembles the words."""

_SHORT = 15
_LENGTHS = (-1.2, 0.9)
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april"
    r"|june|july|august|september|october|november|december|(?:19|20)\d\d"
    r"|(?:last|next|this|past|few|two|three|\d+)"
    r" (?:night|morning|day|week|weekend|month|year|summer|winter|spring|fall)s?"
    r")\b",
    re.IGNORECASE,
)


class Fused(NamedTuple):
    """A candidate with its score and the parts that add up to it."""

    candidate: Candidate
    score: float
    parts: dict[str, float]


def fuse(candidates: Sequence[Candidate], question: Question, weights: Weights = WEIGHTS) -> list[Fused]:
    """Best first; equal scores in the order of content, then id, never of storage.

    Ranks would throw away how far apart two candidates are, which is most of what either side knows. What is said
    right before or after an answer is often the answer: a question and its reply share few words.
    """
    best_text = max((candidate.text for candidate in candidates), default=0.0)
    own = {candidate.key: _own(candidate, best_text, weights) for candidate in candidates}
    totals = {key: sum(parts.values()) for key, parts in own.items()}
    fused = [
        _fused(candidate, {**own[candidate.key], **_signs(candidate, question, totals, weights)})
        for candidate in candidates
    ]
    return sorted(fused, key=lambda f: (-f.score, *tie_order(f.candidate.node)))


def _own(candidate: Candidate, best_text: float, weights: Weights) -> dict[str, float]:
    """What the two sides say of the node itself."""
    parts = {
        "text": weights.text * candidate.text / best_text if best_text > 0 else 0.0,
        "vector": weights.vector * max(0.0, candidate.vector or 0.0),
    }
    if candidate.exact:
        parts["key"] = _EXACT
    return parts


def _signs(
    candidate: Candidate, question: Question, totals: dict[NodeKey, float], weights: Weights
) -> dict[str, float]:
    """What else speaks for a message of a conversation; other nodes stand for themselves."""
    node = candidate.node
    if node.kind is not Kind.SOURCE:
        return {}
    signs = {}
    for name, weight, keys in zip(("beside", "near"), (weights.beside, weights.near), candidate.around, strict=False):
        lent = _best(keys, totals)
        if lent > 0:
            signs[name] = weight * lent
    speaker = node.metadata.get("speaker")
    if isinstance(speaker, str) and any(word in question.words for word in speaker.casefold().split()):
        signs["speaker"] = weights.speaker
    if question.asks_when and _TIME.search(node.text):
        signs["when"] = weights.when
    words = math.log(1 + node.text.count(" ") + 1) - math.log(1 + _SHORT)
    signs["length"] = weights.length * min(max(words, _LENGTHS[0]), _LENGTHS[1])
    return signs


def _best(keys: Iterable[NodeKey], totals: dict[NodeKey, float]) -> float:
    return min(max((totals.get(key, 0.0) for key in keys), default=0.0), _EXACT)


def _fused(candidate: Candidate, parts: dict[str, float]) -> Fused:
    return Fused(candidate, sum(parts.values()), parts)
