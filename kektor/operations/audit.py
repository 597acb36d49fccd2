"""The audit: who did what, and whether that account is whole."""

from msgspec import Struct

from kektor import times
from kektor.engine.audit import AuditEvent
from kektor.engine.gateway import Principal
from kektor.errors import Forbidden, Invalid
from kektor.memory import inputs
from kektor.memory.limits import LIMITS
from kektor.memory.objects import ActorOut, ScopeOut
from kektor.memory.requests import TimeIn
from kektor.operations.base import BaseOperations

__all__ = ["AuditItem", "AuditOperations", "AuditPage", "AuditReport", "AuditRequest"]


class AuditRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Which events: since a time, that name an id, by an actor; all that are given must hold."""

    since: TimeIn | None = None
    id: str | None = None
    actor: str | None = None
    limit: int = 100
    cursor: str | None = None
    tz: str = "UTC"


class AuditItem(Struct, frozen=True):
    """One event; `erased` when something that it named is gone since."""

    lsn: int
    time: str
    operation: str
    actor: ActorOut
    index: str
    scope: ScopeOut
    ids: list[str]
    reason: str
    erased: bool


class AuditPage(Struct, frozen=True):
    """Oldest first."""

    items: list[AuditItem]
    next_cursor: str | None


class AuditReport(Struct, frozen=True):
    """`ok` when every event is as it was noted; else what does not hold, in words."""

    ok: bool
    events: int
    findings: list[str]


class AuditOperations(BaseOperations):
    """Reading and checking the audit. It tells of every scope, so both need the right `admin`."""

    def audit(self, request: AuditRequest, principal: Principal) -> AuditPage:
        """A page of events."""
        _refuse_others(principal)
        if not 1 <= request.limit <= LIMITS["k"]:
            raise Invalid(f"limit must be 1 to {LIMITS['k']:,}, not {request.limit}", field="limit")
        since = inputs.instant(request.since, field="since", tz=request.tz)
        after = _read_cursor(request.cursor)
        taken: list[AuditEvent] = []
        for event in self.engine.audit():
            if (
                (event.lsn, event.place) > after
                and (since is None or event.time >= since)
                and (request.id is None or request.id in event.ids)
                and (request.actor is None or event.actor.id == request.actor)
            ):
                if len(taken) == request.limit:
                    return AuditPage([_told(each) for each in taken], f"a{taken[-1].lsn}.{taken[-1].place}")
                taken.append(event)
        return AuditPage([_told(each) for each in taken], None)

    def verify_audit(self, principal: Principal) -> AuditReport:
        """Reads the whole chain, and takes as long as that."""
        _refuse_others(principal)
        findings = self.engine.verify_audit()
        return AuditReport(not findings, 0 if findings else sum(1 for _ in self.engine.audit()), findings)


def _refuse_others(principal: Principal) -> None:
    if "admin" not in principal.rights or not principal.reaches_everything:
        raise Forbidden("the audit needs the right 'admin' and a grant without bounds: it tells of every scope")


def _told(event: AuditEvent) -> AuditItem:
    actor, scope = event.actor, event.scope
    return AuditItem(
        event.lsn,
        times.format(event.time),
        event.operation,
        ActorOut(actor.kind.value, actor.id or None, actor.channel or None),
        event.index,
        ScopeOut(scope.user or None, scope.agent or None, scope.project or None),
        event.ids,
        event.reason,
        event.erased,
    )


def _read_cursor(cursor: str | None) -> tuple[int, int]:
    if cursor is None:
        return 0, 0
    lsn, _, place = cursor[1:].partition(".")
    if not (cursor.startswith("a") and lsn.isdecimal() and place.isdecimal() and len(cursor) < 40):
        raise Invalid(f"cursor {cursor!r} did not come from the audit", field="cursor")
    return int(lsn), int(place)
