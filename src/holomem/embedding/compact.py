"""The ids of a Unigram vocabulary of XLM-R's kind, read from a mapped file: 10 MB of file pages instead of 283 of heap.

It does what the library `tokenizers` does, in its order:

    text -> cut at added tokens -> each part: normalise -> words, each led by \u2581 -> the best pieces of each word

Where the library's own rules about clusters of characters are in doubt, `encode` says so by None.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np

from holomem.embedding.compact_file import CONTROL, ENDS, JOINS, LAST, PREPENDS, RULE, Unsupported, found, read

__all__ = ["META", "CompactTokenizer", "Unsupported"]

META: Final = "\u2581"  # stands for a space, and before each word
CACHED_WORDS: Final = 1024
_CLUSTER_BYTES: Final = 5
_SPACES: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_SPACE: Final = re.compile(f"[{_SPACES}]+")
_ZWJ: Final = "\u200d"


class CompactTokenizer:
    """A tokenizer in a file that `compact_build` made. Several threads may use it at once."""

    def __init__(self, settings: dict[str, Any], arrays: dict[str, memoryview]) -> None:
        self.source_sha256: str = settings["sha256"]
        self.library: str = settings["library"]
        self._before: list[int] = settings["before"]
        self._after: list[int] = settings["after"]
        self._steps: list[tuple[str, str]] = settings["steps"]
        self._splits: bool = settings["splits"]
        self._unknown: int = settings["unknown"]
        self._unknown_score: float = settings["unknown_score"]
        self._longest: int = settings["longest"]
        self._added: dict[str, int] = settings["added"]
        self._refused: list[str] = settings["refused"]
        longest_first = sorted(self._added, key=len, reverse=True)
        self._cut = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None
        self._pieces = arrays["pieces"].cast("I")
        self._scores = arrays["scores"].cast("d")
        self._rules = arrays["rules"].cast("I")
        self._ends = arrays["ends"].cast("I")
        self._texts = arrays["texts"]
        self._blocks = np.frombuffer(arrays["blocks"], np.uint16)
        self._classes = np.frombuffer(arrays["classes"], np.uint8).reshape(-1, 256)
        self._words: dict[str, tuple[int, ...]] = {}

    @classmethod
    def open(cls, path: Path) -> CompactTokenizer:
        """The tokenizer of a file, which is checked and mapped. ModelError when it is damaged or not of this kind.

        Whether it belongs to a tokenizer.json, and to the installed `tokenizers`, is told by `source_sha256` and `library`.
        """
        return cls(*read(path))

    @property
    def before(self) -> int:
        """How many of the ids are markers in front."""
        return len(self._before)

    @property
    def after(self) -> int:
        """How many of the ids are markers at the end."""
        return len(self._after)

    def encode(self, text: str) -> list[int] | None:
        """The ids with the markers, of any length; None where the library may read the text otherwise."""
        if any(token in text for token in self._refused):
            return None
        ids = list(self._before)
        for place, part in enumerate(self._cut.split(text) if self._cut else (text,)):
            if place % 2:
                ids.append(self._added[part])
                continue
            try:
                normal = self._normal(part)
            except UnicodeEncodeError:  # a lone surrogate, which the library refuses
                return None
            if normal is None or any(token in normal for token in self._refused):
                return None
            for word in self._parted(normal):
                ids += self._word(word)
        return ids + self._after

    def _parted(self, normal: str) -> list[str]:
        """The words, each led by \u2581."""
        words = []
        for run in _SPACE.split(normal) if self._splits else (normal.replace(" ", META),):
            if run:
                words += [META + word for word in run.removeprefix(META).split(META)]
        return words

    # ---- normalising ------------------------------------------------------------------------------------------------

    def _normal(self, text: str) -> str | None:
        """The text as the library's normaliser leaves it; None where that is in doubt."""
        normal = self._mapped(text) if len(self._rules) else text
        if normal is None:
            return None
        for step, content in self._steps:
            if step == "spaces":
                normal = re.sub(" {2,}", content, normal)
            elif step == "strip_left":
                normal = normal.lstrip(_SPACES)
            else:
                normal = normal.rstrip(_SPACES)
        return normal

    def _mapped(self, text: str) -> str | None:
        """The text after the replacement of clusters and characters; None where a cluster's end is in doubt."""
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        kinds = self._classes[self._blocks[points >> 8], points & 0xFF]
        if not kinds.any():
            return text
        size = len(points)
        joined = np.zeros(size + 1, np.bool_)  # to the character before
        behind, here = kinds[:-1], kinds[1:]
        joined[1:size] = ((here & JOINS) > 0) & ((behind & CONTROL) == 0)
        joined[1:size] |= ((behind & PREPENDS) > 0) & ((here & CONTROL) == 0)
        joined[1:size] |= (points[:-1] == ord("\r")) & (points[1:] == ord("\n"))
        out: list[str] = []
        done = 0
        for start in np.flatnonzero(((kinds & RULE) > 0) | joined[1:]).tolist():
            if start < done:
                continue
            end = start + 1
            while joined[end]:
                end += 1
            if (cluster := self._cluster(text, start, end, kinds)) is None:
                return None
            out += (text[done:start], cluster)
            done = end
        return "".join(out) + text[done:]

    def _cluster(self, text: str, start: int, end: int, kinds: np.ndarray[Any, Any]) -> str | None:
        """The replacement of a cluster as a whole if it is short and begins with a rule, else that of its characters."""
        cluster = text[start:end]
        if end - start > 1 and len(raw := cluster.encode("utf-8")) <= _CLUSTER_BYTES:
            whole = self._rule(raw)
            if whole is not None:
                return None if self._in_doubt(text, start, end, kinds) else whole
        marks = kinds[start:end]
        return "".join(
            (self._rule(char.encode("utf-8")) or "") if mark & RULE else char
            for char, mark in zip(cluster, marks.tolist(), strict=True)
        )

    def _in_doubt(self, text: str, start: int, end: int, kinds: np.ndarray[Any, Any]) -> bool:
        """Whether a short cluster may be longer by the rules for emoji, Indic conjuncts and Korean letters.

        These join characters that our table does not: one behind a zero width joiner, a letter behind a virama, letters
        of one syllable. A cluster that they make is too long to be replaced as a whole, so only short ones matter.
        """
        first, last = text[start], text[end - 1]
        if start:
            behind = text[start - 1]
            conjunct = bool(kinds[start - 1] & JOINS) and _is_indic(first)
            if behind == _ZWJ or conjunct or (_is_korean(behind) and _is_korean(first)):
                return True
        if end < len(text):
            ahead = text[end]
            return (last == _ZWJ and ahead > "\x7f") or (_is_korean(last) and _is_korean(ahead))
        return False

    def _rule(self, raw: bytes) -> str | None:
        number = found(self._rules, raw)
        if number is None:
            return None
        return str(self._texts[self._ends[number] : self._ends[number + 1]], "utf-8")

    # ---- the best pieces ----------------------------------------------------------------------------------------------

    def _word(self, word: str) -> tuple[int, ...]:
        """The ids of a word; those of common words are remembered."""
        ids = self._words.get(word)
        if ids is None:
            ids = self._best(word.encode("utf-8"))
            if len(self._words) >= CACHED_WORDS:
                self._words.clear()
            if len(word) <= 32:
                self._words[word] = ids
        return ids

    def _best(self, word: bytes) -> tuple[int, ...]:
        """The ids of the pieces with the highest sum of scores; of equal ones, those found first.

        Each place is reached from the earlier ones by pieces, or by one unknown character where no piece has just it.
        """
        cells, scores = self._pieces, self._scores
        root, longest = cells[0], self._longest
        size = len(word)
        sums = [0.0] * (size + 1)
        starts = [-1] * (size + 1)
        ids = [0] * (size + 1)
        at = 0
        while at < size:
            lead = word[at]
            next_char = at + (1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)
            here = sums[at]
            known = False
            unit = root
            end = at
            for byte in word[at : at + longest]:
                unit = cells[unit >> 10 ^ byte]
                if unit & 0xFF != byte:
                    break
                end += 1
                if unit & ENDS:
                    number = (unit if unit & LAST else cells[unit >> 10]) >> 10
                    total = scores[number] + here
                    if starts[end] < 0 or total > sums[end]:
                        sums[end], starts[end], ids[end] = total, at, number
                    if end == next_char:
                        known = True
                    if unit & LAST:
                        break
            if not known:
                total = self._unknown_score + here
                if starts[next_char] < 0 or total > sums[next_char]:
                    sums[next_char], starts[next_char], ids[next_char] = total, at, self._unknown
            at = next_char
        return self._traced(starts, ids)

    def _traced(self, starts: list[int], ids: list[int]) -> tuple[int, ...]:
        """The ids along the way back from the end; neighbours that are unknown are one."""
        path: list[int] = []
        end = len(ids) - 1
        while end > 0:
            if ids[end] != self._unknown or not path or path[-1] != self._unknown:
                path.append(ids[end])
            end = starts[end]
        return tuple(reversed(path))


def _is_indic(char: str) -> bool:
    """Whether it may be a consonant of the scripts that have conjuncts; those beyond the basic plane are never short."""
    return "\u0900" <= char <= "\u1cff" or "\ua800" <= char <= "\uabff"


def _is_korean(char: str) -> bool:
    """Whether it is a letter or syllable that may form one with its neighbour (or a vowel of Kirat Rai, likewise)."""
    return (
        "\u1100" <= char <= "\u11ff"
        or "\ua960" <= char <= "\ua97f"
        or "\uac00" <= char <= "\ud7ff"
        or "\U00016d40" <= char <= "\U00016d7f"
    )
