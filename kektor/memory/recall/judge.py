"""Whether what was found answers at all: `ok`, `weak` or nothing."""

from collections.abc import Sequence
from typing import NamedTuple

from kektor.engine.records import NodeKey
from kektor.memory.recall.fuse import Fused

__all__ = ["Thresholds", "judge", "thresholds_for"]


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


_BY_MODEL = {"all-MiniLM-L6-v2": Thresholds(floor=0.22, sure=0.42)}
_UNKNOWN = Thresholds(floor=0.25, sure=0.5)


_LEADS = 0.5
"""A key that the question names leads to an answer as long as its way was not dismissed too often."""


def thresholds_for(model: str) -> Thresholds:
    """Calibrated values of a known model, cautious ones of another."""
    return next((values for name, values in _BY_MODEL.items() if name in model), _UNKNOWN)


def judge(ranked: Sequence[Fused], thresholds: Thresholds, *, at_risk: bool = False) -> tuple[str, list[Fused]]:
    """The status and the candidates that may be shown; the rest is no answer and fills no place.

    What shares no word with the question must be nearer to it than what shares one. A question that takes a name for
    granted that was never mentioned (`at_risk`) is never answered as sure.
    """
    standing = {found.candidate.key for found in ranked if _relevant(found, thresholds)}
    relevant = [found for found in ranked if found.candidate.key in standing or _leans(found, standing)]
    if not standing or not any(_holds(found, thresholds) for found in relevant):
        return "no_match", []
    best = relevant[0].candidate
    sure = best.exact or (not at_risk and (best.vector is None or best.vector >= thresholds.sure))
    return ("ok" if sure else "weak"), relevant


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
