"""Filters over bitmaps. `filters.matches` is the definition; this agrees with it and looks at as few records as it can.

Every step works within a universe of slots and answers one side, where the filter is true or where it is false; what
is in neither is unknown. A conjunction narrows the universe term by term: what names a value first, then ranges, and
what needs records sees only what the columns left. Only the side that is asked for is looked up, so that a range costs
what it holds.
"""

from pyroaring import BitMap

from kektor.engine.columns import MetadataColumn, key_of, time_key
from kektor.engine.filters import And, Compare, Contains, Exists, Filter, In, Like, Not, Or, Value, matches
from kektor.engine.space import IndexSpace
from kektor.engine.view import lookup
from kektor.times import Extent

__all__ = ["evaluate"]

_Leaf = Compare | In | Contains | Exists | Like

_EXACT_FIELDS: dict[tuple[str, ...], str] = {
    ("kind",): "kind",
    ("status",): "status",
    ("trust",): "trust",
    ("layer",): "layer",
    ("session",): "session",
    ("pinned",): "pinned",
    ("tags",): "tags",
    ("scope", "user"): "user",
    ("scope", "agent"): "agent",
    ("scope", "project"): "project",
}
_TIME_FIELDS: dict[tuple[str, ...], str] = {
    ("recorded_at",): "recorded_at",
    ("occurred_at",): "occurred_at",
    ("validity", "from"): "valid_from",
    ("validity", "to"): "valid_to",
}
_NEVER_MISSING = frozenset({"kind", "status", "trust", "pinned", "tags"})


def evaluate(expression: Filter, space: IndexSpace, universe: BitMap, now: int) -> BitMap:
    """The slots of `universe` whose nodes match at a moment."""
    return _Evaluator(space, now).side(expression, universe, wanted=True)


_FEW = 32
"""So few records are read sooner than a range of unknown size."""


class _Evaluator:
    def __init__(self, space: IndexSpace, now: int) -> None:
        self._space = space
        self._now = now
        self._columns = space.columns

    def side(self, expression: Filter, universe: BitMap, *, wanted: bool) -> BitMap:
        """Where the filter is true, or where it is false."""
        match expression:
            case And(terms):
                return self._every(terms, universe, wanted) if wanted else self._any(terms, universe, wanted)
            case Or(terms):
                return self._any(terms, universe, wanted) if wanted else self._every(terms, universe, wanted)
            case Not(term):
                return self.side(term, universe, wanted=not wanted)
            case _:
                return self._leaf(expression, universe, wanted)

    def _every(self, terms: tuple[Filter, ...], universe: BitMap, wanted: bool) -> BitMap:
        left = BitMap(universe)
        for term in sorted(terms, key=self._cost):
            if not left:
                break
            left = self.side(term, left, wanted=wanted)
        return left

    def _any(self, terms: tuple[Filter, ...], universe: BitMap, wanted: bool) -> BitMap:
        found, left = BitMap(), BitMap(universe)
        for term in sorted(terms, key=self._cost):
            if not left:
                break
            found |= self.side(term, left, wanted=wanted)
            left -= found
        return found

    def _cost(self, expression: Filter) -> int:
        """0 one look at a column, 1 a range of it, 2 needs some records, 3 needs all that are left."""
        match expression:
            case And(terms) | Or(terms):
                return max((self._cost(term) for term in terms), default=0)
            case Not(term):
                return self._cost(term)
            case Contains(field) | Like(field) if field.path[0] == "metadata":
                return 2
            case Like():
                return 3
            case _:
                path = expression.field.path
                if path not in _EXACT_FIELDS and path not in _TIME_FIELDS and path[0] != "metadata":
                    return 3
                ranges = isinstance(expression, Compare) and expression.op not in ("=", "!=")
                return 1 if ranges or path in _TIME_FIELDS else 0

    def _leaf(self, leaf: _Leaf, universe: BitMap, wanted: bool) -> BitMap:
        path = leaf.field.path
        if len(universe) <= _FEW and self._cost(leaf) > 0:
            return self._by_record(leaf, universe, wanted)
        if path[0] == "metadata" and len(path) > 1:
            return self._metadata(leaf, universe, wanted)
        if not isinstance(leaf, Like):
            if (name := _EXACT_FIELDS.get(path)) is not None:
                return self._exact(leaf, name, universe, wanted)
            if (name := _TIME_FIELDS.get(path)) is not None and not isinstance(leaf, Contains):
                return self._time(leaf, name, universe, wanted)
        return self._by_record(leaf, universe, wanted)

    def _by_record(self, leaf: _Leaf, universe: BitMap, wanted: bool) -> BitMap:
        found = BitMap()
        for slot in universe:
            node = self._space.node(slot)
            if matches(leaf, lookup(node, self._space.settings, node.state, self._now)) is wanted:
                found.add(slot)
        return found

    def _exact(self, leaf: Compare | In | Contains | Exists, name: str, universe: BitMap, wanted: bool) -> BitMap:
        columns = self._columns
        present = universe if name in _NEVER_MISSING else universe - columns.having(name, "")
        if isinstance(leaf, Exists):
            true = universe & BitMap.union(BitMap(), *columns.exact["tags"].values()) if name == "tags" else present
            return true if wanted else universe - true
        if isinstance(leaf, Compare) and leaf.op not in ("=", "!="):
            return self._by_record(leaf, universe, wanted)
        if isinstance(leaf, Contains) and name != "tags":
            return self._by_record(leaf, universe, wanted)
        values = leaf.values if isinstance(leaf, In) else (leaf.value,)
        found = BitMap()
        for value in values:
            # True equals 1 as a key of a dictionary and not in a filter.
            if isinstance(value, bool if name == "pinned" else str):
                found |= columns.having(name, value)
        return _equality(leaf, present & found, present, wanted)

    def _time(self, leaf: Compare | In | Exists, name: str, universe: BitMap, wanted: bool) -> BitMap:
        match leaf:
            case Exists():
                present = universe & self._columns.between(name)
                return present if wanted else universe - present
            case Compare(op, _, value) if op not in ("=", "!="):
                edge = _edge(op, value)
                if edge is None:
                    return self._by_record(leaf, universe, wanted)
                if (op in ("<", "<=")) == wanted:
                    return universe & self._columns.between(name, high=time_key(edge), high_inclusive=False)
                return universe & self._columns.between(name, low=time_key(edge))
            case _:
                values = leaf.values if isinstance(leaf, In) else (leaf.value,)
                found = universe & BitMap.union(BitMap(), *(self._within(name, value) for value in values))
                if _asks_equal(leaf) == wanted:
                    return found
                return (universe & self._columns.between(name)) - found

    def _within(self, name: str, value: Value) -> BitMap:
        if not isinstance(value, Extent):
            return BitMap()
        return self._columns.between(name, time_key(value.start), time_key(value.end), high_inclusive=False)

    def _metadata(self, leaf: _Leaf, universe: BitMap, wanted: bool) -> BitMap:
        column = self._columns.metadata.get(leaf.field.path[1:])
        if column is None:
            return BitMap(universe) if isinstance(leaf, Exists) and not wanted else BitMap()
        present = universe & column.present
        if isinstance(leaf, Exists):
            return present if wanted else universe - present
        answered = self._by_column(leaf, column, present, wanted)
        if answered is None:
            return self._by_record(leaf, present, wanted)
        return answered | self._by_record(leaf, present & self._unanswered(leaf, column), wanted)

    def _unanswered(self, leaf: Compare | In | Contains | Like, column: MetadataColumn) -> BitMap:
        """Nodes whose value the column's keys cannot judge."""
        if isinstance(leaf, Contains) and isinstance(leaf.value, str):
            return column.opaque | _range(column, b"s", b"t")
        return column.opaque

    def _by_column(
        self, leaf: Compare | In | Contains | Like, column: MetadataColumn, present: BitMap, wanted: bool
    ) -> BitMap | None:
        judged = present - column.opaque
        match leaf:
            case Compare("=" | "!=", _, value) | In(_, (value,)):
                found = _holding(column, value)
                return None if found is None else _equality(leaf, judged & found, judged, wanted)
            case In(_, values):
                each = [_holding(column, value) for value in values]
                if any(found is None for found in each):
                    return None
                union = BitMap.union(BitMap(), *(found for found in each if found is not None))
                return _equality(leaf, judged & union, judged, wanted)
            case Compare(op, _, value):
                return _ordered(op, value, column, judged, wanted)
            case Contains(_, value):
                key = key_of(value)
                if key is None:
                    return None
                arrays = judged & column.arrays
                found = arrays & BitMap.deserialize(column.elements.get(key))
                return found if wanted else arrays - found
            case _:
                return None


def _asks_equal(leaf: Compare | In | Contains) -> bool:
    return not (isinstance(leaf, Compare) and leaf.op == "!=")


def _equality(leaf: Compare | In | Contains, found: BitMap, present: BitMap, wanted: bool) -> BitMap:
    """Equality is never unknown where the field is."""
    return found if _asks_equal(leaf) == wanted else present - found


def _holding(column: MetadataColumn, value: Value) -> BitMap | None:
    """Slots with this value, or with it in their array; None when keys cannot tell."""
    key = None if isinstance(value, Extent) else key_of(value)
    if key is None:
        return None
    return BitMap.deserialize(column.ordered.get(key)) | BitMap.deserialize(column.elements.get(key))


def _ordered(op: str, value: Value, column: MetadataColumn, judged: BitMap, wanted: bool) -> BitMap | None:
    """One side of the value among those of its type; all others are unknown."""
    if isinstance(value, bool) or value is None:
        return BitMap()
    key = None if isinstance(value, Extent) else key_of(value)
    if key is None:
        return None
    first, past = (b"s", b"t") if isinstance(value, str) else (b"n", b"o")
    with_below = op in ("<=", ">")
    if (op in ("<", "<=")) == wanted:
        found = column.ordered.range(first, key, high_inclusive=with_below)
    else:
        found = column.ordered.range(key, past, low_inclusive=not with_below, high_inclusive=False)
    return judged & BitMap.deserialize(found)


def _range(column: MetadataColumn, low: bytes, high: bytes) -> BitMap:
    return BitMap.deserialize(column.ordered.range(low, high, high_inclusive=False))


def _edge(op: str, value: Value) -> int | None:
    """Where an ordering of times divides: everything before it is `<` or `<=`."""
    if not isinstance(value, Extent):
        return None
    return value.start if op in ("<", ">=") else value.end
