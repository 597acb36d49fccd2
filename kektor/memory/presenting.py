"""Records of the engine as callers get them."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from kektor import times
from kektor.engine.freshness import freshness
from kektor.engine.port import EngineStats
from kektor.engine.records import Actor, Claim, Erasure, IndexSettings, Moment, Node, Scope, State, Status
from kektor.engine.records import Edge as EdgeRecord
from kektor.engine.records import Evidence as EvidenceRecord
from kektor.engine.records import Tombstone as TombstoneRecord
from kektor.memory.objects import (
    Access,
    ActorOut,
    ClaimOut,
    Edge,
    Evidence,
    ForgetReceipt,
    Freshness,
    Index,
    IndexStats,
    Memory,
    NodeOut,
    ScopeOut,
    Tombstone,
    Validity,
)

__all__ = [
    "actor_of",
    "edge_of",
    "erasure_of",
    "index_of",
    "memory_of",
    "node_of",
    "scope_of",
    "stats_of",
    "time_of",
    "tombstone_of",
]


def memory_of(node: Node, settings: IndexSettings, *, now: int, known_at: int | None = None) -> Memory:
    """A node as callers see it, at a moment, or as the database held it at `known_at`."""
    node = (None if known_at is None else node.known_at(known_at)) or node
    state = node.state
    return Memory(
        id=node.id,
        lineage=node.lineage,
        version=node.version,
        index=settings.name,
        kind=node.kind.value,
        text=node.text,
        metadata=node.metadata,
        tags=list(node.tags),
        layer=node.layer or None,
        pinned=node.pinned,
        scope=scope_of(node.scope),
        session=node.session or None,
        status=state.status.value,
        trust=state.trust.value,
        validity=_validity(state, now),
        occurred_at=_time(node.occurred),
        occurred_label=None if node.occurred is None else times.date_words(node.occurred.at, node.occurred.words),
        recorded_at=times.format(node.recorded_at),
        retired_at=None if node.retired_at is None else times.format(node.retired_at),
        freshness=_freshness(node, settings, now),
        claim=None if node.claim is None else _claim(node.claim),
        supersedes=node.supersedes or None,
        superseded_by=node.superseded_by or None,
        evidence=[_evidence(span) for span in node.evidence],
        actor=_actor(node.actor),
        access=Access(node.access_count, None if node.access_last is None else times.format(node.access_last)),
    )


def node_of(node: Node, settings: IndexSettings, *, now: int) -> NodeOut:
    return NodeOut(*structs.astuple(memory_of(node, settings, now=now)))


def index_of(settings: IndexSettings) -> Index:
    return Index(
        name=settings.name,
        dim=settings.dim,
        metric=settings.metric,
        precision=settings.precision,
        m=settings.m,
        ef_construction=settings.ef_construction,
        embedder=settings.embedder,
        fingerprint=settings.fingerprint or None,
        text=settings.text,
        policy=settings.policy,
        layers=settings.layers,
        created_at=times.format(settings.created_at),
    )


def stats_of(index: str, stats: EngineStats, shown: dict[str, int]) -> IndexStats:
    return IndexStats(
        index, stats.nodes, stats.vectors, stats.texts, stats.edges, stats.lsn, stats.vector, stats.text, shown
    )


def scope_of(scope: Scope) -> ScopeOut:
    return ScopeOut(scope.user or None, scope.agent or None, scope.project or None)


def tombstone_of(stone: TombstoneRecord, index: str) -> Tombstone:
    return Tombstone(
        id=stone.id,
        index=index,
        class_=stone.cls,
        scope=scope_of(stone.scope),
        node=stone.node or None,
        created_at=times.format(stone.created_at),
        actor=_actor(stone.actor),
        reason=stone.reason,
    )


def actor_of(said: Mapping[str, Any] | Sequence[Any]) -> ActorOut:
    """An actor that was kept as plain values."""
    kind, name, channel = said.values() if isinstance(said, Mapping) else said
    return ActorOut(kind, name or None, channel or None)


def time_of(instant: int) -> str:
    return times.format(instant)


def erasure_of(erasure: Erasure) -> ForgetReceipt:
    return ForgetReceipt(
        id=erasure.id,
        outcome="erased",
        digest=erasure.digest,
        signature=erasure.signature,
        counts=erasure.counts,
        requested_at=times.format(erasure.requested_at),
        bytes_gone_at=None if erasure.bytes_gone_at is None else times.format(erasure.bytes_gone_at),
    )


def edge_of(edge: EdgeRecord) -> Edge:
    return Edge(
        src=edge.src,
        rel=edge.rel,
        dst=edge.dst,
        weight=edge.weight,
        props=edge.props,
        valid_from=_time(edge.valid_from),
        valid_to=_time(edge.valid_to),
        created_at=times.format(edge.created_at),
        deleted_at=None if edge.deleted_at is None else times.format(edge.deleted_at),
        actor=_actor(edge.actor),
    )


def _freshness(node: Node, settings: IndexSettings, now: int) -> Freshness:
    found = freshness(node, settings.layers.get(node.layer), now)
    return Freshness(found.state, found.score, found.profile, times.format(found.confirmed_at), node.confirmations)


def _validity(state: State, now: int) -> Validity:
    start, end = state.valid_from, state.valid_to
    label = times.validity_label(
        None if start is None else start.at,
        None if end is None else end.at,
        now,
        start_words=None if start is None else start.words,
        end_words=None if end is None else end.words,
        superseded=state.status is Status.SUPERSEDED,
    )
    return Validity(_time(start), _time(end), label)


def _time(moment: Moment | None) -> str | None:
    return None if moment is None else times.format(moment.at)


def _claim(claim: Claim) -> ClaimOut:
    return ClaimOut(claim.subject, claim.predicate, claim.object)


def _evidence(span: EvidenceRecord) -> Evidence:
    return Evidence(span.source, span.start, span.end, span.quote, span.cls)


def _actor(actor: Actor) -> ActorOut:
    return ActorOut(actor.kind.value, actor.id or None, actor.channel or None)
