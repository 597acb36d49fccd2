"""Sessions, and what was said in them."""

from kektor.engine.records import Receipt
from kektor.memory.objects import Memory, MemoryPage, SessionPage
from kektor.memory.requests import EndSessionRequest, StartSessionRequest
from kektor_server.rest.inputs import GetMemoryQuery, SessionsQuery, SourcesQuery
from kektor_server.rest.route import Call, Routes, is_new

__all__ = ["routes"]

routes = Routes("sessions")


@routes.post("/v1/sessions", creates=is_new, errors=("not_found", "conflict", "blocked"))
def start_session(call: Call, body: StartSessionRequest) -> Receipt:
    """Begin a session: 201 when it is new, 200 when it is there. The receipt's `id` is its name."""
    return call.operations.start_session(body, call.principal)


@routes.get("/v1/sessions", errors=("not_found",))
def list_sessions(call: Call, query: SessionsQuery) -> SessionPage:
    """Sessions in the order in which they began."""
    return call.operations.sessions(
        query.index, call.principal, scope=query.scope(), limit=query.limit, cursor=query.cursor
    )


@routes.post("/v1/sessions/{id}/end", errors=("not_found", "conflict", "blocked"))
def end_session(call: Call, id: str, body: EndSessionRequest) -> Receipt:
    """Summarise a session in its own words; `of` is the summary. Its messages stay, and are recalled as before."""
    return call.operations.end_session(id, body, call.principal)


@routes.get("/v1/sources", errors=("not_found",))
def list_sources(call: Call, query: SourcesQuery) -> MemoryPage:
    """What was said, word for word, in the order recorded; of one session when it is named."""
    return call.operations.list_memories(query.request(), call.principal)


@routes.get("/v1/sources/{id}", errors=("not_found", "conflict"))
def get_source(call: Call, id: str, query: GetMemoryQuery) -> Memory:
    """One source."""
    return call.operations.get(query.index, id, call.principal, scope=query.scope(), resolve=query.resolve)
