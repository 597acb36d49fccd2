"""What must not come back: listed and lifted."""

from kektor.engine.gateway import Principal
from kektor.engine.records import Receipt
from kektor.errors import Invalid
from kektor.memory import requests as rq
from kektor.memory.commands.lift import Lift
from kektor.memory.inputs import read_rule
from kektor.memory.limits import LIMITS, check_id
from kektor.memory.objects import Tombstone, TombstonePage
from kektor.memory.presenting import tombstone_of
from kektor.memory.reading import existing_index, make_view
from kektor.operations.base import BaseOperations

__all__ = ["TombstoneOperations"]


class TombstoneOperations(BaseOperations):
    """Tombstones say what they stand for by the id of the memory, and never by its text."""

    def tombstones(
        self,
        index: str,
        principal: Principal,
        *,
        scope: rq.ScopeIn | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> TombstonePage:
        """Those in force in what the caller sees of an index, oldest first, a page at a time."""
        if not 1 <= limit <= LIMITS["k"]:
            raise Invalid(f"limit must be 1 to {LIMITS['k']:,}, not {limit}", field="limit")
        view = make_view(self.engine, principal, index, scope=scope)
        if existing_index(self.engine, index) is None:
            return TombstonePage([], None)
        standing = sorted(
            (s for s in self.engine.tombstones(index) if s.lifted_at is None and view.admits_scope(s.scope)),
            key=lambda stone: (stone.created_at, stone.id),
        )
        first = 0 if cursor is None else next((n for n, s in enumerate(standing, 1) if s.id == cursor), -1)
        if first < 0:
            raise Invalid(f"cursor {cursor!r} did not come from a list", field="cursor")
        taken: list[Tombstone] = [tombstone_of(stone, index) for stone in standing[first : first + limit]]
        more = first + limit < len(standing)
        return TombstonePage(taken, taken[-1].id if more else None)

    def lift(self, tombstone: str, request: rq.LiftRequest, principal: Principal) -> Receipt:
        """Take one away, so that its value may be told again; Forbidden to agents."""
        command = Lift(
            context=self.context,
            index=request.index,
            tombstone=check_id(tombstone),
            rule=read_rule(request.scope),
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=[tombstone, request],
        )
        return self._submit(command, principal)
