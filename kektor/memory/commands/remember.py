"""Saving: one statement becomes a memory, or is recognised as one that is there."""

from dataclasses import dataclass
from typing import ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Edge, NodeKey, Receipt
from kektor.errors import Conflict
from kektor.memory.commands.base import MemoryCommand
from kektor.memory.drafts import Draft

__all__ = ["Remember", "merge_into", "place"]


@dataclass(kw_only=True)
class Remember(MemoryCommand):
    """Save one statement."""

    operation: ClassVar[str] = "remember"

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        draft = self.drafts[0]
        if draft.duplicate_of is not None:
            return merge_into(tx, draft)
        if tx.node(self.index, draft.key) is not None:
            raise Conflict(
                f"{draft.node_id!r} is taken by another memory; leave the id out, or evolve that memory",
                field="id",
            )
        place(tx, draft, principal)
        outcome = "proposed" if draft.trust == "proposed" else "created"
        return Receipt(outcome, id=draft.node_id, version=1, warnings=draft.warnings)


def place(tx: Transaction, draft: Draft, principal: Principal) -> None:
    """Store a draft that is new, and link the sources it rests on."""
    tx.put_node(draft.index, draft.node(principal.actor, tx.time), draft.vector)
    link_evidence(tx, draft, principal)


def link_evidence(tx: Transaction, draft: Draft, principal: Principal) -> None:
    for source in dict.fromkeys(span.source for span in draft.evidence):
        for node in tx.nodes_of_id(draft.index, source):
            edge = Edge(source, "evidence_of", draft.node_id, created_at=tx.time, actor=principal.actor)
            tx.put_edge(draft.index, NodeKey(node.scope, node.id), draft.key, edge)


def merge_into(tx: Transaction, draft: Draft) -> Receipt:
    """The survivor of a duplicate gains its tags and sources; other metadata is named, not merged."""
    old = draft.duplicate_of
    assert old is not None
    warnings = list(draft.warnings)
    tags = tuple(dict.fromkeys((*old.tags, *draft.tags)))
    evidence = tuple(dict.fromkeys((*old.evidence, *draft.evidence)))
    if old.status == "current" and (tags, evidence) != (old.tags, old.evidence):
        tx.amend(draft.index, NodeKey(old.scope, old.id), tags=tags, evidence=evidence)
    differing = sorted(key for key, value in draft.metadata.items() if old.metadata.get(key, value) != value)
    differing += sorted(key for key in draft.metadata if key not in old.metadata)
    if differing:
        warnings.append(f"metadata not merged into {old.id}: {', '.join(dict.fromkeys(differing))}")
    return Receipt("duplicate", id=old.id, version=old.version, of=old.id, warnings=warnings)
