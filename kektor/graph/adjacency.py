"""Which edges leave and enter a slot."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator

__all__ = ["Adjacency"]

_Numbers = int | array  # type: ignore[type-arg]


class Adjacency:
    """Edge numbers by slot, in both directions; linking a hub costs the same as any other.

    Numbers grow, so each list is in order: a page of a hub's edges begins with a binary search.

    >>> graph = Adjacency()
    >>> graph.add(0, src=3, dst=5)
    >>> list(graph.leaving(3)), list(graph.entering(5)), list(graph.leaving(5)), list(graph.between(3, 5))
    ([0], [0], [], [0])
    """

    def __init__(self) -> None:
        self._out: dict[int, _Numbers] = {}
        self._in: dict[int, _Numbers] = {}

    def add(self, edge: int, *, src: int, dst: int) -> None:
        _append(self._out, src, edge)
        _append(self._in, dst, edge)

    def remove(self, edge: int, *, src: int, dst: int) -> None:
        """Forget an edge for good (erasure); unlinking keeps it for the past."""
        _discard(self._out, src, edge)
        _discard(self._in, dst, edge)

    def leaving(self, slot: int, *, after: int = -1) -> Iterator[int]:
        """Edges out of a slot, oldest first, those numbered beyond `after`."""
        return _beyond(self._out.get(slot), after)

    def entering(self, slot: int, *, after: int = -1) -> Iterator[int]:
        """Edges into a slot, oldest first, those numbered beyond `after`."""
        return _beyond(self._in.get(slot), after)

    def between(self, src: int, dst: int) -> Iterator[int]:
        """Edges from one slot to another, oldest first; costs as much as the end with fewer edges has."""
        leaving, entering = self._out.get(src), self._in.get(dst)
        if leaving is None or entering is None:
            return
        few, many = sorted((_listed(leaving), _listed(entering)), key=len)
        for edge in few:
            at = bisect_left(many, edge)
            if at < len(many) and many[at] == edge:
                yield edge


def _append(table: dict[int, _Numbers], slot: int, edge: int) -> None:
    """Most slots have one edge a side, and a list for each would cost more than the edge."""
    held = table.get(slot)
    if held is None:
        table[slot] = edge
    elif isinstance(held, int):
        table[slot] = array("Q", (held, edge))
    else:
        held.append(edge)


def _discard(table: dict[int, _Numbers], slot: int, edge: int) -> None:
    held = table[slot]
    if isinstance(held, int):
        del table[slot]
        return
    del held[bisect_left(held, edge)]
    if not held:
        del table[slot]


def _listed(held: _Numbers) -> "array[int]":
    return array("Q", (held,)) if isinstance(held, int) else held


def _beyond(held: _Numbers | None, after: int) -> Iterator[int]:
    if held is None:
        return iter(())
    numbers = _listed(held)
    return iter(numbers[bisect_left(numbers, after + 1) :])
