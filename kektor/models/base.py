"""What an embedder is, and what all of ours share: checked texts, a cache, no text run twice in a call."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias

import msgspec
import numpy as np

from kektor.errors import Invalid
from kektor.models.arrays import Vectors
from kektor.models.cache import VectorCache

__all__ = ["Embedder", "EmbedderBase", "Fingerprint", "Kind", "Progress", "Vectors"]

Kind: TypeAlias = Literal["document", "query"]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with (texts done, texts in all) after each step; what it raises stops the work."""

_SLAB = 1024  # texts handed to a model at once; bounds what token lists of a huge call take
_KEPT_PER_CALL = 32  # a bulk load must not push the questions out of the cache


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """What a vector depends on: vectors may be compared only if their fingerprints are equal.

    `file_sha256` and `tokenizer_sha256` are empty where the files are not ours to read (a remote model).
    `max_tokens` is how much the model reads at once, 0 where unknown; longer texts are read in overlapping
    windows.
    """

    model: str
    dim: int
    pooling: str
    normalized: bool
    max_tokens: int = 0
    file_sha256: str = ""
    tokenizer_sha256: str = ""
    document_prefix: str = ""
    query_prefix: str = ""

    @property
    def text(self) -> str:
        """One line for messages.

        >>> Fingerprint(model="m", dim=4, pooling="mean", normalized=True, file_sha256="ab" * 32).text
        'm (4 dimensions, mean pooling, normalised, sha256 abababababab)'
        """
        parts = [f"{self.dim} dimensions", f"{self.pooling} pooling"]
        parts += ["normalised"] if self.normalized else []
        parts += [f"windows of {self.max_tokens} tokens"] if self.max_tokens else []
        parts += [f"document prefix {self.document_prefix!r}"] if self.document_prefix else []
        parts += [f"query prefix {self.query_prefix!r}"] if self.query_prefix else []
        parts += [f"sha256 {self.file_sha256[:12]}"] if self.file_sha256 else []
        parts += [f"tokenizer {self.tokenizer_sha256[:12]}"] if self.tokenizer_sha256 else []
        return f"{self.model} ({', '.join(parts)})"


class Embedder(Protocol):
    """Turns texts into vectors; safe for many threads at once."""

    @property
    def name(self) -> str:
        """The spec that `resolve` makes the same embedder from, or `"custom"` where no text can."""

    @property
    def dim(self) -> int:
        """Numbers in a vector."""

    @property
    def fingerprint(self) -> Fingerprint:
        """What its vectors depend on."""

    @property
    def loaded(self) -> bool:
        """True when the next call need not wait for a model to load."""

    def warm(self) -> None:
        """Load the model now, so that the first call does not."""

    def embed(self, texts: Sequence[str], *, kind: Kind = "document", progress: Progress | None = None) -> Vectors:
        """Vectors of `texts`, float32 of shape (len(texts), dim), in the same order.

        `kind` says whether a text is stored or asked; models that treat both alike ignore it. Raises
        `Invalid` for a text that is empty or only white space, `Unavailable` when the model cannot be reached
        or loaded.
        """

    def clear_cache(self) -> None:
        """Forget the vectors of recent texts; called when texts are erased."""


class EmbedderBase(ABC):
    """Everything an embedder does beside running its model; an adapter adds `_embed`."""

    kind_matters: ClassVar[bool] = False
    """True if the model itself treats questions and documents differently (beyond the two prefixes)."""

    def __init__(self, *, document_prefix: str = "", query_prefix: str = "", cache_size: int = 1024) -> None:
        self._prefixes = {"document": document_prefix, "query": query_prefix}
        self._cache = VectorCache(cache_size)

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def dim(self) -> int: ...

    @property
    @abstractmethod
    def fingerprint(self) -> Fingerprint: ...

    @property
    @abstractmethod
    def loaded(self) -> bool: ...

    @abstractmethod
    def warm(self) -> None: ...

    @abstractmethod
    def _embed(self, texts: list[str], kind: Kind, advance: Callable[[int], None], /) -> Vectors:
        """Vectors of distinct, checked texts (prefix included); `advance(n)` after each n of them."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def embed(self, texts: Sequence[str], *, kind: Kind = "document", progress: Progress | None = None) -> Vectors:
        """Vectors of `texts`, float32 of shape (len(texts), dim); see `Embedder.embed`."""
        texts = _checked(texts, kind)
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        prefixed = [self._prefixes[kind] + text for text in texts]
        tag = kind.encode() if self.kind_matters else b""
        keys = [_digest(tag, text) for text in prefixed]
        rows = self._cache.find(keys)
        missing = {key: text for key, text in zip(keys, prefixed, strict=True) if key not in rows}
        done = _Count(len(texts), progress)
        done.advance(len(texts) - len(missing))
        for slab in _slabs(missing.items(), _SLAB):
            vectors = self._embed([text for _, text in slab], kind, done.advance)
            rows.update(zip((key for key, _ in slab), vectors, strict=True))
        if missing and len(missing) <= _KEPT_PER_CALL:
            self._cache.put((key, rows[key]) for key in missing)
        return np.stack([rows[key] for key in keys])

    def clear_cache(self) -> None:
        """Forget the vectors of recent texts."""
        self._cache.clear()


class _Count:
    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def advance(self, count: int) -> None:
        self._done += count
        if count and self._progress is not None:
            self._progress(self._done, self._total)


def _checked(texts: Sequence[str], kind: Kind) -> list[str]:
    if kind not in ("document", "query"):
        raise Invalid(f"kind must be 'document' or 'query', not {kind!r}", field="kind")
    if isinstance(texts, str | bytes):
        raise Invalid("texts must be a list of strings; wrap a single text in a list", field="texts")
    checked = list(texts)
    for index, text in enumerate(checked):
        if not isinstance(text, str):
            raise Invalid(f"texts[{index}] must be a string, not {type(text).__name__}", field="texts")
        if not text.strip():
            raise Invalid(f"texts[{index}] is empty: only a text with words in it has a vector", field="texts")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Invalid(
                f"texts[{index}] is not valid Unicode: an unpaired surrogate at character {error.start}",
                field="texts",
            ) from error
    return checked


def _digest(tag: bytes, text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16, person=tag).digest()


def _slabs(items: Iterable[tuple[bytes, str]], size: int) -> Iterator[list[tuple[bytes, str]]]:
    slab: list[tuple[bytes, str]] = []
    for item in items:
        slab.append(item)
        if len(slab) == size:
            yield slab
            slab = []
    if slab:
        yield slab
