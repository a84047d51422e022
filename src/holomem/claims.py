"""Whether two sentences can both hold, judged by their words and by how near their meanings are.

    sentence -> words with a kind (name, number, time, content, function, negation) -> what both say, what each says alone

* negation: one side denies what the other says; the words that stand under the negation must be in the other.
* opposites: what each says alone is a pair of opposites (open / closed), and the rest is shared.
* other value: the same subject and property, and each side alone has a value of one kind. What stands before the value
  tells whether several values may hold: after a copula, a preposition or as a number mostly one, as the object of
  another verb ("likes Oslo") or after an indefinite article ("has a cat") mostly several.

The weights were set by hand on English and checked on pairs in other languages (`bench/contradictions.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

from holomem import text
from holomem import _claimwords as known
from holomem._stopwords import STOPWORDS

__all__ = ["Claim", "Judgement", "judge", "parse"]

MAX_SENTENCES: Final = 6  # of a text

FUNCTION, NEGATION, CONTENT, NAME, NUMBER, TIME = range(6)

_WORD: Final = re.compile(r"[^\W_]+(?:(?:['’.:/@+-]|(?<=\d),(?=\d))[^\W_]+)*")
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*(?:%|[a-z]{1,2})?", re.IGNORECASE)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_SENTENCE: Final = re.compile(r"(?<=[^\W\d_]{2}[.!?…])\s+|(?<=[\d)\]\"'»”][.!?])\s+|(?<=[。！？])|\n+|;\s")
_LABEL: Final = re.compile(r"([^\W\d_](?:\w| \w){0,30}):\s")
_ASIDE: Final = re.compile(r"\[[^\[\]]*\]")
_CLAUSE: Final = re.compile(r"[,;.!?。，；！？]\s|[。，；！？]|\s[—–-]\s")
_UNSPACED_FUNCTION: Final = frozenset("的了在是着过和与于吗呢吧个がはをにでのとも")
_UNSPACED_COPULAS: Final = frozenset("是は")


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
    ended: bool  # says that something is over
    places: dict[str, tuple[int, ...]]  # key -> places of the words that are not function words or negations


@dataclass(frozen=True, slots=True)
class Judgement:
    """How sure it is that two claims cannot both hold, in [0, 1], and why ("" at 0)."""

    score: float
    reason: str


SENTENCES: Final = 0.85  # what a conflict of two sentences among several counts
NOTHING: Final = Judgement(0.0, "")


def parse(content: str) -> tuple[Claim, ...]:
    """The claims of a text, one for each of its first sentences; a question claims nothing."""
    content = text.clean(content)
    label = _LABEL.match(content)
    content = _ASIDE.sub(" ", content)
    sentences = [sentence for sentence in _SENTENCE.split(content) if sentence][: 2 * MAX_SENTENCES]
    speaker = label[1].casefold() if label else ""
    claims = (_claim(sentence, speaker, len(sentences) == 1) for sentence in sentences if not sentence.rstrip().endswith(("?", "？")))
    return tuple(claim for claim in islice(claims, MAX_SENTENCES) if claim.places)


def _claim(sentence: str, speaker: str, alone: bool) -> Claim:
    shouting = sentence.isupper()
    denied = [] if sentence.isascii() else [m.start() for m in known.UNSPACED_NEGATION.finditer(sentence)]
    words: list[tuple[str, int]] = []  # word, place in the sentence
    unspaced = ""
    for match in _WORD.finditer(sentence):
        if _is_unspaced(match[0]):
            words += [(char, match.start() + i) for i, char in enumerate(match[0])]
            unspaced += match[0]
        else:
            words.append((match[0], match.start()))
    analysed = [_word(word, shouting) for word, _ in words]
    kinds = [kind for _, _, kind in analysed]
    for i, (word, at) in enumerate(words):
        if at in denied:
            kinds[i] = NEGATION
        elif kinds[i] == NEGATION and i and word[0].isupper() and not _CLAUSE.search(sentence[words[i - 1][1] : at]):
            kinds[i] = NAME
    folded = tuple(f for f, _, _ in analysed)
    keys = tuple(k for _, k, _ in analysed)
    places: dict[str, tuple[int, ...]] = {}
    for i, (key, kind) in enumerate(zip(keys, kinds, strict=True)):
        if kind > NEGATION:
            places[key] = (*places.get(key, ()), i)
    scope, focus = _denied(sentence, words, kinds, folded)
    lower = frozenset(f for (w, _), f in zip(words, folded, strict=True) if w.islower())
    opposed = frozenset().union(*map(_opposites_of, folded))
    if unspaced:
        opposed |= frozenset(c for pair in known.UNSPACED_OPPOSITES for word in pair if word in unspaced for c in "".join(pair))
    ended = not known.ENDED.isdisjoint(folded)
    return Claim(tuple(w for w, _ in words), folded, keys, tuple(kinds), scope, focus, lower, opposed, unspaced, speaker, alone, ended, places)


def _denied(
    sentence: str, words: Sequence[tuple[str, int]], kinds: Sequence[int], folded: Sequence[str]
) -> tuple[frozenset[int], frozenset[int]]:
    """Places of the content words in clauses with a negation, and of those right under one."""
    if NEGATION not in kinds:
        return frozenset(), frozenset()
    breaks = [m.start() for m in _CLAUSE.finditer(sentence)]
    clause = [sum(b < at for b in breaks) for _, at in words]
    denying = {clause[i] for i, kind in enumerate(kinds) if kind == NEGATION}
    scope = frozenset(i for i, kind in enumerate(kinds) if kind > NEGATION and clause[i] in denying)
    focus = set()
    for i, kind in enumerate(kinds):
        if kind == NEGATION:
            after = (j for j in range(i + 1, len(kinds)) if kinds[j] > NEGATION and clause[j] == clause[i])
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
        digits = re.sub(r"(?<=\d),(?=\d{3}\b)|(?:st|nd|rd|th)$", "", text.normalise(word))
        return folded, digits, TIME if _YEAR.fullmatch(word) else NUMBER
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
    name = word[0].isupper() or not word.isalpha() and any(sign in word for sign in ".:/@+")
    return folded, key or folded, NAME if name else CONTENT


def judge(first: Sequence[Claim], second: Sequence[Claim], closeness: float | None) -> Judgement:
    """Whether two texts can both hold, by their claims: the surest conflict of a sentence of one with one of the other.

    `closeness` is the calibrated cosine of the texts, in [-1, 1], None where there is no model. It says nothing of
    sentences, so where a text has several, the words they share stand for it.
    """
    if len(first) == len(second) == 1 and first[0].alone and second[0].alone:
        return _judge(first[0], second[0], closeness)
    found = [
        _judge(a, b, None, among=True)
        for a in first
        for b in second
        if len(a.places.keys() & b.places.keys()) >= 2
    ]  # fmt: skip
    best = max(found, key=lambda judged: judged.score, default=NOTHING)
    return Judgement(SENTENCES * best.score, best.reason)


def _judge(first: Claim, second: Claim, closeness: float | None, *, among: bool = False) -> Judgement:
    """`among`: the claims are sentences among others of their texts."""
    pair = _Pair(first, second)
    if not pair.shared or (among and not pair.says):
        return NOTHING
    near = 0.9 * pair.likeness if closeness is None else max(0.0, closeness)
    found = max(_negation(pair, near), _opposites(pair, near), _value(pair, near, among), key=lambda j: j.score)
    if found.score <= 0:
        return NOTHING
    score = found.score
    if first.ended != second.ended:
        score *= 0.3
    if first.speaker and second.speaker and first.speaker != second.speaker:  # each speaks of himself
        score *= 0.3
    return Judgement(min(1.0, 0.92 * score + 0.04 * (pair.likeness + near)), found.reason)


class _Pair:
    """Two claims side by side: the places that both share, and those that each has alone."""

    def __init__(self, first: Claim, second: Claim) -> None:
        self.first, self.second = first, second
        a, b = first.places, second.places
        matched_a, matched_b = [], []
        for key, places in a.items():
            others = b.get(key, ())
            count = min(len(places), len(others))
            matched_a += places[:count]
            matched_b += others[:count]
        alone_a = sorted({i for places in a.values() for i in places}.difference(matched_a))
        alone_b = sorted({i for places in b.values() for i in places}.difference(matched_b))
        heads = {second.keys[j][:4] for j in alone_b}
        for i in [i for i in alone_a if first.keys[i][:4] in heads and first.kinds[i] != NUMBER]:
            for j in alone_b:
                if _same_word(first.keys[i], second.keys[j]):
                    matched_a.append(i)
                    matched_b.append(j)
                    alone_a.remove(i)
                    alone_b.remove(j)
                    break
        self.shared = sorted(zip(matched_a, matched_b, strict=True))
        self.alone = alone_a, alone_b
        total = 2 * len(matched_a) + len(alone_a) + len(alone_b)
        self.likeness = 2 * len(matched_a) / total if total else 0.0

        i, j = self.shared[0] if self.shared else (0, 0)
        self.indefinite = bool(
            self.shared
            and first.kinds[i] != NAME
            and ((i and first.folded[i - 1] in known.INDEFINITE) or (j and second.folded[j - 1] in known.INDEFINITE))
        )  # "a man": perhaps another one each time

    @property
    def says(self) -> bool:
        """Whether both share more than names: a word of the claim, or "is"."""
        if any(self.first.kinds[i] != NAME for i, _ in self.shared):
            return True
        return not known.COPULAS.isdisjoint(self.first.folded) and not known.COPULAS.isdisjoint(self.second.folded)

    @property
    def names(self) -> list[str]:
        """The names that both sides hold, as the first writes them."""
        return [self.first.words[i] for i, j in self.shared if self.first.kinds[i] == self.second.kinds[j] == NAME]

    def subject(self, places: Sequence[int] = ()) -> str:
        """What both are about, for the reason: shared names, else the first shared words."""
        words = self.names or [self.first.words[i] for i, _ in self.shared]
        return _joined(words[:4])


def _negation(pair: _Pair, near: float) -> Judgement:
    """One side denies what the other says."""
    first, second = pair.first, pair.second
    if bool(first.scope or first.focus) == bool(second.scope or second.focus):
        return NOTHING
    side = 0 if first.scope else 1
    denied = (first, second)[side]
    held = {p[side] for p in pair.shared}
    claims = [i for i in denied.scope if denied.kinds[i] > NEGATION]
    if not claims:
        return NOTHING
    covered = sum(i in held for i in claims) / len(claims)
    score = (0.35 + 0.65 * (0.55 * covered + 0.45 * near)) * min(1.0, 0.35 + covered)
    if not denied.focus & held:
        score *= 0.45
    if sum(i in held for i in claims) < 2:  # the subject alone is no claim
        score *= 0.4
    said = _joined([denied.words[i] for i in sorted(claims) if i in held][:6])
    return Judgement(score, f"same subject, one denies what the other says: {said}")


def _opposites(pair: _Pair, near: float) -> Judgement:
    """What each says alone is a pair of opposites."""
    first, second = pair.first, pair.second
    found = _opposite_words(first, second)
    if found is None or (bool(first.scope) != bool(second.scope) and not known.NEGATIONS & set(found)):
        return NOTHING
    others = max(len(pair.alone[0]), len(pair.alone[1])) - 1
    rest = len(pair.shared) / (len(pair.shared) + max(0, others))
    score = (0.25 + 0.45 * rest + 0.25 * near) * (0.6 if rest < 0.5 else 1.0) * (0.85 if pair.indefinite else 1.0)
    return Judgement(score, f"same subject ({pair.subject()}), opposites: {found[0]} / {found[1]}")


def _opposite_words(first: Claim, second: Claim) -> tuple[str, str] | None:
    if first.opposed.isdisjoint(second.folded) and second.opposed.isdisjoint(first.folded):
        return None
    for word in first.folded:
        for other in second.folded:
            if (other in _opposites_of(word) or word in _opposites_of(other)) and not (
                word in second.folded or other in first.folded
            ):
                return word, other
    joined = first.unspaced, second.unspaced
    for pair in known.UNSPACED_OPPOSITES:
        for x, y in (pair, pair[::-1]):
            if x in joined[0] and y in joined[1] and not (y in joined[0] or x in joined[1]):
                return x, y
    return None


@lru_cache(maxsize=65536)
def _opposites_of(word: str) -> frozenset[str]:
    """The opposites of a folded word, and what it denies by a prefix: unlocked -> locked."""
    bare = (word[len(p) :] for p in known.NEGATING_PREFIXES if word.startswith(p) and len(word) - len(p) >= 5)
    return frozenset(bare).union(known.OPPOSITES.get(word, ()))


def _value(pair: _Pair, near: float, among: bool) -> Judgement:
    """The same subject and property with another value."""
    first, second = pair.first, pair.second
    found = _values(pair)
    if found is None:
        return NOTHING
    a, b, kind = found
    rest_a = [i for i in pair.alone[0] if i not in a]
    rest_b = [j for j in pair.alone[1] if j not in b]
    score = _subject(pair, a, b, rest_a, rest_b) * _VALUES[kind]
    if rest_a or rest_b:
        beyond = len(pair.shared) - 1
        dice = 2 * beyond / (2 * beyond + len(rest_a) + len(rest_b)) if beyond > 0 else 0.0
        score *= max(0.5 * dice + 0.5 * _same_property(near), 0.92 * _same_property(near))
    if kind == "content":
        score *= _reaches(pair, a[-1], b[-1]) * (1 - _same_statement(near))
        if among:
            score *= 0.6
    if kind == "number" and not _same_unit(pair, a[-1], b[-1]):
        score *= 0.3
    score *= 0.85 ** max(0, len(rest_a) + len(rest_b) - 3)
    score *= _single(first, second, a, b, kind)
    if first.scope or second.scope:  # denying two values is no conflict, and denying one is judged as a negation
        score *= 0.2
    if all(any(c.kinds[i] == TIME for i in r) for c, r in ((first, rest_a), (second, rest_b))):
        score *= 0.15  # each at its own time
    shown = f"{_joined([first.words[i] for i in a])} / {_joined([second.words[j] for j in b])}"
    return Judgement(score, f"same subject and property ({pair.subject()}), other value: {shown}")


_VALUES: Final = {"number": 1.0, "time": 1.0, "name": 1.0, "mixed": 0.8, "content": 0.8}


def _values(pair: _Pair) -> tuple[list[int], list[int], str] | None:
    """The places of the value on each side, and its kind; None when one side has nothing of its own.

    A time is the value where it comes last on both sides, else it tells when the rest held.
    """
    alone_a, alone_b = pair.alone
    if not alone_a or not alone_b:
        return None
    kinds_a, kinds_b = pair.first.kinds, pair.second.kinds
    if kinds_a[alone_a[-1]] == kinds_b[alone_b[-1]] == TIME:
        a = _last_run([i for i in alone_a if kinds_a[i] in (TIME, NUMBER)])
        b = _last_run([j for j in alone_b if kinds_b[j] in (TIME, NUMBER)])
        alike = {_sort(pair.first.folded[i]) for i in a} & {_sort(pair.second.folded[j]) for j in b}
        return (a, b, "time") if alike else None
    for kind, name in ((NUMBER, "number"), (NAME, "name")):
        a = [i for i in alone_a if kinds_a[i] == kind]
        b = [j for j in alone_b if kinds_b[j] == kind]
        if a and b:
            return _last_run(a), _last_run(b), name
    a, b = _last_run([i for i in alone_a if kinds_a[i] != TIME]), _last_run([j for j in alone_b if kinds_b[j] != TIME])
    if not a or not b:
        return None
    return a, b, "content" if kinds_a[a[-1]] == kinds_b[b[-1]] == CONTENT else "mixed"


def _sort(word: str) -> str:
    return known.CALENDAR.get(word, "year" if _YEAR.fullmatch(word) else "number")


def _reaches(pair: _Pair, a: int, b: int) -> float:
    """What it says that something shared stands behind the difference: a name or number there is the value itself."""
    behind = [pair.first.kinds[i] for i, j in pair.shared if i > a and j > b]
    if any(kind != CONTENT for kind in behind):
        return 0.15
    return 0.5 if behind else 1.0


def _last_run(places: list[int]) -> list[int]:
    """The last places that stand side by side, four at most."""
    run = places[-1:]
    for place in reversed(places[:-1]):
        if run[0] - place > 1 or len(run) == 4:
            break
        run.insert(0, place)
    return run


def _subject(pair: _Pair, a: list[int], b: list[int], rest_a: list[int], rest_b: list[int]) -> float:
    """How sure it is that both speak of the same thing."""
    first, second = pair.first, pair.second
    score = 1.0 if pair.names else min(0.9, 0.3 + 0.25 * len(pair.shared))
    if pair.indefinite:
        score *= 0.6
    begin = min(i for i, _ in pair.shared), min(j for _, j in pair.shared)
    ahead = [i for i in pair.alone[0] if i < begin[0]], [j for j in pair.alone[1] if j < begin[1]]
    between = any(first.kinds[i] == NAME and i < a[0] and j < b[0] for i, j in pair.shared)
    if all(ahead) and not between:  # both begin with something else: another subject, unless it has a role of one
        role = not rest_a and not rest_b and _has_definite(first, a[-1], begin[0]) and _has_definite(second, b[-1], begin[1])
        score *= 0.8 if role else 0.15
    elif (a[-1] < begin[0] and not _is_role(first, a[-1])) or (b[-1] < begin[1] and not _is_role(second, b[-1])):
        score *= 0.7
    names = [any(c.kinds[i] == NAME for i in rest) for c, rest in ((first, rest_a), (second, rest_b))]
    if (_possessed(first, rest_a) and _possessed(second, rest_b)) or (all(names) and between):
        score *= 0.25
    elif _modified(pair, rest_a, rest_b):
        score *= 0.35
    return score


def _is_role(claim: Claim, value: int) -> bool:
    """Whether the value that opens a sentence is what someone or something is: "Ann is the ..."."""
    return value + 1 < len(claim.folded) and claim.folded[value + 1] in known.COPULAS


def _modified(pair: _Pair, rest_a: list[int], rest_b: list[int]) -> bool:
    """Whether different words tell two things of one kind apart: mean / minimum temperature."""
    second = dict(pair.shared)
    return any(second.get(i + 1, -1) - 1 in rest_b for i in rest_a)


def _same_unit(pair: _Pair, a: int, b: int) -> bool:
    """Whether the words right behind two numbers agree, as far as both have one."""
    after = [
        c.keys[i + 1] if i + 1 < len(c.keys) and c.kinds[i + 1] in (CONTENT, NAME) else None
        for c, i in ((pair.first, a), (pair.second, b))
    ]
    return None in after or after[0] == after[1]


def _has_definite(claim: Claim, start: int, end: int) -> bool:
    return any(word in known.DEFINITE for word in claim.folded[start + 1 : end])


def _possessed(claim: Claim, rest: list[int]) -> bool:
    """Whether a word of `rest` is what a name possesses (Ben's son, Evas Mutter ist)."""
    for i in rest:
        if i and claim.kinds[i - 1] == NAME:
            owner = claim.folded[i - 1]
            copula = i + 1 < len(claim.folded) and claim.folded[i + 1] in known.COPULAS
            if owner.endswith(("'s", "s'")) or (owner.endswith("s") and copula):
                return True
    return False


def _single(first: Claim, second: Claim, a: list[int], b: list[int], kind: str) -> float:
    """How likely it is that only one value holds, by the words and by the shape of the sentences."""
    if kind in {"number", "time"}:
        return 1.0
    listed = 0.12 if _says_several(first) or _says_several(second) else 1.0
    return listed * min(_shape(first, a[0], kind), _shape(second, b[0], kind))


def _says_several(claim: Claim) -> bool:
    if not known.SEVERAL.isdisjoint(claim.lower) or known.ONE_OF.search(" ".join(claim.folded)):
        return True
    return known.UNSPACED_SEVERAL.search(claim.unspaced) is not None


def _shape(claim: Claim, at: int, kind: str) -> float:
    """What stands before the value at place `at` says: see the head of this module."""
    at -= 1
    if at > 0 and claim.kinds[at] == CONTENT and claim.folded[at - 1] in known.PREPOSITIONS | known.DEFINITE:
        at -= 1  # "in the country Chile", "on port 80": the word tells what the value is
    indefinite = False
    while at >= 0 and (claim.folded[at] in known.INDEFINITE or claim.folded[at] in known.DEFINITE):
        indefinite |= claim.folded[at] in known.INDEFINITE
        at -= 1
    copula = at >= 0 and (claim.folded[at] in known.COPULAS or claim.words[at] in _UNSPACED_COPULAS)
    if indefinite:
        return 0.6 if copula else 0.4
    if at < 0:
        return 1.0
    if copula:
        return 0.3 if kind == "name" and _one_of(claim, at) else 1.0
    if claim.folded[at] in known.PREPOSITIONS or _is_unspaced(claim.words[at]):
        return 0.9
    return 0.5


def _one_of(claim: Claim, copula: int) -> bool:
    """Whether what stands before the copula is one of several: "a partner of hers is ...", but not a name."""
    at = copula - 1
    while at >= 0 and claim.kinds[at] == CONTENT:
        at -= 1
    return 0 <= at < copula - 1 and claim.folded[at] in known.INDEFINITE


def _same_property(near: float) -> float:
    """How likely two statements about one subject are about the same property, by the cosine of the whole."""
    return 1 / (1 + math.exp(-(near - 0.6) / 0.042))


def _same_statement(near: float) -> float:
    """How likely a difference in plain words is no difference in meaning."""
    return 1 / (1 + math.exp(-(near - 0.9) / 0.025))


def _same_word(one: str, two: str) -> bool:
    """Whether two stems are forms of one word: they share a beginning of 5 letters that is most of both."""
    if one[:4] != two[:4] or not one.isalpha() or not two.isalpha():
        return False
    short, long = sorted((len(one), len(two)))
    common = 0
    while common < short and one[common] == two[common]:
        common += 1
    return common >= max(4, 0.7 * long)


def _is_unspaced(word: str) -> bool:
    return bool(word) and word[0] > "\u0e00" and text.script(word) in {"han", "kana", "thai"}


def _joined(words: list[str]) -> str:
    """Words as they stood in the sentence: characters of a script without spaces stand together."""
    return ("" if words and _is_unspaced(words[0]) else " ").join(words)
