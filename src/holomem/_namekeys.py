"""The units of a name: a word by its key, or one character of a script without spaces. Serves `entities` alone."""

from __future__ import annotations

import re
from functools import lru_cache

from holomem.text import HAN, HANGUL, KANA, KHMER, LAO, MYANMAR, THAI, WORD, normalise

__all__ = ["CLITIC", "MAX_NAME_CHARS", "Unit", "join", "key", "sound", "units"]

MAX_NAME_CHARS = 80
"""A longer piece of text is a sentence."""

Unit = tuple[str, int, int]
"""(key, start, end) of one unit: text[start:end] has this key."""

_UNSPACED = f"{HAN}{KANA}{THAI}{LAO}{KHMER}{MYANMAR}{HANGUL}\uff66-\uff9d"
_MARK = "\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3\ufe00-\ufe0f"
_CHAR = re.compile(f"[{_UNSPACED}]")
_IGNORED = "\u200b-\u200d\u2060\ufeff\u00ad"
_LONGER = "ßİŉǰΐΰև\u1e96-\u1e9e\u1f50-\u1f56\u1f80-\u1ffc\ufb00-\ufb17"  # in another case they are two letters
_INITIAL = rf"[^\W\d_{_UNSPACED}{_LONGER}]"
_UNIT = re.compile(
    rf"""
      (?P<initials> (?<!{WORD}) (?:{_INITIAL}\.){{2,}} (?:{_INITIAL}(?!{WORD}))? )   # U.S.  J.R.R.
    | (?P<char> [\u1100-\u115f][\u1160-\u11a7]?[\u11a8-\u11ff]? | [{_UNSPACED}][{_MARK}]* )
    | \d+ (?:[.,]\d+)* (?!{WORD}) %?
    | (?: (?<![^\s(\[{{"'«“„]) \. (?=[^\W\d_]) )?                                           # .NET
      {WORD} (?:{WORD}|[{_IGNORED}])* (?: ['’ʼ‘＇]{WORD}(?:{WORD}|[{_IGNORED}])* )*
      (?: \+\+ | \#(?!{WORD}) | % )?                                                      # C++ C# 100%
    """,
    re.VERBOSE,
)
CLITIC = "(?:s|[dt][ae](?:n|ki)?|n?[ıiuü]n|y[aeıiuü]|y?l[ae]|l[ıiuü])"  # after the apostrophe: English possessive, Turkish cases of names
_CLITIC = re.compile(rf"(?<=\w)'{CLITIC}$")
# Case endings of Slavic nouns and adjectives after at least two letters. Not Snowball: that one takes verb endings and
# suffixes too, so "верит" would be Вера, Алена "ал", and Петров (without ов) another man than Петрова.
_CASE_ENDING = re.compile(
    """(?<=..)(?:иями|ями|ами|иях|ях|ах|иям|ям|ам|иею|ией|ьей|ею|ей|ою|ой|ий|ый|ого|его|ому|ему|ыми|ими|ым|им|ых|их|ую|юю|ая|яя|ое|ее
    |ые|ие|ия|ии|ию|ье|ья|ью|ьи|ием|ьем|ом|ем|ї|єю|єм|ові|еві|і|є|а|я|о|е|и|ы|у|ю|ь|й)$""".replace("\n    ", "")
)
_ATTACHED = re.compile(
    r"^(?:(?:[cdjlmnst]|qu|dell|all|nell|sull)['’](?=[^\W\d_]{2})|[\u0648\u0628\u0644\u0643\u0641](?=[\u0620-\u06ff]{2}))"
)
_GENITIVE_PLURAL = re.compile("(?<=...)(?:ов|ев)$")


@lru_cache(maxsize=65536)
def _unit(token: str) -> str:
    """The key of one word: folded, without possessive and apostrophes; a Cyrillic word without its case ending.

    The Cyrillic e (э) is written like ye here, since foreign names are spelled both ways (Пейн, Пэйн).
    """
    folded = _CLITIC.sub("", normalise(token)).replace("'", "").replace("э", "е")
    if folded.isalpha() and all("\u0400" <= char < "\u0530" for char in folded):
        bare = _CASE_ENDING.sub("", folded)
        return bare[:2] + bare[2:].rstrip("аеиоуыьй")  # Андрей, Андрея; Николай, Николаю
    return "".join(folded.split())


@lru_cache(maxsize=65536)
def other_units(token: str) -> tuple[str, ...]:
    """Further keys that a word of running text may stand for: egg for eggs and the reverse, штат for штатов.

    Also the word without what is written together with it: Hôtel for l'Hôtel, the name behind an Arabic preposition.
    """
    bare = _ATTACHED.sub("", token)
    if bare != token:
        return (_unit(bare),)
    unit = _unit(token)
    if len(unit) < 3 or not unit.isalpha():
        return ()
    if "a" <= unit[-1] <= "z":
        if not token.islower():
            return ()
        return (unit[:-1],) if unit[-1] == "s" and len(unit) > 3 else (unit + "s",)
    short = _GENITIVE_PLURAL.sub("", unit)
    return (short,) if short != unit and token.lower().endswith(("ов", "ев")) else ()


def units(text: str) -> list[Unit]:
    """The units of `text`, in order; none is empty."""
    found: list[Unit] = []
    for match in _UNIT.finditer(text):
        token = match[0]
        if match.lastgroup == "initials":
            token = token.replace(".", "")
        unit = _unit(token) if len(token) < 64 else _unit.__wrapped__(token)
        if unit:
            found.append((unit, match.start(), match.end()))
    return found


def is_char(unit: str) -> bool:
    """Whether a unit is a character of a script without spaces; two of those are joined without one."""
    return len(unit) < 3 and unit[0] >= "\u0e01" and _CHAR.match(unit) is not None


def join(found: list[Unit]) -> tuple[str, list[int], list[int]]:
    """All units as one key, and where each begins and ends in it: a slice of it is the key of a part of the text."""
    pieces: list[str] = []
    starts, ends = [], []
    length = 0
    previous = False
    for unit, _, _ in found:
        char = is_char(unit)
        if pieces and not (char and previous):
            pieces.append(" ")
            length += 1
        pieces.append(unit)
        starts.append(length)
        length += len(unit)
        ends.append(length)
        previous = char
    return "".join(pieces), starts, ends


def key(name: str) -> str:
    """The key a name is looked up by, "" when there is nothing to look up (only punctuation).

    Case, accents, yo, dotted initials, possessives and Russian inflection make no difference; й, dakuten, %, _ and +
    do: "Алёна" and "Алену" are one name, "C_API", "C API" and "C++ API" are three.
    """
    return join(units(name))[0]


_SOUNDS = str.maketrans(
    dict(
        pair.split("-")
        for pair in """а-a б-b в-v г-g ґ-g д-d е-e ж-zh з-z и-i й-i і-i ї-i є-e к-k л-l м-m н-n о-o п-p р-r с-s т-t у-u ў-v
        ф-f х-h ц-ts ч-ch ш-sh щ-sh ъ- ы-i ь- э-e ю-iu я-ia""".split()
    )
)
_SPELLINGS = [
    (re.compile(pattern), sound)
    for pattern, sound in (
        ("s[h]?ch", "sh"), ("tch|cz", "ch"), ("kh", "h"), ("ph", "f"), ("tz", "ts"), ("ck|q|c(?!h)", "k"), ("x", "ks"),
        ("w", "v"), ("[yj]", "i"), (r"(.)\1+", r"\1"), ("ie", "e"),
    )
]  # fmt: skip


@lru_cache(maxsize=65536)
def sound(name: str) -> str:
    """How a name of Cyrillic or of Latin letters sounds, in Latin letters: "ilia" for Илья and Ilya.

    "" for one of both scripts or another, and for one of fewer than four letters, which may sound alike by accident.
    """
    folded = re.sub("[' -]+", " ", normalise(name)).strip()
    letters = folded.replace(" ", "")
    cyrillic = all("\u0400" <= letter < "\u0530" for letter in letters)
    if len(letters) < 4 or not letters.isalpha() or not (cyrillic or letters.isascii()):
        return ""
    sounds = folded.translate(_SOUNDS)
    for spelling, heard in _SPELLINGS:
        sounds = spelling.sub(heard, sounds)
    return sounds if sounds.isascii() else ""
