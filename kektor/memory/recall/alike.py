"""What several memories say of one thing, the latest first: same subject, same predicate, perhaps another value."""

from collections.abc import Sequence
from typing import NamedTuple

from kektor.engine.records import Kind, Scope, Trust
from kektor.memory.recall.fuse import Fused

__all__ = ["Ordered", "latest_first"]

_CLOSE = 0.9
"""A memory that scores this share of the best of its group is as good an answer, wherever `k` ends."""


class Ordered(NamedTuple):
    """A hit, and whether another in the answer tells something later of the same thing."""

    found: Fused
    told_earlier: bool


def latest_first(ranked: Sequence[Fused], k: int, now: int) -> list[Ordered]:
    """The `k` best, each group of one subject and predicate in the place of its best member.

    Within it what holds comes before what will, then the latest beginning, then the latest told. Where one has no
    beginning, only when they were told can be compared.
    """
    groups: dict[tuple[Scope, bytes], list[Fused]] = {}
    for at, found in enumerate(ranked):
        group = groups.setdefault(_topic(found, at), [])
        if at < k or (group and _as_good(found, group[0])):
            group.append(found)
    ordered = (entry for group in groups.values() for entry in _within(group, now))
    return list(ordered)[:k]


def _topic(found: Fused, at: int) -> tuple[Scope, bytes]:
    node = found.candidate.node
    if node.kind is Kind.MEMORY and node.topic:
        return node.scope, node.topic
    return node.scope, b"%d" % at


def _within(group: list[Fused], now: int) -> list[Ordered]:
    if len(group) < 2:
        return [Ordered(found, False) for found in group]
    dated = all(found.candidate.node.state.valid_from is not None for found in group)
    told: dict[bytes, tuple[int, int]] = {}
    for found in group:
        node = found.candidate.node
        begins = node.state.valid_from
        when = (begins.at if dated and begins is not None else 0), node.recorded_at
        # The same said twice is one telling, and its memories keep their order.
        told[node.digest] = max(when, told.get(node.digest, when))
    later = [found for found in group if _is_to_come(found, now)]
    holding = [found for found in group if not _is_to_come(found, now)]
    holding.sort(key=lambda found: told[found.candidate.node.digest], reverse=True)
    later.sort(key=lambda found: told[found.candidate.node.digest])
    latest = holding[0].candidate.node.digest if holding else b""
    return [
        *(Ordered(found, found.candidate.node.digest != latest) for found in holding),
        *(Ordered(found, False) for found in later),
    ]


def _as_good(found: Fused, best: Fused) -> bool:
    """Whether it answers as well as the best of its group, or says what that one is doubted for."""
    doubted = found.candidate.node.trust is best.candidate.node.trust is Trust.CONTESTED
    return doubted or found.score >= _CLOSE * best.score


def _is_to_come(found: Fused, now: int) -> bool:
    begins = found.candidate.node.state.valid_from
    return begins is not None and begins.at > now
