"""JSON Schema for tools, in the small subset that every client takes: an object of typed, described properties.

No `$ref`, `anyOf` or `null`: one of them in one tool makes some clients drop every tool.
"""

from typing import Any

__all__ = ["Schema", "array", "boolean", "integer", "number", "obj", "record", "text"]

Schema = dict[str, Any]


def text(about: str = "", *, enum: tuple[str, ...] = ()) -> Schema:
    """A string, perhaps one of a few."""
    return _described({"type": "string", **({"enum": list(enum)} if enum else {})}, about)


def integer(about: str = "", *, minimum: int | None = None, maximum: int | None = None) -> Schema:
    bounds = {name: value for name, value in (("minimum", minimum), ("maximum", maximum)) if value is not None}
    return _described({"type": "integer", **bounds}, about)


def number(about: str = "") -> Schema:
    return _described({"type": "number"}, about)


def boolean(about: str = "") -> Schema:
    return _described({"type": "boolean"}, about)


def array(items: Schema, about: str = "") -> Schema:
    return _described({"type": "array", "items": items}, about)


def obj(about: str = "") -> Schema:
    """An open map."""
    return _described({"type": "object", "additionalProperties": True}, about)


def record(
    properties: dict[str, Schema], required: tuple[str, ...] = (), about: str = "", *, closed: bool = True
) -> Schema:
    """An object of known properties; an open one may have more."""
    schema: Schema = {"type": "object", "properties": properties, "required": list(required)}
    return _described({**schema, "additionalProperties": False} if closed else schema, about)


def _described(schema: Schema, about: str) -> Schema:
    return {**schema, "description": about} if about else schema
