"""What must not come back: listed and lifted."""

from kektor.engine.records import Receipt
from kektor.memory.objects import TombstonePage
from kektor.memory.requests import LiftRequest
from kektor_server.rest.inputs import LiftQuery, TombstonesQuery
from kektor_server.rest.route import Call, Routes

__all__ = ["routes"]

routes = Routes("tombstones")


@routes.get("/v1/tombstones", errors=("not_found",))
def list_tombstones(call: Call, query: TombstonesQuery) -> TombstonePage:
    """Rejected values and erasures in force, oldest first: of which memory, by whom, when; never what it said."""
    return call.operations.tombstones(
        query.index, call.principal, scope=query.scope(), limit=query.limit, cursor=query.cursor
    )


@routes.delete("/v1/tombstones/{id}", errors=("not_found", "blocked"), keyed=True)
def lift_tombstone(call: Call, id: str, query: LiftQuery) -> Receipt:
    """Lift one, so that its value may be told again; for people, and services that hold the role `review`."""
    request = LiftRequest(
        index=query.index, scope=query.scope(), reason=query.reason, idempotency_key=call.idempotency_key
    )
    return call.operations.lift(id, request, call.principal)
