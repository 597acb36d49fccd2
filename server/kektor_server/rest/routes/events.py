"""What happens, while it happens."""

from msgspec import Struct

from kektor.errors import Invalid, Unauthenticated
from kektor.memory.limits import check_name
from kektor_server.rest.route import Call, Lane, Routes, Streamed

__all__ = ["routes"]

routes = Routes("events")

_LARGEST = 2**63


class EventsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`after` is for callers that cannot send the header Last-Event-ID, which wins over it."""

    index: list[str] = []
    after: int | None = None


@routes.get("/v1/events", lane=Lane.LOOP, media="text/event-stream")
def events(call: Call, query: EventsQuery) -> Streamed:
    """Server-sent events: which ids were written and how, within what the caller sees; never what they say.

    The id of an event is its position in the log: with `Last-Event-ID` a listener goes on where it was, and is told
    with an event `gap` when what came between is no longer there. A comment every 15 seconds keeps the line open.
    """
    for name in query.index:
        check_name(name)
    last = call.headers.get(b"last-event-id")
    after = query.after
    if last is not None:
        if not last.isdigit() or int(last) > _LARGEST:
            raise Invalid("Last-Event-ID is the id of an event: a number", field="Last-Event-ID")
        after = int(last)

    def welcome() -> bool:
        try:
            call.service.authenticate(call.headers)
        except Unauthenticated:
            return False
        return True

    indexes = frozenset(query.index) or None
    return Streamed(call.service.events.listen(call.principal, indexes, after, welcome=welcome))
