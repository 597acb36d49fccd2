"""An embedder from the sentence-transformers library (needs torch; the ONNX ones do not)."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from kektor.errors import Unavailable
from kektor.models.arrays import Vectors, as_vectors, merge_windows, unit
from kektor.models.base import EmbedderBase, Fingerprint, Kind
from kektor.models.extras import require
from kektor.models.once import Once
from kektor.models.remote_windows import pieces
from kektor.models.spec import spec_text
from kektor.models.windows import split

__all__ = ["SentenceTransformersEmbedder"]

_STEP = 256  # texts between two reports of progress
_SPARE = 8  # tokens: a piece cut out of a text may be read as slightly more than it was inside


class SentenceTransformersEmbedder(EmbedderBase):
    """Runs `model` (a name on the hub, or a folder) with the model's own prompts; normalised.

    The library would cut a text at the model's limit; longer ones are read in overlapping windows instead.
    `revision`: pin the commit, since a name alone may give other weights tomorrow. `device`: as torch names
    it.

    >>> SentenceTransformersEmbedder("all-MiniLM-L6-v2").name  # doctest: +SKIP
    'sentence-transformers:all-MiniLM-L6-v2'
    """

    kind_matters: ClassVar[bool] = True
    spec_options: ClassVar[dict[str, type]] = {"revision": str, "device": str, "batch_size": int}
    shared: ClassVar[bool] = True

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        device: str | None = None,
        batch_size: int = 32,
        cache_size: int = 1024,
    ) -> None:
        super().__init__(cache_size=cache_size)
        require("sentence_transformers", extra="sentence-transformers")
        if Path(model).is_dir():
            model = str(Path(model).absolute())
        self._model_name, self._revision, self._device = model, revision, device
        self._batch_size = batch_size
        self._turn = threading.Lock()  # the library's tokenizers cannot be used by two threads at once
        self._model = Once(self._load)
        options = {
            "revision": revision,
            "device": device,
            "batch_size": batch_size if batch_size != 32 else None,
        }
        self._name = spec_text("sentence-transformers", model, options)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dim(self) -> int:
        model = self._model.get()
        renamed = getattr(model, "get_embedding_dimension", None)  # its name in newer versions
        return int((renamed or model.get_sentence_embedding_dimension)())

    @property
    def fingerprint(self) -> Fingerprint:
        model = self._model.get()
        return Fingerprint(
            model="sentence-transformers:" + self._model_name + (f"@{self._revision}" if self._revision else ""),
            dim=self.dim,
            pooling="model",
            normalized=True,
            max_tokens=int(model.max_seq_length or 0),
            document_prefix=_prompt(model, "document"),
            query_prefix=_prompt(model, "query"),
        )

    @property
    def loaded(self) -> bool:
        return self._model.ready

    def warm(self) -> None:
        """Import torch and load the model."""
        self._model.get()

    def _embed(self, texts: list[str], kind: Kind, advance: Callable[[int], None], /) -> Vectors:
        model = self._model.get()
        source = f"the embedder {self.name}"
        encode = model.encode_query if kind == "query" else model.encode_document
        parts = []
        with self._turn:
            for start in range(0, len(texts), _STEP):
                step = [self._pieces(model, text, kind) for text in texts[start : start + _STEP]]
                flat = [piece for part in step for piece in part]
                raw = encode(flat, batch_size=self._batch_size, normalize_embeddings=True, show_progress_bar=False)
                vectors = as_vectors(raw, count=len(flat), dim=self.dim, source=source)
                parts.append(unit(merge_windows(vectors, [len(part) for part in step]), source=source))
                advance(len(step))
        return np.concatenate(parts)

    def _pieces(self, model: Any, text: str, kind: Kind) -> list[str]:
        if not model.max_seq_length or len(text) < model.max_seq_length // 4:
            return [text]
        prompt = _prompt(model, kind)
        try:
            spans = _spans(model.tokenizer, text)
            markers = model.tokenizer.num_special_tokens_to_add(pair=False)
            room = model.max_seq_length - markers - len(_spans(model.tokenizer, prompt))
        except (AttributeError, NotImplementedError, KeyError):  # a tokenizer without offsets
            return pieces(text, model.max_seq_length)
        if len(spans) <= room:
            return [text]
        size = max(room - _SPARE, 2)
        return split(text, spans, size, size // 8)

    def _load(self) -> Any:
        from sentence_transformers import SentenceTransformer

        try:
            return SentenceTransformer(self._model_name, revision=self._revision, device=self._device)
        except Exception as error:
            raise Unavailable(
                f"the model {self._model_name} of sentence-transformers cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error


def _prompt(model: Any, kind: Kind) -> str:
    """What the library puts before a text of this kind."""
    names = ("query",) if kind == "query" else ("document", "passage", "corpus")
    found = next((name for name in names if name in model.prompts), getattr(model, "default_prompt_name", None))
    return model.prompts.get(found) or ""


def _spans(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)
    return [(int(start), int(end)) for start, end in encoded["offset_mapping"]]
