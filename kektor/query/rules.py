"""What a field may be asked: from a tree as it was written to a filter whose types are known to fit."""

import difflib
import math
import unicodedata

import msgspec

from kektor import times
from kektor.engine.filters import (
    ALIASES,
    MEMORY_FIELDS,
    And,
    Compare,
    Contains,
    Exists,
    Field,
    Filter,
    In,
    Like,
    MemoryField,
    Not,
    Or,
    Scalar,
    Value,
    memory_field,
    nearest_name,
)
from kektor.errors import Invalid
from kektor.query.syntax import (
    MAX_CHARACTERS,
    MAX_CONDITIONS,
    MAX_VALUES,
    Condition,
    Place,
    Tree,
    too_large,
)

__all__ = ["Reading", "typed"]


class Reading(msgspec.Struct, frozen=True):
    """How a caller's times are read: the zone of those without offset, and the instant that `now` is."""

    tz: str
    now: int


def typed(tree: Tree, reading: Reading) -> Filter:
    """The filter that a tree means; `Invalid` where a field, a value or an operator cannot be."""
    if tree.conditions > MAX_CONDITIONS:
        raise too_large("conditions", MAX_CONDITIONS)
    if tree.listed > MAX_VALUES:
        raise too_large("values", MAX_VALUES)
    times.zone(reading.tz)
    return _typed(tree, reading)


def _typed(tree: Tree, reading: Reading) -> Filter:
    if isinstance(tree, Condition):
        return _condition(tree, reading)
    terms = tuple(_typed(term, reading) for term in tree.terms)
    match tree.kind:
        case "and":
            return And(terms)
        case "or":
            return Or(terms)
        case "not":
            return Not(terms[0])


def _condition(condition: Condition, reading: Reading) -> Filter:
    place, test = condition.place, condition.test
    field = _field(condition.path, place)
    known = memory_field(field)
    if test == "exists":
        return Exists(field)
    if known is not None and known.type == "map":
        raise place.invalid(f"{field} is only good for EXISTS({field}); name a part of it: {_parts_of(str(field))}")
    _refuse_test(condition, field, known)
    values = tuple(_value(value, field, known, place, reading) for value in condition.values)
    part_of_text = test == "like" or (test == "contains" and known is not None and known.type == "text")
    if known is not None and known.choices and not part_of_text:
        _refuse_unknown_words(values, field, known, place)
    match test:
        case "in":
            return _within(field, known, values)
        case "contains":
            return Contains(field, _scalar(values[0]))
        case "like":
            return Like(field, str(values[0]))
        case _ if known is not None and values[0] is None:
            return Exists(field) if test == "!=" else Not(Exists(field))
        case _:
            return Compare(test, field, values[0])


def _field(path: tuple[str, ...], place: Place) -> Field:
    if path[0] == "metadata":
        return Field(path)
    name = ".".join(path)
    name = ALIASES.get(name, name)
    if name in MEMORY_FIELDS:
        return Field(tuple(name.split(".")))
    if parts := _parts_of(path[0]):
        if len(path) == 1:
            raise place.invalid(f"{name} has parts; name one: {parts}")
        raise place.invalid(f"there is no field {name[:80]!r}; {path[0]} has {parts}", nearest=nearest_name(name))
    if path[0] in MEMORY_FIELDS or path[0] in ALIASES:
        raise place.invalid(f"{path[0]} has no parts, so there is no field {name[:80]!r}")
    return Field(("metadata", *path), bare=True)


def _parts_of(name: str) -> str:
    if name == "metadata":
        return "metadata.<key>"
    return ", ".join(field for field in MEMORY_FIELDS if field.startswith(f"{name}."))


def _refuse_test(condition: Condition, field: Field, known: MemoryField | None) -> None:
    """Tests that cannot be true of any value the field, or the value beside it, may have."""
    test, place = condition.test, condition.place
    wanted = condition.values[0] if condition.values else None
    ordered = test in ("<", "<=", ">", ">=")
    if test == "like" and not isinstance(wanted, str):
        raise place.invalid(f"LIKE takes text, not {_shown(wanted)}")
    if ordered and (wanted is None or isinstance(wanted, bool)):
        raise place.invalid(f"{_shown(wanted)} has no order, so nothing is {test} {_shown(wanted)}")
    if known is None:
        return
    if ordered and (known.type in ("bool", "array") or known.choices):
        raise place.invalid(f"{field} is {_described(known)} and has no order; compare it with = or IN")
    if (test in ("like", "contains") and known.type not in ("text", "array")) or (
        test == "like" and known.item == "number"
    ):
        raise place.invalid(f"{field} is {_described(known)}, and {test.upper()} looks into text")
    if test == "contains" and wanted is None:
        raise place.invalid(f"{field} never contains NULL; ask with EXISTS({field})")


def _value(raw: object, field: Field, known: MemoryField | None, place: Place, reading: Reading) -> Value:
    if raw is None:
        return None
    if known is not None and known.type == "time":
        return _time(raw, field, place, reading)
    if not isinstance(raw, str | int | float):
        raise place.invalid(f"{field} is compared with text, numbers, booleans or null, not {_shown(raw)}")
    if isinstance(raw, float) and not math.isfinite(raw):
        raise place.invalid(f"{raw} is no number to compare with")
    if isinstance(raw, str):
        _refuse_text(raw, place)
    if known is None:
        return raw
    wanted = known.item or known.type
    kind = "bool" if isinstance(raw, bool) else "text" if isinstance(raw, str) else "number"
    if kind != wanted:
        raise place.invalid(f"{field} is {_described(known)}, and never {_shown(raw)}")
    # Scopes are stored in this form, and compared exactly.
    return unicodedata.normalize("NFC", raw) if isinstance(raw, str) and field.path[0] == "scope" else raw


def _refuse_unknown_words(values: tuple[Value, ...], field: Field, known: MemoryField, place: Place) -> None:
    for value in values:
        if value is None or value in known.choices:
            continue
        near = difflib.get_close_matches(str(value)[:64].lower(), known.choices, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise place.invalid(
            f"{field} is one of {', '.join(known.choices)}, never {_shown(value)}{hint}",
            allowed=list(known.choices),
        )


def _time(raw: object, field: Field, place: Place, reading: Reading) -> times.Extent:
    if raw == "now":
        raw = times.format(reading.now)
    elif raw == "today":
        return times.day(reading.now, reading.tz)
    try:
        return times.parse(raw, field=str(field), tz=reading.tz)
    except Invalid as error:
        raise place.invalid(error.message, **error.details) from None


def _refuse_text(text: str, place: Place) -> None:
    if len(text) > MAX_CHARACTERS:
        raise too_large("characters in one text", MAX_CHARACTERS)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise place.invalid("half of a surrogate pair is no character") from None


def _within(field: Field, known: MemoryField | None, values: tuple[Value, ...]) -> Filter:
    """A field of a memory without a value is not there, so NULL in its list asks whether it is."""
    if known is None or None not in values:
        return In(field, values)
    absent = Not(Exists(field))
    others = tuple(value for value in values if value is not None)
    return Or((In(field, others), absent)) if others else absent


def _scalar(value: Value) -> Scalar:
    assert not isinstance(value, times.Extent), "fields that hold times refuse CONTAINS"
    return value


def _described(known: MemoryField) -> str:
    if known.type == "array":
        return f"a list of {'numbers' if known.item == 'number' else 'texts'}"
    names = {"text": "text", "number": "a number", "bool": "true or false", "time": "a time"}
    return "one of a few words" if known.choices else names[known.type]


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int) and value.bit_length() > 128:
        return "so long a number"
    if isinstance(value, str | int | float):
        text = repr(value)
        return text if len(text) <= 48 else f"{text[:40]}…"
    return "a list" if isinstance(value, list | tuple) else "an object"
