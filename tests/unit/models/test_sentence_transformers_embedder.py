"""The sentence-transformers adapter: with the library where it is installed, else against its interface."""

import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kektor.errors import Unavailable
from kektor.models import SentenceTransformersEmbedder, resolve
from kektor.models.tokenizer import word_pieces


class Tokenizer:
    """The part of a transformers tokenizer that the adapter calls."""

    def __call__(self, text: str, **options: Any) -> dict[str, Any]:
        assert options == {
            "add_special_tokens": False,
            "return_offsets_mapping": True,
            "truncation": False,
            "verbose": False,
        }
        (encoding,) = word_pieces().encode_batch([text], add_special_tokens=False)
        return {"offset_mapping": encoding.offsets}

    def num_special_tokens_to_add(self, *, pair: bool) -> int:
        assert not pair
        return 2


class WithoutOffsets(Tokenizer):
    def __call__(self, text: str, **options: Any) -> dict[str, Any]:
        raise NotImplementedError("no offsets")


class Model:
    """A bag of words that cuts at `max_seq_length`, as the library does, and remembers what it was given."""

    max_seq_length = 40
    prompts: dict[str, str] = {"query": "query: ", "document": ""}  # noqa: RUF012

    def __init__(self, name: str, *, revision: str | None, device: str | None) -> None:
        if name == "missing":
            raise OSError("no such model")
        self.tokenizer: Any = Tokenizer()
        self.given: list[str] = []

    def get_sentence_embedding_dimension(self) -> int:
        return 16

    def encode_query(self, texts: Sequence[str], **options: Any) -> np.ndarray:
        return self._encode([self.prompts["query"] + text for text in texts], **options)

    def encode_document(self, texts: Sequence[str], **options: Any) -> np.ndarray:
        return self._encode(list(texts), **options)

    def _encode(
        self, texts: list[str], *, batch_size: int, normalize_embeddings: bool, show_progress_bar: bool
    ) -> np.ndarray:
        assert normalize_embeddings
        assert not show_progress_bar
        self.given += texts
        rows = np.zeros((len(texts), 16), dtype=np.float32)
        for row, text in enumerate(texts):
            ids = word_pieces().encode(text, add_special_tokens=False).ids
            assert len(ids) <= self.max_seq_length - 2, "the library would cut this text"
            for id_ in ids:
                rows[row, id_ % 16] += 1
            rows[row] /= np.linalg.norm(rows[row])
        return rows


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("sentence_transformers")
    module.__spec__ = importlib.util.spec_from_loader("sentence_transformers", loader=None)
    module.SentenceTransformer = Model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


def test_texts_and_questions_go_through_their_own_call(library: None) -> None:
    embedder = SentenceTransformersEmbedder("m")
    document, question = embedder.embed(["dana"]), embedder.embed(["dana"], kind="query")
    assert embedder._model.get().given == ["dana", "query: dana"]
    assert not np.array_equal(document, question)
    np.testing.assert_array_equal(embedder.embed(["dana"]), document)


@pytest.mark.parametrize("kind", ["document", "query"])
@pytest.mark.parametrize("offsets", [True, False])
def test_a_long_text_reaches_the_model_whole(library: None, kind: Any, offsets: bool) -> None:
    embedder = SentenceTransformersEmbedder("m")
    if not offsets:
        embedder._model.get().tokenizer = WithoutOffsets()
    words = [f"w{index}" for index in range(200)]
    got = embedder.embed(["short", " ".join(words), "other"], kind=kind)
    given = " ".join(embedder._model.get().given).split()
    assert set(words) <= set(given)
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(embedder.embed(["other"], kind=kind)[0], got[2])


def test_the_fingerprint_has_prompts_limit_and_revision(library: None) -> None:
    got = SentenceTransformersEmbedder("acme/m", revision="abc").fingerprint
    assert got.model == "sentence-transformers:acme/m@abc"
    assert (got.dim, got.max_tokens, got.query_prefix, got.normalized) == (16, 40, "query: ", True)


def test_the_model_loads_at_first_use(library: None) -> None:
    embedder = resolve("sentence-transformers:acme/m?batch_size=8")
    assert not embedder.loaded
    embedder.warm()
    assert embedder.loaded
    assert embedder.name == "sentence-transformers:acme/m?batch_size=8"


def test_a_model_that_cannot_be_loaded_is_unavailable(library: None) -> None:
    with pytest.raises(Unavailable, match="missing of sentence-transformers cannot be loaded: OSError"):
        SentenceTransformersEmbedder("missing").warm()
