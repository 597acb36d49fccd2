"""What may happen to a memory: the world changes, it was never true, it is put away and brought back."""

from dataclasses import dataclass
from typing import ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Edge, Kind, Moment, Node, Receipt, Status, Trust
from kektor.engine.view import ScopeRule
from kektor.errors import Conflict, Invalid
from kektor.memory.commands.base import MemoryCommand, key_of, target
from kektor.memory.commands.versions import (
    contradicting,
    evolved,
    head_of,
    place,
    settle,
    stands,
    step,
    supersede,
)
from kektor.memory.drafts import Draft
from kektor.memory.revision import check_revision
from kektor.memory.tombstones import bury
from kektor.text import fold, plain

__all__ = ["Archive", "Correct", "Evolve", "OnOne", "Restore", "Retract"]


@dataclass(kw_only=True)
class OnOne(MemoryCommand):
    """A command about one memory that the caller names."""

    of_one_scope: ClassVar[bool] = True

    node_id: str
    rule: ScopeRule = ScopeRule()
    expected_version: int | None = None
    if_match: str | None = None
    """The revision that the caller has seen."""

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        settings = self.settings(tx)
        self.node = target(tx, principal, self.index, self.node_id, self.rule, expected_version=self.expected_version)
        check_revision(self.if_match, self.node, settings)
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
        for kept in self.drafts[1:]:
            kept.scope, kept.kind, kept.session = old.scope, old.kind, old.session
            kept.tags, kept.layer, kept.pinned = old.tags, old.layer, old.pinned
            kept.metadata, kept.occurred, kept.evidence = old.metadata, old.occurred, old.evidence
            kept.valid_from, kept.valid_to = old.state.valid_from, old.state.valid_to

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
        draft.valid_from = self.valid_from
        if draft.trust is Trust.PROPOSED:
            place(tx, draft, principal)
            edge = Edge(draft.node_id, "would_replace", old.id, props={"how": self.operation}, created_at=tx.time,
                        actor=principal.actor)  # fmt: skip
            tx.put_edge(self.index, draft.key, key_of(old), edge)
            kept = self._keep(old, tx, principal)
            return Receipt("proposed", id=draft.node_id, version=1, of=old.id, warnings=draft.warnings, remainder=kept)
        new = self._replace(draft, old, principal, tx)
        kept = self._keep(old, tx, principal)
        return Receipt("superseded", id=new.id, version=new.version, of=old.id, warnings=draft.warnings, remainder=kept)

    def _keep(self, old: Node, tx: Transaction, principal: Principal) -> str | None:
        """Store what a partial replacement leaves as it was; its id."""
        for draft in self.drafts[1:]:
            kept = place(tx, draft, principal)
            edge = Edge(kept.id, "copied_from", old.id, created_at=tx.time, actor=principal.actor)
            tx.put_edge(self.index, key_of(kept), key_of(old), edge)
            return kept.id
        return None

    def _replace(self, draft: Draft, old: Node, principal: Principal, tx: Transaction) -> Node:
        raise NotImplementedError


@dataclass(kw_only=True)
class Evolve(_Replace):
    """The world changed: the old version held until the new one's beginning (now, when none is given)."""

    operation: ClassVar[str] = "evolve"

    def _replace(self, draft: Draft, old: Node, principal: Principal, tx: Transaction) -> Node:
        draft.valid_from, draft.valid_to, ended = evolved(draft.valid_from, draft.valid_to, old, tx.time)
        return supersede(tx, self, principal, draft, old, ended=ended)


@dataclass(kw_only=True)
class Correct(_Replace):
    """It was never true: the new version takes the whole interval and the old value cannot come back."""

    operation: ClassVar[str] = "correct"

    def _replace(self, draft: Draft, old: Node, principal: Principal, tx: Transaction) -> Node:
        if fold(draft.text) == fold(old.text):
            raise Invalid("the corrected text says the same as the old one", field="text")
        draft.valid_from = draft.valid_from or old.state.valid_from
        draft.valid_to = old.state.valid_to
        if draft.valid_from is not None and draft.valid_to is not None and draft.valid_to.at <= draft.valid_from.at:
            raise Invalid("valid_from lies at or after the end of what is corrected", field="valid_from")
        new = supersede(tx, self, principal, draft, old, trust=Trust.REJECTED)
        bury(tx, self, principal, old)
        return new


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
        step(tx, self, principal, node, trust=Trust.REJECTED)
        settle(tx, self, principal, node)
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
        step(tx, self, principal, node, status=Status.ARCHIVED)
        settle(tx, self, principal, node)
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
        self._refuse_twin(tx)
        doubted = node.trust in (Trust.ACCEPTED, Trust.CONTESTED) and contradicting(tx, self.index, node)
        for rival in doubted or ():
            if rival.trust is Trust.ACCEPTED:
                step(tx, self, principal, rival, trust=Trust.CONTESTED)
        step(tx, self, principal, node, status=Status.CURRENT, trust=Trust.CONTESTED if doubted else None)
        return Receipt("restored", id=node.id, version=node.version)

    def _refuse_twin(self, tx: Transaction) -> None:
        """What was said again meanwhile stands in its place: one statement is one memory."""
        node = self.node
        for other in tx.nodes_of_digest(self.index, node.scope, node.digest) if node.digest else ():
            same = (other.kind, other.claim, other.occurred) == (node.kind, node.claim, node.occurred)
            if (
                other.id != node.id
                and same
                and not other.raw
                and stands(other)
                and plain(other.text) == plain(node.text)
            ):
                raise Conflict(
                    f"{other.id!r} says the same and is current: archive that one first, or leave this one archived",
                    field="id",
                    details={"twin": other.id},
                )


def _refuse_unless_versioned(node: Node, operation: str) -> None:
    if node.raw:
        raise Conflict(
            f"{node.id!r} was written through the raw node routes, which keep no versions; "
            f"replace it there, or remember it to {operation} it",
            field="id",
        )
    if node.kind is Kind.SOURCE and operation != "retract":
        raise Conflict(f"{node.id!r} is a source: what was said does not change", field="id")
