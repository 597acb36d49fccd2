"""Bitmaps and ordered indexes over the slots of one index: what Views and filters are computed from.

Everything here is derived from the nodes. A column holds what a node says today; the past is in the nodes' states.
"""

import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from kektor_native import OrderedIndex
from pyroaring import BitMap

from kektor.engine.records import Moment, Node, Scope

__all__ = ["Columns", "MetadataColumn", "key_of", "time_key"]

LONGEST_KEY = 256
"""Longer strings are not kept as keys; filters look at the record instead."""

Term: TypeAlias = tuple[str, Any]


class _Terms(NamedTuple):
    exact: frozenset[Term]
    ordered: frozenset[tuple[str, bytes]]
    metadata: frozenset[tuple[tuple[str, ...], str, bytes]]

    def without(self, other: "_Terms") -> "_Terms":
        return _Terms(self.exact - other.exact, self.ordered - other.ordered, self.metadata - other.metadata)


class MetadataColumn:
    """One path of the metadata: who has it, and with what.

    `ordered` holds scalar values and `elements` the scalars inside arrays, both by `key_of`. `opaque` are the nodes
    with a value neither can answer for: an object, a long string, a nested array.
    """

    def __init__(self) -> None:
        self.present = BitMap()
        self.arrays = BitMap()
        self.opaque = BitMap()
        self.ordered = OrderedIndex()
        self.elements = OrderedIndex()


class Columns:
    """Kept in step with the nodes by `add`, `change` and `remove`."""

    def __init__(self) -> None:
        self.alive = BitMap()
        self.exact: dict[str, dict[Any, BitMap]] = {name: {} for name in _EXACT}
        self.ordered: dict[str, OrderedIndex] = {name: OrderedIndex() for name in _ORDERED}
        self.metadata: dict[tuple[str, ...], MetadataColumn] = {}

    def add(self, slot: int, node: Node) -> None:
        self.alive.add(slot)
        self._apply(slot, _terms(node), _NOTHING)

    def change(self, slot: int, old: Node, new: Node) -> None:
        before, after = _terms(old), _terms(new)
        self._apply(
            slot,
            after.without(before),
            before.without(after),
        )

    def remove(self, slot: int, node: Node) -> None:
        self.alive.discard(slot)
        self._apply(slot, _NOTHING, _terms(node))

    def having(self, field: str, value: Any) -> BitMap:
        """Slots with exactly this value; not to be changed by the caller."""
        return self.exact[field].get(value, _EMPTY)

    def in_session(self, session: str, scope: Scope) -> BitMap:
        """Slots of one session in exactly one scope."""
        return (
            self.having("session", session)
            & self.having("user", scope.user)
            & self.having("agent", scope.agent)
            & self.having("project", scope.project)
        )

    def between(
        self,
        field: str,
        low: bytes | None = None,
        high: bytes | None = None,
        *,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
    ) -> BitMap:
        """Slots whose time in an ordered column lies within the bounds."""
        found = self.ordered[field].range(low, high, low_inclusive=low_inclusive, high_inclusive=high_inclusive)
        return BitMap.deserialize(found)

    def _apply(self, slot: int, added: _Terms, removed: _Terms) -> None:
        for field, value in removed.exact:
            slots = self.exact[field][value]
            slots.discard(slot)
            if not slots:
                del self.exact[field][value]
        for field, value in added.exact:
            self.exact[field].setdefault(value, BitMap()).add(slot)
        for field, key in removed.ordered:
            self.ordered[field].remove(key, slot)
        for field, key in added.ordered:
            self.ordered[field].insert(key, slot)
        for path, part, key in removed.metadata:
            _METADATA_PARTS[part][1](self.metadata[path], key, slot)
        for path, part, key in added.metadata:
            column = self.metadata.setdefault(path, MetadataColumn())
            _METADATA_PARTS[part][0](column, key, slot)
        for path in {path for path, _, _ in removed.metadata}:
            if not self.metadata[path].present:
                del self.metadata[path]


def time_key(at: int) -> bytes:
    """A time as a key whose byte order is time order."""
    return struct.pack(">Q", at + (1 << 63))


def key_of(value: str | int | float | bool | None) -> bytes | None:
    """A scalar as a key whose byte order is value order within its type; None when it is kept out of the index.

    Integers beyond 2**53 stay exact: the nearest float first, then what it misses.
    """
    if value is None:
        return b"0"
    if isinstance(value, bool):
        return b"b1" if value else b"b0"
    if isinstance(value, str):
        encoded = value.encode("utf-8", "surrogatepass")
        return b"s" + encoded if len(encoded) <= LONGEST_KEY else None
    try:
        nearest = float(value)
    except OverflowError:
        return None
    if math.isnan(nearest) or (math.isinf(nearest) and isinstance(value, int)):
        return None
    rest = value - int(nearest) if isinstance(value, int) else 0
    if not -(1 << 63) <= rest < 1 << 63:
        return None
    bits = struct.unpack(">Q", struct.pack(">d", nearest + 0.0))[0]
    ordered = bits ^ (0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else 1 << 63)
    return b"n" + struct.pack(">QQ", ordered, rest + (1 << 63))


_EMPTY = BitMap()
_NOTHING = _Terms(frozenset(), frozenset(), frozenset())

_EXACT: dict[str, Callable[[Node], tuple[Any, ...]]] = {
    "status": lambda n: (n.status.value,),
    "trust": lambda n: (n.trust.value,),
    "kind": lambda n: (n.kind.value,),
    "layer": lambda n: (n.layer,),
    "session": lambda n: (n.session,),
    "user": lambda n: (n.scope.user,),
    "agent": lambda n: (n.scope.agent,),
    "project": lambda n: (n.scope.project,),
    "pinned": lambda n: (n.pinned,),
    "tags": lambda n: n.tags,
}


def _time(moment: Moment | None) -> int | None:
    return None if moment is None else moment.at


_ORDERED: dict[str, Callable[[Node], int | None]] = {
    "recorded_at": lambda n: n.recorded_at,
    "changed_at": lambda n: n.state.recorded_from,
    "occurred_at": lambda n: _time(n.occurred),
    "valid_from": lambda n: _time(n.state.valid_from),
    "valid_to": lambda n: _time(n.state.valid_to),
}


def _terms(node: Node) -> _Terms:
    return _Terms(
        frozenset((field, value) for field, values in _EXACT.items() for value in values(node)),
        frozenset((field, time_key(at)) for field, get in _ORDERED.items() if (at := get(node)) is not None),
        frozenset(_metadata_terms(node.metadata, ())),
    )


def _metadata_terms(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, bytes]]:
    if path:
        yield path, "present", b""
    if isinstance(value, dict):
        if path:
            yield path, "opaque", b""
        for key, inner in value.items():
            yield from _metadata_terms(inner, (*path, key))
    elif isinstance(value, list):
        yield path, "arrays", b""
        for element in value:
            key = None if isinstance(element, dict | list) else key_of(element)
            yield (path, "opaque", b"") if key is None else (path, "elements", key)
    else:
        key = key_of(value)
        yield (path, "opaque", b"") if key is None else (path, "ordered", key)


_Change: TypeAlias = Callable[[MetadataColumn, bytes, int], Any]
_METADATA_PARTS: dict[str, tuple[_Change, _Change]] = {
    "present": (lambda c, k, s: c.present.add(s), lambda c, k, s: c.present.discard(s)),
    "arrays": (lambda c, k, s: c.arrays.add(s), lambda c, k, s: c.arrays.discard(s)),
    "opaque": (lambda c, k, s: c.opaque.add(s), lambda c, k, s: c.opaque.discard(s)),
    "ordered": (lambda c, k, s: c.ordered.insert(k, s), lambda c, k, s: c.ordered.remove(k, s)),
    "elements": (lambda c, k, s: c.elements.insert(k, s), lambda c, k, s: c.elements.remove(k, s)),
}
