"""Raw nodes, vector search and edges."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from kektor.engine.gateway import Principal
from kektor.engine.port import Scored, Vector
from kektor.engine.records import IndexSettings, NodeKey, Receipt, Scope
from kektor.engine.ties import content_order
from kektor.engine.view import Around, View
from kektor.errors import Invalid, NotFound
from kektor.memory import requests as rq
from kektor.memory.commands.edges import EdgeDraft, Link, Unlink
from kektor.memory.commands.raw import DeleteNodes, PatchNode, UpsertNodes
from kektor.memory.drafts import Draft
from kektor.memory.inputs import end, moment, read_rule, write_scope
from kektor.memory.limits import (
    LIMITS,
    check_finite,
    check_id,
    check_metadata,
    check_tags,
    check_text,
    check_vector,
)
from kektor.memory.objects import BatchHits, SearchHit
from kektor.memory.presenting import memory_of
from kektor.memory.reading import find_one, make_view
from kektor.operations.base import BaseOperations
from kektor.query import find_text

__all__ = ["NodeOperations"]


class NodeOperations(BaseOperations):
    """The plane below memories: ids, vectors, texts, edges."""

    def upsert(
        self,
        index: str,
        request: rq.UpsertRequest,
        principal: Principal,
        *,
        vectors: NDArray[np.float32] | None = None,
    ) -> Receipt:
        """Store nodes in place, all or nothing; `vectors` (n, dim) stands for the nodes' own when given."""
        settings = self._index(index, principal)
        if not request.nodes:
            raise Invalid("nodes is empty", field="nodes")
        if len(request.nodes) > LIMITS["batch"]:
            raise Invalid(f"more than {LIMITS['batch']:,} nodes in one call", field="nodes")
        _refuse_repeats([node.id for node in request.nodes])
        scope = write_scope(request.scope, principal, index)
        if vectors is not None:
            check_finite(vectors, settings, field="vectors")
        drafts = [
            _node_draft(index, scope, node, number, settings, None if vectors is None else vectors[number])
            for number, node in enumerate(request.nodes)
        ]
        command = UpsertNodes(
            context=self.context,
            index=index,
            scope=scope,
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=[request, None if vectors is None else vectors.tobytes()],
            drafts=drafts,
        )
        return self._submit(command, principal)

    def patch_node(self, index: str, node_id: str, request: rq.PatchNodeRequest, principal: Principal) -> Receipt:
        """Merge metadata, replace the other parts."""
        settings = self._index(index, principal)
        changes: dict[str, Any] = {}
        if request.text is not None:
            changes["text"] = check_text(request.text, may_be_empty=True)
        if request.tags is not None:
            changes["tags"] = check_tags(request.tags)
        if request.metadata is not None:
            changes["metadata"] = check_metadata(request.metadata)
        draft = _raw_draft(index, _SHARED, check_id(node_id), text=changes.get("text", ""))
        if request.vector is not None:
            draft.vector = changes["vector"] = check_vector(request.vector, settings)
        if not changes:
            raise Invalid("nothing to change: give text, vector, tags or metadata")
        command = PatchNode(
            context=self.context,
            index=index,
            node_id=node_id,
            rule=read_rule(request.scope),
            changes=changes,
            if_match=request.if_match,
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=[node_id, request],
            drafts=[draft],
        )
        return self._submit(command, principal)

    def delete_nodes(
        self,
        index: str,
        ids: Sequence[str],
        principal: Principal,
        *,
        scope: rq.ScopeIn | None = None,
        missing_ok: bool = False,
        reason: str = "",
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Remove raw nodes, all or nothing; `missing_ok` counts what is not there as done."""
        self._index(index, principal)
        if not ids:
            raise Invalid("ids is empty", field="ids")
        for number, node_id in enumerate(ids):
            check_id(node_id, field=f"ids[{number}]")
        command = DeleteNodes(
            context=self.context,
            index=index,
            ids=list(ids),
            rule=read_rule(scope),
            missing_ok=missing_ok,
            reason=reason,
            idempotency_key=idempotency_key,
            asked=[list(ids), scope, missing_ok],
        )
        return self._submit(command, principal)

    def search(
        self,
        index: str,
        request: rq.SearchRequest,
        principal: Principal,
        *,
        vector: NDArray[np.float32] | None = None,
    ) -> list[SearchHit]:
        """The k best by vector, by text, or by both with `alpha` as the vector's share."""
        settings = self._index(index, principal)
        given = request.vector if vector is None else vector
        query = None if given is None else check_vector(given, settings)
        _check_search(request, query)
        view = make_view(
            self.engine,
            principal,
            index,
            scope=request.scope,
            filter=request.filter,
            include=request.include,
            kinds=request.kinds,
            as_of=request.as_of,
            known_at=request.known_at,
            tz=request.tz,
        )
        if request.graph is not None:
            view = structs.replace(view, around=self._around(view, request.graph))
        found = self._find(view, request, query)
        if not request.with_memories:
            return [SearchHit(scored.key.id, scored.score, parts) for scored, parts in found]
        nodes = self.engine.fetch(view, [scored.key for scored, _ in found])
        return [
            SearchHit(
                scored.key.id, scored.score, parts, memory_of(node, settings, now=view.now, known_at=view.known_at)
            )
            for (scored, parts), node in zip(found, nodes, strict=True)
            if node is not None
        ]

    def search_batch(
        self,
        index: str,
        vectors: NDArray[np.float32],
        principal: Principal,
        *,
        k: int = 10,
        ef: int | None = None,
        filter: str | dict[str, Any] | None = None,
        scope: rq.ScopeIn | None = None,
        threads: int | None = None,
        as_of: rq.TimeIn | None = None,
        known_at: rq.TimeIn | None = None,
        tz: str = "UTC",
    ) -> tuple[list[list[str]], NDArray[np.float32]]:
        """Ids and scores of the k best for every row of (n, dim) queries, on all cores."""
        settings = self._index(index, principal)
        _check_k(k, ef)
        if threads is not None and not 1 <= threads <= 1024:
            raise Invalid(f"threads must be 1 to 1,024, not {threads}", field="threads")
        if vectors.ndim != 2 or vectors.shape[1] != settings.dim:
            raise Invalid(
                f"vectors has shape {vectors.shape}; index {index!r} takes (n, {settings.dim})",
                field="vectors",
            )
        check_finite(vectors, settings, field="vectors")
        view = make_view(
            self.engine, principal, index, scope=scope, filter=filter, as_of=as_of, known_at=known_at, tz=tz
        )
        return self.engine.nearest_batch(view, vectors, k, ef=ef, threads=threads)

    def search_rows(self, index: str, request: rq.SearchBatchRequest, principal: Principal) -> BatchHits:
        """`search_batch` for vectors that came as lists; only what was found is in the answer."""
        ids, scores = self.search_batch(
            index,
            _matrix(request.vectors, self._index(index, principal)),
            principal,
            k=request.k,
            ef=request.ef,
            filter=request.filter,
            scope=request.scope,
            as_of=request.as_of,
            known_at=request.known_at,
            tz=request.tz,
        )
        return BatchHits(ids, [row[: len(found)] for row, found in zip(scores.tolist(), ids, strict=True)])

    def link(self, index: str, request: rq.LinkRequest, principal: Principal) -> Receipt:
        """Add edges, all or nothing; one that stands already is replaced."""
        if not request.edges:
            raise Invalid("edges is empty", field="edges")
        edges = [_edge(edge, f"edges[{number}]", request.tz) for number, edge in enumerate(request.edges)]
        self._index(index, principal)
        command = Link(
            context=self.context,
            index=index,
            edges=edges,
            rule=read_rule(request.scope),
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=request,
        )
        return self._submit(command, principal)

    def unlink(self, index: str, request: rq.UnlinkRequest, principal: Principal) -> Receipt:
        """End one edge; its past stays readable with `known_at`."""
        self._index(index, principal)
        command = Unlink(
            context=self.context,
            index=index,
            src=request.src,
            rel=request.rel,
            dst=request.dst,
            rule=read_rule(request.scope),
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=request,
        )
        return self._submit(command, principal)

    def _find(
        self, view: View, request: rq.SearchRequest, query: Vector | None
    ) -> list[tuple[Scored, dict[str, float]]]:
        if query is not None and request.text is None:
            found = self.engine.nearest(view, query, request.k, ef=request.ef)
            return [(scored, {"vector": scored.score}) for scored in found]
        assert request.text is not None
        if query is None:
            said = find_text(self.engine, view, request.text, request.k, match=request.match)
            return [(scored, {"text": scored.score}) for scored in said]
        return self._hybrid(view, request, query, request.text)

    def _hybrid(
        self, view: View, request: rq.SearchRequest, query: Vector, text: str
    ) -> list[tuple[Scored, dict[str, float]]]:
        """Both sides over-fetched and fused; each side's part of a score is given."""
        depth = max(50, 4 * request.k)
        near = [scored.key for scored in self.engine.nearest(view, query, depth, ef=request.ef)]
        said = [scored.key for scored in find_text(self.engine, view, text, depth, match=request.match)]
        wanted = list(dict.fromkeys([*near, *said]))
        if request.fusion == "rrf":
            sides = [_reciprocal(near, wanted), _reciprocal(said, wanted)]
        else:
            vectors = self.engine.vector_scores(view, query, wanted)
            sides = [_stretch(vectors), _stretch(self.engine.text_scores(view, text, wanted))]
        found = []
        for key, by_vector, by_text in zip(wanted, *sides, strict=True):
            parts = {"vector": request.alpha * by_vector, "text": (1 - request.alpha) * by_text}
            found.append((Scored(key, sum(parts.values())), parts))
        return self._ordered(view, found)[: request.k]

    def _ordered(
        self, view: View, found: list[tuple[Scored, dict[str, float]]]
    ) -> list[tuple[Scored, dict[str, float]]]:
        """Best first; ties in the order of content, then id, never of storage."""
        counts = Counter(scored.score for scored, _ in found)
        tied = [scored.key for scored, _ in found if counts[scored.score] > 1]
        nodes = zip(tied, self.engine.fetch(view, tied), strict=True)
        contents = {key: content_order(node.text) for key, node in nodes if node is not None}
        return sorted(found, key=lambda f: (-f[0].score, contents.get(f[0].key, 0), f[0].key.id, f[0].key.scope))

    def _around(self, view: View, graph: rq.GraphIn) -> Around:
        if not 0 <= graph.depth <= 32:
            raise Invalid(f"graph.depth must be 0 to 32, not {graph.depth}", field="graph.depth")
        root = find_one(self.engine, view.whole(), check_id(graph.root, field="graph.root"), field="graph.root")
        rels = None if graph.rels is None else frozenset(graph.rels)
        return Around(NodeKey(root.scope, root.id), rels, graph.direction, graph.depth)

    def _index(self, name: str, principal: Principal) -> IndexSettings:
        settings = self.engine.index(name) if principal.grants_for(name) else None
        if settings is None:
            raise NotFound(f"there is no index {name!r}", field="index")
        return settings


_SHARED = Scope()


def _node_draft(
    index: str, scope: Scope, node: rq.NodeIn, number: int, settings: IndexSettings, vector: Vector | None
) -> Draft:
    where = f"nodes[{number}]"
    draft = _raw_draft(index, scope, check_id(node.id, field=f"{where}.id"))
    if node.text is not None:
        draft.text = check_text(node.text, field=f"{where}.text", may_be_empty=True)
    draft.metadata = check_metadata(node.metadata, field=f"{where}.metadata")
    draft.tags = check_tags(node.tags, field=f"{where}.tags")
    if vector is not None:
        draft.vector = vector
    elif node.vector is not None:
        draft.vector = check_vector(node.vector, settings, field=f"{where}.vector")
    return draft


def _raw_draft(index: str, scope: Scope, node_id: str, text: str = "") -> Draft:
    return Draft(index=index, scope=scope, text=text, node_id=node_id, given_id=True, raw=True, checks_duplicates=False)


def _matrix(rows: list[list[float]], settings: IndexSettings) -> NDArray[np.float32]:
    if not rows:
        raise Invalid("vectors is empty", field="vectors")
    if len(rows) > LIMITS["batch"]:
        raise Invalid(f"more than {LIMITS['batch']:,} vectors in one call", field="vectors")
    for number, row in enumerate(rows):
        if len(row) != settings.dim:
            raise Invalid(
                f"vectors[{number}] has dimension {len(row)}; index {settings.name!r} has {settings.dim}",
                field=f"vectors[{number}]",
                details={"expected": settings.dim},
            )
    with np.errstate(over="ignore"):  # what f32 cannot hold becomes an infinity, which is refused by name
        return np.array(rows, np.float32)


def _refuse_repeats(ids: list[str]) -> None:
    seen: set[str] = set()
    for number, node_id in enumerate(ids):
        if node_id in seen:
            raise Invalid(f"id {node_id!r} stands twice in this call", field=f"nodes[{number}].id")
        seen.add(node_id)


def _check_search(request: rq.SearchRequest, query: Vector | None) -> None:
    _check_k(request.k, request.ef)
    if query is None and request.text is None:
        raise Invalid("give a vector, a text, or both", field="vector")
    if request.text is not None:
        check_text(request.text)
    elif request.match != "any":
        raise Invalid(f"match {request.match!r} needs a text", field="match")
    if not 0.0 <= request.alpha <= 1.0:
        raise Invalid(f"alpha must be 0 to 1, not {request.alpha}", field="alpha")


def _check_k(k: int, ef: int | None) -> None:
    if not 1 <= k <= LIMITS["k"]:
        raise Invalid(f"k must be 1 to {LIMITS['k']:,}, not {k}", field="k")
    if ef is not None and not 1 <= ef <= 100_000:
        raise Invalid(f"ef must be 1 to 100,000, not {ef}", field="ef")


_RANK_OFFSET = 60
"""Reciprocal rank fusion's own constant: how little the first places count for more than the next."""


def _reciprocal(ranked: Sequence[NodeKey], wanted: Sequence[NodeKey]) -> list[float]:
    ranks = {key: 1.0 / (_RANK_OFFSET + place) for place, key in enumerate(ranked, 1)}
    return [ranks.get(key, 0.0) for key in wanted]


def _stretch(values: Sequence[float | None]) -> list[float]:
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    span = high - low
    return [0.0 if value is None else 1.0 if span == 0 else (value - low) / span for value in values]


def _edge(edge: rq.EdgeIn, where: str, tz: str) -> EdgeDraft:
    for name in ("src", "rel", "dst"):
        check_id(getattr(edge, name), field=f"{where}.{name}")
    if not np.isfinite(edge.weight):
        raise Invalid(f"weight is {edge.weight}", field=f"{where}.weight")
    start = moment(edge.valid_from, field=f"{where}.valid_from", tz=tz)
    until = end(edge.valid_to, field=f"{where}.valid_to", tz=tz)
    if start is not None and until is not None and until.at <= start.at:
        raise Invalid(
            f"{where}: valid_to {edge.valid_to} is not after valid_from {edge.valid_from}", field=f"{where}.valid_to"
        )
    props = check_metadata(edge.props, field=f"{where}.props")
    return EdgeDraft(edge.src, edge.rel, edge.dst, edge.weight, props, start, until)
