"""The file of a compact tokenizer: a header of JSON, then arrays that are read where they lie.

    0     magic, format version, bytes of the JSON, bytes of the file, checksum (_FIXED)
    28    the JSON: settings, and for each array where it begins and how many bytes it has
    ...   from the next page on the arrays, each at a multiple of 64; zero bytes up to a whole page

The checksum is the CRC-32 of the JSON and of a sum for each page: its 64-bit words times odd numbers, so that no change
of one word and hardly any of more goes unseen. It takes a millisecond for 6 MB, a CRC-32 of it all five.

A `trie` maps strings of UTF-8 bytes to numbers below 2^22. It is an array of 32-bit cells; the children of a state lie
at its base ^ byte, and no two states have the same base, so that a cell needs to hold no more than its byte:

    cell of a byte    bits 0-7 the byte, 8 a key ends here, 9 and no key goes on, 10-31 base of the state, or the value
    cell of a value   where a key ends and others go on, at their base: bits 0-7 are 0xFF, no byte of UTF-8, 10-31 the value
    first cell        bits 0-7 are 0xFF, 10-31 base of the first state;   free cells are 0xFF
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
import zlib
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from holomem.errors import ModelError

__all__ = ["CONTROL", "ENDS", "JOINS", "LAST", "PREPENDS", "RULE", "Unsupported", "found", "read", "trie", "write"]

FORMAT: Final = 2
MAGIC: Final = b"HOLOTOK\0"
PAGE: Final = 4096
ALIGN: Final = 64
NO_BYTE: Final = 0xFF
ENDS: Final = 0x100
LAST: Final = 0x200
LIMIT: Final = 1 << 22
_FIXED: Final = struct.Struct("<8sIIQI")

# What the normaliser must know of a character, one byte each.
RULE: Final = 1  # there is a replacement for it alone
JOINS: Final = 2  # belongs to the character before: combining marks, joiners
CONTROL: Final = 4  # nothing joins to it: controls, line ends, most format characters
PREPENDS: Final = 8  # the character behind belongs to it


class Unsupported(ModelError):
    """A tokenizer that has no compact form; the library `tokenizers` must be used for it."""


def write(destination: Path, settings: Mapping[str, object], arrays: Mapping[str, bytes]) -> None:
    """Write the file beside its place and move it there. OSError when it cannot be written."""
    places: dict[str, tuple[int, int]] = {}
    data = bytearray()
    for name, content in arrays.items():
        data += bytes(-len(data) % ALIGN)
        places[name] = (len(data), len(content))
        data += content
    data += bytes(-len(data) % PAGE)
    text = json.dumps({"settings": settings, "arrays": places}, ensure_ascii=False).encode("utf-8")
    begin = _first_page(len(text))
    fixed = _FIXED.pack(MAGIC, FORMAT, len(text), begin + len(data), _checksum(text, data))
    new = destination.with_name(f"{destination.name}.{os.getpid()}.new")
    try:
        new.write_bytes((fixed + text).ljust(begin, b"\0") + data)
        os.replace(new, destination)  # noqa: PTH105 - replaces on every system
    finally:
        new.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Any], dict[str, memoryview]]:
    """The settings and the arrays of a file, as views of its mapped pages. ModelError unless it is whole."""
    remedy = "remove it, and it is made anew"
    if sys.byteorder != "little":
        raise Unsupported("compact tokenizers are for little-endian machines")
    try:
        with path.open("rb") as file:
            fixed = file.read(_FIXED.size)
            size_bytes = os.fstat(file.fileno()).st_size
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size_bytes else b"")
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); {remedy}") from error
    if len(fixed) < _FIXED.size or not fixed.startswith(MAGIC):
        raise ModelError(f"{path} is not a compact tokenizer; {remedy}")
    _, version, text_bytes, whole_bytes, checksum = _FIXED.unpack(fixed)
    if version != FORMAT:
        raise ModelError(f"{path} has format {version}, not {FORMAT}: of another version of holomem; {remedy}")
    begin = _first_page(text_bytes)
    if len(mapped) != whole_bytes or begin >= whole_bytes or whole_bytes % PAGE:
        raise ModelError(f"{path} has {len(mapped)} bytes, not {whole_bytes}: damaged; {remedy}")
    text, data = mapped[_FIXED.size : _FIXED.size + text_bytes], mapped[begin:]
    if _checksum(text, data) != checksum:
        raise ModelError(f"{path} is damaged: its checksum is wrong; {remedy}")
    header = json.loads(bytes(text))
    return header["settings"], {name: data[at : at + size] for name, (at, size) in header["arrays"].items()}


def _first_page(text_bytes: int) -> int:
    return -(-(_FIXED.size + text_bytes) // PAGE) * PAGE


def _checksum(text: bytes | memoryview, data: bytearray | memoryview) -> int:
    words = np.frombuffer(data, np.uint64).reshape(-1, PAGE // 8)
    sums = words @ np.arange(1, PAGE // 4, 2, dtype=np.uint64)
    return zlib.crc32(sums.tobytes(), zlib.crc32(text))


def found(cells: memoryview, key: bytes) -> int | None:
    """The value of the shortest key of a trie that `key` begins with."""
    unit = cells[0]
    for byte in key:
        unit = cells[unit >> 10 ^ byte]
        if unit & 0xFF != byte:
            return None
        if unit & ENDS:
            return (unit if unit & LAST else cells[unit >> 10]) >> 10
    return None


def trie(keys: Sequence[bytes], values: Sequence[int]) -> bytes:
    """The cells of a trie of sorted, different keys without zero bytes. ValueError for one that is too large.

    States are placed from the root outwards, each in the first gap that takes all its children; the search goes on
    where it ended for the last state of about as many children: 250,000 pieces take 3 s and leave a seventh of the cells free.
    """
    if any(not 0 <= value < LIMIT for value in values):
        raise ValueError(f"values beyond {LIMIT}")
    cells, taken, used = array("I"), bytearray(), bytearray()  # used: bases
    _grow(cells, taken, used)
    taken[0] = 1
    starts: dict[int, int] = {}
    states = deque([(0, len(keys), 0, 0)])  # keys of the state, how many bytes they share, its cell
    while states:
        low, high, depth, cell = states.popleft()
        children = list(_children(keys, low, high, depth))
        lowest, *others = [label for label, _, _ in children]
        width = len(children).bit_length()
        place = starts.get(width, 1)
        while True:
            place = taken.find(0, place)
            if place < 0:
                place = len(taken)
                _grow(cells, taken, used)
            base = place ^ lowest  # it and all children lie in the same 256 cells
            if not used[base]:
                for label in others:
                    if taken[base ^ label]:
                        break
                else:
                    break
            place += 1
        starts[width] = place
        used[base] = 1
        cells[cell] |= base << 10
        for label, first, end in children:
            child = base ^ label
            taken[child] = 1
            if not label:
                cells[child] = values[first] << 10 | NO_BYTE
            elif len(keys[first]) > depth + 1:
                cells[child] = label
                states.append((first, end, depth + 1, child))
            elif end - first > 1:
                cells[child] = ENDS | label
                states.append((first, end, depth + 1, child))
            else:
                cells[child] = values[first] << 10 | ENDS | LAST | label
    if len(cells) > LIMIT:
        raise ValueError(f"a trie of {len(cells)} cells, more than {LIMIT}")
    return cells.tobytes()


def _grow(cells: array[int], taken: bytearray, used: bytearray) -> None:
    cells.extend(array("I", [NO_BYTE]) * 256)
    taken.extend(bytes(256))
    used.extend(bytes(256))


def _children(keys: Sequence[bytes], low: int, high: int, depth: int) -> Iterator[tuple[int, int, int]]:
    """(byte, first key, end) for each byte that follows in a state; byte 0 for the key that ends there."""
    if len(keys[low]) == depth:
        yield 0, low, low + 1
        low += 1
    while low < high:
        byte = keys[low][depth]
        end = low + 1
        while end < high and keys[end][depth] == byte:
            end += 1
        yield byte, low, end
        low = end
