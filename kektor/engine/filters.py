"""What a filter is and what it means.

A filter is a tree of frozen structs. `matches` defines what each one says about a record, and every quicker
evaluator must agree with it. The logic has three values: true, false and unknown, and only true matches.
"""

import difflib
import enum
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeGuard

import msgspec

from kektor.errors import Invalid
from kektor.times import Extent

__all__ = [
    "ALIASES",
    "MEMORY_FIELDS",
    "MISSING",
    "And",
    "Compare",
    "Contains",
    "Exists",
    "Field",
    "Filter",
    "In",
    "Like",
    "Lookup",
    "MemoryField",
    "Not",
    "Operator",
    "Or",
    "Scalar",
    "Value",
    "canonical",
    "check_bare",
    "conjunction",
    "fields",
    "lookup_in",
    "matches",
    "memory_field",
    "nearest_name",
    "nearest_of",
    "to_json",
]

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = Scalar | Extent


class Field(msgspec.Struct, frozen=True):
    """A field of a memory, or a place in its metadata, whose path begins with `metadata`.

    `bare` marks a metadata field that was written without that beginning, which `check_bare` looks at.
    """

    path: tuple[str, ...]
    bare: bool = False

    def __str__(self) -> str:
        """The field as the filter language writes it."""
        return ".".join(map(_segment, self.path[1:] if self.bare else self.path))


class And(msgspec.Struct, frozen=True):
    """False when a term is false, else unknown when one is unknown, else true."""

    terms: "tuple[Filter, ...]"


class Or(msgspec.Struct, frozen=True):
    """True when a term is true, else unknown when one is unknown, else false."""

    terms: "tuple[Filter, ...]"


class Not(msgspec.Struct, frozen=True):
    """True for false and false for true; what is unknown stays unknown."""

    term: "Filter"


class Compare(msgspec.Struct, frozen=True, eq=False):
    """A field beside one value.

    `=` on an array holds when one of its elements equals the value. Values of two types are never equal and
    have no order: `=` is false, `!=` is true, the other four are unknown. Numbers compare exactly, text by
    code points, a time with an `Extent` as described there.
    """

    op: Operator
    field: Field
    value: Value

    def __eq__(self, other: object) -> bool:
        return type(other) is Compare and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        return self.op, self.field, _tagged(self.value)


class In(msgspec.Struct, frozen=True, eq=False):
    """One of the values equals the field, as `=` would say; without values, false wherever the field is."""

    field: Field
    values: tuple[Value, ...]

    def __eq__(self, other: object) -> bool:
        return type(other) is In and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        return self.field, tuple(map(_tagged, self.values))


class Contains(msgspec.Struct, frozen=True, eq=False):
    """An array has an element equal to the value, or a text has the value in it, code point by code point."""

    field: Field
    value: Scalar

    def __eq__(self, other: object) -> bool:
        return type(other) is Contains and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        return self.field, _tagged(self.value)


class Exists(msgspec.Struct, frozen=True):
    """The record has the field; never unknown.

    In metadata whatever is stored is there, null and an empty list too. A field of a memory is there when it
    has a value, and `tags`, `evidence` and `metadata` when they have at least one.
    """

    field: Field


class Like(msgspec.Struct, frozen=True):
    """A text, or a text of an array, fits the whole pattern, where `%` stands for any run of characters."""

    field: Field
    pattern: str


Filter: TypeAlias = And | Or | Not | Compare | In | Contains | Exists | Like


class MemoryField(msgspec.Struct, frozen=True):
    """What a field of a memory holds.

    `item` is the type of an array's elements; `choices` are all values that a text may have, where those are
    settled. A `map` is only good for `EXISTS`: its parts are fields of their own.
    """

    type: Literal["text", "number", "bool", "time", "array", "map"]
    item: Literal["text", "number"] | None = None
    choices: tuple[str, ...] = ()


_TEXT: Final = MemoryField("text")
_NUMBER: Final = MemoryField("number")
_TIME: Final = MemoryField("time")
_MAP: Final = MemoryField("map")
_TEXTS: Final = MemoryField("array", item="text")
_NUMBERS: Final = MemoryField("array", item="number")

MEMORY_FIELDS: Final[Mapping[str, MemoryField]] = MappingProxyType(
    {
        "id": _TEXT,
        "lineage": _TEXT,
        "version": _NUMBER,
        "index": _TEXT,
        "kind": MemoryField(
            "text",
            choices=(
                "memory",
                "source",
                "entity",
                "key",
                "summary",
                "theme",
                "reflection",
                "profile",
                "artifact",
                "session",
            ),
        ),
        "text": _TEXT,
        "metadata": _MAP,
        "tags": _TEXTS,
        "layer": _TEXT,
        "pinned": MemoryField("bool"),
        "scope.user": _TEXT,
        "scope.agent": _TEXT,
        "scope.project": _TEXT,
        "session": _TEXT,
        "status": MemoryField("text", choices=("current", "superseded", "archived", "erased")),
        "trust": MemoryField("text", choices=("accepted", "contested", "proposed", "rejected")),
        "validity.from": _TIME,
        "validity.to": _TIME,
        "validity.label": _TEXT,
        "occurred_at": _TIME,
        "recorded_at": _TIME,
        "retired_at": _TIME,
        "freshness.state": MemoryField("text", choices=("fresh", "aging", "stale")),
        "freshness.score": _NUMBER,
        "freshness.profile": _TEXT,
        "freshness.confirmed_at": _TIME,
        "freshness.confirmations": _NUMBER,
        "claim": _MAP,
        "claim.subject": _TEXT,
        "claim.predicate": _TEXT,
        "claim.object": _TEXT,
        "supersedes": _TEXT,
        "superseded_by": _TEXT,
        "evidence": _MAP,
        "evidence.source": _TEXTS,
        "evidence.start": _NUMBERS,
        "evidence.end": _NUMBERS,
        "evidence.quote": _TEXTS,
        "evidence.class": MemoryField("array", item="text", choices=("user", "tool", "act", "self", "doc")),
        "actor.kind": MemoryField("text", choices=("human", "agent", "gardener", "import", "service")),
        "actor.id": _TEXT,
        "actor.channel": _TEXT,
        "access.count": _NUMBER,
        "access.last": _TIME,
    }
)
"""Every field of a memory that a filter may name, in the order in which a memory shows them."""

ALIASES: Final[Mapping[str, str]] = MappingProxyType({"valid_from": "validity.from", "valid_to": "validity.to"})
"""Other names that a filter may use, as the arguments of `remember` have them."""


class _Missing(enum.Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
"""What a `Lookup` answers for a field that the record does not have."""

Lookup: TypeAlias = Callable[[tuple[str, ...]], object]
"""Path of a field → its value (text, number, bool, None, list, mapping; time in microseconds), or `MISSING`.

For a field of a memory None means the same as `MISSING`; in metadata None is a value like others. `tags` and
the parts of `evidence` are never missing: a memory without any has an empty list.
"""


def matches(expression: Filter, lookup: Lookup) -> bool | None:
    """Whether one record matches: True, False, or None for unknown, which does not match.

    >>> high = Compare(">", Field(("metadata", "price")), 10)
    >>> [matches(high, lookup_in({"metadata": m})) for m in ({"price": 11}, {"price": 9}, {})]
    [True, False, None]
    """
    match expression:
        case And(terms):
            return _all(matches(term, lookup) for term in terms)
        case Or(terms):
            return _negate(_all(_negate(matches(term, lookup)) for term in terms))
        case Not(term):
            return _negate(matches(term, lookup))
        case Exists(field):
            return _exists(field, lookup)
        case _:
            value = _value(expression.field, lookup)
            return None if value is MISSING else _test(expression, value)


def lookup_in(document: Mapping[str, Any]) -> Lookup:
    """A `Lookup` into a nested mapping shaped like a memory, times in microseconds.

    >>> lookup_in({"metadata": {"a": {"b": 1}}})(("metadata", "a", "b"))
    1
    """

    def lookup(path: tuple[str, ...]) -> object:
        if path[0] == "evidence" and len(path) == 2:
            return [span[path[1]] for span in document.get("evidence") or () if path[1] in span]
        found: object = document
        for name in path:
            if not isinstance(found, Mapping) or name not in found:
                return [] if path == ("tags",) else MISSING
            found = found[name]
        return found

    return lookup


def conjunction(filters: Iterable[Filter | None]) -> Filter | None:
    """What all of these say together; None stands for no filter, among them and as the answer.

    >>> conjunction([None, Exists(Field(("session",)))])
    Exists(field=Field(path=('session',), bare=False))
    """
    terms = tuple(each for each in filters if each is not None)
    return And(terms) if len(terms) > 1 else terms[0] if terms else None


def fields(expression: Filter) -> frozenset[Field]:
    """Every field that a filter looks at."""
    return frozenset(leaf.field for leaf in _leaves(expression))


def memory_field(field: Field) -> MemoryField | None:
    """What is known of a field before any record is seen; None for metadata, which may hold anything."""
    return None if field.path[0] == "metadata" and len(field.path) > 1 else MEMORY_FIELDS[".".join(field.path)]


def check_bare(expression: Filter, known_keys: Collection[str]) -> None:
    """Refuse a bare name that is neither a field of a memory nor a stored metadata key.

    `known_keys` are the top-level metadata keys that the caller may see, as the message names the nearest.
    Raises `Invalid` for the first such name.

    >>> check_bare(Exists(Field(("metadata", "stage"), bare=True)), {"stage"})
    """
    unknown = min((f.path[1] for f in fields(expression) if f.bare and f.path[1] not in known_keys), default=None)
    if unknown is None:
        return
    near = nearest_name(unknown, known_keys)
    hint = f"; did you mean {near}?" if near else ""
    raise Invalid(
        f"filter: no memory field and no stored metadata key is called {unknown[:80]!r}{hint}",
        field="filter",
        details={"name": unknown, "nearest": near},
    )


def nearest_name(name: str, known_keys: Collection[str] = ()) -> str | None:
    """The memory field or metadata key, as a filter writes it, that looks most like a mistaken name."""
    spellings = {key.lower()[:_NAME_LENGTH]: f"metadata.{_segment(key)}" for key in known_keys}
    for field in reversed(list(MEMORY_FIELDS)):
        spellings[field.rpartition(".")[2]] = field
    spellings |= {field: field for field in (*MEMORY_FIELDS, *ALIASES)}
    near = nearest_of(name, spellings)
    return None if near is None else spellings[near]


def nearest_of(name: str, known: Iterable[str]) -> str | None:
    """Of some names in lower case the one that looks most like a mistaken one."""
    near = difflib.get_close_matches(name.lower()[:_NAME_LENGTH], list(known), n=1)
    return near[0] if near else None


def canonical(expression: Filter) -> tuple[object, ...]:
    """A hashable key: filters with equal keys match the same records, in whatever order they were written.

    >>> a, b = (Exists(Field(("metadata", k))) for k in "ab")
    >>> canonical(And((a, b))) == canonical(Not(Not(And((b, a, b)))))
    True
    """
    match expression:
        case And(terms):
            return _canonical_branch("and", map(canonical, terms))
        case Or(terms):
            return _canonical_branch("or", map(canonical, terms))
        case Not(term):
            return _canonical_not(canonical(term))
        case Compare("!=", field, value):
            return _canonical_not(_canonical_equal(field, value))
        case Compare("=", field, value):
            return _canonical_equal(field, value)
        case Compare(op, field, Extent() as extent):
            edge = extent.start if op in ("<", ">=") else extent.end
            return ("<" if op in ("<", "<=") else ">="), field.path, ("time", edge)
        case Compare(op, field, value):
            return op, field.path, _tagged(value)
        case In(field, values):
            equal = (_canonical_equal(field, value) for value in values)
            return _canonical_branch("or", equal) if values else ("empty", field.path)
        case Contains(field, value):
            known = memory_field(field)
            if known is not None and known.type == "array":
                return _canonical_equal(field, value)
            return "contains", field.path, _tagged(value)
        case Exists(field):
            return "exists", field.path
        case Like(field, pattern):
            return "like", field.path, pattern


def to_json(expression: Filter) -> dict[str, Any]:
    """The JSON form; parsing it (with the same time zone) gives an equal filter.

    >>> to_json(Not(Compare(">=", Field(("metadata", "price")), 10.5)))
    {'not': {'ge': ['metadata.price', 10.5]}}
    """
    match expression:
        case And(terms):
            return {"and": [to_json(term) for term in terms]}
        case Or(terms):
            return {"or": [to_json(term) for term in terms]}
        case Not(term):
            return {"not": to_json(term)}
        case Compare(op, field, value):
            return {_JSON_OPERATORS[op]: [str(field), _json_value(value)]}
        case In(field, values):
            return {"in": [str(field), [_json_value(value) for value in values]]}
        case Contains(field, value):
            return {"contains": [str(field), value]}
        case Exists(field):
            return {"exists": str(field)}
        case Like(field, pattern):
            return {"like": [str(field), pattern]}


_JSON_OPERATORS: Final = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}

_ORDER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PLAIN: Final = re.compile(r"[\w-]+")
_NAME_LENGTH: Final = 64


def _value(field: Field, lookup: Lookup) -> object:
    value = lookup(field.path)
    return MISSING if value is None and memory_field(field) is not None else value


def _exists(field: Field, lookup: Lookup) -> bool:
    value = _value(field, lookup)
    if value is MISSING:
        return False
    return memory_field(field) is None or not isinstance(value, list | tuple | Mapping) or len(value) > 0


def _test(leaf: Compare | In | Contains | Like, value: object) -> bool | None:
    match leaf:
        case Compare("=", _, wanted):
            return _equal(value, wanted)
        case Compare("!=", _, wanted):
            return not _equal(value, wanted)
        case Compare(op, _, wanted):
            return _ordered(op, value, wanted)
        case In(_, values):
            return any(_equal(value, wanted) for wanted in values)
        case Contains(_, wanted):
            if isinstance(value, str):
                return wanted in value if isinstance(wanted, str) else None
            return _equal(value, wanted) if _is_array(value) else None
        case Like(_, pattern):
            if isinstance(value, str):
                return _fits(value, pattern)
            if not _is_array(value):
                return None
            return any(_fits(each, pattern) for each in value if isinstance(each, str))


def _equal(value: object, wanted: Value) -> bool:
    if _is_array(value):
        return any(_equal(each, wanted) for each in value if not _is_array(each))
    if isinstance(wanted, Extent):
        return _is_number(value) and wanted.start <= value < wanted.end
    return _kind(value) == _kind(wanted) and value == wanted


def _ordered(op: Operator, value: object, wanted: Value) -> bool | None:
    if isinstance(wanted, Extent):
        if not _is_number(value):
            return None
        edge = wanted.start if op in ("<", ">=") else wanted.end
        return value < edge if op in ("<", "<=") else value >= edge
    if _kind(value) != _kind(wanted) or _kind(value) not in ("number", "text"):
        return None
    return bool(_ORDER[op](value, wanted))


def _fits(text: str, pattern: str) -> bool:
    """Leftmost placement of each piece in turn, which needs no going back."""
    first, *rest = pattern.split("%")
    if not rest:
        return text == pattern
    *middle, last = rest
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _all(values: Iterable[bool | None]) -> bool | None:
    result: bool | None = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def _negate(value: bool | None) -> bool | None:
    return None if value is None else not value


def _is_array(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(value, list | tuple)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "null" if value is None else "other"


def _tagged(value: Value) -> tuple[object, ...]:
    """Apart what Python holds equal and a filter does not: 1 and True."""
    return ("time", value.start, value.end) if isinstance(value, Extent) else (_kind(value), value)


def _canonical_equal(field: Field, value: Value) -> tuple[object, ...]:
    return "=", field.path, _tagged(value)


def _canonical_not(key: tuple[object, ...]) -> tuple[object, ...]:
    inner = key[1] if key[0] == "not" else None
    return inner if isinstance(inner, tuple) else ("not", key)


def _canonical_branch(kind: str, keys: Iterable[tuple[object, ...]]) -> tuple[object, ...]:
    terms: set[tuple[object, ...]] = set()
    for key in keys:
        same = key[1] if key[0] == kind else None
        terms |= same if isinstance(same, frozenset) else {key}
    return next(iter(terms)) if len(terms) == 1 else (kind, frozenset(terms))


def _leaves(expression: Filter) -> "Iterator[Compare | In | Contains | Exists | Like]":
    match expression:
        case And(terms) | Or(terms):
            for term in terms:
                yield from _leaves(term)
        case Not(term):
            yield from _leaves(term)
        case _:
            yield expression


def _segment(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _json_value(value: Value) -> Scalar:
    return value.words if isinstance(value, Extent) else value
