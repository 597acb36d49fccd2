"""Searches over a `neighbours` function: breadth first, and the shortest path from both ends at once."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

__all__ = ["Neighbours", "Step", "Walk", "shortest_path", "traverse"]


class Step(NamedTuple):
    """One edge as met on the way from a slot."""

    edge: int
    slot: int


Neighbours = Callable[[int], Iterable[Step]]


class Walk(NamedTuple):
    """Slots met (the root first) with their distance in hops, the edges between them, and whether a limit cut it."""

    depth: dict[int, int]
    edges: list[int]
    truncated: bool


def traverse(root: int, neighbours: Neighbours, *, depth: int, limit: int) -> Walk:
    """Every slot within `depth` hops, nearest first, at most `limit` of them."""
    found = {root: 0}
    edges: dict[int, None] = {}
    queue = deque([root])
    truncated = False
    while queue:
        slot = queue.popleft()
        if found[slot] == depth:
            continue
        for step in neighbours(slot):
            if step.slot not in found:
                if len(found) >= limit:
                    truncated = True
                    continue
                found[step.slot] = found[slot] + 1
                queue.append(step.slot)
            edges[step.edge] = None
    return Walk(found, list(edges), truncated)


def shortest_path(
    start: int, goal: int, forward: Neighbours, backward: Neighbours, *, max_depth: int
) -> tuple[list[int], list[int]] | None:
    """Slots and edges of a path with the fewest hops, or None when there is none within `max_depth`.

    Searches from both ends and always grows the smaller side, whole levels at a time, so the first meeting of two
    complete levels is a shortest one.
    """
    if start == goal:
        return [start], []
    sides: tuple[dict[int, Step | None], dict[int, Step | None]] = ({start: None}, {goal: None})
    frontiers = [[start], [goal]]
    for _ in range(max_depth):
        side = 0 if len(frontiers[0]) <= len(frontiers[1]) else 1
        seen, other = sides[side], sides[1 - side]
        grow = forward if side == 0 else backward
        level: list[int] = []
        for slot in frontiers[side]:
            for step in grow(slot):
                if step.slot not in seen:
                    seen[step.slot] = Step(step.edge, slot)
                    level.append(step.slot)
        meeting = next((slot for slot in level if slot in other), None)
        if meeting is not None:
            return _join(meeting, sides)
        if not level:
            return None
        frontiers[side] = level
    return None


def _join(meeting: int, sides: tuple[dict[int, Step | None], dict[int, Step | None]]) -> tuple[list[int], list[int]]:
    slots = [meeting]
    edges: list[int] = []
    while (step := sides[0][slots[0]]) is not None:
        slots.insert(0, step.slot)
        edges.insert(0, step.edge)
    while (step := sides[1][slots[-1]]) is not None:
        slots.append(step.slot)
        edges.append(step.edge)
    return slots, edges
