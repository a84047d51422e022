"""Odd texts that a tokenizer is tried on: what may go otherwise than in the library is drawn far more often than in life."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final, Literal

__all__ = ["texts"]

_FIXED: Final = (
    *(
        "",
        " ",
        "\t",
        "  a  b ",
        "a ",
        "\u3000a\u3000",
        "a\n\r\nb\r\u0301",
        "\x00",
        "a\x00b",
        "\ufeffa",
        "\u00ada\u200bb",
    ),
    *(
        "<s> a</s>b <mask> c<unk>",
        "\uff1cs\uff1e",
        "\u2581",
        " \u2581\u2581a\u2581",
        "e\u0301\u0323",
        "\ufb01\u0301",
        "\u0301a",
    ),
    *(
        "\ud55c\u1100\u1161\u11a8",
        "\u0915\u094d\u0937\u093f",
        "\u0e01\u0e33",
        "\xa9\u200d\xa9",
        "\u200d\xb2\u0301",
        "a" * 4000,
    ),
    *(
        "\u0600a\u0301",
        "\U0001f468\u200d\U0001f469\ufe0f",
        "\U0001f1e9\U0001f1ea",
        "\U0010ffff",
        "\uff76\uff9e",
        "\u0344\u0301",
    ),
)
_PREPENDED: Final = "\u0600\u0605\u06dd\u070f\u0890\u08e2\u0d4e\U000110bd\U000111c2"
_SPACES: Final = "   \t\n\v\f\r\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000\u2581"
_JAMO: Final = (
    (0x1100, 0x1200),
    (0xA960, 0xA980),
    (0xD7B0, 0xD800),
    (0xAC00, 0xAC80),
    (0x3131, 0x318F),
    (0xFFA0, 0xFFE0),
)
_EMOJI: Final = ((0x1F1E6, 0x1F200), (0x1F300, 0x1F650), (0x2600, 0x2700))
_LETTERS: Final = ((0x41, 0x7B), (0xC0, 0x250), (0x370, 0x530), (0x5D0, 0x700))
_BOUNDS: Final = (0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000)  # so that short characters are not rare
_FORMS: Final[Sequence[Literal["NFC", "NFD", "NFKD"]]] = ("NFC", "NFD", "NFKD")
_SURROGATES: Final = range(0xD800, 0xE000)


def texts(words: Sequence[str], count: int, seed: int = 0) -> Iterator[str]:
    """Some fixed texts and `count` random ones, of characters of all kinds and of `words`; the same for a seed."""
    yield from _FIXED
    chance = random.Random(seed)
    pools = _pools(words)
    marks = pools["short marks"]
    names = sorted(pools)
    for number in range(count):
        kind = number % 6
        if kind == 0:
            yield "".join(_any(chance) for _ in range(chance.randrange(40)))
        elif kind == 1:  # a few kinds of characters, closely mixed
            few = chance.sample(names, chance.randrange(1, 4))
            yield "".join(chance.choice(pools[chance.choice(few)]) for _ in range(chance.randrange(1, 30)))
        elif kind == 2:
            yield "".join(chance.choice(pools[chance.choice(names)]) for _ in range(chance.randrange(1, 60)))
        elif kind == 3:  # long runs
            runs = (chance.choice(pools[chance.choice(names)]) * chance.choice((1, 2, 3, 10, 60)) for _ in range(5))
            yield "".join(runs)
        elif kind == 4:  # clusters of a letter and marks
            parts = []
            for _ in range(chance.randrange(1, 12)):
                letter = chance.choice(pools[chance.choice(("letters", "compatible", "indic"))])
                parts += [letter, *chance.choices(marks, k=chance.randrange(3))]
            yield "".join(parts)
        else:  # words, in composed and decomposed form
            yield unicodedata.normalize(
                chance.choice(_FORMS), "".join(chance.choices(words, k=chance.randrange(1, 12)))
            )


def _any(chance: random.Random) -> str:
    point = chance.randrange(chance.choice(_BOUNDS))
    return chr(point if point not in _SURROGATES else 0x41)


def _pools(words: Sequence[str]) -> dict[str, Sequence[str]]:
    every = [chr(point) for point in range(0x20000) if point not in _SURROGATES]
    marks = [char for char in every if unicodedata.category(char).startswith("M")]
    return {
        "any": every,
        "marks": marks,
        "short marks": [mark for mark in marks if mark < "\u0800"],
        "compatible": [char for char in every if unicodedata.normalize("NFKC", char) != char],
        "indic": every[0x900:0xE00],
        "jamo": _within(_JAMO),
        "emoji": [*_within(_EMOJI), *"\u200d\ufe0f\u20e3\xa9\xae\u2122\U0001f3fb\U000e0067\U000e007f" * 20],
        "controls": [char for char in every if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")],
        "spaces": _SPACES,
        "words": words,
        "added": ("<s>", "</s>", "<pad>", "<unk>", "<mask>", "<", "s>", "\uff1cs\uff1e", "<S>"),
        "prepended": _PREPENDED,
        "letters": _within(_LETTERS),
        "plain": "abc \u0301",
    }


def _within(ranges: Sequence[tuple[int, int]]) -> list[str]:
    return [chr(point) for low, high in ranges for point in range(low, high)]
