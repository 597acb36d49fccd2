"""What may happen to a memory: the world changes, it was never true, it is put away and brought back."""

from dataclasses import dataclass
from typing import ClassVar

from msgspec import structs

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Edge, Kind, Moment, Node, NodeKey, Receipt, State, Status, Trust
from kektor.engine.view import ScopeRule
from kektor.errors import Conflict, Invalid
from kektor.memory.commands.base import MemoryCommand, key_of, target
from kektor.memory.commands.remember import link_evidence, place
from kektor.memory.drafts import Draft
from kektor.memory.tombstones import bury
from kektor.text import fold

__all__ = ["PROVENANCE", "Archive", "Correct", "Evolve", "OnOne", "Restore", "Retract", "head_of"]

PROVENANCE = frozenset({"derived_from", "copied_from", "supersedes", "evidence_of", "contradicts"})
"""Edges that say where something comes from; they stay with the version they speak of."""


@dataclass(kw_only=True)
class OnOne(MemoryCommand):
    """A command about one memory that the caller names."""

    node_id: str
    rule: ScopeRule = ScopeRule()
    expected_version: int | None = None

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        self.settings(tx)
        self.node = target(tx, principal, self.index, self.node_id, self.rule, expected_version=self.expected_version)
        self.scope = self.node.scope


@dataclass(kw_only=True)
class _Replace(OnOne):
    """A new version takes the place of the head of a lineage; a proposed one stands beside it until it is accepted."""

    valid_from: Moment | None = None

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        super().resolve(tx, principal)
        draft, old = self.drafts[0], self.node
        draft.scope, draft.kind, draft.session = old.scope, old.kind, old.session
        draft.tags, draft.layer, draft.pinned = old.tags, old.layer, old.pinned
        draft.metadata, draft.occurred = old.metadata, old.occurred

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        old = self.node
        _refuse_unless_versioned(old, self.operation)
        head = head_of(tx, self.index, old)
        if head.id != old.id:
            raise Conflict(
                f"{old.id!r} was superseded; the head of its lineage is {head.id!r}",
                field="id",
                details={"head": head.id},
            )
        if old.status is not Status.CURRENT or old.trust is Trust.REJECTED:
            what = "archived" if old.status is Status.ARCHIVED else "retracted"
            raise Conflict(f"{old.id!r} is {what} and cannot be replaced", field="id")
        draft = self.drafts[0]
        if draft.trust is Trust.PROPOSED:
            place(tx, draft, principal)
            return Receipt("proposed", id=draft.node_id, version=1, of=old.id, warnings=draft.warnings)
        new = self._new(draft, old, principal, tx)
        tx.put_node(self.index, new, draft.vector)
        link_evidence(tx, draft, principal)
        self._retire(tx, principal, old, new)
        _carry_edges(tx, self.index, old, new)
        edge = Edge(new.id, "supersedes", old.id, created_at=tx.time, actor=principal.actor)
        tx.put_edge(self.index, key_of(new), key_of(old), edge)
        return Receipt("superseded", id=new.id, version=new.version, of=old.id, warnings=draft.warnings)

    def _new(self, draft: Draft, old: Node, principal: Principal, tx: Transaction) -> Node:
        return draft.node(principal.actor, tx.time, lineage=old.lineage, version=old.version + 1, supersedes=old.id)

    def _retire(self, tx: Transaction, principal: Principal, old: Node, new: Node) -> None:
        raise NotImplementedError


@dataclass(kw_only=True)
class Evolve(_Replace):
    """The world changed: the old version held until the new one's beginning (now, when none is given)."""

    operation: ClassVar[str] = "evolve"

    def _new(self, draft: Draft, old: Node, principal: Principal, tx: Transaction) -> Node:
        draft.valid_from = self.valid_from or Moment(tx.time)
        end = old.state.valid_to
        draft.valid_to = end if end is not None and end.at > draft.valid_from.at else None
        return super()._new(draft, old, principal, tx)

    def _retire(self, tx: Transaction, principal: Principal, old: Node, new: Node) -> None:
        start, end = old.state.valid_from, new.state.valid_from
        if start is not None and end is not None and end.at < start.at:
            end = start  # the new version takes the whole interval
        if old.state.valid_to is not None and end is not None and old.state.valid_to.at < end.at:
            end = old.state.valid_to
        _step(tx, self, principal, old, status=Status.SUPERSEDED, valid_to=end, superseded_by=new.id)


@dataclass(kw_only=True)
class Correct(_Replace):
    """It was never true: the new version takes the whole interval and the old value cannot come back."""

    operation: ClassVar[str] = "correct"

    def _new(self, draft: Draft, old: Node, principal: Principal, tx: Transaction) -> Node:
        if fold(draft.text) == fold(old.text):
            raise Invalid("the corrected text says the same as the old one", field="text")
        draft.valid_from = self.valid_from or old.state.valid_from
        draft.valid_to = old.state.valid_to
        return super()._new(draft, old, principal, tx)

    def _retire(self, tx: Transaction, principal: Principal, old: Node, new: Node) -> None:
        _step(
            tx,
            self,
            principal,
            old,
            status=Status.SUPERSEDED,
            trust=Trust.REJECTED,
            superseded_by=new.id,
        )
        bury(tx, self, principal, old)


@dataclass(kw_only=True)
class Retract(OnOne):
    """It was never true and nothing replaces it."""

    operation: ClassVar[str] = "retract"
    withdraws: ClassVar[bool] = True

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        node = self.node
        _refuse_unless_versioned(node, self.operation)
        if node.trust is Trust.REJECTED:
            return Receipt("duplicate", id=node.id, version=node.version, of=node.id)
        if node.status is Status.SUPERSEDED:
            head = head_of(tx, self.index, node)
            raise Conflict(
                f"{node.id!r} was superseded; the head of its lineage is {head.id!r}",
                field="id",
                details={"head": head.id},
            )
        _step(tx, self, principal, node, trust=Trust.REJECTED)
        bury(tx, self, principal, node)
        return Receipt("rejected", id=node.id, version=node.version)


@dataclass(kw_only=True)
class Archive(OnOne):
    """Out of sight, not out of the database."""

    operation: ClassVar[str] = "archive"
    withdraws: ClassVar[bool] = True

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        node = self.node
        if node.status is Status.ARCHIVED:
            return Receipt("duplicate", id=node.id, version=node.version, of=node.id)
        if node.status is not Status.CURRENT:
            raise Conflict(f"{node.id!r} is {node.status}; only a current memory is archived", field="id")
        _step(tx, self, principal, node, status=Status.ARCHIVED)
        return Receipt("archived", id=node.id, version=node.version)


@dataclass(kw_only=True)
class Restore(OnOne):
    """Back from the archive."""

    operation: ClassVar[str] = "restore"

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        super().resolve(tx, principal)
        self.revived = [self.node] if self.node.status is Status.ARCHIVED else []

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        node = self.node
        if node.status is not Status.ARCHIVED:
            raise Conflict(f"{node.id!r} is {node.status}, not archived", field="id")
        _step(tx, self, principal, node, status=Status.CURRENT)
        return Receipt("restored", id=node.id, version=node.version)


def head_of(tx: Transaction, index: str, node: Node) -> Node:
    """The newest version of a lineage."""
    return tx.lineage(index, node.scope, node.lineage)[-1]


def _step(
    tx: Transaction,
    command: MemoryCommand,
    principal: Principal,
    node: Node,
    *,
    status: Status | None = None,
    trust: Trust | None = None,
    valid_to: Moment | None = None,
    superseded_by: str = "",
) -> None:
    """Begin a new row of the node's history: what is not given stays."""
    last = node.state
    state = State(
        recorded_from=tx.time,
        status=status or last.status,
        trust=trust or last.trust,
        valid_from=last.valid_from,
        valid_to=valid_to or last.valid_to,
        reason=command.reason,
        actor=principal.actor,
    )
    tx.set_state(command.index, key_of(node), state, superseded_by=superseded_by)


def _carry_edges(tx: Transaction, index: str, old: Node, new: Node) -> None:
    """The new version stands where the old one stood, with weights and properties."""
    before, after = key_of(old), key_of(new)
    for edge, src, dst in tx.edges(index, before):
        if edge.rel in PROVENANCE:
            continue
        ends: list[NodeKey] = [after if end == before else end for end in (src, dst)]
        carried = structs.replace(edge, src=ends[0].id, dst=ends[1].id, created_at=tx.time)
        tx.put_edge(index, ends[0], ends[1], carried)


def _refuse_unless_versioned(node: Node, operation: str) -> None:
    if node.raw:
        raise Conflict(
            f"{node.id!r} was written through the raw node routes, which keep no versions; "
            f"replace it there, or remember it to {operation} it",
            field="id",
        )
    if node.kind is Kind.SOURCE and operation != "retract":
        raise Conflict(f"{node.id!r} is a source: what was said does not change", field="id")
