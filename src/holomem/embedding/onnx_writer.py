"""ONNX files written by hand: the few messages that a graph needs, so that the package `onnx` is not.

A protobuf message is a row of fields: a varint `number << 3 | type`, then a varint (type 0), a length and that many
bytes (2), or 4 bytes (5). A nested message stands behind its length, so sizes are added up while messages are made and
large weights are drawn from an iterator only while the file is written. Fields stand in the order of their numbers, as
the protobuf library writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["FLOAT", "INT64", "Message", "Value", "model", "node", "streamed", "tensor", "value_info"]

FLOAT, UINT8, INT8, INT64 = 1, 2, 3, 7  # onnx.proto, TensorProto.DataType
_ELEMENTS: Final = {"float32": FLOAT, "uint8": UINT8, "int8": INT8, "int64": INT64}
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7  # onnx.proto, AttributeProto.AttributeType

Value = int | float | Sequence[int]


class Message:
    """A protobuf message; iterating gives its bytes in pieces. The methods that add a field return the message."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._parts: list[bytes | Iterable[bytes]] = []

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
            else:
                yield from part

    def integer(self, number: int, value: int) -> Message:
        """A varint; a negative number is written as 64 bits."""
        return self._add(_varint(number << 3) + _varint(value & (1 << 64) - 1))

    def single(self, number: int, value: float) -> Message:
        """A float of 4 bytes."""
        return self._add(_varint(number << 3 | 5) + struct.pack("<f", value))

    def raw(self, number: int, value: bytes | str) -> Message:
        """Bytes, or text in UTF-8."""
        data = value.encode("utf-8") if isinstance(value, str) else value
        return self._add(_varint(number << 3 | 2) + _varint(len(data)) + data)

    def nested(self, number: int, message: Message) -> Message:
        """Another message."""
        return self.stream(number, message.size_bytes, message)

    def stream(self, number: int, size_bytes: int, pieces: Iterable[bytes]) -> Message:
        """Bytes that are not there yet; `pieces` must come to `size_bytes` when the message is written."""
        self._add(_varint(number << 3 | 2) + _varint(size_bytes))
        self._parts.append(pieces)
        self.size_bytes += size_bytes
        return self

    def _add(self, data: bytes) -> Message:
        self._parts.append(data)
        self.size_bytes += len(data)
        return self


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Value) -> Message:
    """A NodeProto, named after its first output unless `name` is given."""
    message = Message()
    for text in inputs:
        message.raw(1, text)
    for text in outputs:
        message.raw(2, text)
    message.raw(3, name or outputs[0]).raw(4, operator)
    for key, value in sorted(attributes.items()):
        message.nested(5, _attribute(key, value))
    return message


def _attribute(name: str, value: Value) -> Message:
    message = Message().raw(1, name)
    if isinstance(value, int):
        return message.integer(3, value).integer(20, _ATTRIBUTE_INT)
    if isinstance(value, float):
        return message.single(2, value).integer(20, _ATTRIBUTE_FLOAT)
    for item in value:
        message.integer(8, item)
    return message.integer(20, _ATTRIBUTE_INTS)


def tensor(name: str, array: NDArray[np.generic], *, listed: bool = False, located: bool = False) -> Message:
    """A TensorProto with the numbers as raw bytes, or `listed` one by one (the form that quantisers give to scales).

    `located` says in so many words that they are in this file, which changes nothing but the bytes.
    """
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    if not listed:
        message = streamed(name, array.dtype.name, array.shape, [little.tobytes()])
        return message.integer(14, 0) if located else message
    message = _tensor_head(array.dtype.name, array.shape)
    if array.dtype == np.float32:
        message.raw(4, little.tobytes())
    else:
        message.raw(5, b"".join(_varint(int(value) & (1 << 64) - 1) for value in array.reshape(-1)))
    return message.raw(8, name)


def streamed(name: str, dtype: str, shape: Sequence[int], pieces: Iterable[bytes]) -> Message:
    """A TensorProto whose raw bytes are drawn from `pieces` when it is written."""
    size_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return _tensor_head(dtype, shape).raw(8, name).stream(9, size_bytes, pieces)


def _tensor_head(dtype: str, shape: Sequence[int]) -> Message:
    message = Message()
    for size in shape:
        message.integer(1, size)
    return message.integer(2, _ELEMENTS[dtype])


def value_info(name: str, element: int, shape: Sequence[int | str]) -> Message:
    """A ValueInfoProto: the element type and the shape of a value; a size that is free is a name."""
    dims = Message()
    for size in shape:
        dims.nested(1, Message().integer(1, size) if isinstance(size, int) else Message().raw(2, size))
    return Message().raw(1, name).nested(2, Message().nested(1, Message().integer(1, element).nested(2, dims)))


def model(
    name: str,
    nodes: Iterable[Message],
    tensors: Iterable[Message],
    inputs: Iterable[Message],
    outputs: Iterable[Message],
    values: Iterable[Message],
    *,
    producer: tuple[str, str],
    metadata: dict[str, str],
) -> Message:
    """A ModelProto of format 9 with operators of set 17, which onnxruntime 1.14 and later reads."""
    graph = Message()
    for message in nodes:
        graph.nested(1, message)
    graph.raw(2, name)
    for number, messages in ((5, tensors), (11, inputs), (12, outputs), (13, values)):
        for message in messages:
            graph.nested(number, message)
    whole = Message().integer(1, 9).raw(2, producer[0]).raw(3, producer[1]).nested(7, graph)
    whole.nested(8, Message().raw(1, "").integer(2, 17))
    for key, value in metadata.items():
        whole.nested(14, Message().raw(1, key).raw(2, value))
    return whole
