"""Walks over a `neighbours` function: breadth first, and the best path, searched from both ends at once."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

__all__ = ["Neighbours", "Route", "Step", "Walk", "cheapest_path", "shortest_path", "traverse"]


class Step(NamedTuple):
    """One edge as met on the way from a slot, and what it costs to take it."""

    edge: int
    slot: int
    cost: float = 1.0


Neighbours = Callable[[int], Iterable[Step]]


class Walk(NamedTuple):
    """Slots met (the roots first) with their distance in hops, the edges between them, and whether a limit cut it."""

    depth: dict[int, int]
    edges: list[int]
    truncated: bool


class Route(NamedTuple):
    """Slots and edges from one end to the other with the sum of their costs.

    Without slots there is none within the bounds; `truncated` says that the search gave up at its limit before it
    could tell.
    """

    slots: list[int]
    edges: list[int]
    cost: float
    truncated: bool = False


def traverse(roots: Sequence[int], neighbours: Neighbours, *, depth: int, limit: int, induced: bool = False) -> Walk:
    """Every slot within `depth` hops of a root, nearest first, at most `limit` of them.

    `induced` also gives the edges between slots at the last hop, which no walk takes.
    """
    found = dict.fromkeys(roots[:limit], 0)
    edges: dict[int, None] = {}
    queue = deque(found)
    truncated = len(set(roots)) > len(found)
    while queue:
        slot = queue.popleft()
        last = found[slot] == depth
        if last and not induced:
            continue
        for step in neighbours(slot):
            if step.slot not in found:
                if last:
                    continue
                if len(found) >= limit:
                    truncated = True
                    continue
                found[step.slot] = found[slot] + 1
                queue.append(step.slot)
            edges[step.edge] = None
    return Walk(found, list(edges), truncated)


def shortest_path(
    start: int, goal: int, forward: Neighbours, backward: Neighbours, *, max_depth: int, limit: int
) -> Route:
    """A path with the fewest hops, over at most `limit` slots.

    Searches from both ends and always grows the smaller side, whole levels at a time, so the first meeting of two
    complete levels is a shortest one.
    """
    if start == goal:
        return Route([start], [], 0.0)
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
                    seen[step.slot] = Step(step.edge, slot, step.cost)
                    level.append(step.slot)
        meeting = next((slot for slot in level if slot in other), None)
        if meeting is not None:
            return _join(meeting, sides)
        if not level:
            return _NOWHERE
        if len(seen) + len(other) > limit:
            return _GAVE_UP
        frontiers[side] = level
    return _NOWHERE


def cheapest_path(
    start: int, goal: int, forward: Neighbours, backward: Neighbours, *, max_depth: int, limit: int
) -> Route:
    """A path of least cost with at most `max_depth` hops, over at most `limit` slots. Costs are not negative.

    The search from both ends knows nothing of hops. Where what it finds has too many, the search by hops decides.
    """
    if start == goal:
        return Route([start], [], 0.0)
    found = _from_both_ends(start, goal, forward, backward, limit=limit)
    if len(found.edges) <= max_depth:
        return found
    return _within_hops(start, goal, forward, max_depth=max_depth, limit=limit)


def _from_both_ends(start: int, goal: int, forward: Neighbours, backward: Neighbours, *, limit: int) -> Route:
    came: tuple[dict[int, Step | None], dict[int, Step | None]] = ({start: None}, {goal: None})
    costs: tuple[dict[int, float], dict[int, float]] = ({start: 0.0}, {goal: 0.0})
    settled: tuple[set[int], set[int]] = (set(), set())
    queues: list[list[tuple[float, int]]] = [[(0.0, start)], [(0.0, goal)]]
    best, meeting = float("inf"), None
    while queues[0] and queues[1]:
        # What is still to come costs at least the two heads together.
        if queues[0][0][0] + queues[1][0][0] >= best:
            break
        side = 0 if queues[0][0][0] <= queues[1][0][0] else 1
        cost, slot = heappop(queues[side])
        if slot in settled[side]:
            continue
        settled[side].add(slot)
        if len(settled[0]) + len(settled[1]) > limit:
            return _GAVE_UP
        for step in (forward, backward)[side](slot):
            total = cost + step.cost
            if total < costs[side].get(step.slot, float("inf")):
                costs[side][step.slot] = total
                came[side][step.slot] = Step(step.edge, slot, step.cost)
                heappush(queues[side], (total, step.slot))
                whole = total + costs[1 - side].get(step.slot, float("inf"))
                if whole < best:
                    best, meeting = whole, step.slot
    return _NOWHERE if meeting is None else _join(meeting, came)


def _within_hops(start: int, goal: int, forward: Neighbours, *, max_depth: int, limit: int) -> Route:
    """Dijkstra over pairs of slot and hops: a dearer way with fewer hops may be the one that arrives."""
    came: dict[tuple[int, int], Step | None] = {(start, 0): None}
    costs = {(start, 0): 0.0}
    fewest: dict[int, int] = {}
    queue = [(0.0, 0, start)]
    while queue:
        cost, hops, slot = heappop(queue)
        # Reached before at no greater cost: only fewer hops can still be of use.
        if fewest.get(slot, max_depth + 1) <= hops:
            continue
        fewest[slot] = hops
        if slot == goal:
            return _back(came, (slot, hops), cost)
        if len(fewest) > limit:
            return _GAVE_UP
        if hops == max_depth:
            continue
        for step in forward(slot):
            there, total = (step.slot, hops + 1), cost + step.cost
            if total < costs.get(there, float("inf")):
                costs[there] = total
                came[there] = Step(step.edge, slot, step.cost)
                heappush(queue, (total, hops + 1, step.slot))
    return _NOWHERE


_NOWHERE = Route([], [], 0.0)
_GAVE_UP = Route([], [], 0.0, truncated=True)


def _back(came: dict[tuple[int, int], Step | None], last: tuple[int, int], cost: float) -> Route:
    slots, edges = [last[0]], []
    hops = last[1]
    while (step := came[slots[-1], hops]) is not None:
        edges.append(step.edge)
        slots.append(step.slot)
        hops -= 1
    return Route(slots[::-1], edges[::-1], cost)


def _join(meeting: int, sides: tuple[dict[int, Step | None], dict[int, Step | None]]) -> Route:
    slots, edges, costs = [meeting], [], []
    while (step := sides[0][slots[-1]]) is not None:
        slots.append(step.slot)
        edges.append(step.edge)
        costs.append(step.cost)
    slots.reverse()
    edges.reverse()
    costs.reverse()
    while (step := sides[1][slots[-1]]) is not None:
        slots.append(step.slot)
        edges.append(step.edge)
        costs.append(step.cost)
    return Route(slots, edges, sum(costs))
