"""Everything a caller may read, as records in an order that can be read back: indexes, nodes, edges."""

import base64
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from kektor import clock, times
from kektor.engine.gateway import Principal
from kektor.engine.port import Vector
from kektor.engine.records import Actor, Claim, Edge, Evidence, IndexSettings, Moment, Node, NodeKey, Scope, State
from kektor.engine.view import View
from kektor.errors import NotFound
from kektor.memory.reading import only_by_id
from kektor.operations.base import BaseOperations
from kektor.version import __version__

__all__ = ["FORMAT", "ExportOperations", "ExportRecord"]

FORMAT = 1
"""Of the export; a reader refuses a newer one by name."""

_PAGE = 500


class HeaderRecord(Struct, frozen=True, tag="kektor", tag_field="type"):
    """The first record. `nodes` is how many are about to come, as far as is known when it begins."""

    format: int
    version: str
    exported_at: str
    nodes: int


class IndexRecord(Struct, frozen=True, tag="index", tag_field="type"):
    """The settings of an index; its nodes and edges follow."""

    name: str
    settings: dict[str, Any]


class MomentOut(Struct, frozen=True):
    """An instant and the words it was given in."""

    at: str
    words: str


class ActorRecord(Struct, frozen=True):
    kind: str
    id: str
    channel: str


class ScopeRecord(Struct, frozen=True):
    """Empty members are shared."""

    user: str
    agent: str
    project: str


class StateRecord(Struct, frozen=True):
    """What the database held about a node from `recorded_from` to `recorded_to`."""

    recorded_from: str
    recorded_to: str | None
    status: str
    trust: str
    valid_from: MomentOut | None
    valid_to: MomentOut | None
    reason: str
    actor: ActorRecord | None


class EvidenceRecord(Struct, frozen=True, rename={"class_": "class"}):
    source: str
    start: int
    end: int
    quote: str
    class_: str
    scope: ScopeRecord


class NodeRecord(Struct, frozen=True, tag="node", tag_field="type"):
    """One version of any node with its whole history; `vector` is base64 of little-endian float32."""

    index: str
    id: str
    kind: str
    text: str
    scope: ScopeRecord
    lineage: str
    version: int
    states: list[StateRecord]
    actor: ActorRecord
    metadata: dict[str, Any]
    tags: list[str]
    layer: str
    pinned: bool
    session: str
    occurred: MomentOut | None
    claim: tuple[str, str, str] | None
    evidence: list[EvidenceRecord]
    supersedes: str
    superseded_by: str
    confirmed_at: str | None
    confirmations: int
    access_count: int
    access_last: str | None
    raw: bool
    vector: str | None


class EndRecord(Struct, frozen=True):
    """One end of an edge; an id alone may stand in several scopes."""

    id: str
    scope: ScopeRecord


class EdgeRecord(Struct, frozen=True, tag="edge", tag_field="type"):
    """An edge with both its clocks; one that was unlinked has `deleted_at`."""

    index: str
    src: EndRecord
    rel: str
    dst: EndRecord
    weight: float
    props: dict[str, Any]
    valid_from: MomentOut | None
    valid_to: MomentOut | None
    created_at: str
    deleted_at: str | None
    actor: ActorRecord


class FooterRecord(Struct, frozen=True, tag="end", tag_field="type"):
    """The last record: a file without it was cut short."""

    indexes: int
    nodes: int
    edges: int


ExportRecord = HeaderRecord | IndexRecord | NodeRecord | EdgeRecord | FooterRecord


class ExportOperations(BaseOperations):
    """Reads through a View like everything else: what is erased or out of the caller's reach is not in it."""

    def export(self, principal: Principal, *, indexes: Sequence[str] | None = None) -> Iterator[ExportRecord]:
        """Every node in every version and state, then the edges between them, index by index.

        What is recorded after the export began is left out. `indexes` chooses among those the caller reaches (None is
        all); NotFound, raised before the first record, for one that is not among them.
        """
        reached = {s.name: s for s in self.engine.indexes() if principal.grants_for(s.name)}
        for name in indexes or ():
            if name not in reached:
                raise NotFound(f"there is no index {name!r}", field="index")
        chosen = [settings for name, settings in reached.items() if indexes is None or name in indexes]
        views = [only_by_id(self.engine, principal, settings.name, scope=None) for settings in chosen]
        header = HeaderRecord(FORMAT, __version__, times.format(clock.now()), sum(map(self.engine.count, views)))
        return chain([header], self._records(chosen, views, before=clock.now()))

    def _records(
        self, chosen: Sequence[IndexSettings], views: Sequence[View], *, before: int
    ) -> Iterator[ExportRecord]:
        nodes = edges = 0
        for settings, view in zip(chosen, views, strict=True):
            yield IndexRecord(settings.name, _settings(settings))
            for page, vectors in self._pages(view, before, with_vectors=True):
                for node, vector in zip(page, vectors, strict=True):
                    nodes += 1
                    yield _node(settings.name, node, vector)
            for page, _ in self._pages(view, before, with_vectors=False):
                for node in page:
                    for edge, end in self.engine.edges_ever(view, _key(node)):
                        if edge.created_at <= before:
                            edges += 1
                            yield _edge(settings.name, _key(node), edge, end)
        yield FooterRecord(len(chosen), nodes, edges)

    def _pages(
        self, view: View, before: int, *, with_vectors: bool
    ) -> Iterator[tuple[list[Node], list[Vector | None]]]:
        cursor: str | None = None
        while True:
            found = self.engine.page(view, limit=_PAGE, cursor=cursor)
            nodes = [node for node in found.nodes if node.recorded_at <= before]
            yield nodes, self.engine.vectors(view, [_key(node) for node in nodes]) if with_vectors else []
            cursor = found.cursor
            if cursor is None:
                return


def _key(node: Node) -> NodeKey:
    return NodeKey(node.scope, node.id)


def _settings(settings: IndexSettings) -> dict[str, Any]:
    """Without the number, which means nothing in another database."""
    plain: dict[str, Any] = msgspec.to_builtins(settings)
    del plain["name"], plain["number"]
    return {**plain, "created_at": times.format(settings.created_at)}


def _node(index: str, node: Node, vector: Vector | None) -> NodeRecord:
    return NodeRecord(
        index=index,
        id=node.id,
        kind=node.kind.value,
        text=node.text,
        scope=_scope(node.scope),
        lineage=node.lineage,
        version=node.version,
        states=[_state(state) for state in node.states],
        actor=_actor(node.actor),
        metadata=node.metadata,
        tags=list(node.tags),
        layer=node.layer,
        pinned=node.pinned,
        session=node.session,
        occurred=_moment(node.occurred),
        claim=_claim(node.claim),
        evidence=[_evidence(span) for span in node.evidence],
        supersedes=node.supersedes,
        superseded_by=node.superseded_by,
        confirmed_at=times.format(node.confirmed_at) if node.confirmed_at else None,
        confirmations=node.confirmations,
        access_count=node.access_count,
        access_last=_time(node.access_last),
        raw=node.raw,
        vector=None if vector is None else base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode(),
    )


def _edge(index: str, src: NodeKey, edge: Edge, dst: NodeKey) -> EdgeRecord:
    return EdgeRecord(
        index=index,
        src=EndRecord(src.id, _scope(src.scope)),
        rel=edge.rel,
        dst=EndRecord(dst.id, _scope(dst.scope)),
        weight=edge.weight,
        props=edge.props,
        valid_from=_moment(edge.valid_from),
        valid_to=_moment(edge.valid_to),
        created_at=times.format(edge.created_at),
        deleted_at=_time(edge.deleted_at),
        actor=_actor(edge.actor),
    )


def _state(state: State) -> StateRecord:
    return StateRecord(
        recorded_from=times.format(state.recorded_from),
        recorded_to=_time(state.recorded_to),
        status=state.status.value,
        trust=state.trust.value,
        valid_from=_moment(state.valid_from),
        valid_to=_moment(state.valid_to),
        reason=state.reason,
        actor=None if state.actor is None else _actor(state.actor),
    )


def _evidence(span: Evidence) -> EvidenceRecord:
    return EvidenceRecord(span.source, span.start, span.end, span.quote, span.cls, _scope(span.scope))


def _claim(claim: Claim | None) -> tuple[str, str, str] | None:
    return None if claim is None else (claim.subject, claim.predicate, claim.object)


def _moment(moment: Moment | None) -> MomentOut | None:
    return None if moment is None else MomentOut(times.format(moment.at), moment.words)


def _time(instant: int | None) -> str | None:
    return None if instant is None else times.format(instant)


def _scope(scope: Scope) -> ScopeRecord:
    return ScopeRecord(scope.user, scope.agent, scope.project)


def _actor(actor: Actor) -> ActorRecord:
    return ActorRecord(actor.kind.value, actor.id, actor.channel)
