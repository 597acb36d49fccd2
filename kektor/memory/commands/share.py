"""Sharing: a copy of a memory in another scope or index, which knows what it is a copy of."""

from dataclasses import dataclass
from typing import ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Edge, Kind, Node, NodeKey, Origin, Receipt, Status, Trust
from kektor.engine.view import ScopeRule
from kektor.errors import Conflict, Forbidden, NotFound
from kektor.memory.commands.base import MemoryCommand, key_of, seen
from kektor.memory.commands.lifecycle import Archive
from kektor.memory.inputs import may_write

__all__ = ["Share"]


@dataclass(kw_only=True)
class Share(MemoryCommand):
    """Copy one memory, as it stands, to where the draft says; `move` archives the original.

    The command is of the index that the copy goes to, so that its policies and tombstones are the ones that count.
    """

    operation: ClassVar[str] = "share"

    node: Node
    """As it was read when the copy was prepared."""
    source_index: str
    rule: ScopeRule = ScopeRule()
    move: bool = False

    def prepare(self, engine: Engine, principal: Principal) -> None:
        if engine.index(self.index) is None:
            raise NotFound(f"there is no index {self.index!r}", field="to.index")
        super().prepare(engine, principal)

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        self.settings(tx)
        found = seen(tx, principal, self.source_index, self.node.id, self.rule)
        if found != self.node:
            raise Conflict(f"{self.node.id!r} was changed meanwhile; share it again", field="id")
        if found.status is not Status.CURRENT or found.trust in (Trust.REJECTED, Trust.PROPOSED):
            raise Conflict(f"{found.id!r} is {found.status}, {found.trust}: only what holds is shared", field="id")
        if (self.source_index, found.scope) == (self.index, self.drafts[0].scope):
            raise Conflict(f"{found.id!r} is there already", field="to")
        if self.move and not may_write(principal, self.source_index, found.scope):
            raise Forbidden(f"{found.id!r} is shared; this caller may copy it and not move it", field="move")

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        draft = self.drafts[0]
        if draft.duplicate_of is not None:
            held = draft.duplicate_of
            return Receipt("duplicate", id=held.id, version=held.version, of=held.id)
        settings = tx.index(self.source_index)
        assert settings is not None, "the memory was found in it"
        origin = Origin(settings.number, self.node.scope, self.node.id)
        made = draft.node(principal.actor, tx.time, origin=origin)
        tx.put_node(self.index, made, draft.vector)
        if self.index == self.source_index:
            edge = Edge(made.id, "copied_from", self.node.id, created_at=tx.time, actor=principal.actor)
            tx.put_edge(self.index, key_of(made), NodeKey(self.node.scope, self.node.id), edge)
        if self.move:
            one = Archive(context=self.context, index=self.source_index, node_id=self.node.id, reason=self.reason)
            one.node = self.node
            one.stage(tx, principal)
        outcome = "proposed" if draft.trust is Trust.PROPOSED else "created"
        return Receipt(outcome, id=made.id, version=1, of=self.node.id, warnings=draft.warnings)


SHARED_KINDS = frozenset({Kind.MEMORY, Kind.ENTITY})
"""What can be shared: what was made of a scope's own sources stays with them."""
