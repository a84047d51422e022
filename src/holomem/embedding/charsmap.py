"""The normaliser of a SentencePiece vocabulary, made of what it does to single characters.

A precompiled map holds a replacement for single characters and for sequences ("e" and a combining acute is one rule,
and so are all spellings of a Korean syllable in old, half-width and circled letters: 220,000 rules). The sequences
follow from Unicode: every canonical composition, with each of its parts in every spelling that normalises to it, less
what the shorter rules do already. The map is a minimal automaton of the rules' UTF-8 bytes, laid out as an array of
32-bit cells that readers walk (Darts):

    cell of a byte    bits 0-7 the byte, 8 a rule ends here, 9 the offset is in 256s, 10-30 offset
    cell of a value   bit 31, and where its replacement begins in the text that follows the array
    walk              at = 0;  for each byte: at ^= offset(cell[at]) ^ byte, which must be the byte in cell[at];
                      where a rule ends, the value is in cell[at ^ offset(cell[at])]
"""

from __future__ import annotations

import struct
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final

__all__ = ["charsmap", "rules"]

HANGUL: Final = range(0xAC00, 0xD7A4)  # composed by arithmetic, without an entry in the Unicode data
# Composed characters beyond the basic plane as of Unicode 10, which the vocabulary was made with. Later versions added
# more; leaving those out gives the same map under every Python.
_ASTRAL: Final = "\U0001109a\U0001109c\U000110ab\U0001112e\U0001112f\U0001134b\U0001134c\U000114bb\U000114bc\U000114be"
_COMPOSED_ASTRAL: Final = frozenset(_ASTRAL + "\U000115ba\U000115bb")

_Edges = tuple[tuple[int, int], ...]  # (byte, state), or (0, -1 - value) where a rule ends


def rules(single: Mapping[str, str]) -> dict[str, str]:
    """The rules for characters and sequences that follow from the rules for single characters."""
    spellings: dict[str, list[str]] = {}
    for char, text in single.items():
        if len(text) == 1 and unicodedata.normalize("NFKC", char) == text:
            spellings.setdefault(text, []).append(char)
    sequences: dict[str, str] = {}
    for parts in _decompositions():
        whole = unicodedata.normalize("NFC", parts)
        if whole == parts or _is_newer(whole):
            continue
        for spelling in product(*((part, *spellings.get(part, ())) for part in parts)):
            if (sequence := "".join(spelling)) != whole:
                sequences[sequence] = whole
    found = dict(single)
    for sequence in sorted(sequences, key=len):  # a rule is tried against the shorter ones
        if _applied(found, sequence) != sequences[sequence]:
            found[sequence] = sequences[sequence]
    return found


def _decompositions() -> set[str]:
    """What characters are made of, in full."""
    return {
        unicodedata.normalize("NFKD", char)
        for char in map(chr, range(sys.maxunicode + 1))
        if ord(char) in HANGUL or unicodedata.decomposition(char)
    }


def _is_newer(text: str) -> bool:
    """Whether a character of the text is composed in a newer Unicode only."""
    return any(char > "\uffff" and unicodedata.decomposition(char) and char not in _COMPOSED_ASTRAL for char in text)


def _applied(found: Mapping[str, str], text: str) -> str:
    """`text` after the longest rule at each place, rules as long as the whole text left out."""
    out = []
    place = 0
    while place < len(text):
        for end in range(min(len(text), place + len(text) - 1), place, -1):
            if (replacement := found.get(text[place:end])) is not None:
                out.append(replacement)
                place = end
                break
        else:
            out.append(text[place])
            place += 1
    return "".join(out)


def charsmap(found: Mapping[str, str]) -> bytes:
    """The rules in the precompiled form: bytes of the array, the array, the replacements, each ended by a zero byte."""
    texts = bytearray()
    places: dict[str, int] = {}
    for text in sorted(set(found.values())):
        places[text] = len(texts)
        texts += text.encode("utf-8") + b"\0"
    keys = sorted((key.encode("utf-8"), places[text]) for key, text in found.items())
    cells = _laid_out(_minimal(keys))
    return struct.pack(f"<{len(cells) + 1}I", 4 * len(cells), *cells) + bytes(texts)


def _minimal(keys: Iterable[tuple[bytes, int]]) -> list[_Edges]:
    """The states of the smallest automaton that maps sorted keys to values; the last one is where it starts.

    Keys come in order, so a state is complete as soon as a key leaves its path; equal states are one.
    """
    numbers: dict[_Edges, int] = {}
    path: list[dict[int, int]] = [{}]  # states along the last key, still open
    last = b""

    def close(depth: int) -> None:
        while len(path) > depth + 1:
            edges = tuple(path.pop().items())
            path[-1][last[len(path) - 1]] = numbers.setdefault(edges, len(numbers))

    for key, value in keys:
        common = next((i for i, (a, b) in enumerate(zip(key, last, strict=False)) if a != b), min(len(key), len(last)))
        close(common)
        path.extend({} for _ in key[common:])
        path[-1][0] = -1 - value
        last = key
    close(0)
    return [*numbers, tuple(path[0].items())]


def _laid_out(states: list[_Edges]) -> list[int]:
    """The cells: the edges of a state lie at its base ^ byte, and no two states have the same base.

    States of many edges are placed first, while there are wide gaps. The first fit is taken; what did not fit one state
    is not tried again for another with as many edges (1 s instead of 18 for 1% more cells).
    """
    bases: dict[int, int] = {}  # state -> base
    taken, used = bytearray(1), {0}  # cells, bases
    taken[0] = 1  # where the walk starts
    start = size = 0
    for number in sorted(range(len(states)), key=lambda n: (-len(states[n]), n)):
        bytes_ = [byte for byte, _ in states[number]]
        if len(bytes_) != size:
            start, size = 0, len(bytes_)
        base = next(base for base in _free(taken, start, bytes_[0]) if _fits(taken, used, base, bytes_))
        start = base ^ bytes_[0]
        highest = base | 0xFF
        if highest >= len(taken):
            taken.extend(bytes(highest + 1 - len(taken)))
        for byte in bytes_:
            taken[base ^ byte] = 1
        used.add(base)
        bases[number] = base
    cells = [0] * len(taken)
    root = len(states) - 1
    cells[0] = _offset(0, bases[root])
    for number, edges in enumerate(states):
        for byte, target in edges:
            place = bases[number] ^ byte
            if byte == 0:
                cells[place] = 1 << 31 | -1 - target
            else:
                ends = states[target][0][0] == 0
                cells[place] = _offset(place, bases[target]) | ends << 8 | byte
    return cells


def _free(taken: bytearray, start: int, byte: int) -> Iterator[int]:
    """Bases at which the cell of `byte` is free, lowest cell first, from the cell `start` on."""
    place = taken.find(0, start)
    while place >= 0:
        yield place ^ byte
        place = taken.find(0, place + 1)
    yield from (place ^ byte for place in range(len(taken), len(taken) + 512))


def _fits(taken: bytearray, used: set[int], base: int, bytes_: list[int]) -> bool:
    return base not in used and all(base ^ byte >= len(taken) or not taken[base ^ byte] for byte in bytes_)


def _offset(place: int, base: int) -> int:
    distance = place ^ base
    if distance < 1 << 21:
        return distance << 10
    raise ValueError(f"a map of more than {1 << 21} cells")
