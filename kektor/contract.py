"""From what a caller sent to a typed request: one way for every door, strict about types and unknown fields."""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, TypeVar

import msgspec
import numpy as np

from kektor.errors import Invalid

__all__ = ["convert", "decode_json", "decode_msgpack", "finite", "plain", "plain_value", "typed"]

T = TypeVar("T")

_WHERE = re.compile(r" - at (?:`key` in )?`(?P<path>\$[^`]*)`")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]*)`")


def convert(kind: type[T], values: Mapping[str, Any], *, from_text: bool = False) -> T:
    """Check plain Python values against a request struct; Invalid names the field at fault.

    `from_text` reads numbers and booleans from text, as a query string or a form brings them.

    >>> class Ask(msgspec.Struct, forbid_unknown_fields=True):
    ...     k: int = 8
    >>> convert(Ask, {"k": 3}).k
    3
    """
    for name, value in values.items():
        _unicode(value, str(name))
    try:
        return msgspec.convert(values, kind, strict=not from_text)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from error


def typed(kind: type[T], value: Any, *, field: str) -> T:
    """Check one argument that stands outside of a request struct.

    >>> typed(list[str], ["a", "b"], field="ids")
    ['a', 'b']
    """
    given = plain_value(value)
    _unicode(given, field)
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), within=field) from error


def plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Python's own times as the text every door takes; other sequences and mappings as lists and dicts."""
    return {name: plain_value(value) for name, value in fields.items()}


def plain_value(value: Any) -> Any:
    """One of them; text and mappings are no sequences."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping):
        return list(value)
    return value


def decode_json(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """Decode a JSON body; Invalid says where it is malformed or which field is wrong."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"the body is not valid JSON: {error}") from error


def decode_msgpack(decoder: "msgspec.msgpack.Decoder[T]", body: bytes) -> T:
    """Decode a MessagePack body; Invalid says what is wrong with it."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"the body is not valid MessagePack: {error}") from error


def finite(value: Any, *, field: str) -> None:
    """Refuse NaN and infinities anywhere in plain values: JSON cannot carry them back."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Invalid(f"{field} holds {value}, which JSON cannot carry", field=field)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            finite(inner, field=f"{field}.{key}")
    elif isinstance(value, list | tuple):
        for inner in value:
            finite(inner, field=field)


def _unicode(value: Any, where: str) -> None:
    """Refuse half a surrogate pair anywhere: it is no Unicode text, and no encoding can store it."""
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise Invalid(
                    f"{where} holds half of a surrogate pair at character {error.start}, which is no Unicode text",
                    field=where,
                ) from error
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            _unicode(name, where)
            _unicode(inner, f"{where}.{name}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            _unicode(inner, f"{where}[{number}]")


def _invalid(message: str, *, within: str = "") -> Invalid:
    where = _WHERE.search(message)
    what = message if where is None else message[: where.start()] + message[where.end() :]
    path = within + ("" if where is None else where["path"].removeprefix("$"))
    path = path.removeprefix(".")
    named = _UNKNOWN.search(what) or _MISSING.search(what)
    if named is not None:
        path = f"{path}.{named['name']}" if path else named["name"]
    what = what.replace("Object contains unknown field", "unknown field").replace(
        "Object missing required field", "missing required field"
    )
    return Invalid(f"{path}: {what}" if path and named is None else what, field=path or None)
