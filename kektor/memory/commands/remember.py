"""Saving: one statement becomes a memory, or is recognised as one that is there."""

from dataclasses import dataclass
from typing import ClassVar

from kektor import clock
from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Edge, Kind, Moment, Node, NodeKey, Receipt, State, Trust
from kektor.errors import Conflict
from kektor.memory.commands.base import MemoryCommand, key_of
from kektor.memory.commands.dismiss import lead_to
from kektor.memory.commands.versions import evolved, link_evidence, place, step, supersede
from kektor.memory.drafts import Draft

__all__ = ["Remember", "contest", "merge_into"]


@dataclass(kw_only=True)
class Remember(MemoryCommand):
    """Save one statement."""

    operation: ClassVar[str] = "remember"
    of_one_scope: ClassVar[bool] = True

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        draft = self.drafts[0]
        receipt = self._save(draft, tx, principal)
        kept = tx.node(self.index, NodeKey(draft.scope, receipt.id or ""))
        if kept is not None and draft.keys:
            lead_to(tx, self, principal, kept, draft.keys)
        return receipt

    def _save(self, draft: Draft, tx: Transaction, principal: Principal) -> Receipt:
        if draft.duplicate_of is not None:
            return merge_into(tx, draft, principal)
        if tx.node(self.index, draft.key) is not None:
            raise Conflict(
                f"{draft.node_id!r} is taken by another memory; leave the id out, or evolve that memory",
                field="id",
            )
        if draft.trust is Trust.PROPOSED:
            node = place(tx, draft, principal)
            rivals = [old.id for old in draft.conflicts]
            return Receipt("proposed", id=node.id, version=1, conflicts=rivals, warnings=draft.warnings)
        if draft.refines is not None:
            return self._refine(draft, draft.refines, tx, principal)
        if draft.follows is not None:
            old = draft.follows
            draft.valid_from, draft.valid_to, ended = evolved(draft.valid_from, draft.valid_to, old, tx.time)
            new = supersede(tx, self, principal, draft, old, ended=ended)
            return Receipt("superseded", id=new.id, version=new.version, of=old.id, warnings=draft.warnings)
        node = place(tx, draft, principal)
        if draft.conflicts:
            return contest(self, draft, node, tx, principal)
        return Receipt("created", id=node.id, version=1, warnings=draft.warnings)

    def _refine(self, draft: Draft, old: Node, tx: Transaction, principal: Principal) -> Receipt:
        """The same and more of it: the new text takes the old one's place, with all that the old one had."""
        draft.tags = tuple(dict.fromkeys((*old.tags, *draft.tags)))
        draft.evidence = tuple(dict.fromkeys((*old.evidence, *draft.evidence)))
        draft.metadata = {**old.metadata, **draft.metadata}
        draft.pinned = draft.pinned or old.pinned
        draft.trust = old.trust
        new = supersede(tx, self, principal, draft, old, ended=_until_now(old, tx.time), inherits=True)
        return Receipt("refined", id=new.id, version=new.version, of=old.id, warnings=draft.warnings)


def contest(command: MemoryCommand, draft: Draft, node: Node, tx: Transaction, principal: Principal) -> Receipt:
    """Two statements that cannot both hold: both stand, in doubt, until somebody decides."""
    reflection = _reflection(draft, principal, tx)
    tx.put_node(command.index, reflection)
    for old in draft.conflicts:
        if old.id in draft.doubts and old.trust is Trust.ACCEPTED:
            step(tx, command, principal, old, trust=Trust.CONTESTED)
        _join(tx, command, node.id, "contradicts", key_of(node), key_of(old), principal)
    for about in (node, *draft.conflicts):
        _join(tx, command, reflection.id, "derived_from", key_of(reflection), key_of(about), principal)
    return Receipt(
        "conflict",
        id=node.id,
        version=node.version,
        conflicts=[old.id for old in draft.conflicts],
        reflection=reflection.id,
        warnings=draft.warnings,
    )


def _until_now(old: Node, now: int) -> Moment:
    """The end of what is told again with more: the new text takes its interval over."""
    end = old.state.valid_to
    return end if end is not None and end.at < now else Moment(now)


def _reflection(draft: Draft, principal: Principal, tx: Transaction) -> Node:
    """What awaits a decision. It quotes nothing: what it is about is linked."""
    said = draft.statement
    what = "" if said is None else f" about {said.subject}" + (f" ({said.predicate})" if said.predicate else "")
    node_id = clock.new_id()
    return Node(
        id=node_id,
        kind=Kind.REFLECTION,
        text=f"{len(draft.conflicts) + 1} memories contradict each other{what}",
        scope=draft.scope,
        lineage=node_id,
        version=1,
        states=(State(tx.time, actor=principal.actor),),
        actor=principal.actor,
        layer=draft.layer,
        metadata={"review": "contested"},
    )


def _join(
    tx: Transaction, command: MemoryCommand, src: str, rel: str, start: NodeKey, end: NodeKey, principal: Principal
) -> None:
    edge = Edge(src, rel, end.id, created_at=tx.time, actor=principal.actor)
    tx.put_edge(command.index, start, end, edge)


def merge_into(tx: Transaction, draft: Draft, principal: Principal) -> Receipt:
    """The survivor of a duplicate gains its tags and sources; other metadata is named, not merged."""
    old = draft.duplicate_of
    assert old is not None
    warnings = list(draft.warnings)
    tags = tuple(dict.fromkeys((*old.tags, *draft.tags)))
    evidence = tuple(dict.fromkeys((*old.evidence, *draft.evidence)))
    if old.status == "current" and (tags, evidence) != (old.tags, old.evidence):
        tx.amend(draft.index, key_of(old), tags=tags, evidence=evidence)
        known = {span.key for span in old.evidence}
        gained = [span for span in draft.evidence if span.key not in known]
        link_evidence(tx, draft.index, gained, key_of(old), principal)
    differing = sorted(key for key, value in draft.metadata.items() if old.metadata.get(key, value) != value)
    differing += sorted(key for key in draft.metadata if key not in old.metadata)
    if differing:
        warnings.append(f"metadata not merged into {old.id}: {', '.join(dict.fromkeys(differing))}")
    return Receipt("duplicate", id=old.id, version=old.version, of=old.id, warnings=warnings)
