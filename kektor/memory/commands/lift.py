"""Lifting a tombstone: a person decides that a value may be told again."""

from dataclasses import dataclass
from typing import ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Receipt
from kektor.engine.view import ScopeRule
from kektor.errors import Forbidden, NotFound
from kektor.memory.commands.base import MemoryCommand
from kektor.memory.inputs import may_write
from kektor.memory.policies.authority import decides

__all__ = ["Lift"]


@dataclass(kw_only=True)
class Lift(MemoryCommand):
    """Take a tombstone away; what was rejected stays rejected, and may be told anew."""

    operation: ClassVar[str] = "lift"
    right: ClassVar[str] = "review"

    tombstone: str
    rule: ScopeRule = ScopeRule()

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        self.settings(tx)
        stone = tx.tombstone_of_id(self.index, self.tombstone)
        grants = principal.grants_for(self.index)
        if stone is None or not self.rule.admits(stone.scope) or not any(grant.admits(stone.scope) for grant in grants):
            raise NotFound(f"there is no tombstone {self.tombstone!r} in index {self.index!r}", field="id")
        if not may_write(principal, self.index, stone.scope):
            raise Forbidden(f"tombstone {self.tombstone!r} is shared; this caller may read it and not lift it")
        self.scope = stone.scope

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        if not decides(principal):
            raise Forbidden(
                "lifting a tombstone is for a person, or a service that reviews: agents ask one",
                details={"tombstone": self.tombstone},
            )
        tx.lift_tombstone(self.tombstone)
        return Receipt("lifted", id=self.tombstone)
