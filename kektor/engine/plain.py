"""The engine in plain dictionaries: short enough to be read as the meaning of the port, slow enough to be obvious.

Nothing is indexed and nothing is kept. Tests run every scenario against this and `LocalEngine` and compare.
"""

import math
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from kektor_native import analyze, query_terms
from msgspec import structs
from numpy.typing import NDArray

from kektor import clock
from kektor.engine.audit import AuditEvent
from kektor.engine.edges import Cost, EdgeRule, cost_of
from kektor.engine.filters import Filter, conjunction
from kektor.engine.indexed import TEXT_FIELDS, about
from kektor.engine.long_query import shortened
from kektor.engine.port import (
    Compacted,
    Direction,
    EdgeAt,
    EdgePage,
    EngineHealth,
    EngineStats,
    Graph,
    Page,
    Path,
    Scored,
    Subgraph,
    Upkeep,
    Vector,
)
from kektor.engine.records import (
    Edge,
    Erasure,
    Event,
    IndexSettings,
    Kind,
    Node,
    NodeKey,
    Origin,
    Scope,
    State,
    Tombstone,
)
from kektor.engine.ties import tie_order
from kektor.engine.view import View
from kektor.errors import Internal, Invalid, NotFound

__all__ = ["PlainEngine"]

_Joined = tuple[Edge, NodeKey, NodeKey]


@dataclass
class _Index:
    settings: IndexSettings
    nodes: dict[NodeKey, Node] = field(default_factory=dict)
    vectors: dict[NodeKey, Vector] = field(default_factory=dict)
    edges: list[_Joined] = field(default_factory=list)
    kv: dict[tuple[Scope, str], tuple[Any, int]] = field(default_factory=dict)

    def copied(self) -> "_Index":
        return _Index(self.settings, dict(self.nodes), dict(self.vectors), list(self.edges), dict(self.kv))


@dataclass
class _World:
    """Everything a transaction may change; it works on a copy and swaps it in."""

    time: int = 0
    lsn: int = 0
    next_index: int = 1
    indexes: dict[str, _Index] = field(default_factory=dict)
    tombstones: dict[str, Tombstone] = field(default_factory=dict)
    outcomes: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)
    erasures: dict[str, Erasure] = field(default_factory=dict)

    def copied(self) -> "_World":
        new = copy(self)
        new.indexes = {name: index.copied() for name, index in self.indexes.items()}
        new.tombstones, new.outcomes = dict(self.tombstones), dict(self.outcomes)
        new.erasures = dict(self.erasures)
        return new


class PlainEngine:
    """See `port.Engine`."""

    def __init__(self) -> None:
        self._world = _World()
        self._commit = threading.RLock()
        self.noted: list[AuditEvent] = []

    def indexes(self) -> list[IndexSettings]:
        return sorted((index.settings for index in self._world.indexes.values()), key=lambda s: s.name)

    def index(self, name: str) -> IndexSettings | None:
        found = self._world.indexes.get(name)
        return None if found is None else found.settings

    def metadata_keys(self, view: View) -> set[str]:
        return {key for node in self._visible(view) for key in node.metadata}

    def holds(self, index: str, key: NodeKey) -> bool:
        return key in self._index(index).nodes

    def find(self, view: View, node_id: str) -> list[Node]:
        return [node for node in self._visible(view) if node.id == node_id]

    def fetch(self, view: View, keys: Sequence[NodeKey]) -> list[Node | None]:
        seen = {_key(node): node for node in self._visible(view)}
        return [seen.get(key) for key in keys]

    def admits(self, view: View, keys: Sequence[NodeKey]) -> list[bool]:
        return [node is not None for node in self.fetch(view, keys)]

    def page(self, view: View, *, limit: int, cursor: str | None = None) -> Page:
        if cursor is not None and not cursor.isdecimal():
            raise Invalid(f"cursor {cursor!r} did not come from a list", field="cursor")
        nodes = self._visible(view)
        start = int(cursor or 0)
        return Page(nodes[start : start + limit], str(start + limit) if start + limit < len(nodes) else None)

    def count(self, view: View) -> int:
        return len(self._visible(view))

    def versions(self, view: View, scope: Scope, lineage: str) -> list[Node]:
        found = [node for node in self._visible(view) if node.scope == scope and node.lineage == lineage]
        return sorted(found, key=lambda node: node.version)

    def session(self, view: View, scope: Scope, session: str) -> list[Node]:
        return [node for node in self._visible(view) if node.scope == scope and node.session == session]

    def in_session(self, view: View, session: str) -> list[Node]:
        return [node for node in self._visible(view) if node.session == session]

    def neighbours(self, view: View, keys: Sequence[NodeKey], *, reach: int) -> list[tuple[tuple[NodeKey, ...], ...]]:
        sources = [node for node in self._visible(view) if node.kind is Kind.SOURCE and node.session]
        found: list[tuple[tuple[NodeKey, ...], ...]] = []
        for key in keys:
            own = next((node for node in sources if _key(node) == key), None)
            order = [_key(n) for n in sources if own and (n.session, n.scope) == (own.session, own.scope)]
            if own is None:
                found.append(())
                continue
            at = order.index(key)
            found.append(
                tuple(
                    tuple(order[other] for other in (at - far, at + far) if 0 <= other < len(order))
                    for far in range(1, reach + 1)
                )
            )
        return found

    def vectors(self, view: View, keys: Sequence[NodeKey]) -> list[Vector | None]:
        held = self._index(view.index).vectors
        return [None if node is None else held.get(key) for key, node in zip(keys, self.fetch(view, keys), strict=True)]

    def nearest(self, view: View, vector: Vector, k: int, *, ef: int | None = None) -> list[Scored]:
        index = self._index(view.index)
        metric = index.settings.metric
        return _best(
            (node, _similarity(metric, vector, held))
            for node in self._visible(view)
            if (held := index.vectors.get(_key(node))) is not None
        )[:k]

    def nearest_batch(
        self, view: View, vectors: Vector, k: int, *, ef: int | None = None, threads: int | None = None
    ) -> tuple[list[list[str]], NDArray[np.float32]]:
        rows = [self.nearest(view, vector, k) for vector in vectors]
        scores = np.full((len(rows), k), np.nan, np.float32)
        for at, row in enumerate(rows):
            scores[at, : len(row)] = [scored.score for scored in row]
        return [[scored.key.id for scored in row] for row in rows], scores

    def match_text(self, view: View, query: str, k: int) -> list[Scored]:
        scores = self._bm25(view.index, query)
        return [s for s in _best((node, scores[_key(node)]) for node in self._visible(view)) if s.score > 0][:k]

    def text_scores(self, view: View, query: str, keys: Sequence[NodeKey]) -> list[float]:
        scores = self._bm25(view.index, query)
        nodes = self.fetch(view, keys)
        return [0.0 if node is None else scores[key] for key, node in zip(keys, nodes, strict=True)]

    def vector_scores(self, view: View, vector: Vector, keys: Sequence[NodeKey]) -> list[float | None]:
        metric = self._index(view.index).settings.metric
        return [None if held is None else _similarity(metric, vector, held) for held in self.vectors(view, keys)]

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
        start = int(cursor or 0)
        found = [joined for joined, _ in self._step(view, rule, through)(key)]
        taken = found[start : start + limit]
        more = start + len(taken) < len(found)
        return EdgePage([EdgeAt(*joined) for joined in taken], str(start + len(taken)) if more else None)

    def edges_ever(self, view: View, key: NodeKey) -> list[tuple[Edge, NodeKey]]:
        seen = {_key(node) for node in self._visible(view)}
        return [
            (edge, end) for edge, start, end in self._index(view.index).edges if start == key and {start, end} <= seen
        ]

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
        seen = {_key(node): node for node in self._visible(view)}
        step = self._step(view, rule, through)
        known = [root for root in dict.fromkeys(roots) if root in seen]
        hops, edges, truncated = dict.fromkeys(known[:limit], 0), {}, len(known) > limit
        queue = deque(hops)
        while queue:
            here = queue.popleft()
            if hops[here] == depth and not induced:
                continue
            for (edge, _, _), there in step(here):
                if there not in hops and hops[here] == depth:
                    continue
                if there not in hops:
                    if len(hops) >= limit:
                        truncated = True
                        continue
                    hops[there] = hops[here] + 1
                    queue.append(there)
                edges[id(edge)] = edge
        return Subgraph([(seen[key], far) for key, far in hops.items()], list(edges.values()), truncated)

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
        """The cheapest walk of each length, one length after the other; everything is looked at, so no limit."""
        seen = {_key(node): node for node in self._visible(view)}
        if src not in seen or dst not in seen:
            return Path([], [], 0.0, False)
        step = self._step(view, rule, through, ends={dst})
        walks: dict[NodeKey, tuple[float, list[Edge], list[NodeKey]]] = {src: (0.0, [], [src])}
        best = walks.get(dst)
        for _ in range(max_depth):
            longer: dict[NodeKey, tuple[float, list[Edge], list[NodeKey]]] = {}
            for here, (total, edges, keys) in walks.items():
                for (edge, _, _), there in step(here):
                    reached = total + cost_of(edge, cost)
                    if there not in longer or reached < longer[there][0]:
                        longer[there] = (reached, [*edges, edge], [*keys, there])
            walks = longer
            if dst in walks and (best is None or walks[dst][0] < best[0]):
                best = walks[dst]
        if best is None:
            return Path([], [], 0.0, False)
        return Path([seen[key] for key in best[2]], best[1], best[0], False)

    def graph(self, view: View, rule: EdgeRule, *, limit: int) -> Graph:
        keys = [_key(node) for node in self._visible(view)]
        places = {key: place for place, key in enumerate(keys[:limit])}
        edges = [
            (places[src], places[dst], edge.weight)
            for edge, src, dst in sorted(self._index(view.index).edges, key=lambda joined: places.get(joined[1], 0))
            if src in places and dst in places and rule.admits(edge, view)
        ]
        return Graph(list(places), edges, len(keys) > limit)

    def tombstones(self, index: str) -> list[Tombstone]:
        number = self._index(index).settings.number
        return [stone for stone in self._world.tombstones.values() if stone.index == number]

    def withholds(self, index: str, scope: Scope, cls: str) -> bool:
        return any((stone.scope, stone.cls, stone.lifted_at) == (scope, cls, None) for stone in self.tombstones(index))

    def withheld(self, index: str, scope: Scope, cls: str, digests: Iterable[bytes]) -> bool:
        wanted = set(digests)
        return any(
            (stone.scope, stone.cls, stone.lifted_at) == (scope, cls, None) and not wanted.isdisjoint(stone.digests)
            for stone in self.tombstones(index)
        )

    def erasures(self) -> list[Erasure]:
        return list(self._world.erasures.values())

    def kv(self, index: str, scope: Scope, key: str) -> tuple[Any, int] | None:
        return self._index(index).kv.get((scope, key))

    def kv_scopes(self, index: str, key: str) -> list[Scope]:
        return sorted(scope for scope, held in self._index(index).kv if held == key)

    def stats(self, index: str) -> EngineStats:
        held = self._index(index)
        texts = sum(1 for node in held.nodes.values() if node.text)
        return EngineStats(len(held.nodes), len(held.vectors), texts, len(held.edges), self._world.lsn, {}, {})

    def upkeep(self, index: str, action: Upkeep) -> tuple[int, int]:
        self._index(index)
        return 0, 0

    @contextmanager
    def transaction(self) -> Iterator["_PlainTransaction"]:
        with self._commit:
            yield _PlainTransaction(self)

    def wait(self, lsn: int) -> None:
        return

    def health(self) -> EngineHealth:
        return EngineHealth(None, None, [])

    def audit(self) -> Iterator[AuditEvent]:
        return iter(list(self.noted))

    def verify_audit(self) -> list[str]:
        return []

    def checkpoint(self) -> int:
        return self._world.lsn

    def compact(self) -> Compacted:
        return Compacted(self._world.lsn, self._world.time)

    def close(self) -> None:
        self._world = _World()

    def _index(self, name: str) -> _Index:
        if name not in self._world.indexes:
            raise NotFound(f"there is no index {name!r}", field="index")
        return self._world.indexes[name]

    def _visible(self, view: View) -> list[Node]:
        index = self._index(view.index)
        seen = [node for node in index.nodes.values() if view.admits(node, index.settings)]
        if view.around is None:
            return seen
        rule = EdgeRule(view.around.rels, view.around.direction)
        whole = self.traverse(view.whole(), [view.around.root], rule, depth=view.around.depth, limit=sys.maxsize)
        reached = {_key(node) for node, _ in whole.nodes}
        return [node for node in seen if _key(node) in reached]

    def _step(
        self, view: View, rule: EdgeRule, through: Filter | None = None, *, ends: Collection[NodeKey] = ()
    ) -> Callable[[NodeKey], list[tuple[_Joined, NodeKey]]]:
        """Edges at a node and where they lead: to visible nodes that match `through`, or to one of the `ends`."""
        seen = {_key(node) for node in self._visible(view)}
        narrow = structs.replace(view, filter=conjunction([view.filter, through]))
        between = {_key(node) for node in self._visible(narrow)} | (seen & set(ends))
        index = self._index(view.index)

        def step(here: NodeKey) -> list[tuple[_Joined, NodeKey]]:
            found = []
            for edge, src, dst in index.edges:
                if here not in seen or not rule.admits(edge, view):
                    continue
                if src == here and rule.direction != "in" and dst in between:
                    found.append(((edge, src, dst), dst))
                elif dst == here and rule.direction != "out" and src in between:
                    found.append(((edge, src, dst), src))
            return found

        return step

    def _bm25(self, name: str, query: str) -> dict[NodeKey, float]:
        index = self._index(name)
        text = index.settings.text
        counted = {key: _terms(node, text.language) for key, node in index.nodes.items() if node.text}
        lengths = {key: sum(terms.values()) for key, terms in counted.items()}
        mean = sum(lengths.values()) / max(1, len(lengths))
        scores = dict.fromkeys(index.nodes, 0.0)
        asked = shortened(
            query,
            terms_of=lambda part: query_terms(part, text.language),
            frequency=lambda term: sum(term in terms for terms in counted.values()),
            documents=len(counted),
        )
        for term in query_terms(asked, text.language):
            holding = [key for key, terms in counted.items() if term in terms]
            idf = math.log(1 + (len(counted) - len(holding) + 0.5) / (len(holding) + 0.5))
            for key in holding:
                tf = counted[key][term]
                norm = text.k1 * (1 - text.b + text.b * lengths[key] / mean)
                scores[key] += idf * tf * (text.k1 + 1) / (tf + norm)
        return scores


class _PlainTransaction:
    """See `port.Transaction`: it changes a copy of the world, which commit swaps in."""

    def __init__(self, engine: PlainEngine) -> None:
        self._engine = engine
        self._old = engine._world
        self._world = self._old.copied()
        self.time = max(clock.now(), self._old.time + 1)
        self.staged = 0
        self._noted: list[Event] = []

    @property
    def next_lsn(self) -> int:
        return self._old.lsn + 1

    def index(self, name: str) -> IndexSettings | None:
        found = self._world.indexes.get(name)
        return None if found is None else found.settings

    def indexes(self) -> list[IndexSettings]:
        return [index.settings for index in self._world.indexes.values()]

    def touched(self, index: str) -> dict[NodeKey, Node | None]:
        then = self._old.indexes[index].nodes if index in self._old.indexes else {}
        now = self._world.indexes[index].nodes
        return {key: now.get(key) for key in {**then, **now} if then.get(key) is not now.get(key)}

    def put_index(self, settings: IndexSettings) -> IndexSettings:
        self.staged += 1
        if settings.number == 0:
            settings = structs.replace(settings, number=self._world.next_index, created_at=self.time)
            self._world.next_index += 1
        if settings.name in self._world.indexes:
            self._world.indexes[settings.name].settings = settings
        else:
            self._world.indexes[settings.name] = _Index(settings)
        return settings

    def drop_index(self, name: str) -> None:
        self.staged += 1
        number = self._world.indexes.pop(name).settings.number
        self._world.tombstones = {k: s for k, s in self._world.tombstones.items() if s.index != number}

    def nodes_of_id(self, index: str, node_id: str) -> list[Node]:
        return [node for node in self._nodes(index).values() if node.id == node_id]

    def node(self, index: str, key: NodeKey) -> Node | None:
        return self._nodes(index).get(key)

    def nodes_of_digest(self, index: str, scope: Scope, digest: bytes) -> list[Node]:
        return [n for n in self._nodes(index).values() if n.scope == scope and digest in (n.digest, n.topic)]

    def lineage(self, index: str, scope: Scope, lineage: str) -> list[Node]:
        found = [n for n in self._nodes(index).values() if n.scope == scope and n.lineage == lineage]
        return sorted(found, key=lambda node: node.version)

    def vector(self, index: str, key: NodeKey) -> Vector | None:
        return self._world.indexes[index].vectors.get(key)

    def put_node(self, index: str, node: Node, vector: Vector | None = None) -> None:
        self.staged += 1
        held = self._world.indexes[index]
        key = _key(node)
        if key in held.nodes:
            raise Internal(f"{index} already holds {node.id!r} in {node.scope}")
        held.nodes[key] = node
        if vector is not None:
            held.vectors[key] = np.ascontiguousarray(vector, np.float32)

    def set_state(self, index: str, key: NodeKey, state: State, *, superseded_by: str = "") -> Node:
        old = self._nodes(index)[key]
        closed = structs.replace(old.state, recorded_to=state.recorded_from)
        return self._replace(
            index,
            structs.replace(
                old, states=(*old.states[:-1], closed, state), superseded_by=superseded_by or old.superseded_by
            ),
        )

    def amend(self, index: str, key: NodeKey, **changes: Any) -> Node:
        return self._replace(index, structs.replace(self._nodes(index)[key], **changes))

    def drop_node(self, index: str, key: NodeKey, *, replaced: bool = False) -> None:
        self.staged += 1
        held = self._world.indexes[index]
        del held.nodes[key]
        held.vectors.pop(key, None)
        held.edges = [joined for joined in held.edges if key not in joined[1:]]

    def redact(self, index: str, node: Node, vector: Vector | None = None) -> None:
        held = self._world.indexes[index]
        held.vectors.pop(_key(node), None)
        self._replace(index, node)
        if vector is not None:
            held.vectors[_key(node)] = np.ascontiguousarray(vector, np.float32)

    def copies(self, index: str, key: NodeKey) -> list[tuple[str, Node]]:
        origin = Origin(self._world.indexes[index].settings.number, key.scope, key.id)
        return [
            (name, node)
            for name, held in self._world.indexes.items()
            for node in held.nodes.values()
            if node.origin == origin
        ]

    def put_erasure(self, erasure: Erasure) -> None:
        self.changes = True
        self._world.erasures[erasure.id] = erasure

    def put_edge(self, index: str, src: NodeKey, dst: NodeKey, edge: Edge) -> None:
        self.staged += 1
        self._world.indexes[index].edges.append((edge, src, dst))

    def edges(self, index: str, key: NodeKey, direction: Direction = "both") -> list[_Joined]:
        return [
            joined
            for joined in self._world.indexes[index].edges
            if joined[0].deleted_at is None
            and ((direction != "in" and joined[1] == key) or (direction != "out" and joined[2] == key))
        ]

    def end_edge(self, index: str, src: NodeKey, rel: str, dst: NodeKey) -> Edge | None:
        held, ended = self._world.indexes[index], None
        for at, (edge, start, end) in enumerate(held.edges):
            if edge.deleted_at is None and (start, edge.rel, end) == (src, rel, dst):
                ended = structs.replace(edge, deleted_at=self.time)
                held.edges[at] = (ended, start, end)
                self.staged += 1
        return ended

    def tombstone(self, index: str, scope: Scope, digest: bytes) -> Tombstone | None:
        number = self._world.indexes[index].settings.number
        for stone in reversed(self._world.tombstones.values()):
            if (stone.index, stone.scope, stone.lifted_at) == (number, scope, None) and digest in stone.digests:
                return stone
        return None

    def tombstone_of_id(self, index: str, tombstone_id: str) -> Tombstone | None:
        stone = self._world.tombstones.get(tombstone_id)
        number = self._world.indexes[index].settings.number
        return stone if stone is not None and (stone.index, stone.lifted_at) == (number, None) else None

    def guarded(self, index: str, scope: Scope) -> bool:
        number = self._world.indexes[index].settings.number
        return any(
            (stone.index, stone.scope, stone.cls, stone.lifted_at) == (number, scope, "erasure", None)
            for stone in self._world.tombstones.values()
        )

    def guards(self, index: str, scope: Scope, tokens: frozenset[bytes]) -> list[Tombstone]:
        number = self._world.indexes[index].settings.number
        return [
            stone
            for stone in self._world.tombstones.values()
            if (stone.index, stone.scope, stone.lifted_at) == (number, scope, None)
            and stone.tokens
            and tokens.issuperset(stone.tokens)
        ]

    def put_tombstone(self, tombstone: Tombstone) -> None:
        self.staged += 1
        self._world.tombstones[tombstone.id] = tombstone

    def lift_tombstone(self, tombstone_id: str) -> Tombstone | None:
        stone = self._world.tombstones.get(tombstone_id)
        if stone is None or stone.lifted_at is not None:
            return None
        self.staged += 1
        lifted = self._world.tombstones[tombstone_id] = structs.replace(stone, lifted_at=self.time)
        return lifted

    def kv(self, index: str, scope: Scope, key: str) -> tuple[Any, int] | None:
        return self._world.indexes[index].kv.get((scope, key))

    def put_kv(self, index: str, scope: Scope, key: str, value: Any) -> int:
        self.staged += 1
        held = self.kv(index, scope, key)
        version = 1 if held is None else held[1] + 1
        self._world.indexes[index].kv[scope, key] = (value, version)
        return version

    def drop_kv(self, index: str, scope: Scope, key: str) -> bool:
        gone = self._world.indexes[index].kv.pop((scope, key), None) is not None
        self.staged += gone
        return gone

    def outcome(self, key: bytes) -> tuple[bytes, bytes] | None:
        return self._world.outcomes.get(key)

    def keep_outcome(self, key: bytes, request: bytes, outcome: bytes) -> None:
        self.staged += 1
        self._world.outcomes[key] = (request, outcome)

    def note(self, event: Event) -> None:
        self._noted.append(event)

    def commit(self) -> int:
        self._world.time, self._world.lsn = self.time, self.next_lsn
        self._engine._world = self._world
        for place, e in enumerate(self._noted):
            said = (e.operation, e.actor, e.index, e.scope, list(e.ids), e.reason, False)
            self._engine.noted.append(AuditEvent(self._world.lsn, place, self.time, *said))
        return self._world.lsn

    def _nodes(self, index: str) -> dict[NodeKey, Node]:
        return self._world.indexes[index].nodes

    def _replace(self, index: str, node: Node) -> Node:
        self.staged += 1
        self._world.indexes[index].nodes[_key(node)] = node
        return node


def _key(node: Node) -> NodeKey:
    return NodeKey(node.scope, node.id)


def _best(scored: Iterator[tuple[Node, float]] | Any) -> list[Scored]:
    ordered = sorted(scored, key=lambda pair: (-pair[1], *tie_order(pair[0])))
    return [Scored(_key(node), score) for node, score in ordered]


def _similarity(metric: str, query: Vector, held: Vector) -> float:
    a, b = query.astype(np.float64), held.astype(np.float64)
    if metric == "l2":
        return -float(((a - b) ** 2).sum())
    dot = float(a @ b)
    return dot if metric == "dot" else dot / (float(np.linalg.norm(a)) * float(np.linalg.norm(b)))


def _terms(node: Node, language: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text, (_, weight) in zip((node.text, about(node)), TEXT_FIELDS, strict=True):
        for term in analyze(text, language):
            counts[term] += weight  # type: ignore[assignment]
    return counts
