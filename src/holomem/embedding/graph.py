"""The outputs of an ONNX file, read from its outermost fields without loading any weight.

The protobuf wire format: each field is a varint `number << 3 | type`, then a varint (type 0), 8 bytes (1), a varint
length and that many bytes (2), or 4 bytes (5). Weights are fields of type 2 and are skipped by seeking, so a file of
118 MB takes milliseconds. A half-downloaded file ends inside a field and is found out here.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["Graph", "Tensor", "read_graph"]

# onnx.proto: ModelProto.graph; GraphProto.input, .output; ValueInfoProto.name, .type; TypeProto.tensor_type;
# TypeProto.Tensor.shape; TensorShapeProto.dim; Dimension.dim_value
_GRAPH: Final = 7
_INPUT, _OUTPUT = 11, 12
_NAME, _TYPE = 1, 2
_TENSOR_TYPE: Final = 1
_SHAPE: Final = 2
_DIM: Final = 1
_DIM_VALUE: Final = 1


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named input or output. `shape` has None where a size is free; it is None itself when nothing is said."""

    name: str
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True, slots=True)
class Graph:
    """The inputs and outputs of a model."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def read_graph(path: Path) -> Graph:
    """The inputs and outputs of the ONNX file. ValueError when it is cut short or no ONNX file."""
    with path.open("rb") as file:
        inputs: list[Tensor] = []
        outputs: list[Tensor] = []
        for number, _, length in _fields(file, path.stat().st_size):
            if number != _GRAPH:
                continue
            for inner, _, size in _fields(file, file.tell() + length):
                if inner in (_INPUT, _OUTPUT):
                    (inputs if inner == _INPUT else outputs).append(_tensor(file.read(size)))
        if not outputs:
            raise ValueError("it holds no graph")
        return Graph(tuple(inputs), tuple(outputs))


def _fields(file: BinaryIO, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, value, length) of each field before `end`; length is 0 but for type 2, whose bytes may be read."""
    while file.tell() < end:
        key = _varint(file)
        value = length = 0
        match key & 7:
            case 0:
                value = _varint(file)
            case 1:
                file.seek(8, io.SEEK_CUR)
            case 2:
                length = _varint(file)
            case 5:
                file.seek(4, io.SEEK_CUR)
            case _:
                raise ValueError("it is not an ONNX file")
        after = file.tell() + length
        if after > end or key < 8:
            raise ValueError("it is cut short or not an ONNX file")
        yield key >> 3, value, length
        file.seek(after)


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise ValueError("it is cut short")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise ValueError("it is not an ONNX file")


def _tensor(message: bytes) -> Tensor:
    """The name and the shape in the bytes of a ValueInfoProto."""
    name = ""
    shape: tuple[int | None, ...] | None = None
    for number, value in _messages(message):
        if number == _NAME:
            name = value.decode("utf-8", "replace")
        elif number == _TYPE:
            for kind, tensor in _messages(value):
                if kind == _TENSOR_TYPE:
                    shape = next((_shape(s) for part, s in _messages(tensor) if part == _SHAPE), None)
    return Tensor(name, shape)


def _shape(message: bytes) -> tuple[int | None, ...]:
    dims: list[int | None] = []
    for number, dim in _messages(message):
        if number == _DIM:
            file = io.BytesIO(dim)
            sizes = (value for part, value, _ in _fields(file, len(dim)) if part == _DIM_VALUE)
            dims.append(next(sizes, None))
    return tuple(dims)


def _messages(message: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, bytes) of the fields of type 2 in a message; of other fields the bytes are empty."""
    file = io.BytesIO(message)
    for number, _, length in _fields(file, len(message)):
        yield number, file.read(length)
