"""Whether what was found answers at all: `ok`, `weak` or nothing."""

from collections.abc import Sequence
from typing import NamedTuple

from kektor.engine.records import NodeKey
from kektor.memory.recall.candidates import Candidate
from kektor.memory.recall.fuse import Fused
from kektor.memory.recall.premise import Premise

__all__ = ["Judged", "Thresholds", "judge", "thresholds_for"]


class Thresholds(NamedTuple):
    """Cosines of an embedder: below `floor` two texts have nothing to do with each other, from `sure` on they have.

    `floor` is also what a match by words must reach where the words alone prove little.
    """

    floor: float
    sure: float

    @property
    def alone(self) -> float:
        """What the nearest must reach when no candidate shares a word with the question: chance gets that far above
        `floor` in a large index."""
        return (self.floor + self.sure) / 2


_NEAR = 3
"""How many near misses a question about somebody never mentioned is told of."""

_BY_MODEL = {"all-MiniLM-L6-v2": Thresholds(floor=0.22, sure=0.42)}
_UNKNOWN = Thresholds(floor=0.25, sure=0.5)


_LEADS = 0.5
"""A key that the question names leads to an answer as long as its way was not dismissed too often."""


def thresholds_for(model: str) -> Thresholds:
    """Calibrated values of a known model, cautious ones of another."""
    return next((values for name, values in _BY_MODEL.items() if name in model), _UNKNOWN)


class Judged(NamedTuple):
    """The status, what may be shown, best first, and what is close and no answer, with why."""

    status: str
    relevant: Sequence[Fused]
    near_misses: Sequence[tuple[Candidate, str]]
    premise: Premise


def judge(ranked: Sequence[Fused], thresholds: Thresholds, premise: Premise, *, asks: bool = True) -> Judged:
    """What of the candidates answers; the rest is no answer and fills no place.

    What shares no word with the question must be nearer to it than what shares one. A question about somebody never
    mentioned, or with no word that means anything (`asks`), has no answer, and what is said of another person than
    the one it names is none. A question whose premise is at risk is never answered as sure.
    """
    standing = {found.candidate.key for found in ranked if _relevant(found, thresholds)}
    relevant = [found for found in ranked if found.candidate.key in standing or _leans(found, standing)]
    if not standing or not any(_holds(found, thresholds) for found in relevant):
        return Judged("no_match", [], [], premise)
    exact = [found for found in relevant if found.candidate.exact]
    if not asks:
        return Judged("ok" if exact else "no_match", exact, [], premise)
    if premise.fails and not exact:
        why = f"nothing stored mentions {' or '.join(premise.unknown)}"
        return Judged("no_match", [], [(found.candidate, why) for found in relevant[:_NEAR]], premise)
    others = [found for found in relevant if found.candidate.key in premise.subject.keys and not found.candidate.exact]
    why = f"said of {' and '.join(premise.subject.people)}"
    misses = [(found.candidate, why) for found in others]
    answers = [found for found in relevant if found not in others]
    if not answers:
        return Judged("no_match", [], misses, premise)
    best = answers[0].candidate
    sure = best.exact or (not premise.at_risk and (best.vector is None or best.vector >= thresholds.sure))
    return Judged("ok" if sure else "weak", answers, misses, premise)


def _leans(found: Fused, standing: set[NodeKey]) -> bool:
    """Whether a message stands right beside one that is relevant by itself: the reply to a question, say."""
    return any(key in standing for key in (found.candidate.around or ((),))[0])


def _holds(found: Fused, thresholds: Thresholds) -> bool:
    """Whether one candidate is enough for an answer: by a word, by its id, or by meaning alone."""
    candidate = found.candidate
    return (
        candidate.exact
        or candidate.way >= _LEADS
        or candidate.text > 0
        or (candidate.vector or 0.0) >= thresholds.alone
    )


def _relevant(found: Fused, thresholds: Thresholds) -> bool:
    candidate = found.candidate
    if candidate.exact or candidate.way >= _LEADS:
        return True
    if candidate.vector is None:
        return candidate.text > 0
    return candidate.vector >= thresholds.floor or (candidate.text > 0 and candidate.vector >= thresholds.floor / 2)
