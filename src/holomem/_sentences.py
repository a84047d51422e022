"""What a text claims, for `claims` to judge: its sentences as words with a kind, and what they deny."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

from holomem import _claimwords as known
from holomem import text
from holomem._stopwords import STOPWORDS

__all__ = ["Claim", "is_unspaced", "opposites_of", "parse"]

MAX_SENTENCES: Final = 6  # of a text

FUNCTION, NEGATION, CONTENT, NAME, NUMBER, TIME = range(6)

_WORD: Final = re.compile(r"[^\W_]+(?:(?:['’.:/@+-]|(?<=\d),(?=\d))[^\W_]+)*")
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*(?:%|[a-z]{1,2})?", re.IGNORECASE)
YEAR: Final = re.compile(r"(?:19|20)\d\d")
_SENTENCE: Final = re.compile(r"(?<=[^\W\d_]{2}[.!?…])\s+|(?<=[\d)\]\"'»”][.!?])\s+|(?<=[。！？])|\n+|;\s")
_LABEL: Final = re.compile(r"([^\W\d_](?:\w| \w){0,30}):\s")
_ASIDE: Final = re.compile(r"\[[^\[\]]*\]")
_CLAUSE: Final = re.compile(r"[,;.!?。，；！？]\s|[。，；！？]|\s[—–-]\s")
_UNSPACED_FUNCTION: Final = frozenset("的了在是着过和与于吗呢吧个がはをにでのとも")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence as `judge` sees it: its words in order; characters of scripts without spaces are words."""

    words: tuple[str, ...]  # as written
    folded: tuple[str, ...]
    keys: tuple[str, ...]  # stems: what two sentences share
    kinds: tuple[int, ...]
    scope: frozenset[int]  # places of the content words in the clauses that hold a negation; empty: nothing is denied
    focus: frozenset[int]  # places of the words right under a negation
    lower: frozenset[str]  # folded words that are written in lower case
    opposed: frozenset[str]  # folded words that say the opposite of one of these
    unspaced: str  # the characters that are words, in one run
    speaker: str  # the name before a colon that opens the text: "Ann: I like it"
    alone: bool  # is all that the text says
    recurring: bool  # says that something happens again and again
    ended: bool  # says that something is over
    places: dict[str, tuple[int, ...]]  # key -> places of the words that are not function words or negations


def parse(content: str) -> tuple[Claim, ...]:
    """The claims of a text, one for each of its first sentences; a question claims nothing."""
    content = text.clean(content)
    label = _LABEL.match(content)
    content = _ASIDE.sub(" ", content)
    sentences = [sentence for sentence in _SENTENCE.split(content) if sentence][: 2 * MAX_SENTENCES]
    speaker = label[1].casefold() if label else ""
    claims = (
        _claim(sentence, speaker, len(sentences) == 1)
        for sentence in sentences
        if not sentence.rstrip().endswith(("?", "？"))
    )
    return tuple(claim for claim in islice(claims, MAX_SENTENCES) if claim.places)


def _claim(sentence: str, speaker: str, alone: bool) -> Claim:
    shouting = sentence.isupper()
    denied = [] if sentence.isascii() else [m.start() for m in known.UNSPACED_NEGATION.finditer(sentence)]
    words: list[tuple[str, int]] = []  # word, place in the sentence
    unspaced = ""
    for match in _WORD.finditer(sentence):
        if is_unspaced(match[0]):
            words += [(char, match.start() + i) for i, char in enumerate(match[0])]
            unspaced += match[0]
        else:
            words.append((match[0], match.start()))
    analysed = [_word(word, shouting) for word, _ in words]
    kinds = [kind for _, _, kind in analysed]
    for i, (word, at) in enumerate(words):
        if at in denied:
            kinds[i] = NEGATION
        elif i and kinds[i] == NEGATION and word[0].isupper() and not _CLAUSE.search(sentence[words[i - 1][1] : at]):
            kinds[i] = NAME
    folded = tuple(f for f, _, _ in analysed)
    keys = tuple(k for _, k, _ in analysed)
    places: dict[str, tuple[int, ...]] = {}
    for i, (key, kind) in enumerate(zip(keys, kinds, strict=True)):
        if kind > NEGATION:
            places[key] = (*places.get(key, ()), i)
    scope, focus = _denied(sentence, words, kinds, folded)
    lower = frozenset(f for (w, _), f in zip(words, folded, strict=True) if w.islower())
    opposed = frozenset().union(*map(opposites_of, folded))
    if unspaced:
        opposed |= frozenset(
            c for pair in known.UNSPACED_OPPOSITES for word in pair if word in unspaced for c in "".join(pair)
        )
    recurring = not known.RECURRING.isdisjoint(folded)
    ended = not known.ENDED.isdisjoint(folded)
    return Claim(
        tuple(w for w, _ in words),
        folded,
        keys,
        tuple(kinds),
        scope,
        focus,
        lower,
        opposed,
        unspaced,
        speaker,
        alone,
        recurring,
        ended,
        places,
    )


def _denied(
    sentence: str, words: Sequence[tuple[str, int]], kinds: Sequence[int], folded: Sequence[str]
) -> tuple[frozenset[int], frozenset[int]]:
    """Places of the content words in clauses with a negation, and of those right under one."""
    if NEGATION not in kinds:
        return frozenset(), frozenset()
    breaks = [m.start() for m in _CLAUSE.finditer(sentence)]
    clause = [sum(b < at for b in breaks) for _, at in words]
    denying = {clause[i] for i, kind in enumerate(kinds) if kind == NEGATION}
    bearing = [kind > NEGATION and word not in known.NO_MORE for kind, word in zip(kinds, folded, strict=True)]
    scope = frozenset(i for i, bears in enumerate(bearing) if bears and clause[i] in denying)
    focus = set()
    for i, kind in enumerate(kinds):
        if kind == NEGATION:
            after = (j for j in range(i + 1, len(kinds)) if bearing[j] and clause[j] == clause[i])
            first = next(after, None)
            if first is not None:
                focus.add(first)
    return scope, frozenset(focus)


@lru_cache(maxsize=65536)
def _word(word: str, shouting: bool) -> tuple[str, str, int]:
    """(folded, key, kind) of one word."""
    folded = word.casefold().replace("’", "'").replace("ё", "е")
    acronym = word.isupper() and len(word) > 1 and not shouting
    if not acronym and (folded in known.NEGATIONS or folded.endswith("n't") or folded.startswith("n'")):
        return folded, folded, NEGATION
    if any(char.isdigit() for char in word):
        if not _NUMBER.fullmatch(word):
            return folded, text.normalise(word), NAME
        digits = re.sub(r"(?<=\d),(?=\d{3}\b)|(?<=\d)[a-z]{1,2}$", "", text.normalise(word))
        return folded, digits, TIME if YEAR.fullmatch(word) else NUMBER
    if folded in known.CALENDAR and (word[0].isupper() or folded != "may"):
        return folded, text.normalise(word), TIME
    if folded in known.NUMERALS:
        return folded, known.NUMERALS[folded], NUMBER
    if not acronym and (folded in STOPWORDS or folded in known.COPULAS or folded in known.INDEFINITE):
        return folded, folded, FUNCTION
    if word in _UNSPACED_FUNCTION:
        return folded, folded, FUNCTION
    bare = folded.removesuffix("'s").rpartition("'")[2]
    key = text.stem(text.normalise(bare)) if bare.isalpha() else text.normalise(bare)
    name = word[0].isupper() or (not word.isalpha() and any(sign in word for sign in ".:/@+"))
    return folded, key or folded, NAME if name else CONTENT


@lru_cache(maxsize=65536)
def opposites_of(word: str) -> frozenset[str]:
    """The opposites of a folded word, and what it denies by a prefix: unlocked -> locked."""
    bare = (word[len(p) :] for p in known.NEGATING_PREFIXES if word.startswith(p) and len(word) - len(p) >= 5)
    return frozenset(bare).union(known.OPPOSITES.get(word, ()))


def is_unspaced(word: str) -> bool:
    return bool(word) and word[0] > "\u0e00" and text.script(word) in {"han", "kana", "thai"}
