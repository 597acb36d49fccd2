"""Walks over one index as one View sees it; a node that is not seen is not walked through."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from pyroaring import BitMap

from kektor.engine.edges import Cost, EdgeRule, cost_of
from kektor.engine.port import EdgeAt, EdgePage, Graph, Path, Subgraph
from kektor.engine.records import NodeKey
from kektor.engine.space import EdgeRow, IndexSpace
from kektor.engine.view import View
from kektor.errors import Invalid
from kektor.graph import Step, cheapest_path, shortest_path, traverse

__all__ = ["GraphReads"]


class GraphReads:
    """Made for one read, under the engine's state lock. `visible` are the nodes that may be named as an end,
    `between` those that may be met on the way."""

    def __init__(self, space: IndexSpace, view: View, rule: EdgeRule, *, visible: BitMap, between: BitMap) -> None:
        self._space = space
        self._view = view
        self._rule = rule
        self._visible = visible
        self._between = between

    def edges(self, key: NodeKey, *, limit: int, cursor: str | None) -> EdgePage:
        """Edges at a node to nodes that may be met, oldest first."""
        slot = self._seen(key)
        if slot is None:
            return EdgePage([], None)
        found = ((number, row) for number, row, _ in self._edges_at(slot, after=_read_cursor(cursor)))
        taken = list(islice(found, limit + 1))
        more, taken = len(taken) > limit, taken[:limit]
        edges = [EdgeAt(row.edge, self._key(row.src), self._key(row.dst)) for _, row in taken]
        return EdgePage(edges, _write_cursor(taken[-1][0]) if more else None)

    def traverse(self, roots: Sequence[NodeKey], *, depth: int, limit: int, induced: bool) -> Subgraph:
        slots = [slot for root in roots if (slot := self._seen(root)) is not None]
        found = traverse(slots, self._steps("hops"), depth=depth, limit=limit, induced=induced)
        return Subgraph(
            [(self._space.node(slot), hops) for slot, hops in found.depth.items()],
            [self._space.edge(number).edge for number in found.edges],
            found.truncated,
        )

    def reached(self, root: NodeKey, depth: int) -> BitMap:
        """Every slot within some hops of a root, which is among them."""
        slot = self._seen(root)
        if slot is None:
            return BitMap()
        return BitMap(traverse([slot], self._steps("hops"), depth=depth, limit=len(self._between) + 1).depth)

    def path(self, src: NodeKey, dst: NodeKey, *, max_depth: int, cost: Cost, limit: int) -> Path:
        start, goal = self._seen(src), self._seen(dst)
        if start is None or goal is None:
            return Path([], [], 0.0, False)
        search = shortest_path if cost == "hops" else cheapest_path
        found = search(
            start,
            goal,
            self._steps(cost, goal=goal),
            self._steps(cost, goal=start, backward=True),
            max_depth=max_depth,
            limit=limit,
        )
        return Path(
            [self._space.node(slot) for slot in found.slots],
            [self._space.edge(number).edge for number in found.edges],
            found.cost,
            found.truncated,
        )

    def graph(self, *, limit: int) -> Graph:
        """The nodes that may be met and every edge between them, each once, from its source."""
        slots = self._between
        truncated = len(slots) > limit
        places = {slot: place for place, slot in enumerate(islice(slots, limit))}
        edges = [
            (place, places[row.dst], row.edge.weight)
            for slot, place in places.items()
            for _, row in self._space.edges_at(slot, "out")
            if row.dst in places and self._rule.admits(row.edge, self._view)
        ]
        return Graph([self._key(slot) for slot in places], edges, truncated)

    def _steps(self, cost: Cost, *, goal: int | None = None, backward: bool = False) -> Callable[[int], Iterator[Step]]:
        def steps(slot: int) -> Iterator[Step]:
            for number, row, other in self._edges_at(slot, backward=backward, goal=goal):
                yield Step(number, other, cost_of(row.edge, cost))

        return steps

    def _edges_at(
        self, slot: int, *, after: int = -1, backward: bool = False, goal: int | None = None
    ) -> Iterator[tuple[int, EdgeRow, int]]:
        direction = _TURNED[self._rule.direction] if backward else self._rule.direction
        for number, row in self._space.edges_at(slot, direction, after=after):
            other = row.dst if row.src == slot else row.src
            if (other in self._between or other == goal) and self._rule.admits(row.edge, self._view):
                yield number, row, other

    def _seen(self, key: NodeKey) -> int | None:
        slot = self._space.names.slot(key)
        return slot if slot is not None and slot in self._visible else None

    def _key(self, slot: int) -> NodeKey:
        key = self._space.names.key(slot)
        assert key is not None, "a visible slot has a node"
        return key


_TURNED = {"out": "in", "in": "out", "both": "both"}


def _read_cursor(cursor: str | None) -> int:
    if cursor is None:
        return -1
    if not cursor.startswith("e") or not (cursor[1:].isascii() and cursor[1:].isdecimal()) or len(cursor) > 20:
        raise Invalid(f"cursor {cursor[:80]!r} did not come from a list of edges", field="cursor")
    return int(cursor[1:])


def _write_cursor(number: int) -> str:
    return f"e{number}"
