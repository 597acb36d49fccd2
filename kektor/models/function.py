"""An embedder from a function of the user's."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np

from kektor.errors import Invalid, KektorError, Unavailable
from kektor.models.arrays import Vectors, as_vectors, unit
from kektor.models.base import EmbedderBase, Fingerprint, Kind
from kektor.models.once import Once

__all__ = ["FunctionEmbedder"]


class FunctionEmbedder(EmbedderBase):
    """Calls `function(list of texts)`, which returns an array, or nested lists, of shape (texts, dim).

    `name` goes into the fingerprint (default: the function's own, with its module): give another one when the
    vectors change, or old and new ones will be compared. `dim`: found with one call if not given.
    `batch_size`: texts a call. `normalize`: scale each vector to length 1. `concurrent`: True if the function
    may be called by many threads at once; otherwise calls take turns.

    >>> shout = FunctionEmbedder(lambda texts: [[len(text), 1.0] for text in texts], name="length")
    >>> shout.dim, shout.embed(["four"]).tolist()
    (2, [[4.0, 1.0]])
    """

    spec_options: ClassVar[dict[str, type]] = {"name": str, "dim": int, "batch_size": int}

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str | None = None,
        dim: int | None = None,
        batch_size: int = 64,
        normalize: bool = False,
        concurrent: bool = False,
        document_prefix: str = "",
        query_prefix: str = "",
        cache_size: int = 1024,
    ) -> None:
        super().__init__(document_prefix=document_prefix, query_prefix=query_prefix, cache_size=cache_size)
        for field, value in (("batch_size", batch_size), ("dim", dim)):
            if value is not None and value < 1:
                raise Invalid(f"{field} must be 1 or more, not {value}", field=field)
        self._function = function
        self._label = name or _name_of(function)
        self._batch_size = batch_size
        self._normalize = normalize
        self._turn = nullcontext() if concurrent else threading.Lock()
        self._given_dim = dim
        self._dim = Once(lambda: dim or self._call(["dimension"], None).shape[1])

    @property
    def name(self) -> str:
        """`"custom"`: no text can make it again; the caller gives the function anew."""
        return "custom"

    @property
    def dim(self) -> int:
        return self._dim.get()

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(
            model=self._label,
            dim=self.dim,
            pooling="model",
            normalized=self._normalize,
            document_prefix=self._prefixes["document"],
            query_prefix=self._prefixes["query"],
        )

    @property
    def loaded(self) -> bool:
        return self._given_dim is not None or self._dim.ready

    def warm(self) -> None:
        """Find the dimension."""
        self._dim.get()

    def __repr__(self) -> str:
        return f"<FunctionEmbedder {self._label}>"

    def _embed(self, texts: list[str], _kind: Kind, advance: Callable[[int], None], /) -> Vectors:
        parts = []
        for start in range(0, len(texts), self._batch_size):
            batch = texts[start : start + self._batch_size]
            parts.append(self._call(batch, self.dim))
            advance(len(batch))
        return np.concatenate(parts)

    def _call(self, texts: list[str], dim: int | None) -> Vectors:
        source = f"the embedding function {self._label}"
        try:
            with self._turn:
                raw = self._function(texts)
        except KektorError:
            raise
        except Exception as error:
            raise Unavailable(f"{source} failed: {type(error).__name__}: {error}") from error
        vectors = as_vectors(raw, count=len(texts), dim=dim, source=source)
        return unit(vectors, source=source) if self._normalize else vectors


def _name_of(function: Callable[[list[str]], Any]) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
