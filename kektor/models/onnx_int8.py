"""Makes a model whose weights are stored in 8 bits also multiply in 8 bits.

The file of the default model holds int8 weights and a scale per column, and widens both to float32 before
every product (`Cast`, `Mul`, then `MatMul`). Here each such product becomes one that rounds its other operand
to 8 bits at run time and multiplies integers, and the embedding tables are widened only for the rows that are
read. The graph is rewritten in its wire form, ONNX being protocol buffers, so that no other package is
needed.
"""

import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from kektor.errors import Corrupt

__all__ = ["to_int8"]

Value: TypeAlias = "int | memoryview | bytes"

_VARINT, _LENGTH = 0, 2
# field numbers of onnx.proto
_MODEL_GRAPH, _MODEL_OPSET = 7, 8
_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 4, 5, 7
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_DATA = 1, 2, 8, 9
_FLOAT, _UINT8, _INT8 = 1, 2, 3
_CONTRIB = "com.microsoft"


class _Node(NamedTuple):
    operator: str
    inputs: list[str]
    outputs: list[str]
    raw: Value


class _Tensor(NamedTuple):
    name: str
    type: int
    data: Value
    raw: Value


class _Weight(NamedTuple):
    """An int8 matrix, its scales, and the two nodes that widened it."""

    matrix: str
    scales: str
    widening: tuple[_Node, _Node]


def to_int8(model: bytes, *, signed: bool | None = None) -> bytes:
    """The ONNX `model` with 8-bit products; `Corrupt` if it has no weights to do this with.

    `signed`: multiply by the weights as signed bytes, which is quick but overflows on x86 processors without
    VNNI; as unsigned bytes the result is the same and slower there. Default: as this processor can.
    """
    signed = _multiplies_signed() if signed is None else signed
    fields = list(_fields(memoryview(model)))
    graph = [value for number, value in fields if number == _MODEL_GRAPH]
    if len(graph) != 1:
        raise Corrupt("this is not an ONNX model")
    out = [_field(number, value) for number, value in fields if number != _MODEL_GRAPH]
    out.append(_field(_MODEL_GRAPH, _rewritten(_bytes(graph[0]), signed)))
    out.append(_field(_MODEL_OPSET, _field(1, _CONTRIB.encode()) + _field(2, 1)))
    return b"".join(out)


def _rewritten(graph: memoryview | bytes, signed: bool) -> bytes:
    fields = list(_fields(graph))
    nodes = [_node(value) for number, value in fields if number == _GRAPH_NODE]
    tensors = {t.name: t for t in (_tensor(value) for number, value in fields if number == _GRAPH_INITIALIZER)}
    weights = _weights(nodes, tensors)
    if not weights:
        raise Corrupt("this model has no 8-bit weights")
    new_nodes: list[bytes] = []
    added: dict[str, bytes] = {}
    widened = [node for weight in weights.values() for node in weight.widening]
    for node in nodes:
        weight = next((weights[name] for name in node.inputs if name in weights), None)
        if any(node is each for each in widened):
            continue
        if weight is None:
            new_nodes.append(_field(_GRAPH_NODE, node.raw))
        elif node.operator == "MatMul" and node.inputs[1] in weights:
            new_nodes.append(_product(node, weight, tensors, added, signed))
        elif node.operator == "Gather" and node.inputs[0] in weights:
            new_nodes += _lookup(node, weight, weight.widening[0])
        else:
            raise Corrupt(f"an 8-bit weight of this model is used in a way that is not known: {node.operator}")
    used = {name for node in new_nodes for name in _node(next(_fields(node))[1]).inputs}
    kept = [_field(_GRAPH_INITIALIZER, t.raw) for t in tensors.values() if t.name in used]
    rest = [_field(number, value) for number, value in fields if number not in (_GRAPH_NODE, _GRAPH_INITIALIZER)]
    return b"".join([*new_nodes, *kept, *added.values(), *rest])


def _weights(nodes: Iterable[_Node], tensors: dict[str, _Tensor]) -> dict[str, _Weight]:
    """By the name of its float32 form."""
    casts = {
        node.outputs[0]: node
        for node in nodes
        if node.operator == "Cast" and node.inputs[0] in tensors and tensors[node.inputs[0]].type == _INT8
    }
    return {
        node.outputs[0]: _Weight(casts[node.inputs[0]].inputs[0], node.inputs[1], (casts[node.inputs[0]], node))
        for node in nodes
        if node.operator == "Mul" and node.inputs[0] in casts and node.inputs[1] in tensors
    }


def _product(node: _Node, weight: _Weight, tensors: dict[str, _Tensor], added: dict[str, bytes], signed: bool) -> bytes:
    scales = _bytes(tensors[weight.scales].data)
    columns = len(scales) // 4
    flat = f"{weight.scales}.flat"
    added[flat] = _new_tensor(flat, _FLOAT, [columns], scales)
    inputs = [node.inputs[0], weight.matrix, flat]
    if not signed:
        matrix, zero = f"{weight.matrix}.unsigned", f"{weight.matrix}.zero"
        shifted = bytes(_bytes(tensors[weight.matrix].data)).translate(_SHIFT)
        added[matrix] = _new_tensor(matrix, _UINT8, [len(shifted) // columns, columns], shifted)
        added[zero] = _new_tensor(zero, _UINT8, [columns], b"\x80" * columns)
        inputs = [node.inputs[0], matrix, flat, zero]
    return _new_node("DynamicQuantizeMatMul", inputs, node.outputs[0], domain=_CONTRIB)


def _lookup(node: _Node, weight: _Weight, cast: _Node) -> list[bytes]:
    out = node.outputs[0]
    attributes = [_field(_NODE_ATTRIBUTE, value) for value in _all(node.raw, _NODE_ATTRIBUTE)]
    to_float = [_field(_NODE_ATTRIBUTE, value) for value in _all(cast.raw, _NODE_ATTRIBUTE)]
    return [
        _new_node("Gather", [weight.matrix, node.inputs[1]], f"{out}.rows", attributes),
        _new_node("Gather", [weight.scales, node.inputs[1]], f"{out}.scales", attributes),
        _new_node("Cast", [f"{out}.rows"], f"{out}.wide", to_float),
        _new_node("Mul", [f"{out}.wide", f"{out}.scales"], out),
    ]


def _multiplies_signed() -> bool:
    """Whether this processor multiplies unsigned by signed bytes without overflow."""
    if platform.machine().lower() in ("arm64", "aarch64"):
        return True
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


_SHIFT = bytes(byte ^ 0x80 for byte in range(256))


# Protocol buffers, as far as they are needed here.


def _fields(data: memoryview | bytes) -> Iterator[tuple[int, Value]]:
    """Number and value of each field; fixed-size ones do not occur at the levels that are read."""
    view, at = memoryview(data), 0
    try:
        while at < len(view):
            key, at = _read_varint(view, at)
            if key & 7 == _VARINT:
                value, at = _read_varint(view, at)
                yield key >> 3, value
            elif key & 7 == _LENGTH:
                size, at = _read_varint(view, at)
                if at + size > len(view):
                    raise IndexError
                yield key >> 3, view[at : at + size]
                at += size
            else:
                raise IndexError
    except IndexError:
        raise Corrupt("this is not an ONNX model") from None


def _read_varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    return b"".join([_varint(number << 3 | _LENGTH), _varint(len(value)), value])


def _all(data: Value, number: int) -> list[Value]:
    return [value for each, value in _fields(_bytes(data)) if each == number]


def _bytes(value: Value) -> memoryview | bytes:
    if isinstance(value, int):
        raise Corrupt("this is not an ONNX model")
    return value


def _text(value: Value) -> str:
    return bytes(_bytes(value)).decode(errors="replace")


def _node(raw: Value) -> _Node:
    operator = "".join(map(_text, _all(raw, _NODE_OPERATOR)))
    return _Node(operator, list(map(_text, _all(raw, _NODE_INPUT))), list(map(_text, _all(raw, _NODE_OUTPUT))), raw)


def _tensor(raw: Value) -> _Tensor:
    name = "".join(map(_text, _all(raw, _TENSOR_NAME)))
    types, data = _all(raw, _TENSOR_TYPE), _all(raw, _TENSOR_DATA)
    return _Tensor(name, int(types[0]) if types and isinstance(types[0], int) else 0, data[0] if data else b"", raw)


def _new_node(
    operator: str, inputs: Iterable[str], output: str, attributes: Iterable[bytes] = (), domain: str = ""
) -> bytes:
    parts = [_field(_NODE_INPUT, name.encode()) for name in inputs]
    parts += [_field(_NODE_OUTPUT, output.encode()), _field(_NODE_OPERATOR, operator.encode()), *attributes]
    parts += [_field(_NODE_DOMAIN, domain.encode())] if domain else []
    return _field(_GRAPH_NODE, b"".join(parts))


def _new_tensor(name: str, type_: int, dims: Iterable[int], data: memoryview | bytes) -> bytes:
    parts = [_field(_TENSOR_DIMS, size) for size in dims]
    parts += [_field(_TENSOR_TYPE, type_), _field(_TENSOR_NAME, name.encode()), _field(_TENSOR_DATA, data)]
    return _field(_GRAPH_INITIALIZER, b"".join(parts))
