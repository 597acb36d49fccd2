"""From what a caller writes to the embedder that is meant."""

import inspect
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast
from weakref import WeakValueDictionary

from kektor.errors import Invalid
from kektor.models.base import Embedder, EmbedderBase
from kektor.models.spec import parse_spec, read_options

__all__ = ["DEFAULT", "EmbedderSpec", "resolve"]

DEFAULT = "minilm"

EmbedderSpec: TypeAlias = str | Embedder | Callable[[list[str]], Any] | None


class _Entry(NamedTuple):
    form: str
    module: str
    adapter: str


# imported when asked for: a program pays for the adapter it uses
_KINDS = {
    "minilm": _Entry("minilm (the default)", "minilm", "MiniLMEmbedder"),
    "minilm-int8": _Entry("minilm-int8", "minilm", "MiniLMInt8Embedder"),
    "openai": _Entry("openai:MODEL", "openai_http", "OpenAIEmbedder"),
    "sentence-transformers": _Entry(
        "sentence-transformers:NAME", "sentence_transformers", "SentenceTransformersEmbedder"
    ),
    "onnx": _Entry("onnx:/path/to/model.onnx", "onnx_file", "OnnxFileEmbedder"),
    "hub": _Entry("hub:ORG/NAME@COMMIT", "hub", "HubEmbedder"),
}
_FUNCTION = _Entry("a function", "function", "FunctionEmbedder")
_PROTOCOL = ("name", "dim", "fingerprint", "loaded", "warm", "embed", "clear_cache")
_WITHOUT_MODEL = frozenset({"minilm", "minilm-int8"})
_shared: WeakValueDictionary[str, EmbedderBase] = WeakValueDictionary()
_default: list[EmbedderBase] = []  # kept for the life of the process: every database that names none uses it
_lock = threading.Lock()


def resolve(spec: EmbedderSpec = None, **options: Any) -> Embedder:
    """The embedder that `spec` names; models that are loaded into memory are shared by equal specs.

    `spec`: None, `"default"` or `"minilm"` · `"minilm-int8"` · `"openai:MODEL"` ·
    `"sentence-transformers:NAME"` · `"onnx:/path/to/model.onnx"` · `"hub:ORG/NAME@COMMIT"` · an embedder
    (returned as it is) · a function from a list of texts to an array. Options follow a `?` in the text
    (`"openai:MODEL?dimensions=512"`), which `name` gives back, or as arguments, which is the only way for
    what must not be stored (`api_key=`, `token=`). Raises `Invalid` that lists what exists.

    >>> resolve() is resolve("minilm")
    True
    """
    if spec is None or isinstance(spec, str):
        return cast(Embedder, _from_text(DEFAULT if spec in (None, "default") else spec, options))
    if inspect.getattr_static(spec, "embed", None) is not None:
        return _given(spec, options)
    if callable(spec):
        return cast(Embedder, _make(_adapter(_FUNCTION), "function", (spec,), options))
    raise Invalid(f"an embedder must be a spec, an embedder or a function, not {type(spec).__name__}", field="embedder")


def _given(spec: Any, options: dict[str, Any]) -> Embedder:
    # asked without touching properties, which may load a model
    missing = [name for name in _PROTOCOL if inspect.getattr_static(spec, name, None) is None]
    if missing:
        raise Invalid(
            f"{type(spec).__name__} has embed but not {', '.join(missing)}: an embedder has "
            f"{', '.join(_PROTOCOL)}; a plain function from a list of texts to an array will do too",
            field="embedder",
        )
    if options:
        raise Invalid("an embedder takes no further options here: give them to its own class", field="embedder")
    return cast(Embedder, spec)


def _from_text(spec: str, options: dict[str, Any]) -> EmbedderBase:
    kind, model, text_options = parse_spec(spec)
    if kind not in _KINDS or bool(model) == (kind in _WITHOUT_MODEL):
        known = ", ".join(entry.form for entry in _KINDS.values())
        named = spec.partition("?")[0]  # what follows might hold a secret
        raise Invalid(f"there is no embedder {named!r}; there are: {known}, or a function", field="embedder")
    cls = _adapter(_KINDS[kind])
    values = read_options(kind, text_options, cls.spec_options)
    if twice := sorted(values.keys() & options.keys()):
        raise Invalid(f"embedder {kind!r}: {twice[0]} is given both in the spec and beside it", field=twice[0])
    args = () if kind in _WITHOUT_MODEL else (model,)
    if options or not cls.shared:
        return _make(cls, kind, args, values | options)
    with _lock:
        made = _make(cls, kind, args, values)
        shared = _shared.setdefault(made.name, made)
        if kind == DEFAULT and not _default:
            _default.append(shared)
        return shared


def _adapter(entry: _Entry) -> type[Any]:
    return cast(type[Any], getattr(import_module(f"kektor.models.{entry.module}"), entry.adapter))


def _make(cls: type[Any], kind: str, args: tuple[Any, ...], options: Mapping[str, Any]) -> EmbedderBase:
    known = [name for name, it in inspect.signature(cls).parameters.items() if it.kind is it.KEYWORD_ONLY]
    for name, value in options.items():
        if name not in known:
            raise Invalid(f"embedder {kind!r} has no option {name!r}; it has: {', '.join(known)}", field=name)
        expected = cls.spec_options.get(name)
        if expected and not _fits(value, expected):
            raise Invalid(f"embedder {kind!r}: option {name!r} must be {expected.__name__}, not {value!r}", field=name)
    return cast(EmbedderBase, cls(*args, **options))


def _fits(value: Any, expected: type) -> bool:
    if expected is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if expected is str:
        return value is None or isinstance(value, str | Path)
    return value is None or (isinstance(value, expected) and not isinstance(value, bool))
