"""The same statement said twice is one memory."""

from typing import Any, ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Moment, Node, Status, Trust
from kektor.memory.commands.versions import stands
from kektor.memory.drafts import Draft
from kektor.memory.policies.claims import refines
from kektor.text import plain

__all__ = ["Duplicates"]


class Duplicates:
    """Equal normalised text, kind, scope, claim, time and validity, and no other id asked for.

    A statement equal to a superseded version is a duplicate of it and changes nothing, unless it holds from later on
    than the head of that lineage: then it becomes the head. `evolve` with an old text always does.
    """

    name: ClassVar[str] = "duplicates"

    def before(self, command: Any, principal: Principal, engine: Engine) -> None:
        return

    def check(self, command: Any, principal: Principal, tx: Transaction) -> None:
        for draft in command.drafts:
            if draft.checks_duplicates and draft.digest:
                self._look(draft, tx)

    def _look(self, draft: Draft, tx: Transaction) -> None:
        draft.duplicate_of = found = self._find(draft, tx)
        if found is None or found.status is not Status.SUPERSEDED:
            return
        head = tx.lineage(draft.index, found.scope, found.lineage)[-1]
        if not stands(head):
            return
        begins = _at(head.state.valid_from)
        if draft.valid_from is not None and (begins is None or draft.valid_from.at > begins):
            draft.duplicate_of, draft.follows = None, head
        elif refines(head, found):
            draft.duplicate_of = head

    def _find(self, draft: Draft, tx: Transaction) -> Node | None:
        said = plain(draft.text)
        equal = [
            node
            for node in tx.nodes_of_digest(draft.index, draft.scope, draft.digest)
            if node.kind is draft.kind
            and not node.raw
            and node.trust is not Trust.REJECTED
            and node.status is not Status.ARCHIVED
            and (not draft.given_id or node.id == draft.node_id)
            and _same_fact(node, draft)
            and plain(node.text) == said
        ]
        return next((node for node in equal if node.status is Status.CURRENT), equal[0] if equal else None)


def _same_fact(node: Node, draft: Draft) -> bool:
    if node.claim != draft.claim or _at(node.occurred) != _at(draft.occurred):
        return False
    if node.status is Status.SUPERSEDED:
        # Its interval was closed by its successor: whenever it is said to hold, it is a re-telling.
        return True
    told = node.states[0]
    return _at(told.valid_from) == _at(draft.valid_from) and _at(told.valid_to) == _at(draft.valid_to)


def _at(moment: Moment | None) -> int | None:
    return None if moment is None else moment.at
