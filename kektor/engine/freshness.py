"""How recently a node was confirmed, computed from the present moment; a read never confirms."""

from typing import NamedTuple

from kektor.engine.records import Layer, Node

__all__ = ["Freshness", "freshness"]

_DAY = 24 * 3600 * 1_000_000
_PROFILES = ((7.0, "transient"), (90.0, "standard"))


class Freshness(NamedTuple):
    """`score` halves with every half-life since `confirmed_at` (microseconds); the states end after one and three."""

    state: str
    score: float
    profile: str
    confirmed_at: int


def freshness(node: Node, layer: Layer | None, now: int) -> Freshness:
    """Being written counts as the first confirmation; a layer without a half-life never ages."""
    confirmed = max(node.confirmed_at, node.recorded_at)
    half_life = None if layer is None else layer.half_life_days
    if half_life is None:
        return Freshness("fresh", 1.0, "permanent", confirmed)
    score = 2.0 ** (-max(0, now - confirmed) / (half_life * _DAY))
    state = "fresh" if score >= 0.5 else "aging" if score >= 0.125 else "stale"
    profile = next((name for days, name in _PROFILES if half_life <= days), "stable")
    return Freshness(state, score, profile, confirmed)
