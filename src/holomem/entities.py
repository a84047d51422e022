"""Names: the key a name is looked up by, the known names in a text, and new names out of a text.

    "Ивана Петрова" -> key "иван петр"         one key for every case, spelling of yo and inflection
    Gazetteer.find("писал Иван Петров")         the longest known names, as Mentions
    extract("József lives in Kőbánya")          ["József", "Kőbánya"]

A key only finds an entity; what is stored and bound is the name as it was written.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holomem._aliases import aliases
from holomem._extraction import MAX_NAMES, extract
from holomem._namekeys import MAX_NAME_CHARS, Unit, is_char, join, key, other_units, sound, units
from holomem._stopwords import STOPWORDS
from holomem.text import HANGUL, normalise

__all__ = [
    "MAX_NAMES",
    "MAX_NAME_CHARS",
    "Gazetteer",
    "Mention",
    "aliases",
    "extract",
    "is_char",
    "key",
    "other_units",
    "stands_alone",
    "units",
]

_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d]")
_HANGUL = re.compile(f"[{HANGUL}]")


@dataclass(frozen=True, slots=True)
class Mention:
    """A known name in a text: text[start:end] stands for the entity."""

    entity_id: int
    name_key: str
    start: int
    end: int


class Gazetteer:
    """The known names and where they stand in a text.

    A name is found by the keys of its words, so an inflected form is found too. A name without spaces (Chinese,
    Japanese, Thai) is found as a substring, but a katakana name not inside a longer katakana word.
    """

    def __init__(self) -> None:
        self._ids: dict[str, list[int]] = {}  # key -> ids, in the order they came
        self._sounds: dict[str, set[str]] = {}  # how a name sounds -> keys of names that sound so, or did
        self._unheard: list[tuple[str, str]] = []  # names and their keys that are not in there yet
        self._lengths: dict[str, dict[int, int]] = {}  # first unit -> units of a key that starts so -> how many keys

    def __len__(self) -> int:
        """How many keys are known."""
        return len(self._ids)

    def add(self, name: str, entity_id: int) -> None:
        """Let `name` stand for the entity; a name may stand for several. A name without a key is passed over."""
        name_key = key(name)
        if not name_key:
            return
        self._unheard.append((name, name_key))
        known = self._ids.get(name_key)
        if known is None:
            self._ids[name_key] = [entity_id]
            first, length = _shape(name)
            lengths = self._lengths.setdefault(first, {})
            lengths[length] = lengths.get(length, 0) + 1
        elif entity_id not in known:
            known.append(entity_id)

    def discard(self, name: str, entity_id: int) -> None:
        """Let `name` no longer stand for the entity; nothing happens if it did not."""
        name_key = key(name)
        known = self._ids.get(name_key)
        if known is None or entity_id not in known:
            return
        known.remove(entity_id)
        if not known:
            del self._ids[name_key]
            first, length = _shape(name)
            lengths = self._lengths[first]
            lengths[length] -= 1
            if not lengths[length]:
                del lengths[length]
            if not lengths:
                del self._lengths[first]

    def ids(self, name: str) -> tuple[int, ...]:
        """The entities that `name` stands for, () if it is not known."""
        return tuple(self._ids.get(key(name), ()))

    def alike(self, name: str) -> tuple[int, ...]:
        """The entities whose names, of the other of the Latin and Cyrillic scripts, sound like `name`."""
        for unheard, name_key in self._unheard:
            self._sounds.setdefault(sound(unheard), set()).add(name_key)
        self._unheard.clear()
        heard = sound(name)
        keys = self._sounds.get(heard, set()) if heard else set()
        other = [known for known in sorted(keys) if known.isascii() != key(name).isascii()]
        return tuple(dict.fromkeys(entity_id for known in other for entity_id in self._ids.get(known, ())))

    def find(self, text: str) -> list[Mention]:
        """The known names in `text`, from left to right, the longest at each place; they do not overlap."""
        found = units(text)
        joined, starts, ends = join(found)
        mentions: list[Mention] = []
        at = 0
        while at < len(found):
            start = found[at][1]
            step = 1
            for length in self._lengths_at(text, found, at):
                name_key = joined[starts[at] : ends[at + length - 1]]
                if name_key not in self._ids:
                    name_key = next(
                        (other for other in _variants(text, found[at : at + length]) if other in self._ids), ""
                    )
                end = found[at + length - 1][2]
                if name_key and stands_alone(text, start, end) and (length > 1 or _is_name(text, found[at])):
                    mentions += [Mention(entity_id, name_key, start, end) for entity_id in self._ids[name_key]]
                    step = length
                    break
            at += step
        return mentions

    def _lengths_at(self, text: str, found: list[Unit], at: int) -> Sequence[int]:
        """How many units the known names have that begin like the text at unit `at`, the longest first."""
        unit, start, end = found[at]
        firsts = [self._lengths[unit]] if unit in self._lengths else []
        firsts += [self._lengths[other] for other in other_units(text[start:end]) if other in self._lengths]
        if not firsts:
            return ()
        left = len(found) - at
        return sorted({length for lengths in firsts for length in lengths if length <= left}, reverse=True)


def _shape(name: str) -> tuple[str, int]:
    """First unit of a name, and how many units it has."""
    found = units(name)
    return found[0][0], len(found)


def _variants(text: str, found: list[Unit]) -> Iterator[str]:
    """The keys of these units with some of them in another number, at most three changed."""
    choices = [
        [(unit, start, end), *((other, start, end) for other in other_units(text[start:end]))]
        for unit, start, end in found
        if end - start < MAX_NAME_CHARS
    ]
    if len(found) == 1 and not text[found[0][1] : found[0][2]].islower():
        return  # the genitive plural "Иванов" is a surname when it stands alone
    if len(choices) == len(found) and 1 < math.prod(map(len, choices)) <= 8:
        others = itertools.islice(itertools.product(*choices), 1, None)  # the first is the text as it stands
        yield from (join(list(choice))[0] if len(choice) > 1 else choice[0][0] for choice in others)


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] is not a piece of a longer katakana or Hangul word. Hangul particles may follow."""
    first, last = text[start], text[end - 1]
    if first < "\u1100" and last < "\u1100":
        return True
    if _KATAKANA.match(first) and start and _KATAKANA.match(text[start - 1]):
        return False
    if _HANGUL.match(first) and start and _HANGUL.match(text[start - 1]):
        return False
    return not (_KATAKANA.match(last) and end < len(text) and _KATAKANA.match(text[end]))


def _is_name(text: str, unit: Unit) -> bool:
    """Whether a single unit can be a name in running text: no single character, no stop word."""
    name_key, start, end = unit
    if len(name_key) < 2:
        return False
    word = text[start:end]
    folded = normalise(word)
    return folded not in STOPWORDS or (len(word) > 1 and word.isupper() and not text.isupper())
