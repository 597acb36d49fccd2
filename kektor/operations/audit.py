"""The audit: who did what, and whether that account is whole."""

from collections.abc import Iterator

from msgspec import Struct

from kektor.engine.audit import AuditEvent
from kektor.engine.gateway import Principal
from kektor.errors import Forbidden
from kektor.memory import inputs
from kektor.memory.requests import TimeIn
from kektor.operations.base import BaseOperations

__all__ = ["AuditOperations", "AuditReport", "AuditRequest"]


class AuditRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Which events: since a time, that name an id, by an actor; all that are given must hold."""

    since: TimeIn | None = None
    id: str | None = None
    actor: str | None = None
    tz: str = "UTC"


class AuditReport(Struct, frozen=True):
    """`ok` when every event is as it was noted; else what does not hold, in words."""

    ok: bool
    events: int
    findings: list[str]


class AuditOperations(BaseOperations):
    """Reading and checking the audit. It tells of every scope, so both need the right `admin`."""

    def audit(self, request: AuditRequest, principal: Principal) -> Iterator[AuditEvent]:
        """Events, oldest first."""
        _refuse_others(principal)
        since = inputs.instant(request.since, field="since", tz=request.tz)
        return (
            event
            for event in self.engine.audit()
            if (since is None or event.time >= since)
            and (request.id is None or request.id in event.ids)
            and (request.actor is None or event.actor.id == request.actor)
        )

    def verify_audit(self, principal: Principal) -> AuditReport:
        """Reads the whole chain, and takes as long as that."""
        _refuse_others(principal)
        findings = self.engine.verify_audit()
        return AuditReport(not findings, sum(1 for _ in self.engine.audit()) if not findings else 0, findings)


def _refuse_others(principal: Principal) -> None:
    if "admin" not in principal.rights:
        raise Forbidden("reading the audit needs the right 'admin': it tells of every scope")
