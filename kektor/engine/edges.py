"""Which edges a read may take: by relation, by direction, by when they hold, by what they say."""

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

from kektor import times
from kektor.engine.filters import MISSING, Filter, Lookup, fields, matches, nearest_of
from kektor.engine.records import Edge, Moment
from kektor.engine.view import View
from kektor.errors import Invalid

__all__ = ["EDGE_FIELDS", "Cost", "Direction", "EdgeRule", "check_edge_filter", "cost_of", "edge_lookup"]

Direction = Literal["out", "in", "both"]

Cost = Literal["hops", "weight", "inverse"]
"""What a step of a path costs: one, the edge's weight, or one divided by it."""


class EdgeRule(Struct, frozen=True):
    """Which edges at a node count for a read; None in `rels` means any relation."""

    rels: frozenset[str] | None = None
    direction: Direction = "both"
    filter: Filter | None = None

    def admits(self, edge: Edge, view: View) -> bool:
        """Whether the edge exists for the View and is one that was asked for; its ends are judged apart."""
        return (
            (self.rels is None or edge.rel in self.rels)
            and edge_holds(edge, view)
            and (self.filter is None or matches(self.filter, edge_lookup(edge)) is True)
        )


def edge_holds(edge: Edge, view: View) -> bool:
    """Whether a View shows an edge between nodes it shows: linked by `known_at` (now), and not ended.

    As with memories (`View.admits`), `as_of` asks what held exactly then, and default reads admit what is open, holds
    or lies in the future.
    """
    if view.known_at is None:
        if edge.deleted_at is not None:
            return False
    elif edge.created_at > view.known_at or (edge.deleted_at is not None and edge.deleted_at <= view.known_at):
        return False
    start, end = _at(edge.valid_from), _at(edge.valid_to)
    if view.as_of is not None:
        return (start is None or start <= view.as_of) and (end is None or view.as_of < end)
    reference = view.now if view.known_at is None else view.known_at
    return view.history or end is None or reference < end


EDGE_FIELDS: Final = ("src", "rel", "dst", "weight", "props", "created_at", "valid_from", "valid_to", "actor.kind")
"""What a filter over edges may name; `props.x` reaches into the properties."""


def check_edge_filter(expression: Filter) -> None:
    """Refuse a filter that names what no edge has. Names that no memory has are bare (`filters.Field`)."""
    for field in sorted(fields(expression), key=str):
        known = field.path in _MEMORY_NAMES or (field.bare and field.path[1] in _BARE)
        if not known:
            near = nearest_of(str(field), EDGE_FIELDS)
            hint = f"; did you mean {near}?" if near else ""
            raise Invalid(
                f"edge_filter: an edge has no {str(field)[:80]!r}{hint}: it has {', '.join(EDGE_FIELDS)}",
                field="edge_filter",
                details={"name": str(field), "nearest": near},
            )


def edge_lookup(edge: Edge) -> Lookup:
    """The values a filter may ask an edge for, by path."""

    def value(path: tuple[str, ...]) -> Any:
        if path in _MEMORY_NAMES:
            found = _MEMORY_NAMES[path](edge)
            return MISSING if found is None else found
        found = {"props": edge.props} if path[1] == "props" else {path[1]: _BARE[path[1]](edge)}
        for key in path[1:]:
            if not isinstance(found, dict) or key not in found:
                return MISSING
            found = found[key]
        return found

    return value


def cost_of(edge: Edge, cost: Cost) -> float:
    """What a step over an edge costs; Invalid where its weight cannot be a cost."""
    if cost == "hops":
        return 1.0
    if edge.weight < 0 or (cost == "inverse" and edge.weight == 0):
        raise Invalid(
            f"the weight of {edge.src!r} -{edge.rel}-> {edge.dst!r} is {edge.weight}, which is no cost by {cost}: "
            "leave it out with edge_filter",
            field="cost",
        )
    return edge.weight if cost == "weight" else 1.0 / edge.weight


def _at(moment: Moment | None) -> int | None:
    return None if moment is None else moment.at


_BARE: Final[dict[str, Callable[[Edge], Any]]] = {
    "src": lambda e: e.src,
    "rel": lambda e: e.rel,
    "dst": lambda e: e.dst,
    "weight": lambda e: e.weight,
    "props": lambda e: e.props,
    "created_at": lambda e: times.format(e.created_at),
}
_MEMORY_NAMES: Final[dict[tuple[str, ...], Callable[[Edge], Any]]] = {
    ("validity", "from"): lambda e: _at(e.valid_from),
    ("validity", "to"): lambda e: _at(e.valid_to),
    ("actor", "kind"): lambda e: e.actor.kind.value,
}
