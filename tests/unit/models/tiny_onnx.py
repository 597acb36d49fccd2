"""Writes ONNX files of a few hundred bytes: a table of token states, looked up, perhaps averaged."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kektor.models.tokenizer import word_pieces

FLOAT, INT64 = 1, 7
VOCABULARY_SIZE = 30522


def write_model(
    folder: Path,
    *,
    dim: int = 4,
    pooled: bool = False,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    table: np.ndarray | None = None,
    name: str = "model.onnx",
) -> Path:
    """A model whose state of token `t` is `table[t]` (random unless given), its tokenizer.json beside it."""
    if table is None:
        table = np.random.default_rng(7).normal(size=(VOCABULARY_SIZE, dim))
    nodes = [_node("Gather", ["table", inputs[0]], "token_states")]
    output, shape = "token_states", ["batch", "sequence", dim]
    if pooled:
        nodes.append(_node("ReduceMean", ["token_states"], "sentence", _ints("axes", [1]), _int("keepdims", 0)))
        output, shape = "sentence", ["batch", dim]
    tensor = _field(1, VOCABULARY_SIZE) + _field(1, dim) + _field(2, FLOAT) + _text(8, "table")
    tensor += _bytes(9, np.ascontiguousarray(table, dtype="<f4").tobytes())
    graph = b"".join(_bytes(1, node) for node in nodes) + _text(2, "tiny") + _bytes(5, tensor)
    graph += b"".join(_bytes(11, _value(each, INT64, ["batch", "sequence"])) for each in inputs)
    graph += _bytes(12, _value(output, FLOAT, shape))
    model = _field(1, 8) + _bytes(7, graph) + _bytes(8, _text(1, "") + _field(2, 13))
    path = folder / name
    path.write_bytes(model)
    word_pieces().save(str(folder / "tokenizer.json"))
    return path


def _node(operator: str, inputs: Sequence[str], output: str, *attributes: bytes) -> bytes:
    names = b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, operator)
    return names + b"".join(_bytes(5, attribute) for attribute in attributes)


def _ints(name: str, values: Sequence[int]) -> bytes:
    return _text(1, name) + b"".join(_field(8, value) for value in values) + _field(20, 7)


def _int(name: str, value: int) -> bytes:
    return _text(1, name) + _field(3, value) + _field(20, 2)


def _value(name: str, type_: int, shape: Sequence[str | int]) -> bytes:
    dims = b"".join(_bytes(1, _text(2, d) if isinstance(d, str) else _field(1, d)) for d in shape)
    return _text(1, name) + _bytes(2, _bytes(1, _field(1, type_) + _bytes(2, dims)))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())
