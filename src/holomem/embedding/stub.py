"""A graph without its weights: they stay in the file they came in, which the runtime maps into memory.

Each large weight of the stub is *external data*, a name, an offset and a length in the untouched original, so its pages
belong to the file and not to the heap. The word table, four fifths of a multilingual model, leaves the graph altogether:
the Gather that looks words up in it is cut out, and its result becomes an input, whose rows are read from the original
for the words of a text only.
"""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holomem.embedding.graph import Buffer, fields, mapped
from holomem.embedding.onnx_writer import Message, value_info

__all__ = ["Table", "TableFile", "Unsupported", "split"]

MIN_BYTES: Final = 4096  # smaller weights stay in the stub: a page of the file is not less than that
_DTYPES: Final = {1: "float32", 2: "uint8", 3: "int8", 10: "float16"}  # onnx.proto, TensorProto.DataType
_GRAPH: Final = 7  # ModelProto.graph
_NODE, _TENSOR, _INPUT = 1, 5, 11  # GraphProto.node, .initializer, .input


class Unsupported(ValueError):
    """The graph has a form that cannot be split; the message says what it lacks."""


@dataclass(frozen=True, slots=True)
class Table:
    """Where the word table lies in the original, and the name of the stub's input that takes its rows."""

    feed: str
    offset: int
    rows: int
    cols: int
    dtype: str


@dataclass(slots=True)
class _Weight:
    """A TensorProto: its fields but the numbers, and where in the file these are."""

    name: str = ""
    dims: tuple[int, ...] = ()
    dtype: int = 0
    offset: int = 0
    size_bytes: int = 0
    head: tuple[tuple[int, int | bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class _Node:
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    message: bytes


_Part = int | bytes | _Weight | _Node


def split(source: Path) -> tuple[bytes, Table]:
    """The stub of an ONNX file, and where its word table lies.

    The stub names the original by its bare file name, so it is loaded with the original's folder. Raises Unsupported
    when there is no word table of which just one Gather reads, ValueError when it is no ONNX file.
    """
    with mapped(source) as data:
        whole: list[tuple[int, int | bytes]] = []
        parts: list[tuple[int, _Part]] | None = None
        for number, value, start, stop in fields(data, 0, len(data)):
            if number == _GRAPH:
                whole.append((number, b""))
                parts = _graph(data, start, stop)
            else:
                whole.append((number, data[start:stop] if value < 0 else value))
    if parts is None:
        raise ValueError("it holds no graph")
    table, lookup = _word_table(parts)
    graph = Message()
    for number, part in parts:
        if isinstance(part, _Weight):
            if part is not table:
                graph.nested(number, _external(part, source.name))
        elif isinstance(part, _Node):
            if part is not lookup:
                graph.raw(number, part.message)
        elif isinstance(part, int) or number != _INPUT or _name(part) != table.name:  # old files list weights there
            _copy(graph, number, part)
    shape = ("batch", "sequence", table.dims[1])
    graph.nested(_INPUT, value_info(lookup.outputs[0], table.dtype, shape))
    out = Message()
    for number, content in whole:
        if number == _GRAPH:
            out.nested(number, graph)
        else:
            _copy(out, number, content)
    rows, cols = table.dims
    return b"".join(out), Table(lookup.outputs[0], table.offset, rows, cols, _DTYPES[table.dtype])


class TableFile:
    """The rows of a word table, read from the file for the words that are asked for. Any thread may read."""

    def __init__(self, path: Path, table: Table) -> None:
        self.feed = table.feed
        self._table = table
        self._dtype = np.dtype(table.dtype).newbyteorder("<")
        self._path = path
        self._open = os.open(path, os.O_RDONLY) if hasattr(os, "pread") else None
        if self._open is not None:
            weakref.finalize(self, os.close, self._open)

    def rows(self, ids: list[int]) -> NDArray[np.generic]:
        """The rows (n, cols) of these words. OSError when the file is cut short meanwhile."""
        size_bytes = self._table.cols * self._dtype.itemsize
        data = b"".join(self._read(self._table.offset + word * size_bytes, size_bytes) for word in ids)
        if len(data) != size_bytes * len(ids):
            raise OSError("the file of the model was cut short")
        return np.frombuffer(data, self._dtype).reshape(len(ids), self._table.cols)

    def _read(self, offset: int, size_bytes: int) -> bytes:
        if self._open is not None:
            return os.pread(self._open, size_bytes, offset)  # takes no lock and maps no page
        with self._path.open("rb", buffering=0) as file:
            file.seek(offset)
            return file.read(size_bytes)


def _graph(data: Buffer, start: int, stop: int) -> list[tuple[int, _Part]]:
    parts: list[tuple[int, _Part]] = []
    for number, value, begin, end in fields(data, start, stop):
        if number == _TENSOR:
            parts.append((number, _weight(data, begin, end)))
        elif number == _NODE:
            parts.append((number, _node(data[begin:end])))
        else:
            parts.append((number, data[begin:end] if value < 0 else value))
    return parts


def _weight(data: Buffer, start: int, stop: int) -> _Weight:
    """A TensorProto; numbers in raw_data (9) of some size stay in the file."""
    weight = _Weight()
    head: list[tuple[int, int | bytes]] = []
    dims: list[int] = []
    for number, value, begin, end in fields(data, start, stop):
        if number == 9 and end - begin >= MIN_BYTES:
            weight.offset, weight.size_bytes = begin, end - begin
            continue
        content: int | bytes = data[begin:end] if value < 0 else value
        if number in (13, 14) and content not in (0, b""):  # external_data, data_location
            raise Unsupported("its weights are in another file")
        if number == 1:
            dims += [content] if isinstance(content, int) else _packed(content)
        elif number == 2 and isinstance(content, int):
            weight.dtype = content
        elif number == 8 and isinstance(content, bytes):
            weight.name = content.decode("utf-8", "replace")
        head.append((number, content))
    weight.head, weight.dims = tuple(head), tuple(dims)
    return weight


def _packed(data: bytes) -> list[int]:
    """The varints of a packed field."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    return numbers


def _node(message: bytes) -> _Node:
    inputs: list[str] = []
    outputs: list[str] = []
    operator = ""
    for number, _, start, stop in fields(message, 0, len(message)):
        if number in (1, 2):
            (inputs if number == 1 else outputs).append(message[start:stop].decode("utf-8", "replace"))
        elif number == 4:
            operator = message[start:stop].decode("utf-8", "replace")
        elif number == 5 and _is_axis(message[start:stop]):
            operator += " along an axis"
    return _Node(operator, tuple(inputs), tuple(outputs), message)


def _is_axis(attribute: bytes) -> bool:
    """Whether an AttributeProto is an axis other than the first (a zero is not always written)."""
    return attribute.startswith(b"\x0a\x04axis") and b"\x18\x00" not in attribute and b"\x18" in attribute


def _word_table(parts: list[tuple[int, _Part]]) -> tuple[_Weight, _Node]:
    """The largest weight and the one node that reads it, which must look up the rows of the words in it."""
    nodes = [part for _, part in parts if isinstance(part, _Node)]
    table = max((part for _, part in parts if isinstance(part, _Weight)), key=lambda w: w.size_bytes, default=_Weight())
    readers = [node for node in nodes if table.name in node.inputs]
    if table.size_bytes == 0 or len(table.dims) != 2 or table.dtype not in _DTYPES:
        raise Unsupported("it has no table of words")
    if table.size_bytes != table.dims[0] * table.dims[1] * np.dtype(_DTYPES[table.dtype]).itemsize:
        raise Unsupported("its largest weight has another size than it says")
    if len(readers) != 1 or readers[0].operator != "Gather" or readers[0].inputs[0] != table.name:
        raise Unsupported("its largest weight is not a table of words that one Gather reads")
    words = readers[0].inputs[1]
    casts = {node.outputs[0]: node.inputs[0] for node in nodes if node.operator in ("Cast", "Identity")}
    while words in casts:
        words = casts[words]
    if words != "input_ids":
        raise Unsupported("its words are not looked up by input_ids")
    return table, readers[0]


def _external(weight: _Weight, location: str) -> Message:
    """The TensorProto again; what was left in the file is named by its place there."""
    message = Message()
    for number, content in weight.head:
        if not (weight.size_bytes and number in (13, 14)):
            _copy(message, number, content)
    if weight.size_bytes:
        for key, value in (("location", location), ("offset", weight.offset), ("length", weight.size_bytes)):
            message.nested(13, Message().raw(1, key).raw(2, str(value)))
        message.integer(14, 1)  # TensorProto.EXTERNAL
    return message


def _copy(message: Message, number: int, content: int | bytes) -> None:
    if isinstance(content, int):
        message.integer(number, content)
    else:
        message.raw(number, content)


def _name(value: bytes) -> str:
    """The name of a ValueInfoProto."""
    length = value[1] if value[:1] == b"\x0a" and len(value) > 1 and value[1] < 0x80 else 0
    return value[2 : 2 + length].decode("utf-8", "replace")
