"""Who did what, and whether that account is whole."""

from kektor.operations.audit import AuditPage, AuditReport, AuditRequest
from kektor_server.rest.inputs import AuditQuery
from kektor_server.rest.route import Call, Routes

__all__ = ["routes"]

routes = Routes("audit")


@routes.get("/v1/audit")
def audit(call: Call, query: AuditQuery) -> AuditPage:
    """Events, oldest first: since a time, that name an id, by an actor. None holds the text of a memory."""
    request = AuditRequest(query.since, query.id, query.actor, query.limit, query.cursor, query.tz)
    return call.operations.audit(request, call.principal)


@routes.post("/v1/audit/verify")
def verify_audit(call: Call) -> AuditReport:
    """Check every event against the chain; it reads all of it."""
    return call.operations.verify_audit(call.principal)
