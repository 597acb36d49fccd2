"""What memory commands need besides the engine: models and the key of the digests."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from kektor.engine.port import Engine, Vector
from kektor.engine.records import IndexSettings
from kektor.errors import Conflict
from kektor.models import Embedder, Tokenizer
from kektor.text import Digester

__all__ = ["MemoryContext"]


class MemoryContext:
    """Shared by all commands and reads of one database; holds nothing about a caller."""

    def __init__(
        self,
        engine: Engine,
        *,
        digester: Digester,
        tokenizer: Tokenizer,
        embedder_of: Callable[[str], Embedder],
        sign: Callable[[bytes], str],
        jwks: Callable[[], dict[str, Any]],
    ) -> None:
        self.engine = engine
        self.digester = digester
        self.tokenizer = tokenizer
        self._embedder_of = embedder_of
        self.sign = sign
        """A compact JWS over some bytes, with the key of receipts."""
        self.jwks = jwks

    def embedder(self, settings: IndexSettings) -> Embedder | None:
        """The embedder an index was made with; Conflict when it is not the one of that name today."""
        if settings.embedder is None:
            return None
        embedder = self._embedder_of(settings.embedder)
        if embedder.fingerprint.text != settings.fingerprint:
            raise Conflict(
                f"index {settings.name!r} was embedded with {settings.fingerprint}; {settings.embedder!r} is now "
                f"{embedder.fingerprint.text}. Give it the old model, or re-embed the index.",
                field="embedder",
                details={"index": settings.fingerprint, "embedder": embedder.fingerprint.text},
            )
        return embedder

    def embed(
        self, settings: IndexSettings, texts: Sequence[str], *, kind: Literal["document", "query"]
    ) -> Vector | None:
        """Vectors (n, dim) of texts, or None when the index has no embedder."""
        embedder = self.embedder(settings)
        if embedder is None:
            return None
        if not texts:
            return np.empty((0, settings.dim), np.float32)
        return embedder.embed(texts, kind=kind)

    def embed_one(self, settings: IndexSettings, text: str) -> Vector | None:
        """The vector of one stored text."""
        vectors = self.embed(settings, [text], kind="document")
        return None if vectors is None else vectors[0]

    def forget_texts(self) -> None:
        """No embedder in use keeps what it read lately: something was erased."""
        for name in {settings.embedder for settings in self.engine.indexes()} - {None}:
            self._embedder_of(str(name)).clear_cache()
