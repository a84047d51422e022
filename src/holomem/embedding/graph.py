"""The outputs of an ONNX file, read from its outermost fields without loading any weight.

The protobuf wire format: each field is a varint `number << 3 | type`, then a varint (type 0), 8 bytes (1), a varint
length and that many bytes (2), or 4 bytes (5). Weights are fields of type 2 and are stepped over in the mapped file, so
one of 118 MB takes milliseconds. A half-downloaded file ends inside a field and is found out here.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Buffer", "Graph", "Tensor", "fields", "mapped", "read_graph"]

Buffer = bytes | mmap.mmap

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
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []
    with mapped(path) as data:
        for number, _, start, end in fields(data, 0, len(data)):
            if number != _GRAPH:
                continue
            for inner, _, begin, stop in fields(data, start, end):
                if inner in (_INPUT, _OUTPUT):
                    (inputs if inner == _INPUT else outputs).append(_tensor(data[begin:stop]))
    if not outputs:
        raise ValueError("it holds no graph")
    return Graph(tuple(inputs), tuple(outputs))


@contextmanager
def mapped(path: Path) -> Iterator[Buffer]:
    """The bytes of a file, mapped. ValueError when it is empty."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def fields(data: Buffer, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, value, start, stop) of each field between two positions.

    A field of type 0 is the value; one of type 2 is the bytes from start to stop, which may be none, and its value -1.
    """
    while position < end:
        key, position = _varint(data, position, end)
        value = length = 0
        match key & 7:
            case 0:
                value, position = _varint(data, position, end)
            case 1:
                position += 8
            case 2:
                length, position = _varint(data, position, end)
                value = -1
            case 5:
                position += 4
            case _:
                raise ValueError("it is not an ONNX file")
        if position + length > end or key < 8:
            raise ValueError("it is cut short or not an ONNX file")
        yield key >> 3, value, position, position + length
        position += length


def _varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """The number at a position, and where the next byte is."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise ValueError("it is cut short")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("it is not an ONNX file")


def _tensor(message: bytes) -> Tensor:
    """The name and the shape in the bytes of a ValueInfoProto."""
    name = ""
    shape: tuple[int | None, ...] | None = None
    for number, _, start, stop in fields(message, 0, len(message)):
        if number == _NAME:
            name = message[start:stop].decode("utf-8", "replace")
        elif number == _TYPE:
            for kind, _, begin, end in fields(message, start, stop):
                if kind == _TENSOR_TYPE:
                    shapes = (_shape(message[a:b]) for part, _, a, b in fields(message, begin, end) if part == _SHAPE)
                    shape = next(shapes, None)
    return Tensor(name, shape)


def _shape(message: bytes) -> tuple[int | None, ...]:
    dims: list[int | None] = []
    for number, _, start, stop in fields(message, 0, len(message)):
        if number == _DIM:
            sizes = (value for part, value, _, _ in fields(message, start, stop) if part == _DIM_VALUE)
            dims.append(next(sizes, None))
    return tuple(dims)
