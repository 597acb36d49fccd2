"""Forgetting: out of sight, taken back, or out of every structure, with all that it reaches."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from kektor.clock import new_id
from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Erasure, Kind, Node, Receipt, Trust
from kektor.memory.commands.base import MemoryCommand, key_of
from kektor.memory.commands.lifecycle import Archive, Correct, Retract
from kektor.memory.commands.versions import settle
from kektor.memory.drafts import Draft
from kektor.memory.forgetting.choosing import Chooser, Chosen, standing
from kektor.memory.forgetting.closure import Closure, Cut, Gone, Place, Rebuilt, reach
from kektor.memory.forgetting.cutting import keep_lineages, put_in_place, without
from kektor.memory.forgetting.receipts import issue
from kektor.memory.tombstones import guard

__all__ = ["Erase", "Withdraw"]

_OF_MANY = frozenset({Kind.SUMMARY, Kind.PROFILE, Kind.THEME, Kind.ARTIFACT, Kind.REFLECTION})
"""What is made of many things says others beside the one that is erased: none of it is guarded."""


@dataclass(kw_only=True)
class _Forget(MemoryCommand):
    """Choose, follow, compare with what was previewed, and do it; all or nothing."""

    withdraws: ClassVar[bool] = True

    chooser: Chooser
    dry_run: bool = False
    check: Callable[[Closure], None] | None = None
    """Raises when the closure is not what the caller has seen."""
    closure: Closure = field(init=False, default_factory=Closure)
    """What it reaches; nothing when the call is the repeat of one that was done."""
    kept: list[str] = field(init=False, default_factory=list)

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        self.settings(tx)
        chosen = self.chooser.choose(self.index, tx, self.context.engine, principal)
        self.kept = chosen.kept
        self.closure = self._reach(tx, chosen, principal)

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        if self.check is not None:
            self.check(self.closure)
        if self.dry_run:
            return Receipt("preview", ids=[gone.node.id for gone in self.closure.matched.values()])
        if not self.closure.gone and not self.closure.cuts:
            return Receipt("unchanged", ids=[], warnings=self._warnings())
        return self._do(tx, principal)

    def _reach(self, tx: Transaction, chosen: Chosen, principal: Principal) -> Closure:
        raise NotImplementedError

    def _do(self, tx: Transaction, principal: Principal) -> Receipt:
        raise NotImplementedError

    def _warnings(self) -> list[str]:
        told = []
        if self.kept:
            told.append(f"{len(self.kept)} shared memories are about it as well and not this caller's to change")
        if self.closure.uncut:
            told.append(f"{len(self.closure.uncut)} shared sources say it still and are not this caller's to change")
        return told


@dataclass(kw_only=True)
class Erase(_Forget):
    """Erase nodes with their lineages, their copies and what was derived from them, and cut what quotes them."""

    operation: ClassVar[str] = "erase"

    erasure: Erasure | None = field(init=False, default=None)

    def _reach(self, tx: Transaction, chosen: Chosen, principal: Principal) -> Closure:
        return reach(tx, chosen.named, chosen.cuts, principal)

    def _do(self, tx: Transaction, principal: Principal) -> Receipt:
        closure = self.closure
        for gone in closure.gone:
            if not gone.node.raw and gone.node.kind not in _OF_MANY:
                guard(tx, self, principal, gone.node, index=gone.index)
            if gone.index == self.index:
                settle(tx, self, principal, gone.node)
        for cut in closure.cuts.values():
            guard(tx, self, principal, cut.node, index=cut.index, spans=cut.spans)
            self._cut(tx, cut)
        for rebuilt in closure.rebuilt.values():
            self._rebuild(tx, rebuilt)
        for place, left in closure.resting.items():
            if place not in closure.cuts:
                tx.amend(place.index, place.key, evidence=left)
        self.context.forget_texts()
        for gone in closure.gone:
            tx.drop_node(gone.index, key_of(gone.node))
        keep_lineages(tx, list(closure.derived.values()))
        self.erasure = issue(tx, self.context, self.settings(tx), closure)
        seen = [gone.node for gone in closure.gone if may_see(principal, gone.index, gone.node)]
        return Receipt("erased", id=self.erasure.id, ids=[node.id for node in seen], warnings=self._warnings())

    def _cut(self, tx: Transaction, cut: Cut) -> None:
        put_in_place(tx, self.context, cut.index, cut.node, without(cut.node, cut.spans, cut.left))

    def _rebuild(self, tx: Transaction, rebuilt: Rebuilt) -> None:
        text = "\n".join(span.quote for span in rebuilt.evidence)
        put_in_place(tx, self.context, rebuilt.index, rebuilt.node, text, evidence=rebuilt.evidence)


@dataclass(kw_only=True)
class Withdraw(_Forget):
    """Retract or archive several; a memory of which a part is meant keeps the other part in a new version."""

    operation: ClassVar[str] = "forget"

    mode: str = "retract"

    def _reach(self, tx: Transaction, chosen: Chosen, principal: Principal) -> Closure:
        found = Closure()
        for gone in chosen.named:
            if standing(gone.node) or gone.why == "named":
                found.matched[Place(gone.index, key_of(gone.node))] = gone
        for cut in chosen.cuts:
            whole = self.mode == "archive" or cut.node.kind is not Kind.MEMORY
            if whole and standing(cut.node) and cut.node.kind is not Kind.SESSION:
                found.matched[Place(cut.index, key_of(cut.node))] = Gone(cut.index, cut.node, "it is about it, in part")
            elif not whole and standing(cut.node):
                found.cuts[Place(cut.index, key_of(cut.node))] = cut
        if self.mode == "retract":
            for gone in list(found.matched.values()):
                self._copies(tx, gone, found)
        return found

    def _copies(self, tx: Transaction, gone: Gone, found: Closure) -> None:
        for index, copy in tx.copies(gone.index, key_of(gone.node)):
            place = Place(index, key_of(copy))
            if place not in found and standing(copy):
                found.copies[place] = Gone(index, copy, "copied from it")
                self._copies(tx, found.copies[place], found)

    def _do(self, tx: Transaction, principal: Principal) -> Receipt:
        ids = []
        for gone in self.closure.gone:
            kind = Archive if self.mode == "archive" else Retract
            one = kind(context=self.context, index=gone.index, node_id=gone.node.id, reason=self.reason)
            one.node = gone.node
            one.stage(tx, principal)
            if may_see(principal, gone.index, gone.node):
                ids.append(gone.node.id)
        for cut in self.closure.cuts.values():
            self._keep_the_rest(tx, principal, cut)
            ids.append(cut.node.id)
        outcome = "archived" if self.mode == "archive" else "rejected"
        return Receipt(outcome, ids=ids, warnings=self._warnings())

    def _keep_the_rest(self, tx: Transaction, principal: Principal, cut: Cut) -> None:
        old = cut.node
        draft = Draft(index=cut.index, scope=old.scope, text=cut.left, node_id=new_id(), checks_duplicates=False)
        draft.digest = self.context.digester.digest(draft.text)
        draft.vector = self.context.embed_one(self.settings(tx), draft.text)
        one = Correct(context=self.context, index=cut.index, node_id=old.id, reason=self.reason, drafts=[draft])
        one.node = old
        draft.kind, draft.session, draft.tags, draft.layer = old.kind, old.session, old.tags, old.layer
        draft.pinned, draft.metadata, draft.occurred, draft.trust = (
            old.pinned,
            old.metadata,
            old.occurred,
            Trust.ACCEPTED,
        )
        one.stage(tx, principal)


def may_see(principal: Principal, index: str, node: Node) -> bool:
    return any(grant.admits(node.scope) for grant in principal.grants_for(index))
