"""Deciding what waits for a decision: one transaction for what it changes, and one to take it back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from msgspec import convert, structs, to_builtins

from kektor import clock, times
from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Edge, Evidence, Kind, Moment, Node, NodeKey, Receipt, State, Status, Trust
from kektor.engine.view import ScopeRule
from kektor.errors import Conflict, Forbidden, Invalid
from kektor.memory.commands.base import MemoryCommand, key_of, target
from kektor.memory.commands.versions import (
    adopt,
    close_reflections,
    contradicting,
    evolved,
    head_of,
    step,
    supersede,
)
from kektor.memory.keys import ROUTES
from kektor.memory.policies.authority import decides
from kektor.memory.tombstones import bury, claim_digest

__all__ = ["Decide", "Decision", "about_of", "open_reflection"]

Decision = Literal["accept", "reject", "edit", "merge", "ask", "undo"]


@dataclass(kw_only=True)
class Decide(MemoryCommand):
    """One decision about a review: a reflection's id, or that of the memory that waits."""

    operation: ClassVar[str] = "review"

    review: str
    decision: Decision
    note: str = ""
    how: Literal["changed", "wrong"] = "changed"
    keep: Literal["newer", "both"] = "newer"
    into: str | None = None
    propose: bool = False
    """Whether somebody who may not decide leaves the decision as a suggestion."""
    rule: ScopeRule = ScopeRule()
    item: Node = field(init=False)
    about: list[Node] = field(init=False)
    kept: dict[str, Any] = field(init=False, default_factory=dict)
    """What undoing needs beside the rows of the histories."""

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        self.settings(tx)
        self.item = target(tx, principal, self.index, self.review, self.rule)
        self.scope = self.item.scope
        if self.decision == "undo":
            self.item = _decided(tx, self.index, self.item)
            return
        if self.item.kind is not Kind.REFLECTION and (found := open_reflection(tx, self.index, self.item)) is not None:
            self.item = found
        self.about = about_of(tx, self.index, self.item)
        subject = self.about[0]
        for draft in self.drafts:
            draft.scope, draft.tags, draft.layer = subject.scope, subject.tags, subject.layer
            draft.metadata, draft.pinned, draft.evidence = subject.metadata, subject.pinned, subject.evidence
            draft.session = subject.session
        if self.decision == "accept" and subject.trust is not Trust.REJECTED:
            self.revived = [subject]

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        if not decides(principal):
            return self._suggest(tx, principal)
        if self.decision == "undo":
            return self._undo(tx, principal)
        self._check_waiting()
        if self.decision == "ask":
            return self._ask(tx, principal)
        subject = self.about[0]
        proposed = subject.trust is Trust.PROPOSED
        decide = (_PROPOSED if proposed or len(self.about) < 2 else _CONTESTED)[self.decision]
        receipt = decide(self, subject, tx, principal)
        record = self._record(subject, tx, principal)
        return structs.replace(receipt, reflection=record)

    # What was proposed, or stands in doubt alone

    def _accept(self, subject: Node, tx: Transaction, principal: Principal) -> Receipt:
        old, how = replaced_by(tx, self.index, subject)
        for edge, src, _ in tx.edges(self.index, key_of(subject), "in"):
            key = tx.node(self.index, src) if edge.rel == ROUTES else None
            if key is not None and key.trust is Trust.PROPOSED:
                step(tx, self, principal, key, trust=Trust.ACCEPTED)
        if old is None:
            step(tx, self, principal, subject, trust=Trust.ACCEPTED)
            return Receipt("accepted", id=subject.id, version=subject.version)
        return self._replace(subject, old, how, tx, principal)

    def _reject(self, subject: Node, tx: Transaction, principal: Principal) -> Receipt:
        self._retire(subject, tx, principal)
        return Receipt("rejected", id=subject.id, version=subject.version)

    def _edit(self, subject: Node, tx: Transaction, principal: Principal) -> Receipt:
        """Another text takes its place, and the place of what it would have replaced."""
        draft = self._text()
        old, how = replaced_by(tx, self.index, subject)
        draft.trust, draft.valid_from, draft.valid_to = Trust.ACCEPTED, subject.state.valid_from, subject.state.valid_to
        if old is None:
            new = supersede(tx, self, principal, draft, subject, ended=Moment(tx.time))
        else:
            new = self._supersede(old, how, tx, principal)
            step(tx, self, principal, subject, status=Status.SUPERSEDED, superseded_by=new.id)
        self.kept["made"] = [new.id]
        return Receipt("superseded", id=new.id, version=new.version, of=subject.id, warnings=draft.warnings)

    def _merge(self, subject: Node, tx: Transaction, principal: Principal) -> Receipt:
        """It says what another memory says: that one gains its tags and sources."""
        if self.into is None:
            raise Invalid("merge needs into: the memory that says the same", field="into")
        into = target(tx, principal, self.index, self.into, self.rule)
        if into.scope != subject.scope or into.id == subject.id or into.status is not Status.CURRENT or into.raw:
            raise Conflict(f"{self.into!r} is no other current memory of the same scope", field="into")
        self.kept["amended"] = [[into.id, list(into.tags), to_builtins(into.evidence)]]
        self.kept["also"] = [into.id]
        tx.amend(
            self.index,
            key_of(into),
            tags=tuple(dict.fromkeys((*into.tags, *subject.tags))),
            evidence=tuple(dict.fromkeys((*into.evidence, *subject.evidence))),
        )
        step(tx, self, principal, subject, status=Status.SUPERSEDED, superseded_by=into.id)
        return Receipt("merged", id=into.id, version=into.version, of=subject.id)

    # What contradicts something

    def _accept_newer(self, subject: Node, tx: Transaction, principal: Principal) -> Receipt:
        rivals = self._rivals()
        if self.keep == "both":
            return self._accept_both(subject, rivals, tx, principal)
        receipt = self._replace(subject, rivals[0], "correct" if self.how == "wrong" else "evolve", tx, principal)
        for other in rivals[1:]:
            self._give_way(other, subject.id, tx, principal)
        return receipt

    def _accept_both(self, subject: Node, rivals: list[Node], tx: Transaction, principal: Principal) -> Receipt:
        """They do not contradict each other after all."""
        ended = []
        for one, other in ((subject, rival) for rival in rivals):
            for src, dst in ((one, other), (other, one)):
                if tx.end_edge(self.index, key_of(src), "contradicts", key_of(dst)) is not None:
                    ended.append([src.id, dst.id])
        self.kept["ended"] = ended
        for node in (subject, *rivals):
            if node.trust is Trust.CONTESTED and not contradicting(tx, self.index, node):
                step(tx, self, principal, node, trust=Trust.ACCEPTED)
        return Receipt("accepted", ids=[subject.id, *(rival.id for rival in rivals)])

    def _write_both(self, subject: Node, tx: Transaction, principal: Principal) -> Receipt:
        """One text takes the place of all of them."""
        draft = self._text()
        rivals = self._rivals()
        draft.trust, draft.valid_from, draft.valid_to = Trust.ACCEPTED, subject.state.valid_from, subject.state.valid_to
        new = self._supersede(rivals[0], "correct" if self.how == "wrong" else "evolve", tx, principal)
        for other in (*rivals[1:], subject):
            self._give_way(other, new.id, tx, principal)
        self.kept["made"] = [new.id]
        return Receipt("merged", id=new.id, version=new.version, of=subject.id, warnings=draft.warnings)

    # Parts of these

    def _replace(self, subject: Node, old: Node, how: str, tx: Transaction, principal: Principal) -> Receipt:
        """The waiting memory becomes the next version of what it replaces."""
        old = self._head(old, tx)
        self.kept["adopted"] = [[subject.id, subject.lineage, subject.version, subject.supersedes]]
        if how == "correct":
            begin, end, ended = subject.state.valid_from or old.state.valid_from, old.state.valid_to, None
        else:
            begin, end, ended = evolved(subject.state.valid_from, subject.state.valid_to, old, tx.time)
        trust = Trust.REJECTED if how == "correct" else None
        new = adopt(tx, self, principal, subject, old, begin=begin, end=end, ended=ended, trust=trust)
        if how == "correct":
            bury(tx, self, principal, old)
        return Receipt("superseded", id=new.id, version=new.version, of=old.id)

    def _supersede(self, old: Node, how: str, tx: Transaction, principal: Principal) -> Node:
        draft, old = self.drafts[0], self._head(old, tx)
        if how == "correct":
            draft.valid_from, draft.valid_to = draft.valid_from or old.state.valid_from, old.state.valid_to
            new = supersede(tx, self, principal, draft, old, trust=Trust.REJECTED)
            bury(tx, self, principal, old)
            return new
        draft.valid_from, draft.valid_to, ended = evolved(draft.valid_from, draft.valid_to, old, tx.time)
        return supersede(tx, self, principal, draft, old, ended=ended)

    def _head(self, old: Node, tx: Transaction) -> Node:
        head = head_of(tx, self.index, old)
        if head.id != old.id or old.status is not Status.CURRENT or old.trust is Trust.REJECTED:
            raise Conflict(
                f"{old.id!r}, which it would replace, has changed since; the head of its lineage is {head.id!r}",
                field="id",
                details={"head": head.id},
            )
        return old

    def _give_way(self, node: Node, to: str, tx: Transaction, principal: Principal) -> None:
        trust = Trust.REJECTED if self.how == "wrong" else None
        step(tx, self, principal, node, status=Status.SUPERSEDED, trust=trust, valid_to=Moment(tx.time),
             superseded_by=to)  # fmt: skip
        if self.how == "wrong":
            bury(tx, self, principal, node)

    def _retire(self, node: Node, tx: Transaction, principal: Principal) -> None:
        step(tx, self, principal, node, trust=Trust.REJECTED)
        for rival in contradicting(tx, self.index, node):
            if rival.trust is Trust.CONTESTED and not contradicting(tx, self.index, rival):
                step(tx, self, principal, rival, trust=Trust.ACCEPTED)
        bury(tx, self, principal, node)

    def _rivals(self) -> list[Node]:
        return self.about[1:]

    def _text(self) -> Any:
        if not self.drafts:
            raise Invalid(f"{self.decision} needs text: what it should say", field="text")
        return self.drafts[0]

    def _check_waiting(self) -> None:
        open_ = self.item.status is Status.CURRENT
        subject = self.about[0]
        waits = subject.status is Status.CURRENT and subject.trust in (Trust.PROPOSED, Trust.CONTESTED)
        if self.item.kind is Kind.REFLECTION and len(self.about) > 1:
            waits = len(self.about) > 1
        if not open_ or not waits:
            raise Conflict(f"{self.review!r} waits for no decision", field="id")

    # What is kept of a decision

    def _record(self, subject: Node, tx: Transaction, principal: Principal) -> str:
        decided = {
            "decision": self.decision,
            "note": self.note,
            "at": tx.time,
            "by": to_builtins(principal.actor),
            **self.kept,
        }
        if self.item.kind is Kind.REFLECTION:
            close_reflections(tx, self, principal, subject, besides=self.item.id)
            now = tx.node(self.index, key_of(self.item))
            if now is not None and now.status is Status.CURRENT:
                step(tx, self, principal, now, status=Status.ARCHIVED)
            decided["touched"] = self._touched()
            tx.amend(self.index, key_of(self.item), metadata={**self.item.metadata, "decided": decided})
            return self.item.id
        close_reflections(tx, self, principal, subject)
        decided["touched"] = self._touched()
        return _put_reflection(
            tx, self, principal, [subject, *self._also(tx)], waiting_as(subject), {"decided": decided}, Status.ARCHIVED
        )

    def _touched(self) -> list[str]:
        made = self.kept.get("made", [])
        return [node_id for node_id in dict.fromkeys(self.touched) if node_id not in made]

    def _also(self, tx: Transaction) -> list[Node]:
        found = (tx.node(self.index, NodeKey(self.scope, node_id)) for node_id in self.kept.get("also", ()))
        return [node for node in found if node is not None]

    def _ask(self, tx: Transaction, principal: Principal) -> Receipt:
        if not self.note.strip():
            raise Invalid("ask needs note: the question", field="note")
        if self.item.kind is Kind.REFLECTION:
            tx.amend(self.index, key_of(self.item), metadata={**self.item.metadata, "asked": self.note})
            return Receipt("asked", id=self.about[0].id, reflection=self.item.id)
        made = _put_reflection(tx, self, principal, self.about, "clarification", {"asked": self.note}, Status.CURRENT)
        return Receipt("asked", id=self.about[0].id, reflection=made)

    def _suggest(self, tx: Transaction, principal: Principal) -> Receipt:
        if not self.propose or self.decision == "undo":
            raise Forbidden(
                f"{self.decision} is for a person, or a service that reviews: agents propose (propose=true)",
                details={"review": self.review},
            )
        self._check_waiting()
        said = {"decision": self.decision, "note": self.note, "by": to_builtins(principal.actor)}
        if self.drafts:
            said["text"] = self.drafts[0].text
        if self.item.kind is Kind.REFLECTION:
            made = self.item.id
            tx.amend(self.index, key_of(self.item), metadata={**self.item.metadata, "suggested": said})
        else:
            made = _put_reflection(
                tx, self, principal, self.about, waiting_as(self.item), {"suggested": said}, Status.CURRENT
            )
        return Receipt("proposed", id=self.about[0].id, reflection=made)

    def _undo(self, tx: Transaction, principal: Principal) -> Receipt:
        """Every row that the decision wrote is followed by the one before it, as long as nothing came after."""
        decided = self.item.metadata["decided"]
        touched = [self._node(tx, node_id) for node_id in decided["touched"]]
        made = [self._node(tx, node_id) for node_id in decided.get("made", ())]
        for node in (*touched, *made):
            if node.state.recorded_from != decided["at"]:
                raise Conflict(f"{node.id!r} has changed since it was decided", field="id", details={"id": node.id})
        for node in (*touched, *made):
            self._take_back(node, decided["at"], tx)
        for node_id, lineage, version, supersedes in decided.get("adopted", ()):
            key = NodeKey(self.scope, node_id)
            tx.amend(self.index, key, lineage=lineage, version=version, supersedes=supersedes)
        for src, dst in decided.get("ended", ()):
            edge = Edge(src, "contradicts", dst, created_at=tx.time, actor=principal.actor)
            tx.put_edge(self.index, NodeKey(self.scope, src), NodeKey(self.scope, dst), edge)
        for node_id, tags, evidence in decided.get("amended", ()):
            spans = tuple(convert(span, Evidence) for span in evidence)
            tx.amend(self.index, NodeKey(self.scope, node_id), tags=tuple(tags), evidence=spans)
        for node in made:
            tx.amend(self.index, key_of(node), lineage=node.id, version=1, supersedes="")
            self._row(node, State(0, Status.ARCHIVED, node.trust), principal, tx)
        for node in touched:
            before = next(state for state in reversed(node.states) if state.recorded_from < decided["at"])
            self._row(node, before, principal, tx)
            if before.status is Status.CURRENT:
                tx.amend(self.index, key_of(node), superseded_by="")
        rest = {name: value for name, value in self.item.metadata.items() if name != "decided"}
        tx.amend(self.index, key_of(self.item), metadata={**rest, "undone": times.format(tx.time)})
        return Receipt("undone", ids=[node.id for node in (*touched, *made)], reflection=self.item.id)

    def _node(self, tx: Transaction, node_id: str) -> Node:
        node = tx.node(self.index, NodeKey(self.scope, node_id))
        if node is None:
            raise Conflict(f"{node_id!r} is no longer there: the decision cannot be taken back", field="id")
        return node

    def _take_back(self, node: Node, at: int, tx: Transaction) -> None:
        """The links and tombstones that came with a decision."""
        digester = self.context.digester
        for edge, src, dst in tx.edges(self.index, key_of(node)):
            if edge.created_at == at and edge.rel != "derived_from":
                tx.end_edge(self.index, src, edge.rel, dst)
        digests = digester.digests(node.text) if node.text else ()
        if node.claim is not None:
            digests += (claim_digest(digester, node.claim),)
        for digest in digests:
            stone = tx.tombstone(self.index, node.scope, digest)
            if stone is not None and stone.created_at == at:
                tx.lift_tombstone(stone.id)

    def _row(self, node: Node, state: State, principal: Principal, tx: Transaction) -> None:
        row = structs.replace(
            state, recorded_from=tx.time, recorded_to=None, reason=self.reason or self.note, actor=principal.actor
        )
        tx.set_state(self.index, key_of(node), row)


_Way = Callable[[Decide, Node, Transaction, Principal], Receipt]
_PROPOSED: dict[str, _Way] = {
    "accept": Decide._accept,
    "reject": Decide._reject,
    "edit": Decide._edit,
    "merge": Decide._merge,
}
_CONTESTED: dict[str, _Way] = {
    "accept": Decide._accept_newer,
    "reject": Decide._reject,
    "edit": Decide._write_both,
    "merge": Decide._write_both,
}


def replaced_by(tx: Transaction, index: str, proposed: Node) -> tuple[Node | None, str]:
    """What a proposed memory would replace, and how."""
    for edge, _, dst in tx.edges(index, key_of(proposed), "out"):
        if edge.rel == "would_replace":
            return tx.node(index, dst), str(edge.props["how"])
    return None, ""


def about_of(tx: Transaction, index: str, item: Node) -> list[Node]:
    """What a reflection is about and still stands, the one told last first; a memory is about itself."""
    if item.kind is not Kind.REFLECTION:
        return [item]
    ends = [(edge, dst) for edge, _, dst in tx.edges(index, key_of(item), "out") if edge.rel == "derived_from"]
    nodes = (tx.node(index, dst) for _, dst in ends)
    found = [node for node in nodes if node is not None and node.status is Status.CURRENT]
    standing = [node for node in found if node.trust is not Trust.REJECTED]
    standing.sort(key=lambda node: (tx.lineage(index, node.scope, node.lineage)[0].recorded_at, node.id))
    standing = standing[-1:] + standing[:-1]
    if not standing:
        raise Conflict(f"{item.id!r} waits for no decision: nothing that it is about is current", field="id")
    return standing


def open_reflection(tx: Transaction, index: str, memory: Node) -> Node | None:
    """The newest reflection that waits about a memory."""
    found = [
        node
        for edge, src, _ in tx.edges(index, key_of(memory), "in")
        if edge.rel == "derived_from"
        and (node := tx.node(index, src)) is not None
        and node.kind is Kind.REFLECTION
        and node.status is Status.CURRENT
    ]
    return max(found, key=lambda node: node.recorded_at, default=None)


def waiting_as(node: Node) -> str:
    """Why a memory waits."""
    if node.trust is Trust.CONTESTED:
        return "contested"
    return "imported" if node.actor.kind == "import" else "proposed"


def _decided(tx: Transaction, index: str, item: Node) -> Node:
    """The reflection that holds the last decision about an item."""
    if item.kind is Kind.REFLECTION:
        candidates = [item]
    else:
        ends = [src for edge, src, _ in tx.edges(index, key_of(item), "in") if edge.rel == "derived_from"]
        candidates = [node for key in ends if (node := tx.node(index, key)) is not None]
    found = [node for node in candidates if "decided" in node.metadata]
    if not found:
        raise Conflict(f"nothing was decided about {item.id!r}", field="id")
    return max(found, key=lambda node: int(node.metadata["decided"]["at"]))


def _put_reflection(
    tx: Transaction,
    command: Decide,
    principal: Principal,
    about: list[Node],
    review: str,
    details: dict[str, Any],
    status: Status,
) -> str:
    node_id = clock.new_id()
    node = Node(
        id=node_id,
        kind=Kind.REFLECTION,
        text=f"a review of {about[0].kind.value} {about[0].id}",
        scope=about[0].scope,
        lineage=node_id,
        version=1,
        states=(State(tx.time, status, actor=principal.actor),),
        actor=principal.actor,
        layer=about[0].layer,
        metadata={"review": review, **details},
    )
    tx.put_node(command.index, node)
    for one in about:
        edge = Edge(node_id, "derived_from", one.id, created_at=tx.time, actor=principal.actor)
        tx.put_edge(command.index, key_of(node), key_of(one), edge)
    return node_id
