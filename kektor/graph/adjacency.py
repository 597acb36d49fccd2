"""Which edges leave and enter a slot."""

from collections.abc import Iterator

__all__ = ["Adjacency"]


class Adjacency:
    """Edge numbers by slot, in both directions; linking a hub costs the same as any other.

    >>> graph = Adjacency()
    >>> graph.add(0, src=3, dst=5)
    >>> list(graph.leaving(3)), list(graph.entering(5)), list(graph.leaving(5))
    ([0], [0], [])
    """

    def __init__(self) -> None:
        self._out: dict[int, list[int]] = {}
        self._in: dict[int, list[int]] = {}

    def add(self, edge: int, *, src: int, dst: int) -> None:
        self._out.setdefault(src, []).append(edge)
        self._in.setdefault(dst, []).append(edge)

    def remove(self, edge: int, *, src: int, dst: int) -> None:
        """Forget an edge for good (erasure); unlinking keeps it for the past."""
        for table, slot in ((self._out, src), (self._in, dst)):
            table[slot].remove(edge)
            if not table[slot]:
                del table[slot]

    def leaving(self, slot: int) -> Iterator[int]:
        """Edges out of a slot, oldest first."""
        return iter(tuple(self._out.get(slot, ())))

    def entering(self, slot: int) -> Iterator[int]:
        """Edges into a slot, oldest first."""
        return iter(tuple(self._in.get(slot, ())))
