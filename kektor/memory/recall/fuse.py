"""One score from several signs, on scales that do not depend on how many candidates there are."""

import math
import re
from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple

from kektor.engine.records import Kind, NodeKey, Scope
from kektor.engine.ties import tie_order
from kektor.memory.recall.candidates import Candidate
from kektor.memory.recall.question import Question, words_of

__all__ = ["WEIGHTS", "Fused", "Weights", "fuse", "scores"]


class Weights(NamedTuple):
    """What each sign adds to a score. Tuned by `benchmarks/memory/tune.py` on development dialogues.

    `text` is for BM25 as a share of the best match, `vector` for the cosine; together they are what a candidate is
    worth by itself. `beside` and `near` are for the worth of the better one at one and two messages' distance,
    `session` for the mean worth of the three best of its session. `speaker` is for a message of somebody the question
    names, `when` for a time expression where the question asks for a time, `length` for every e-fold of words beyond
    a short message, `asks` for a message that is itself a question.
    """

    text: float = 1.19
    vector: float = 2.0
    beside: float = 0.32
    near: float = 0.24
    session: float = 0.53
    speaker: float = 1.12
    when: float = 0.88
    length: float = 0.46
    asks: float = -0.26


WEIGHTS = Weights()
_EXACT = 100.0
"""A node named by its id outranks whatever resembles the words."""

_WAY = 1.0
"""What a key that the question names adds for the memories it leads to, times the weight of that way."""

_SHORT = 15
_LENGTHS = (-1.2, 0.9)
_LEADING = 3
"""How many messages speak for their session."""

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

    Ranks would throw away how far apart two candidates are, which is most of what either side knows.
    """
    fused = [
        Fused(candidate, sum(parts.values()), parts)
        for candidate, parts in zip(candidates, scores(candidates, question, weights), strict=True)
    ]
    return sorted(fused, key=lambda f: (-f.score, *tie_order(f.candidate.node)))


def scores(candidates: Sequence[Candidate], question: Question, weights: Weights) -> list[dict[str, float]]:
    """For each candidate the parts that add up to its score."""
    best_text = max((candidate.text for candidate in candidates), default=0.0)
    own = [_own(candidate, best_text, weights) for candidate in candidates]
    worth = {c.key: min(sum(parts.values()), _EXACT) for c, parts in zip(candidates, own, strict=True)}
    leading = _leading(candidates, worth)
    return [
        {**parts, **_signs(candidate, question, worth, leading, weights)}
        for candidate, parts in zip(candidates, own, strict=True)
    ]


def _own(candidate: Candidate, best_text: float, weights: Weights) -> dict[str, float]:
    """What the two sides say of the node itself."""
    parts = {
        "text": weights.text * candidate.text / best_text if best_text > 0 else 0.0,
        "vector": weights.vector * max(0.0, candidate.vector or 0.0),
    }
    if candidate.exact:
        parts["key"] = _EXACT
    elif candidate.way:
        parts["key"] = _WAY * candidate.way
    return parts


def _signs(
    candidate: Candidate,
    question: Question,
    worth: Mapping[NodeKey, float],
    leading: Mapping[tuple[Scope, str], float],
    weights: Weights,
) -> dict[str, float]:
    """What else speaks for a candidate.

    A question and its reply share few words: what is said right before or after an answer is often the answer, and a
    session about the matter holds more of it. A memory was written to stand alone, and counts as its own surroundings.
    """
    node = candidate.node
    if node.kind is Kind.SOURCE:
        by_distance = [max((worth.get(key, 0.0) for key in keys), default=0.0) for keys in candidate.around]
        beside, near = (*by_distance, 0.0, 0.0)[:2]
        session = leading.get((node.scope, node.session), 0.0)
    else:
        beside = near = session = worth[candidate.key]
    signs = {"beside": weights.beside * beside, "near": weights.near * near, "session": weights.session * session}
    if _is_by(candidate, question):
        signs["speaker"] = weights.speaker
    if question.asks_when and ((node.occurred is not None and node.kind is not Kind.SOURCE) or _TIME.search(node.text)):
        signs["when"] = weights.when
    if node.text.rstrip().endswith(("?", "\N{FULLWIDTH QUESTION MARK}", "\N{ARABIC QUESTION MARK}")):
        signs["asks"] = weights.asks
    if node.kind is Kind.SOURCE:
        words = math.log(2 + node.text.count(" ")) - math.log(1 + _SHORT)
        signs["length"] = weights.length * min(max(words, _LENGTHS[0]), _LENGTHS[1])
    return signs


def _is_by(candidate: Candidate, question: Question) -> bool:
    """Whether somebody the question names said it, or is named in what was written to stand alone."""
    node = candidate.node
    if not question.speakers:
        return False
    if node.kind is not Kind.SOURCE:
        return bool(question.speakers & words_of(node.text))
    speaker = node.metadata.get("speaker")
    return isinstance(speaker, str) and bool(question.speakers & words_of(speaker))


def _leading(candidates: Sequence[Candidate], worth: Mapping[NodeKey, float]) -> dict[tuple[Scope, str], float]:
    """What a session is worth: the mean of its best messages, as if there were that many."""
    sessions: dict[tuple[Scope, str], list[float]] = {}
    for candidate in candidates:
        node = candidate.node
        if node.kind is Kind.SOURCE and node.session:
            sessions.setdefault((node.scope, node.session), []).append(worth[candidate.key])
    return {session: sum(nlargest(_LEADING, values)) / _LEADING for session, values in sessions.items()}
