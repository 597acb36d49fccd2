"""From a caller and a request to a View: the one way any read begins."""

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import structs

from kektor import clock
from kektor.engine.gateway import Principal
from kektor.engine.port import Engine
from kektor.engine.records import IndexSettings, Kind, Node
from kektor.engine.view import INCLUDABLE, View
from kektor.errors import Forbidden, Invalid, NotFound
from kektor.memory.commands.base import one_of
from kektor.memory.inputs import instant, read_rule
from kektor.memory.limits import check_name
from kektor.memory.requests import ScopeIn, TimeIn
from kektor.query import check_bare, parse_filter

__all__ = ["DEFAULT_INDEX", "existing_index", "find_one", "make_view", "only_by_id"]

DEFAULT_INDEX = "default"


def make_view(
    engine: Engine,
    principal: Principal,
    index: str,
    *,
    scope: ScopeIn | None = None,
    filter: str | dict[str, Any] | None = None,
    include: Sequence[str] = (),
    kinds: Collection[Kind] | Sequence[str] | None = None,
    layers: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    as_of: TimeIn | None = None,
    known_at: TimeIn | None = None,
    now: TimeIn | None = None,
    tz: str = "UTC",
) -> View:
    """What this caller may see of an index; a request narrows its grants and never widens them.

    Raises Forbidden without the right to read or a grant for the index, Invalid for anything it cannot mean.
    """
    if not principal.rights & {"read", "write", "review", "admin"}:
        raise Forbidden("this caller may not read")
    grants = principal.grants_for(check_name(index))
    if not grants:
        raise Forbidden(f"no grant of this caller reaches index {index!r}", field="index")
    asked_at = instant(now, field="now", tz=tz)
    present = clock.now() if asked_at is None else asked_at
    parsed = parse_filter(filter, tz=tz, now=present)
    view = View(
        index=index,
        scopes=(grants, (read_rule(scope),)),
        now=present,
        as_of=instant(as_of, field="as_of", tz=tz),
        known_at=instant(known_at, field="known_at", tz=tz),
        include=_included(include),
        kinds=None if kinds is None else _kinds(kinds),
        layers=None if layers is None else frozenset(layers),
        tags=None if tags is None else frozenset(tags),
    )
    if parsed is not None:
        if engine.index(index) is not None:
            check_bare(parsed, engine.metadata_keys(view))
        view = structs.replace(view, filter=parsed)
    return view


def only_by_id(
    engine: Engine,
    principal: Principal,
    index: str,
    *,
    scope: ScopeIn | None,
    known_at: TimeIn | None = None,
    tz: str = "UTC",
) -> View:
    """What an id names exactly: also superseded, archived, proposed and rejected versions; never erased ones."""
    view = make_view(engine, principal, index, scope=scope, include=sorted(INCLUDABLE), known_at=known_at, tz=tz)
    return structs.replace(view, history=True)


def find_one(engine: Engine, view: View, node_id: str, *, field: str = "id") -> Node:
    """The visible node of an id; an id out of the caller's reach answers exactly as one that does not exist."""
    found = engine.find(view, node_id)
    if not found:
        raise NotFound(f"there is no {node_id!r} in index {view.index!r}", field=field)
    (asked,) = view.scopes[-1]
    return one_of(found, asked)


def existing_index(engine: Engine, name: str) -> IndexSettings | None:
    """The settings of an index; None for the default one before its first write, NotFound for any other."""
    settings = engine.index(name)
    if settings is None and name != DEFAULT_INDEX:
        raise NotFound(f"there is no index {name!r}", field="index")
    return settings


def _included(include: Sequence[str]) -> frozenset[str]:
    unknown = set(include) - INCLUDABLE
    if unknown:
        raise Invalid(
            f"include takes {', '.join(sorted(INCLUDABLE))}, not {', '.join(map(repr, sorted(unknown)))}",
            field="include",
        )
    return frozenset(include)


def _kinds(kinds: Collection[str]) -> frozenset[Kind]:
    try:
        return frozenset(Kind(kind) for kind in kinds)
    except ValueError:
        unknown = sorted(set(kinds) - set(Kind))
        raise Invalid(f"kinds takes {', '.join(Kind)}, not {', '.join(map(repr, unknown))}", field="kinds") from None
