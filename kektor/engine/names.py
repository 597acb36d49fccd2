"""What each slot is called: ids, lineages, digests and sessions to slots and back, without reading a record."""

from array import array
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kektor.engine.records import Node, NodeKey, Origin, Scope
from kektor.engine.ties import content_order

__all__ = ["Names"]

T = TypeVar("T")


class Names:
    """Kept in step with the nodes by `add` and `remove`. A slot's entry stays when the node goes: slots are not
    used again while somebody may hold one."""

    def __init__(self) -> None:
        self._ids: dict[str, int | tuple[int, ...]] = {}
        self._lineages: dict[str, int | tuple[int, ...]] = {}
        self._digests: dict[tuple[int, bytes], int | tuple[int, ...]] = {}
        self._origins: dict[Origin, int | tuple[int, ...]] = {}
        self._places: dict[int, int] = {}
        self._keys: list[NodeKey | None] = []
        self._sessions = array("I")
        self._order = array("Q")
        self._scopes: dict[Scope, Scope] = {}
        self._scope_numbers: dict[Scope, int] = {}
        self._session_numbers: dict[str, int] = {"": 0}
        self._session_names: list[str] = [""]

    def add(self, slot: int, node: Node) -> None:
        scope = self._scopes.setdefault(node.scope, node.scope)
        while len(self._keys) <= slot:
            self._keys.append(None)
            self._sessions.append(0)
            self._order.append(0)
        self._keys[slot] = NodeKey(scope, node.id)
        self._sessions[slot] = self._session(node.session)
        self._order[slot] = content_order(node.text)
        _append(self._ids, node.id, slot)
        _append(self._lineages, node.lineage, slot)
        if node.origin is not None:
            _append(self._origins, node.origin, slot)
        if node.place:
            self._places[slot] = node.place - 1
        for digest in _digests(node):
            _append(self._digests, (self._number(node.scope), digest), slot)

    def change(self, slot: int, old: Node, new: Node) -> None:
        """A node moved to another lineage; its other names never change."""
        if old.lineage != new.lineage:
            _discard(self._lineages, old.lineage, slot)
            _append(self._lineages, new.lineage, slot)

    def remove(self, slot: int, node: Node) -> None:
        self._keys[slot] = None
        _discard(self._ids, node.id, slot)
        _discard(self._lineages, node.lineage, slot)
        if node.origin is not None:
            _discard(self._origins, node.origin, slot)
        self._places.pop(slot, None)
        for digest in _digests(node):
            _discard(self._digests, (self._number(node.scope), digest), slot)

    def key(self, slot: int) -> NodeKey | None:
        """What a slot's node is called; None when it has none (any more)."""
        return self._keys[slot] if slot < len(self._keys) else None

    def slot(self, key: NodeKey) -> int | None:
        for slot in _each(self._ids.get(key.id)):
            held = self._keys[slot]
            if held is not None and held.scope == key.scope:
                return slot
        return None

    def by_content(self, slots: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Numbers whose order is that of the nodes' content, whatever the slots; equal for equal content."""
        return np.frombuffer(self._order, np.uint64)[slots]

    def of_id(self, node_id: str) -> tuple[int, ...]:
        """One slot for each scope that has the id."""
        return _each(self._ids.get(node_id))

    def of_digest(self, scope: Scope, digest: bytes) -> tuple[int, ...]:
        return _each(self._digests.get((self._number(scope), digest)))

    def of_lineage(self, scope: Scope, lineage: str) -> list[int]:
        """Every version's slot, in the order stored."""
        found = _each(self._lineages.get(lineage))
        return [slot for slot in found if (key := self._keys[slot]) is not None and key.scope == scope]

    def of_origin(self, origin: Origin) -> tuple[int, ...]:
        """Copies of a node of this or another index."""
        return _each(self._origins.get(origin))

    def place(self, slot: int) -> int:
        """Where the node stands among those of this index: its slot, or the one it had before it moved."""
        return self._places.get(slot, slot)

    def session(self, slot: int) -> str:
        return self._session_names[self._sessions[slot]]

    def _session(self, name: str) -> int:
        number = self._session_numbers.setdefault(name, len(self._session_names))
        if number == len(self._session_names):
            self._session_names.append(name)
        return number

    def _number(self, scope: Scope) -> int:
        return self._scope_numbers.setdefault(scope, len(self._scope_numbers))


def _digests(node: Node) -> set[bytes]:
    return {node.digest, node.topic} - {b""}


def _each(slots: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """Nearly every name has one slot; a tuple for each would cost more than the name."""
    return () if slots is None else (slots,) if isinstance(slots, int) else slots


def _append(table: dict[T, int | tuple[int, ...]], key: T, slot: int) -> None:
    held = table.get(key)
    table[key] = slot if held is None else (*_each(held), slot)


def _discard(table: dict[T, Any], key: T, slot: int) -> None:
    left = tuple(other for other in _each(table[key]) if other != slot)
    if left:
        table[key] = left if len(left) > 1 else left[0]
    else:
        del table[key]
