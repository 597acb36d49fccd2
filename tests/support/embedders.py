"""Embedders for tests that need vectors but no model: quick, deterministic, and they can be told to fail."""

import hashlib
import re
import threading
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from kektor.errors import Invalid
from kektor.models import Fingerprint, Kind, Progress, Vectors

__all__ = ["HashingEmbedder"]


class HashingEmbedder:
    """A bag of words in 64 dimensions: texts that share words are near, texts that share none are far.

    Every word is a fixed pattern of ±1, a text is their sum scaled to length 1. `label` makes another
    embedder of the same size, with other vectors and another fingerprint. `loaded=False` stays so until
    `warm` or the first `embed`. Set `failure` to an exception to have `embed` raise it; `embedded` counts the
    texts seen.

    >>> v = HashingEmbedder().embed(["the red fox", "a red fox", "stock market news"])
    >>> bool(v[0] @ v[1] > 0.5 > abs(v[0] @ v[2]))
    True
    """

    name = "custom"

    def __init__(self, *, dim: int = 64, label: str = "hashing", loaded: bool = True) -> None:
        self.dim = dim
        self.loaded = loaded
        self.failure: Exception | None = None
        self.embedded = 0
        self.cache_clears = 0
        self._label = label
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(model=f"test:{self._label}", dim=self.dim, pooling="sum", normalized=True)

    def warm(self) -> None:
        self.loaded = True

    def clear_cache(self) -> None:
        self.cache_clears += 1

    def embed(self, texts: Sequence[str], *, kind: Kind = "document", progress: Progress | None = None) -> Vectors:
        if self.failure is not None:
            raise self.failure
        self.warm()
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            if not text.strip():
                raise Invalid(f"texts[{row}] is empty", field="texts")
            for word in re.findall(r"\w+", text.casefold()) or [text]:
                vectors[row] += _pattern(self._label, word, self.dim)
            if not vectors[row].any():
                vectors[row] = _pattern(self._label, text, self.dim)
            vectors[row] /= np.linalg.norm(vectors[row])
            if progress is not None:
                progress(row + 1, len(texts))
        with self._lock:
            self.embedded += len(texts)
        return vectors


@lru_cache(maxsize=100_000)
def _pattern(label: str, word: str, dim: int) -> Vectors:
    bits = hashlib.shake_128(f"{label}\0{word}".encode()).digest((dim + 7) // 8)
    return np.unpackbits(np.frombuffer(bits, dtype=np.uint8))[:dim].astype(np.float32) * 2 - 1
