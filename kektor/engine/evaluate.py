"""Filters over bitmaps. `filters.matches` is the definition; this agrees with it and looks at as few records as it can.

Every step works within a universe of slots and answers two sets, true and false; the rest is unknown. A conjunction
narrows the universe term by term, columns first, so that what needs records sees only what the columns left.
"""

from typing import NamedTuple

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
    return _Evaluator(space, now).run(expression, universe).true


class _Verdict(NamedTuple):
    true: BitMap
    false: BitMap


class _Evaluator:
    def __init__(self, space: IndexSpace, now: int) -> None:
        self._space = space
        self._now = now
        self._columns = space.columns

    def run(self, expression: Filter, universe: BitMap) -> _Verdict:
        match expression:
            case And(terms):
                return self._all(terms, universe)
            case Or(terms):
                negated = self._all(tuple(Not(term) for term in terms), universe)
                return _Verdict(negated.false, negated.true)
            case Not(term):
                inner = self.run(term, universe)
                return _Verdict(inner.false, inner.true)
            case _:
                return self._leaf(expression, universe)

    def _all(self, terms: tuple[Filter, ...], universe: BitMap) -> _Verdict:
        """What is false stays out of the following terms; what is unknown may still become false."""
        left, true, false = BitMap(universe), BitMap(universe), BitMap()
        for term in sorted(terms, key=self._cost):
            if not left:
                break
            verdict = self.run(term, left)
            true &= verdict.true
            false |= verdict.false
            left -= verdict.false
        return _Verdict(true, false)

    def _cost(self, expression: Filter) -> int:
        """0 answered by columns, 1 needs some records, 2 needs all that are left."""
        match expression:
            case And(terms) | Or(terms):
                return max((self._cost(term) for term in terms), default=0)
            case Not(term):
                return self._cost(term)
            case Contains(field) | Like(field) if field.path[0] == "metadata":
                return 1
            case Like():
                return 2
            case _:
                path = expression.field.path
                known = path in _EXACT_FIELDS or path in _TIME_FIELDS or path[0] == "metadata"
                return 0 if known else 2

    def _leaf(self, leaf: _Leaf, universe: BitMap) -> _Verdict:
        path = leaf.field.path
        if path[0] == "metadata" and len(path) > 1:
            return self._metadata(leaf, universe)
        if not isinstance(leaf, Like):
            if (name := _EXACT_FIELDS.get(path)) is not None:
                return self._exact(leaf, name, universe)
            if (name := _TIME_FIELDS.get(path)) is not None and not isinstance(leaf, Contains):
                return self._time(leaf, name, universe)
        return self._by_record(leaf, universe)

    def _by_record(self, leaf: _Leaf, universe: BitMap) -> _Verdict:
        true, false = BitMap(), BitMap()
        for slot in universe:
            node = self._space.node(slot)
            verdict = matches(leaf, lookup(node, self._space.settings, node.state, self._now))
            if verdict is not None:
                (true if verdict else false).add(slot)
        return _Verdict(true, false)

    def _exact(self, leaf: Compare | In | Contains | Exists, name: str, universe: BitMap) -> _Verdict:
        columns = self._columns
        present = universe if name in _NEVER_MISSING else universe - columns.having(name, "")
        if isinstance(leaf, Exists):
            true = universe & BitMap.union(BitMap(), *columns.exact["tags"].values()) if name == "tags" else present
            return _Verdict(true, universe - true)
        if isinstance(leaf, Compare) and leaf.op not in ("=", "!="):
            return self._by_record(leaf, universe)
        if isinstance(leaf, Contains) and name != "tags":
            return self._by_record(leaf, universe)
        wanted = leaf.values if isinstance(leaf, In) else (leaf.value,)
        found = BitMap()
        for value in wanted:
            # True equals 1 as a key of a dictionary and not in a filter.
            if isinstance(value, bool if name == "pinned" else str):
                found |= columns.having(name, value)
        return _equality(leaf, present & found, present)

    def _time(self, leaf: Compare | In | Exists, name: str, universe: BitMap) -> _Verdict:
        present = universe & self._columns.between(name)
        match leaf:
            case Exists():
                return _Verdict(present, universe - present)
            case In(_, values):
                found = BitMap.union(BitMap(), *(self._within(name, value) for value in values))
                return _Verdict(present & found, present - found)
            case Compare(op, _, value):
                if op in ("=", "!="):
                    return _equality(leaf, present & self._within(name, value), present)
                edge = _edge(op, value)
                if edge is None:
                    return self._by_record(leaf, universe)
                below = self._columns.between(name, high=time_key(edge), high_inclusive=False)
                true = present & below if op in ("<", "<=") else present - below
                return _Verdict(true, present - true)

    def _within(self, name: str, value: Value) -> BitMap:
        if not isinstance(value, Extent):
            return BitMap()
        return self._columns.between(name, time_key(value.start), time_key(value.end), high_inclusive=False)

    def _metadata(self, leaf: _Leaf, universe: BitMap) -> _Verdict:
        column = self._columns.metadata.get(leaf.field.path[1:])
        if column is None:
            return _Verdict(BitMap(), BitMap(universe) if isinstance(leaf, Exists) else BitMap())
        present = universe & column.present
        if isinstance(leaf, Exists):
            return _Verdict(present, universe - present)
        answered = self._by_column(leaf, column, present)
        if answered is None:
            return self._by_record(leaf, present)
        rest = self._by_record(leaf, present & self._unanswered(leaf, column))
        return _Verdict(answered.true | rest.true, answered.false | rest.false)

    def _unanswered(self, leaf: Compare | In | Contains | Like, column: MetadataColumn) -> BitMap:
        """Nodes whose value the column's keys cannot judge."""
        if isinstance(leaf, Contains) and isinstance(leaf.value, str):
            return column.opaque | _range(column, b"s", b"t")
        return column.opaque

    def _by_column(
        self, leaf: Compare | In | Contains | Like, column: MetadataColumn, present: BitMap
    ) -> _Verdict | None:
        judged = present - column.opaque
        match leaf:
            case Compare("=" | "!=", _, value) | In(_, (value,)):
                found = _holding(column, value)
                return None if found is None else _equality(leaf, judged & found, judged)
            case In(_, values):
                each = [_holding(column, value) for value in values]
                if any(found is None for found in each):
                    return None
                union = BitMap.union(BitMap(), *(found for found in each if found is not None))
                return _equality(leaf, judged & union, judged)
            case Compare(op, _, value):
                return _ordered(op, value, column, judged)
            case Contains(_, value):
                key = key_of(value)
                if key is None:
                    return None
                arrays = judged & column.arrays
                found = arrays & BitMap.deserialize(column.elements.get(key))
                return _Verdict(found, arrays - found)
            case _:
                return None


def _equality(leaf: Compare | In | Contains | Exists, found: BitMap, present: BitMap) -> _Verdict:
    """Equality is never unknown where the field is."""
    if isinstance(leaf, Compare) and leaf.op == "!=":
        return _Verdict(present - found, found)
    return _Verdict(found, present - found)


def _holding(column: MetadataColumn, value: Value) -> BitMap | None:
    """Slots with this value, or with it in their array; None when keys cannot tell."""
    key = None if isinstance(value, Extent) else key_of(value)
    if key is None:
        return None
    return BitMap.deserialize(column.ordered.get(key)) | BitMap.deserialize(column.elements.get(key))


def _ordered(op: str, value: Value, column: MetadataColumn, judged: BitMap) -> _Verdict | None:
    if isinstance(value, bool) or value is None:
        return _Verdict(BitMap(), BitMap())
    key = None if isinstance(value, Extent) else key_of(value)
    if key is None:
        return None
    first, past = (b"s", b"t") if isinstance(value, str) else (b"n", b"o")
    comparable = judged & _range(column, first, past)
    inclusive = op in ("<=", ">")
    below = BitMap.deserialize(column.ordered.range(first, key, high_inclusive=inclusive))
    true = comparable & below if op in ("<", "<=") else comparable - below
    return _Verdict(true, comparable - true)


def _range(column: MetadataColumn, low: bytes, high: bytes) -> BitMap:
    return BitMap.deserialize(column.ordered.range(low, high, high_inclusive=False))


def _edge(op: str, value: Value) -> int | None:
    """Where an ordering of times divides: everything before it is `<` or `<=`."""
    if not isinstance(value, Extent):
        return None
    return value.start if op in ("<", ">=") else value.end
