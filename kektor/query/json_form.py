"""The JSON form of a filter: `{"and": [{"eq": ["tags", "crm"]}, {"exists": "session"}]}`."""

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from kektor.errors import Invalid
from kektor.query.syntax import MAX_DEPTH, Condition, Place, Test, Tree, branch, split_path, too_large

__all__ = ["decode", "read"]


def read(source: Mapping[Any, Any]) -> Tree:
    """The tree of a decoded JSON form; `Invalid` names the path of what is wrong."""
    return _read(source, "filter", MAX_DEPTH)


def decode(source: str) -> Mapping[Any, Any]:
    """JSON text, read so strictly that nothing is lost: no NaN, no member given twice."""
    try:
        decoded = json.loads(source, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise Place(position=error.pos + 1).invalid(f"not JSON: {error.msg}") from None
    except RecursionError:
        raise too_large("levels of AND, OR and NOT inside one another", MAX_DEPTH) from None
    except ValueError:  # an integer of more digits than Python reads
        raise Invalid("filter: a number has too many digits", field="filter") from None
    assert isinstance(decoded, Mapping), "what begins with a brace is an object"
    return decoded


_COMPARISONS: Final[Mapping[str, Test]] = {
    "eq": "=",
    "ne": "!=",
    "lt": "<",
    "lte": "<=",
    "le": "<=",
    "gt": ">",
    "gte": ">=",
    "ge": ">=",
    "contains": "contains",
    "like": "like",
}
_OPERATORS: Final = ("and", "or", "not", *_COMPARISONS, "in", "nin", "exists")


def _read(source: object, path: str, levels: int) -> Tree:
    if not isinstance(source, Mapping):
        raise Place(path=path).invalid(f'must be an object such as {{"eq": ["tags", "crm"]}}, not {_named(source)}')
    if len(source) != 1:
        given = ", ".join(str(key)[:40] for key in list(source)[:5]) or "none"
        raise Place(path=path).invalid(f'must have exactly one operator, not {given}; join several with "and"')
    operator, given = next(iter(source.items()))
    if operator not in _OPERATORS:
        raise Place(path=path).invalid(f"there is no operator {str(operator)[:40]!r}", expected=list(_OPERATORS))
    here = f"{path}.{operator}"
    place = Place(path=here)
    if levels == 0 and operator in ("and", "or", "not"):
        raise too_large("levels of AND, OR and NOT inside one another", MAX_DEPTH)
    match operator:
        case "and" | "or":
            if not isinstance(given, list | tuple) or not given:
                raise place.invalid("must be a list of at least one filter")
            terms = [_read(term, f"{here}[{number}]", levels - 1) for number, term in enumerate(given)]
            return branch(operator, terms) if len(terms) > 1 else terms[0]
        case "not":
            return branch("not", [_read(given, here, levels - 1)])
        case "exists":
            field = given[0] if isinstance(given, list | tuple) and len(given) == 1 else given
            return Condition("exists", _path(field, place), (), place)
        case "in" | "nin":
            field, values = _pair(given, place, "a list of values")
            if not isinstance(values, list | tuple):
                raise place.invalid(f"takes a list of values after the field, not {_named(values)}")
            within = Condition("in", _path(field, place), tuple(values), place)
            return within if operator == "in" else branch("not", [within])
        case _:
            field, value = _pair(given, place, "a value")
            return Condition(_COMPARISONS[operator], _path(field, place), (value,), place)


def _pair(given: object, place: Place, second: str) -> tuple[object, object]:
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise place.invalid(f"must be a list of two: a field and {second}")
    return given[0], given[1]


def _path(field: object, place: Place) -> tuple[str, ...]:
    if not isinstance(field, str):
        raise place.invalid(f"the field must be text such as 'metadata.stage', not {_named(field)}")
    return split_path(field, place)


def _named(value: object) -> str:
    if value is None:
        return "null"
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        tuple: "a list",
    }
    return names.get(type(value), "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise Invalid("filter: a JSON object has a member twice", field="filter")
    return members


def _constant(name: str) -> NoReturn:
    raise Invalid(f"filter: {name} is no JSON number", field="filter")
