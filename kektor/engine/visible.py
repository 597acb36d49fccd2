"""A View compiled to one bitmap of slots; `View.admits` is the definition it is tested against."""

import threading
from collections import OrderedDict
from typing import NamedTuple

from kektor_native import Bitmap
from msgspec import structs
from pyroaring import BitMap

from kektor.engine.columns import Columns, time_key
from kektor.engine.edges import EdgeRule
from kektor.engine.evaluate import evaluate
from kektor.engine.graph_reads import GraphReads
from kektor.engine.records import Status, Trust
from kektor.engine.space import IndexSpace
from kektor.engine.view import Around, ScopeRule, View, depends_on_now, ends_later

__all__ = ["Compiled", "ViewCompiler"]

_CACHED = 64
_NEVER = (1 << 63) - 1


class Compiled(NamedTuple):
    """The slots a View admits, in both forms, while `now` lies in `since <= now < until`."""

    slots: BitMap
    native: Bitmap
    since: int
    until: int


class ViewCompiler:
    """Compiles Views of one index; a View asked again costs a look-up until a write or a validity boundary."""

    def __init__(self, space: IndexSpace) -> None:
        self._space = space
        self._columns = space.columns
        self._cache: OrderedDict[View, Compiled] = OrderedDict()
        self._lock = threading.Lock()
        self._ended = BitMap()
        self._drained = -(1 << 62)
        self._boundary = -(1 << 62)

    def invalidate(self) -> None:
        """Called for every applied transaction."""
        with self._lock:
            self._cache.clear()
            self._boundary = -(1 << 62)
            self._ended = BitMap()
            self._drained = -(1 << 62)

    def compile(self, view: View) -> Compiled:
        """The caller holds the engine's state lock, so the columns do not change meanwhile."""
        key = structs.replace(view, now=0)
        with self._lock:
            known = self._cache.get(key)
            if known is not None and known.since <= view.now < known.until:
                self._cache.move_to_end(key)
                return known
        slots = self._admitted(view)
        if view.around is not None:
            slots &= self._reached(view, view.around)
        until = self._next_boundary(view.now) if view.as_of is None and view.known_at is None else _NEVER
        compiled = Compiled(slots, Bitmap(slots.serialize()), view.now, until)
        if depends_on_now(view):
            return compiled
        with self._lock:
            self._cache[key] = compiled
            while len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        return compiled

    def _admitted(self, view: View) -> BitMap:
        columns = self._columns
        slots = _in_scope(columns, view.scopes)
        if view.kinds is not None:
            slots &= _union(columns, "kind", [kind.value for kind in view.kinds])
        if view.layers is not None:
            slots &= _union(columns, "layer", view.layers)
        if view.tags is not None:
            slots &= _union(columns, "tags", view.tags)
        if view.known_at is None:
            slots = self._holding(view, slots, view.now)
            return slots if view.filter is None else evaluate(view.filter, self._space, slots, view.now)
        return self._known(view, slots, view.known_at)

    def _reached(self, view: View, around: Around) -> BitMap:
        whole = self.compile(view.whole()).slots
        rule = EdgeRule(around.rels, around.direction)
        return GraphReads(self._space, view, rule, visible=whole, between=whole).reached(around.root, around.depth)

    def _known(self, view: View, slots: BitMap, known_at: int) -> BitMap:
        """Nodes that have not changed since are judged as today's; only the others need their history read."""
        columns = self._columns
        slots &= columns.between("recorded_at", high=time_key(known_at))
        changed = slots & columns.between("changed_at", low=time_key(known_at), low_inclusive=False)
        unchanged = self._holding(view, slots - changed, known_at)
        if view.filter is not None:
            unchanged = evaluate(view.filter, self._space, unchanged, view.now)
        return unchanged | BitMap(slot for slot in changed if view.admits(self._space.node(slot), self._space.settings))

    def _holding(self, view: View, slots: BitMap, reference: int) -> BitMap:
        """Of some slots those whose present state the View admits (life cycle, trust, validity)."""
        columns, include = self._columns, view.include
        trusted = {Trust.ACCEPTED.value, Trust.CONTESTED.value} | (include & {"proposed", "rejected"})
        slots = slots & _union(columns, "trust", trusted)
        if "archived" not in include:
            slots -= columns.having("status", Status.ARCHIVED.value)
        slots -= columns.having("status", Status.ERASED.value)
        if view.as_of is not None:
            at = time_key(view.as_of)
            slots -= columns.between("valid_from", low=at, low_inclusive=False)
            return slots - columns.between("valid_to", high=at)
        superseded = columns.having("status", Status.SUPERSEDED.value)
        if view.history:
            return slots
        if "superseded" in include:
            return (slots - superseded - self._ended_by(reference)) | (slots & superseded)
        # What a later beginning replaces holds until then; these are few, so that their records can be read.
        unended = superseded & columns.between("valid_to", low=time_key(reference), low_inclusive=False) & slots
        holding = BitMap(slot for slot in unended if ends_later(self._space.node(slot).state))
        return (slots - superseded - self._ended_by(reference)) | holding

    def _ended_by(self, reference: int) -> BitMap:
        """Slots whose validity has ended; boundaries passed since the last read are taken in, never recomputed."""
        if reference < self._drained:
            return self._columns.between("valid_to", high=time_key(reference))
        if reference >= self._boundary:
            low = time_key(self._drained)
            self._ended |= self._columns.between("valid_to", low, time_key(reference), low_inclusive=False)
            self._drained = reference
            self._boundary = self._next_boundary(reference)
        return self._ended

    def _next_boundary(self, now: int) -> int:
        key = self._columns.ordered["valid_to"].next_key(time_key(now), inclusive=False)
        return _NEVER if key is None else int.from_bytes(key, "big") - (1 << 63)


def _in_scope(columns: Columns, scopes: tuple[tuple[ScopeRule, ...], ...]) -> BitMap:
    slots = BitMap(columns.alive)
    for rules in scopes:
        if any(rule == ScopeRule() for rule in rules):
            continue
        slots &= BitMap.union(BitMap(), *(_by_rule(columns, rule) for rule in rules))
    return slots


def _by_rule(columns: Columns, rule: ScopeRule) -> BitMap:
    slots = BitMap(columns.alive)
    for field in ("user", "agent", "project"):
        value = getattr(rule, field)
        if value is not None:
            slots &= columns.having(field, "") | columns.having(field, value)
    return slots


def _union(columns: Columns, field: str, values: object) -> BitMap:
    assert isinstance(values, list | set | frozenset)
    return BitMap.union(BitMap(), *(columns.having(field, value) for value in values))
