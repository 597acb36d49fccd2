"""Query strings, as strict as bodies: typed by a struct, unknown names and needless repeats refused."""

import re
from typing import Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import unquote_to_bytes

import msgspec

from kektor.contract import convert
from kektor.errors import Invalid
from kektor.memory.requests import TimeIn

__all__ = ["NoQuery", "QueryReader", "unquote"]

Q = TypeVar("Q", bound=msgspec.Struct)


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a route that takes no query parameters."""


class QueryReader(Generic[Q]):
    """Reads the query strings of one route into its struct.

    A list may be given by repeating the name or with commas; a time of five digits or more is epoch seconds.
    """

    def __init__(self, kind: type[Q]) -> None:
        self.kind = kind
        hints = get_type_hints(kind)
        self.lists = frozenset(name for name, hint in hints.items() if _holds_list(hint))
        self._times = frozenset(name for name, hint in hints.items() if _holds(hint, TimeIn))
        required = any(part.required for part in msgspec.structs.fields(kind))
        self._empty = None if required else kind()

    def read(self, query: bytes) -> Q:
        """Invalid names the parameter at fault."""
        if not query and self._empty is not None:
            return self._empty
        values: dict[str, Any] = {}
        for part in query.split(b"&"):
            if not part:
                continue
            raw_name, _, raw_value = part.partition(b"=")
            name = unquote(raw_name.replace(b"+", b" "), field=None)
            value = unquote(raw_value.replace(b"+", b" "), field=name)
            if name in self.lists:
                values.setdefault(name, []).extend(item for item in value.split(",") if item)
            elif name in values:
                raise Invalid(f"the parameter {name} is given twice", field=name)
            elif name in self._times and _SECONDS.fullmatch(value):
                values[name] = float(value) if "." in value else int(value)
            else:
                values[name] = value
        return convert(self.kind, values, from_text=True)


def unquote(raw: bytes, *, field: str | None) -> str:
    """Percent-decode once; what comes out must be UTF-8."""
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError as error:
        where = field or "the query string"
        raise Invalid(f"{where} is not UTF-8 once its percent signs are decoded", field=field) from error


def _holds_list(hint: Any) -> bool:
    return get_origin(hint) is list or any(get_origin(part) is list for part in get_args(hint))


def _holds(hint: Any, wanted: Any) -> bool:
    return set(get_args(wanted)) <= set(get_args(hint))


_SECONDS: Final = re.compile(r"-?\d{5,18}(\.\d{1,9})?")
