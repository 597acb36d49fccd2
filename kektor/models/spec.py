"""The text form of an embedder: `kind:model?option=value&…`, what is stored with an index and read back."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from kektor.errors import Invalid

__all__ = ["parse_spec", "read_options", "spec_text"]


def spec_text(kind: str, model: str, options: Mapping[str, Any]) -> str:
    """The spec of these parts; options that are empty or None are left out.

    >>> spec_text("onnx", "/models/a?.onnx", {"pooling": "cls", "query_prefix": ""})
    'onnx:/models/a%3F.onnx?pooling=cls'
    """
    given = {name: value for name, value in sorted(options.items()) if value not in (None, "")}
    query = f"?{urlencode(given, quote_via=quote, safe='/:,')}" if given else ""
    return f"{kind}:{quote(model, safe='/:@+,=~ ')}{query}"


def parse_spec(spec: str) -> tuple[str, str, dict[str, str]]:
    """Kind, model and options of a spec.

    >>> parse_spec("openai:text-embedding-3-small?dimensions=512")
    ('openai', 'text-embedding-3-small', {'dimensions': '512'})
    """
    head, _, query = spec.partition("?")
    kind, _, model = head.partition(":")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError as error:
        raise Invalid(
            f"embedder {head!r}: the part after '?' must read option=value&option=value", field="embedder"
        ) from error
    options = dict(pairs)
    if len(options) < len(pairs):
        raise Invalid(f"embedder {head!r} gives an option twice", field="embedder")
    return kind, unquote(model), options


def read_options(kind: str, options: Mapping[str, str], types: Mapping[str, type]) -> dict[str, Any]:
    """Options as values of their types; `Invalid` names one that does not exist or cannot be read.

    >>> read_options("openai", {"dim": "512"}, {"dim": int})
    {'dim': 512}
    """
    values: dict[str, Any] = {}
    for name, text in options.items():
        if name not in types:
            known = ", ".join(types) or "none"
            raise Invalid(f"embedder {kind!r} has no option {name!r} in its spec; it has: {known}", field="embedder")
        try:
            values[name] = types[name](text)
        except ValueError as error:
            kind_of = {int: "a whole number", float: "a number"}.get(types[name], "text")
            raise Invalid(
                f"embedder {kind!r}: option {name!r} must be {kind_of}, not {text!r}", field="embedder"
            ) from error
    return values
