"""What belongs to today and makes no new version: tags, metadata, pins, confirmations, use."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import ActorKind, Edge, Kind, Node, Receipt
from kektor.engine.view import ScopeRule
from kektor.errors import Conflict, Invalid
from kektor.memory.commands.base import MemoryCommand, key_of, target
from kektor.memory.commands.lifecycle import OnOne
from kektor.memory.grounds import class_of, echoes
from kektor.memory.policies.claims import denies
from kektor.memory.sources import source_for
from kektor.text import Span

__all__ = ["Confirm", "Reinforce", "Update"]


@dataclass(kw_only=True)
class Update(OnOne):
    """Replace tags, metadata, layer or the pin; what is None stays."""

    operation: ClassVar[str] = "update"

    tags: tuple[str, ...] | None = None
    metadata: dict[str, Any] | None = None
    layer: str | None = None
    pinned: bool | None = None

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        node = self.node
        if node.kind is Kind.SOURCE and (self.metadata is not None):
            raise Conflict(f"{node.id!r} is a source: what is known of it does not change", field="metadata")
        asked = {"tags": self.tags, "metadata": self.metadata, "layer": self.layer, "pinned": self.pinned}
        changes = {k: v for k, v in asked.items() if v is not None and v != getattr(node, k)}
        if changes:
            tx.amend(self.index, key_of(node), **changes)
        return Receipt("updated", id=node.id, version=node.version)


@dataclass(kw_only=True)
class Confirm(OnOne):
    """It was seen to hold again; with a source as evidence, that source is linked."""

    operation: ClassVar[str] = "confirm"

    evidence: str | None = None

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        node = self.node
        if node.status != "current" or node.trust == "rejected":
            raise Conflict(f"{node.id!r} is no longer current: there is nothing to confirm", field="id")
        if self.evidence is not None:
            self._link(tx, principal, node, self.evidence)
        elif not _is_trusted(principal):
            raise Invalid(
                "an agent confirms with evidence: the id of a source that somebody else said since", field="evidence"
            )
        tx.amend(self.index, key_of(node), confirmed_at=tx.time, confirmations=node.confirmations + 1)
        return Receipt("confirmed", id=node.id, version=node.version)

    def _link(self, tx: Transaction, principal: Principal, node: Node, source_id: str) -> None:
        source = source_for(tx, principal, self.index, source_id, node.scope)
        if source is None:
            raise Invalid(f"there is no source {source_id!r}", field="evidence")
        if source.recorded_at <= max(node.confirmed_at, node.recorded_at):
            raise Invalid(f"source {source_id!r} is not newer than the last confirmation", field="evidence")
        whole = Span(0, len(source.text))
        cls = class_of(self.context, self.index, source, whole)
        if cls == "self" and not _is_trusted(principal):
            raise Invalid(f"source {source_id!r} is an agent's own word, which confirms nothing", field="evidence")
        if cls != "user" and echoes(tx, self.context, self.index, source, whole, cls) is not None:
            raise Invalid(f"source {source_id!r} only repeats what memory gave out", field="evidence")
        if denies(source.text, node):
            raise Invalid(f"source {source_id!r} says otherwise: correct the memory instead", field="evidence")
        edge = Edge(source.id, "evidence_of", node.id, created_at=tx.time, actor=principal.actor)
        tx.put_edge(self.index, key_of(source), key_of(node), edge)


def _is_trusted(principal: Principal) -> bool:
    """Whether its word is enough without a source."""
    return principal.actor.kind in (ActorKind.HUMAN, ActorKind.SERVICE)


@dataclass(kw_only=True)
class Reinforce(MemoryCommand):
    """Some memories were of use; a separate call, since reading counts for nothing."""

    operation: ClassVar[str] = "reinforce"

    ids: list[str] = field(default_factory=list)
    rule: ScopeRule = ScopeRule()

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        self.settings(tx)
        for node_id in dict.fromkeys(self.ids):
            node = target(tx, principal, self.index, node_id, self.rule)
            tx.amend(self.index, key_of(node), access_count=node.access_count + 1, access_last=tx.time)
        return Receipt("reinforced", ids=list(dict.fromkeys(self.ids)))
