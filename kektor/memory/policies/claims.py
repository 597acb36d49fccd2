"""What a statement is to its neighbours: it says more, it brings a value back, it contradicts, or it is new.

Decided by what both claim (`kektor.memory.claims`), never by how near their vectors are.
"""

from typing import Any, ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import ActorKind, Kind, Moment, Node, Scope, Status, Trust
from kektor.memory.claims import SingleValued, Statement, compare, declared, statement_of
from kektor.memory.claims.clauses import clauses_of
from kektor.memory.claims.comparing import related_predicates
from kektor.memory.claims.tables import default_single_valued
from kektor.memory.drafts import Draft
from kektor.text import Digester, fold, sentences

__all__ = ["Claims", "denies", "refines", "statement_in"]

_RANK = {
    ActorKind.HUMAN: 4,
    ActorKind.SERVICE: 3,
    ActorKind.IMPORT: 2,
    ActorKind.AGENT: 1,
    ActorKind.GARDENER: 0,
}
_ALWAYS = (-(1 << 63), 1 << 63)


class Claims:
    """Reads what every new memory states, and compares it with what stands about the same thing in the same scope."""

    name: ClassVar[str] = "claims"

    def __init__(self, digester: Digester) -> None:
        self._digester = digester

    def before(self, command: Any, principal: Principal, engine: Engine) -> None:
        for draft in command.drafts:
            _stated(draft.claim, draft.text)  # read outside of the lock, kept for `check`

    def check(self, command: Any, principal: Principal, tx: Transaction) -> None:
        for draft in command.drafts:
            said = _stated(draft.claim, draft.text) if draft.kind is Kind.MEMORY and not draft.raw else None
            if said is None:
                continue
            draft.statement = said
            draft.topic = self._topic(said.subject, said.predicate, draft.scope)
            if draft.checks_duplicates and draft.duplicate_of is None and draft.follows is None:
                self._compare(draft, said, principal, tx)

    def _compare(self, draft: Draft, said: Statement, principal: Principal, tx: Transaction) -> None:
        settings = tx.index(draft.index)
        listed = None if settings is None else settings.policy.single_valued
        single = SingleValued(default_single_valued() if listed is None else listed)
        rank = _RANK[principal.actor.kind]
        for old in self._neighbours(draft, said, tx):
            before = statement_in(old)
            relation = None if before is None else compare(before, said, single)
            if before is None or relation is None:
                continue
            same = _interval(old, None) == _interval(draft, None) and old.occurred == draft.occurred
            if relation == "conflict":
                if draft.occurred is None and _meet(_interval(old, before), _interval(draft, said)):
                    draft.conflicts.append(old)
            elif same and relation == "shorter" and not draft.given_id:
                draft.duplicate_of = old
                return
            elif same and relation == "refines" and draft.trust is Trust.ACCEPTED and _RANK[old.actor.kind] <= rank:
                draft.refines = old
        if draft.refines is not None:
            draft.conflicts = []  # those of what it refines, which it inherits
        elif draft.conflicts:
            draft.doubts = frozenset(old.id for old in draft.conflicts if _RANK[old.actor.kind] <= rank)
            if draft.trust is Trust.PROPOSED:
                draft.doubts = frozenset()
            elif any(_RANK[old.actor.kind] >= rank for old in draft.conflicts):
                draft.trust = Trust.CONTESTED

    def _neighbours(self, draft: Draft, said: Statement, tx: Transaction) -> list[Node]:
        """What stands about the same subject with the same predicate or its opposite, oldest first."""
        found = {
            node.id: node
            for predicate in sorted(related_predicates(said.predicate))
            for node in tx.nodes_of_digest(draft.index, draft.scope, self._topic(said.subject, predicate, draft.scope))
        }
        standing = [
            node
            for node in found.values()
            if node.kind is Kind.MEMORY
            and not node.raw
            and node.id != draft.node_id
            and node.status is Status.CURRENT
            and node.trust in (Trust.ACCEPTED, Trust.CONTESTED)
            and node.occurred is None
        ]
        return sorted(standing, key=lambda node: (node.recorded_at, node.id))

    def _topic(self, subject: str, predicate: str, scope: Scope) -> bytes:
        who = scope.user if subject == "i" and scope.user else subject
        return self._digester.digest("topic", fold(who), predicate)


def denies(text: str, node: Node) -> bool:
    """Whether some sentence of a text contradicts what a memory states."""
    stated = statement_in(node)
    if stated is None:
        return False
    single = SingleValued(default_single_valued())
    for span in sentences(text):
        for clause in clauses_of(text[span.start : span.end]):
            said = statement_of(clause)
            if said is not None and said.subject == stated.subject and compare(stated, said, single) == "conflict":
                return True
    return False


def statement_in(node: Node) -> Statement | None:
    """What a stored memory states."""
    return _stated(node.claim, node.text)


def refines(newer: Node, older: Node) -> bool:
    """Whether one says all that the other did, and more."""
    said, before = statement_in(newer), statement_in(older)
    if said is None or before is None or said.subject != before.subject:
        return False
    return compare(before, said, SingleValued(())) == "refines"


def _stated(claim: Any, text: str) -> Statement | None:
    return statement_of(text) if claim is None else declared(claim.subject, claim.predicate, claim.object)


def _interval(of: Node | Draft, said: Statement | None) -> tuple[int, int]:
    """When it holds: as declared, else between the dates its sentence names, else always."""
    state = of.state if isinstance(of, Node) else of
    start, end = _at(state.valid_from), _at(state.valid_to)
    if said is not None and start is None and end is None:
        start, end = said.since, said.until
    return _ALWAYS[0] if start is None else start, _ALWAYS[1] if end is None else end


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _at(moment: Moment | None) -> int | None:
    return None if moment is None else moment.at
