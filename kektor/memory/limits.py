"""Sizes and shapes that a write must keep; shown by `/v1/info`."""

import math
import re
from typing import Any

import msgspec
import numpy as np

from kektor.engine.port import Vector
from kektor.engine.records import IndexSettings
from kektor.errors import Invalid, TooLarge

__all__ = [
    "LIMITS",
    "check_id",
    "check_layer",
    "check_metadata",
    "check_name",
    "check_tags",
    "check_text",
    "check_vector",
]

LIMITS: dict[str, int] = {
    "text_bytes": 1_000_000,
    "id_bytes": 256,
    "tags": 10_000,
    "tag_bytes": 1_024,
    "metadata_keys": 10_000,
    "metadata_bytes": 1_000_000,
    "layers": 1_000,
    "layer_bytes": 64,
    "json_depth": 64,
    "k": 1_000,
    "dim": 65_536,
    "batch": 10_000,
}

_ID = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@%\u00a0-\U0010ffff]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def check_text(text: str, *, field: str = "text", may_be_empty: bool = False) -> str:
    """A text as it will be stored, byte for byte: not empty, encodable, within the limit."""
    if not may_be_empty and not text.strip():
        raise Invalid(f"{field} is empty", field=field)
    size = len(_encode(text, field))
    if size > LIMITS["text_bytes"]:
        raise TooLarge(
            f"{field} is {size:,} bytes; the limit is {LIMITS['text_bytes']:,}. Split it, or ingest it as a document.",
            field=field,
            details={"limit": LIMITS["text_bytes"], "size": size},
        )
    return text


def check_id(node_id: str, *, field: str = "id") -> str:
    """Ids stand in URLs and cursors: no white space, no slash, no control characters, at most 256 bytes."""
    size = len(_encode(node_id, field))
    if not node_id or size > LIMITS["id_bytes"]:
        raise Invalid(f"{field} must have 1 to {LIMITS['id_bytes']} bytes, not {size}", field=field)
    if not _ID.fullmatch(node_id) or node_id in (".", ".."):
        raise Invalid(
            f"{field} {node_id!r} cannot be an id: use letters, digits and -._~!$&'()*+,;=:@% "
            "(no white space, slash or control characters)",
            field=field,
        )
    return node_id


def check_name(name: str, *, field: str = "index") -> str:
    """The name of an index."""
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"{field} {name!r} is no index name: 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit",
            field=field,
        )
    return name


def check_layer(layer: str, *, field: str = "layer") -> str:
    """The name of a layer of memories."""
    if not layer.strip() or len(_encode(layer, field)) > LIMITS["layer_bytes"]:
        raise Invalid(f"{field}: the name of a layer has 1 to {LIMITS['layer_bytes']} bytes", field=field)
    return layer


def check_tags(tags: list[str], *, field: str = "tags") -> tuple[str, ...]:
    """Distinct tags in the order given."""
    if len(tags) > LIMITS["tags"]:
        raise TooLarge(f"{len(tags):,} tags; the limit is {LIMITS['tags']:,}", field=field)
    for tag in tags:
        if not tag.strip():
            raise Invalid("a tag is empty", field=field)
        if len(_encode(tag, field)) > LIMITS["tag_bytes"]:
            raise TooLarge(f"a tag is longer than {LIMITS['tag_bytes']} bytes", field=field)
    return tuple(dict.fromkeys(tags))


def check_metadata(metadata: dict[str, Any], *, field: str = "metadata") -> dict[str, Any]:
    """Plain JSON within the limits, copied so that the caller's later changes do not reach it."""
    keys = _walk(metadata, field, 1)
    if keys > LIMITS["metadata_keys"]:
        raise TooLarge(f"{field} has {keys:,} keys; the limit is {LIMITS['metadata_keys']:,}", field=field)
    encoded = msgspec.msgpack.encode(metadata)
    if len(encoded) > LIMITS["metadata_bytes"]:
        raise TooLarge(f"{field} is {len(encoded):,} bytes; the limit is {LIMITS['metadata_bytes']:,}", field=field)
    copied: dict[str, Any] = msgspec.msgpack.decode(encoded)
    return copied


def check_vector(vector: Any, settings: IndexSettings, *, field: str = "vector") -> Vector:
    """A finite f32 vector of the index's dimension, and under cosine not zero."""
    try:
        with np.errstate(over="ignore"):  # what f32 cannot hold becomes an infinity, which is refused by name
            array: Vector = np.asarray(vector, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise Invalid(f"{field} is no list of numbers: {error}", field=field) from error
    if array.shape != (settings.dim,):
        shape = array.shape[0] if array.ndim == 1 else array.shape
        raise Invalid(
            f"{field} has dimension {shape}; index {settings.name!r} has {settings.dim}",
            field=field,
            details={"expected": settings.dim},
        )
    check_finite(array, settings, field=field)
    return array


def check_finite(rows: Vector, settings: IndexSettings, *, field: str) -> None:
    """Refuse NaN, infinities and, under cosine, zero vectors, which have no direction."""
    if not np.isfinite(rows).all():
        raise Invalid(f"{field} holds NaN or an infinity (or a number too large for f32)", field=field)
    if settings.metric == "cosine" and not np.atleast_2d(rows).any(axis=1).all():
        raise Invalid(f"{field} is a zero vector, which has no direction under cosine", field=field)


def _walk(value: Any, field: str, depth: int) -> int:
    """Count the keys; refuse what JSON cannot carry."""
    if depth > LIMITS["json_depth"] + 1:
        raise TooLarge(f"{field} is nested deeper than {LIMITS['json_depth']} levels", field=field)
    if isinstance(value, dict):
        total = len(value)
        for key, inner in value.items():
            if not isinstance(key, str):
                raise Invalid(f"{field} has the key {key!r}; keys are text", field=field)
            if not key:
                raise Invalid(f"{field} has an empty key", field=field)
            _encode(key, field)
            total += _walk(inner, f"{field}.{key}", depth + 1)
        return total
    if isinstance(value, list | tuple):
        return sum(_walk(inner, field, depth + 1) for inner in value)
    if isinstance(value, str):
        _encode(value, field)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise Invalid(f"{field} holds {value}, which JSON cannot carry", field=field)
    elif isinstance(value, int) and not isinstance(value, bool):
        if not -(1 << 63) <= value < 1 << 64:
            raise Invalid(f"{field} holds an integer beyond 64 bits: store it as text", field=field)
    elif value is not None and not isinstance(value, bool):
        raise Invalid(f"{field} holds a {type(value).__name__}; only JSON values can be stored", field=field)
    return 0


def _encode(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(
            f"{field} holds half of a surrogate pair at character {error.start}, which is no Unicode text",
            field=field,
        ) from error
