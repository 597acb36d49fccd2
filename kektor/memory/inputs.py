"""From request fields to records: scopes, times, claims."""

import unicodedata

from kektor import times
from kektor.engine.gateway import Principal
from kektor.engine.records import Claim, Moment, Scope
from kektor.engine.view import ScopeRule
from kektor.errors import Forbidden, Invalid
from kektor.memory.requests import ClaimIn, ScopeIn, TimeIn

__all__ = ["claim", "end", "instant", "may_write", "moment", "read_rule", "write_scope"]

_MEMBERS = ("user", "agent", "project")


def moment(value: TimeIn | None, *, field: str, tz: str) -> Moment | None:
    """The start of a given time, with its words."""
    extent = _extent(value, field, tz)
    if extent is None:
        return None
    return Moment(times.as_start(extent), extent.words)


def end(value: TimeIn | None, *, field: str, tz: str) -> Moment | None:
    """Where something that holds through a given time stops to hold."""
    extent = _extent(value, field, tz)
    if extent is None:
        return None
    return Moment(times.as_end(extent), extent.words)


def instant(value: TimeIn | None, *, field: str, tz: str) -> int | None:
    """The instant a question about a time asks about."""
    extent = _extent(value, field, tz)
    return None if extent is None else times.as_of(extent)


def _extent(value: TimeIn | None, field: str, tz: str) -> times.Extent | None:
    if value is None:
        times.zone(tz)  # a zone that does not exist is an error also where no time needs it
        return None
    return times.parse(value, field=field, tz=tz)


def claim(value: tuple[str, str, str] | ClaimIn | None) -> Claim | None:
    """A declared claim, every part of it said."""
    if value is None:
        return None
    parts = (value.subject, value.predicate, value.object) if isinstance(value, ClaimIn) else value
    for name, part in zip(("subject", "predicate", "object"), parts, strict=True):
        if not part.strip():
            raise Invalid(f"the {name} of the claim is empty", field=f"claim.{name}")
    return Claim(*parts)


def read_rule(scope: ScopeIn | None) -> ScopeRule:
    """What a read asks for: a member left out is any value."""
    if scope is None:
        return ScopeRule()
    if _is_shared(scope):
        return ScopeRule("", "", "")
    return ScopeRule(**{name: _member(scope, name) for name in _MEMBERS})


def write_scope(scope: ScopeIn | None, principal: Principal, index: str) -> Scope:
    """Where a write goes: a member left out is the caller's own when it has one, else shared.

    Raises Forbidden when no grant of the caller covers it.
    """
    rules = [grant for grant in principal.grants if grant.index in (None, index)]
    if not rules:
        raise Forbidden(f"no grant reaches index {index!r}", field="index")
    own = rules[0].scope
    asked = ScopeIn() if scope is None else scope
    wanted = (
        Scope()
        if _is_shared(asked)
        else Scope(**{name: _member(asked, name) or getattr(own, name) or "" for name in _MEMBERS})
    )
    if may_write(principal, index, wanted):
        return wanted
    raise Forbidden("the scope lies outside of what this caller may write", field="scope", details={"index": index})


def may_write(principal: Principal, index: str, scope: Scope) -> bool:
    """Whether some grant lets the principal change records of exactly this scope."""
    return any(
        _covers(grant.scope, scope, shared=grant.shared) for grant in principal.grants if grant.index in (None, index)
    )


def _covers(rule: ScopeRule, scope: Scope, *, shared: bool) -> bool:
    """A caller confined to a user writes that user's; what is shared only when its grant says so."""
    for name in _MEMBERS:
        confined, value = getattr(rule, name), getattr(scope, name)
        if confined is not None and value != confined and not (shared and value == ""):
            return False
    return True


def _is_shared(scope: ScopeIn) -> bool:
    if scope.shared and any(getattr(scope, name) is not None for name in _MEMBERS):
        raise Invalid("what is shared has no user, agent or project: give one or the other", field="scope.shared")
    return scope.shared


def _member(scope: ScopeIn, name: str) -> str | None:
    value = getattr(scope, name)
    if value is None:
        return None
    if not value.strip():
        raise Invalid(f"scope.{name} is empty: leave it out, or name one", field=f"scope.{name}")
    if len(value.encode("utf-8", "replace")) > 256:
        raise Invalid(f"scope.{name} is longer than 256 bytes", field=f"scope.{name}")
    return unicodedata.normalize("NFC", str(value))
