"""Erasing: a node leaves every structure, and so does what was made from it alone."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Node, NodeKey, Receipt
from kektor.engine.view import ScopeRule
from kektor.memory.commands.base import MemoryCommand, key_of, target
from kektor.memory.commands.versions import settle
from kektor.memory.tombstones import guard

__all__ = ["Erase", "Reached", "reach"]


class Reached(NamedTuple):
    """What erasing some nodes takes along."""

    matched: list[Node]
    derived: list[Node]
    copies: list[Node]


@dataclass(kw_only=True)
class Erase(MemoryCommand):
    """Erase some ids with their lineages, their copies and what was derived from them; all or nothing."""

    operation: ClassVar[str] = "erase"
    withdraws: ClassVar[bool] = True

    ids: list[str] = field(default_factory=list)
    rule: ScopeRule = ScopeRule()
    dry_run: bool = False
    reached: Reached = field(init=False, default=Reached([], [], []))
    """What it takes; nothing when the call is the repeat of one that was done."""

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        self.settings(tx)
        targets = [target(tx, principal, self.index, node_id, self.rule) for node_id in dict.fromkeys(self.ids)]
        self.reached = reach(tx, self.index, targets)
        if self.dry_run:
            return Receipt("preview", ids=[node.id for node in self.reached.matched])
        doomed = [*self.reached.matched, *self.reached.derived, *self.reached.copies]
        for node in doomed:
            if not node.raw:
                guard(tx, self, principal, node)
            settle(tx, self, principal, node)
        _withdraw_quotes(tx, self.index, doomed)
        for node in doomed:
            tx.drop_node(self.index, key_of(node))
        return Receipt("erased", ids=[node.id for node in doomed])


def reach(tx: Transaction, index: str, targets: list[Node]) -> Reached:
    """The whole lineages of the targets, and along `copied_from`, `derived_from` and evidence what rests on them.

    A memory with other evidence left keeps standing on it; one whose every source goes is derived and goes too.
    """
    matched = _lineages(tx, index, targets)
    derived: dict[NodeKey, Node] = {}
    copies: dict[NodeKey, Node] = {}
    queue = list(matched.values())
    while queue:
        node = queue.pop()
        for edge, src, dst in tx.edges(index, key_of(node)):
            own = key_of(node)
            if edge.rel in ("copied_from", "derived_from") and dst == own:
                other, found = src, copies if edge.rel == "copied_from" else derived
            elif edge.rel == "evidence_of" and src == own:
                other, found = dst, derived
            else:
                continue
            if other in matched or other in derived or other in copies:
                continue
            rests = tx.node(index, other)
            if rests is None or (found is derived and _stands(rests, edge.rel, matched, derived)):
                continue
            for key, version in _lineages(tx, index, [rests]).items():
                found[key] = version
                queue.append(version)
    return Reached(list(matched.values()), list(derived.values()), list(copies.values()))


def _lineages(tx: Transaction, index: str, nodes: list[Node]) -> dict[NodeKey, Node]:
    return {
        key_of(version): version
        for node in nodes
        for version in (tx.lineage(index, node.scope, node.lineage) or [node])
    }


def _stands(node: Node, rel: str, *gone: dict[NodeKey, Node]) -> bool:
    """Whether a node still rests on a source that stays, or never rested on one: then it was only borne out."""
    if not node.evidence:
        return rel == "evidence_of"
    lost = {key.id for table in gone for key in table}
    return any(span.source not in lost for span in node.evidence)


def _withdraw_quotes(tx: Transaction, index: str, doomed: list[Node]) -> None:
    """What stays on other evidence no longer quotes what goes."""
    going = {key_of(node) for node in doomed}
    for source in doomed:
        for edge, _, dst in tx.edges(index, key_of(source), "out"):
            rests = tx.node(index, dst) if edge.rel == "evidence_of" and dst not in going else None
            if rests is not None:
                kept = tuple(span for span in rests.evidence if span.source != source.id)
                tx.amend(index, dst, evidence=kept)
