"""Edges, walks, paths and algorithms over what a caller sees."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec import structs

from kektor.engine.edges import EdgeRule, check_edge_filter
from kektor.engine.filters import Filter
from kektor.engine.gateway import Principal
from kektor.engine.port import EdgePage as StoredEdges
from kektor.engine.port import Subgraph as StoredSubgraph
from kektor.engine.records import IndexSettings, Node, NodeKey
from kektor.engine.view import View
from kektor.errors import Invalid, NotFound
from kektor.graph.algorithms import Found, run
from kektor.memory import requests as rq
from kektor.memory.limits import check_id
from kektor.memory.objects import (
    Analysis,
    EdgePage,
    Memory,
    Neighbour,
    NeighbourPage,
    NodeScore,
    Path,
    Subgraph,
    SubgraphNode,
)
from kektor.memory.presenting import edge_of, memory_of, scope_of
from kektor.memory.reading import find_one, make_view
from kektor.operations.base import BaseOperations
from kektor.query import parse_filter

__all__ = ["GraphOperations", "Progress"]

Progress = Callable[[float], object]
"""Told the share that is done, now and then; what it raises ends the work."""

_MOST_ROOTS = 1000
_MOST_NODES = 1_000_000


class GraphOperations(BaseOperations):
    """Every node met is one the caller sees; a hidden one is not walked through."""

    def edges(self, index: str, node_id: str, request: rq.EdgesRequest, principal: Principal) -> EdgePage:
        """Edges at a node whose other end the caller sees, a page at a time."""
        read = self._reading(index, request, principal)
        _, page = self._edges(read, node_id, request)
        return EdgePage([edge_of(found.edge) for found in page.edges], page.cursor)

    def neighbours(self, index: str, node_id: str, request: rq.EdgesRequest, principal: Principal) -> NeighbourPage:
        """What is joined to a node, with the edges that join it, a page at a time."""
        read = self._reading(index, request, principal)
        key, page = self._edges(read, node_id, request)
        others = self.engine.fetch(read.view, [at.dst if at.src == key else at.src for at in page.edges])
        items = [
            Neighbour(edge_of(at.edge), read.memory(node))
            for at, node in zip(page.edges, others, strict=True)
            if node is not None
        ]
        return NeighbourPage(items, page.cursor)

    def traverse(self, index: str, request: rq.TraverseRequest, principal: Principal) -> Subgraph:
        """What a walk from a root reaches; a node the caller does not see is not walked through."""
        _check_walk(request.depth, request.limit)
        read = self._reading(index, request, principal)
        root = self._key(read, request.root, field="root")
        found = self.engine.traverse(
            read.view, [root], read.rule, depth=request.depth, limit=request.limit, through=read.through
        )
        return _subgraph(read, found)

    def subgraph(self, index: str, request: rq.SubgraphRequest, principal: Principal) -> Subgraph:
        """What walks from some roots reach, with every edge between the nodes met."""
        if not 1 <= len(request.roots) <= _MOST_ROOTS:
            raise Invalid(f"roots takes 1 to {_MOST_ROOTS:,} ids, not {len(request.roots)}", field="roots")
        if request.depth != 0:
            _check_walk(request.depth, request.limit)
        read = self._reading(index, request, principal)
        roots = [self._key(read, root, field=f"roots[{at}]") for at, root in enumerate(request.roots)]
        found = self.engine.traverse(
            read.view, roots, read.rule, depth=request.depth, limit=request.limit, through=read.through, induced=True
        )
        return _subgraph(read, found)

    def path(self, index: str, request: rq.PathRequest, principal: Principal) -> Path:
        """A path of least cost between two nodes, over nodes the caller sees."""
        _check_walk(request.max_depth, request.limit, depth_field="max_depth")
        read = self._reading(index, request, principal)
        src, dst = self._key(read, request.src, field="src"), self._key(read, request.dst, field="dst")
        found = self.engine.path(
            read.view,
            src,
            dst,
            read.rule,
            max_depth=request.max_depth,
            limit=request.limit,
            cost=request.cost,
            through=read.through,
        )
        return Path(
            [read.memory(node) for node in found.nodes],
            [edge_of(edge) for edge in found.edges],
            found.cost if found.nodes else None,
            found.truncated,
        )

    def analyse(
        self, index: str, request: rq.AnalyseRequest, principal: Principal, *, progress: Progress | None = None
    ) -> Analysis:
        """Run a graph algorithm over all that the caller sees. `progress` may raise, which ends it."""
        if not 1 <= request.limit <= _MOST_NODES:
            raise Invalid(f"limit must be 1 to {_MOST_NODES:,}, not {request.limit}", field="limit")
        if not 1 <= request.top <= 100_000:
            raise Invalid(f"top must be 1 to 100,000, not {request.top}", field="top")
        if request.sample is not None and request.sample < 1:
            raise Invalid(f"sample must be at least 1, not {request.sample}", field="sample")
        read = self._reading(index, request, principal)
        graph = self.engine.graph(read.narrowed, read.rule, limit=request.limit)
        found = run(
            request.algorithm,
            len(graph.nodes),
            graph.edges,
            progress=progress or (lambda share: None),
            sample=request.sample,
            seed=request.seed,
        )
        return _analysis(request, graph.nodes, len(graph.edges), found, truncated=graph.truncated)

    def _edges(self, read: "_Reading", node_id: str, request: rq.EdgesRequest) -> tuple[NodeKey, StoredEdges]:
        if not 1 <= request.limit <= 10_000:
            raise Invalid(f"limit must be 1 to 10,000, not {request.limit}", field="limit")
        key = self._key(read, node_id)
        rule = read.rule
        if request.rel is not None:
            if request.rels is not None:
                raise Invalid("give either rel or rels", field="rel")
            rule = EdgeRule(frozenset([request.rel]), rule.direction, rule.filter)
        page = self.engine.edges(read.view, key, rule, limit=request.limit, cursor=request.cursor, through=read.through)
        return key, page

    def _key(self, read: "_Reading", node_id: str, *, field: str = "id") -> NodeKey:
        node = find_one(self.engine, read.view, check_id(node_id, field=field), field=field)
        return NodeKey(node.scope, node.id)

    def _reading(self, index: str, request: "_GraphRead", principal: Principal) -> "_Reading":
        whole = make_view(
            self.engine,
            principal,
            index,
            scope=request.scope,
            as_of=request.as_of,
            known_at=request.known_at,
            filter=request.filter,
            tz=request.tz,
        )
        settings = self.engine.index(index)
        if settings is None:
            raise NotFound(f"there is no index {index!r}", field="index")
        by_edge = parse_filter(request.edge_filter, tz=request.tz, now=whole.now, field="edge_filter")
        if by_edge is not None:
            check_edge_filter(by_edge)
        rels = None if request.rels is None else frozenset(request.rels)
        return _Reading(whole, settings, EdgeRule(rels, request.direction, by_edge))


_GraphRead = rq.EdgesRequest | rq.TraverseRequest | rq.SubgraphRequest | rq.PathRequest | rq.AnalyseRequest


class _Reading(NamedTuple):
    """A request as the engine takes it. `narrowed` is the View with the filter for nodes that are met."""

    narrowed: View
    settings: IndexSettings
    rule: EdgeRule

    @property
    def view(self) -> View:
        """What the caller sees, the filter aside: the nodes that a request names need not match it."""
        return structs.replace(self.narrowed, filter=None)

    @property
    def through(self) -> Filter | None:
        return self.narrowed.filter

    def memory(self, node: Node) -> Memory:
        return memory_of(node, self.settings, now=self.narrowed.now, known_at=self.narrowed.known_at)


def _subgraph(read: _Reading, found: StoredSubgraph) -> Subgraph:
    nodes = [SubgraphNode(read.memory(node), depth) for node, depth in found.nodes]
    return Subgraph(nodes, [edge_of(edge) for edge in found.edges], found.truncated)


def _analysis(
    request: rq.AnalyseRequest, keys: list[NodeKey], edges: int, found: Found, *, truncated: bool
) -> Analysis:
    """Ties in the order of ids, never of storage."""
    ranked = sorted(((-score, keys[at]) for at, score in enumerate(found.scores)), key=lambda e: (e[0], e[1].id, e[1]))
    named = [sorted(keys[at].id for at in group) for group in found.groups]
    groups = sorted(named, key=lambda ids: (-len(ids), ids))
    return Analysis(
        request.algorithm,
        len(keys),
        edges,
        [NodeScore(key.id, scope_of(key.scope), -score) for score, key in ranked[: request.top]],
        groups[: request.top],
        max(len(ranked), len(groups)),
        truncated,
    )


def _check_walk(depth: int, limit: int, *, depth_field: str = "depth") -> None:
    if not 1 <= depth <= 32:
        raise Invalid(f"{depth_field} must be 1 to 32, not {depth}", field=depth_field)
    if not 1 <= limit <= 100_000:
        raise Invalid(f"limit must be 1 to 100,000, not {limit}", field="limit")
