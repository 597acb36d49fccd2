"""What is read of an open database: every answer is cut to what a View shows."""

import abc
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

import numpy as np
from kektor_native import CorruptFile
from msgspec import structs
from numpy.typing import NDArray
from pyroaring import BitMap

from kektor.engine.applied import Applied
from kektor.engine.edges import Cost, EdgeRule
from kektor.engine.filters import Filter, conjunction
from kektor.engine.graph_reads import GraphReads
from kektor.engine.long_query import shortened
from kektor.engine.port import EdgePage, EngineStats, Graph, Page, Path, Scored, Subgraph, Vector
from kektor.engine.records import Edge, Erasure, IndexSettings, Kind, Node, NodeKey, Scope, Tombstone
from kektor.engine.space import IndexSpace
from kektor.engine.tables import SmallTables
from kektor.engine.view import View
from kektor.engine.visible import Compiled
from kektor.errors import Corrupt, Invalid, NotFound

__all__ = ["Reads", "damage_named"]

Ranked: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.float32]]


class Reads(abc.ABC):
    """The reading half of `port.Engine`, over what its other half has applied."""

    _applied: Applied

    @abc.abstractmethod
    def _reading(self) -> AbstractContextManager[None]:
        """Holds what is applied still."""

    @property
    def lsn(self) -> int:
        """The last transaction in memory."""
        return self._applied.lsn

    @property
    def tables(self) -> SmallTables:
        """Of what is applied: for transactions."""
        return self._applied.tables

    # Indexes

    def indexes(self) -> list[IndexSettings]:
        with self._reading():
            return sorted(self.tables.settings.values(), key=lambda settings: settings.name)

    def index(self, name: str) -> IndexSettings | None:
        with self._reading():
            return self.tables.settings.get(name)

    def metadata_keys(self, view: View) -> set[str]:
        with self._reading():
            space, visible = self._seen(view)
            return {
                path[0]
                for path, column in space.columns.metadata.items()
                if len(path) == 1 and column.present.intersect(visible.slots)
            }

    def stats(self, index: str) -> EngineStats:
        with self._reading():
            space = self._space(index)
            return EngineStats(
                nodes=len(space.columns.alive),
                vectors=len(space.vectors),
                texts=len(space.texts),
                edges=sum(1 for _ in space.edges.numbers()),
                lsn=self.lsn,
                vector=space.vectors.stats(),
                text=space.texts.stats(),
            )

    # Nodes

    def holds(self, index: str, key: NodeKey) -> bool:
        with self._reading():
            return self._space(index).names.slot(key) is not None

    def find(self, view: View, node_id: str) -> list[Node]:
        with self._reading():
            space, visible = self._seen(view)
            return [space.node(slot) for slot in space.names.of_id(node_id) if slot in visible.slots]

    def fetch(self, view: View, keys: Sequence[NodeKey]) -> list[Node | None]:
        with self._reading():
            space, visible = self._seen(view)
            slots = [space.names.slot(key) for key in keys]
            return [None if slot is None or slot not in visible.slots else space.node(slot) for slot in slots]

    def admits(self, view: View, keys: Sequence[NodeKey]) -> list[bool]:
        with self._reading():
            space, visible = self._seen(view)
            slots = [space.names.slot(key) for key in keys]
            return [slot is not None and slot in visible.slots for slot in slots]

    def page(self, view: View, *, limit: int, cursor: str | None = None) -> Page:
        after = _read_cursor(cursor)
        with self._reading():
            space, visible = self._seen(view)
            slots = visible.slots
            first = 0 if after is None else slots.rank(after)
            taken = list(slots[first : first + limit])
            more = first + limit < len(slots)
            return Page([space.node(slot) for slot in taken], _write_cursor(taken[-1]) if more else None)

    def count(self, view: View) -> int:
        with self._reading():
            return len(self._seen(view)[1].slots)

    def versions(self, view: View, scope: Scope, lineage: str) -> list[Node]:
        with self._reading():
            space, visible = self._seen(view)
            return [node for slot, node in space.lineage(scope, lineage) if slot in visible.slots]

    def session(self, view: View, scope: Scope, session: str) -> list[Node]:
        return [node for node in self.in_session(view, session) if node.scope == scope]

    def in_session(self, view: View, session: str) -> list[Node]:
        with self._reading():
            space, visible = self._seen(view)
            slots = space.columns.having("session", session) & visible.slots
            return [space.node(slot) for slot in sorted(slots, key=space.names.place)]

    def neighbours(self, view: View, keys: Sequence[NodeKey], *, reach: int) -> list[tuple[tuple[NodeKey, ...], ...]]:
        with self._reading():
            space, visible = self._seen(view)
            sources = space.columns.having("kind", Kind.SOURCE.value) & visible.slots
            sessions: dict[tuple[str, Scope], list[int]] = {}
            return [self._around(space, key, sources, sessions, reach) for key in keys]

    def _around(
        self,
        space: IndexSpace,
        key: NodeKey,
        sources: BitMap,
        sessions: dict[tuple[str, Scope], list[int]],
        reach: int,
    ) -> tuple[tuple[NodeKey, ...], ...]:
        slot = space.names.slot(key)
        if slot is None or slot not in sources or not (session := space.names.session(slot)):
            return ()
        if (session, key.scope) not in sessions:
            slots = space.columns.in_session(session, key.scope) & sources
            sessions[session, key.scope] = sorted(slots, key=space.names.place)
        order = sessions[session, key.scope]
        at = bisect_left(order, space.names.place(slot), key=space.names.place)
        return tuple(
            tuple(
                found
                for other in (at - distance, at + distance)
                if 0 <= other < len(order) and (found := space.names.key(order[other])) is not None
            )
            for distance in range(1, reach + 1)
        )

    # Searching

    def vectors(self, view: View, keys: Sequence[NodeKey]) -> list[Vector | None]:
        with self._reading():
            space, visible = self._seen(view)
            slots = [space.names.slot(key) for key in keys]
            return [
                space.vectors.vectors(np.array([slot], np.uint32))[0]
                if slot is not None and slot in visible.slots and slot in space.vectors
                else None
                for slot in slots
            ]

    def nearest(self, view: View, vector: Vector, k: int, *, ef: int | None = None) -> list[Scored]:
        with self._reading():
            space, visible = self._seen(view)

        def search(count: int) -> Ranked:
            return space.vectors.search(vector, count, ef=ef, filter=visible.native)

        return self._best(space, search, k)

    def nearest_batch(
        self, view: View, vectors: Vector, k: int, *, ef: int | None = None, threads: int | None = None
    ) -> tuple[list[list[str]], NDArray[np.float32]]:
        with self._reading():
            space, visible = self._seen(view)
        with damage_named():
            slots, scores = space.vectors.search_batch(vectors, k + 1, ef=ef, filter=visible.native, threads=threads)
        # Rows in which nothing is tied are in their order already.
        tied = np.flatnonzero((scores[:, 1:] == scores[:, :-1]).any(axis=1))
        with self._reading():
            key = space.names.key
            ids = [[held.id for slot in row if (held := key(slot)) is not None] for row in slots[:, :k].tolist()]
        for row in tied.tolist():
            found = self.nearest(view, vectors[row], k, ef=ef)
            ids[row] = [scored.key.id for scored in found]
            scores[row, : len(found)] = [scored.score for scored in found]
        return ids, np.ascontiguousarray(scores[:, :k])

    def match_text(self, view: View, query: str, k: int) -> list[Scored]:
        with self._reading():
            space, visible = self._seen(view)
        asked = _shortened(space, query)

        def search(count: int) -> Ranked:
            return space.texts.search(asked, count, filter=visible.native)

        return self._best(space, search, k)

    def text_scores(self, view: View, query: str, keys: Sequence[NodeKey]) -> list[float]:
        with self._reading():
            space, visible = self._seen(view)
            slots = [space.names.slot(key) for key in keys]
        known = [slot for slot in slots if slot is not None and slot in visible.slots]
        with damage_named():
            scores = dict(
                zip(
                    known,
                    space.texts.scores(_shortened(space, query), np.array(known, np.uint32)).tolist(),
                    strict=True,
                )
            )
        return [scores.get(slot, 0.0) if slot is not None else 0.0 for slot in slots]

    def vector_scores(self, view: View, vector: Vector, keys: Sequence[NodeKey]) -> list[float | None]:
        with self._reading():
            space, visible = self._seen(view)
            slots = [space.names.slot(key) for key in keys]
            known = [s for s in slots if s is not None and s in visible.slots and s in space.vectors]
            found = space.vectors.scores(vector, np.array(known, np.uint32)).tolist()
        scores = dict(zip(known, found, strict=True))
        return [None if slot is None else scores.get(slot) for slot in slots]

    # Graph

    def edges(
        self,
        view: View,
        key: NodeKey,
        rule: EdgeRule,
        *,
        limit: int,
        cursor: str | None = None,
        through: Filter | None = None,
    ) -> EdgePage:
        with self._reading():
            return self._graph(view, rule, through).edges(key, limit=limit, cursor=cursor)

    def edges_ever(self, view: View, key: NodeKey) -> list[tuple[Edge, NodeKey]]:
        with self._reading():
            space, visible = self._seen(view)
            slot = space.names.slot(key)
            if slot is None or slot not in visible.slots:
                return []
            rows = [row for _, row in space.edges_at(slot, "out") if row.dst in visible.slots]
            return [(row.edge, NodeKey((end := space.node(row.dst)).scope, end.id)) for row in rows]

    def traverse(
        self,
        view: View,
        roots: Sequence[NodeKey],
        rule: EdgeRule,
        *,
        depth: int,
        limit: int,
        through: Filter | None = None,
        induced: bool = False,
    ) -> Subgraph:
        with self._reading():
            return self._graph(view, rule, through).traverse(roots, depth=depth, limit=limit, induced=induced)

    def path(
        self,
        view: View,
        src: NodeKey,
        dst: NodeKey,
        rule: EdgeRule,
        *,
        max_depth: int,
        limit: int,
        cost: Cost = "hops",
        through: Filter | None = None,
    ) -> Path:
        with self._reading():
            reads = self._graph(view, rule, through)
            return reads.path(src, dst, max_depth=max_depth, cost=cost, limit=limit)

    def graph(self, view: View, rule: EdgeRule, *, limit: int) -> Graph:
        with self._reading():
            return self._graph(view, rule).graph(limit=limit)

    def _graph(self, view: View, rule: EdgeRule, through: Filter | None = None) -> GraphReads:
        space, visible = self._seen(view)
        between = visible.slots
        if through is not None:
            between = self._seen(structs.replace(view, filter=conjunction([view.filter, through])))[1].slots
        return GraphReads(space, view, rule, visible=visible.slots, between=between)

    # Small values

    def tombstones(self, index: str) -> list[Tombstone]:
        with self._reading():
            number = self._space(index).settings.number
            return [stone for stone in self.tables.tombstones.values() if stone.index == number]

    def withholds(self, index: str, scope: Scope, cls: str) -> bool:
        with self._reading():
            return self.tables.withholds(self._space(index).settings.number, scope, cls)

    def withheld(self, index: str, scope: Scope, cls: str, digests: Iterable[bytes]) -> bool:
        with self._reading():
            number = self._space(index).settings.number
            stones = (stone for digest in digests for stone in self.tables.standing(number, scope, digest))
            return any(stone.cls == cls for stone in stones)

    def erasures(self) -> list[Erasure]:
        with self._reading():
            return list(self.tables.erasures.values())

    def kv(self, index: str, scope: Scope, key: str) -> tuple[Any, int] | None:
        with self._reading():
            return self.tables.kv.get((self._space(index).settings.number, scope, key))

    def kv_scopes(self, index: str, key: str) -> list[Scope]:
        with self._reading():
            return sorted(self.tables.kv_scopes.get((self._space(index).settings.number, key), ()))

    # Helpers

    def _space(self, index: str) -> IndexSpace:
        settings = self.tables.settings.get(index)
        if settings is None:
            raise NotFound(f"there is no index {index!r}", field="index")
        return self._applied.spaces[settings.number]

    def _seen(self, view: View) -> tuple[IndexSpace, Compiled]:
        space = self._space(view.index)
        return space, self._applied.compilers[space.settings.number].compile(view)

    def _best(self, space: IndexSpace, search: Callable[[int], Ranked], k: int) -> list[Scored]:
        """The k best; equal scores in the order of content, then id, never of slot.

        What is tied with the last place is asked for until all of it is there, since a structure may know no other
        order than that of slots.
        """
        asked = k + 1
        with damage_named():
            slots, scores = search(asked)
            while len(slots) == asked and scores[-1] == scores[k - 1]:
                asked *= 4
                slots, scores = search(asked)
        with self._reading():
            if len(slots) > k:
                slots, scores = _without_hopeless(space, slots, scores, k)
            order = space.names.by_content(slots).tolist()
            found = [
                (-score, content, key.id, key.scope, Scored(key, score))
                for slot, score, content in zip(slots.tolist(), scores.tolist(), order, strict=True)
                if (key := space.names.key(slot)) is not None
            ]
        return [entry[-1] for entry in sorted(found, key=lambda entry: entry[:-1])[:k]]


def _shortened(space: IndexSpace, query: str) -> str:
    texts = space.texts
    with damage_named():
        return shortened(query, terms_of=texts.query_terms, frequency=texts.document_frequency, documents=len(texts))


def _without_hopeless(space: IndexSpace, slots: NDArray[np.uint32], scores: NDArray[np.float32], k: int) -> Ranked:
    """Of many tied with the last place only those whose content comes early enough."""
    kept = scores > scores[k - 1]
    tied = np.flatnonzero(scores == scores[k - 1])
    content = space.names.by_content(slots[tied])
    places = k - int(kept.sum())
    kept[tied[content <= np.partition(content, places - 1)[places - 1]]] = True
    return slots[kept], scores[kept]


@contextmanager
def damage_named() -> Iterator[None]:
    """What the native structures find broken, as the error that callers know."""
    try:
        yield
    except CorruptFile as error:
        raise Corrupt(f"{error}; doctor tells what else is damaged") from error


def _read_cursor(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not cursor.startswith("s") or not cursor[1:].isdecimal():
        raise Invalid(f"cursor {cursor!r} did not come from a list", field="cursor")
    return int(cursor[1:])


def _write_cursor(slot: int) -> str:
    return f"s{slot}"
