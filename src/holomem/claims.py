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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from holomem import _claimwords as known
from holomem._sentences import (
    CONTENT,
    FUNCTION,
    NAME,
    NUMBER,
    TIME,
    YEAR,
    Claim,
    is_unspaced,
    opposites_of,
    parse,
)

__all__ = ["Claim", "Judgement", "judge", "parse"]

_UNSPACED_COPULAS: Final = frozenset("是は")


@dataclass(frozen=True, slots=True)
class Judgement:
    """How sure it is that two claims cannot both hold, in [0, 1], and why ("" at 0).

    `values` are what each says for the same property, where that is the reason.
    """

    score: float
    reason: str
    values: tuple[str, str] | None = None


SENTENCES: Final = 0.85  # what a conflict of two sentences among several counts
NOTHING: Final = Judgement(0.0, "")


def judge(
    first: Sequence[Claim], second: Sequence[Claim], closeness: float | None, *, at_least: float = 0.0
) -> Judgement:
    """Whether two texts can both hold, by their claims: the surest conflict of a sentence of one with one of the other.

    `closeness` is the calibrated cosine of the texts, in [-1, 1], None where there is no model. It says nothing of
    sentences, so where a text has several, the words they share stand for it. A score that cannot reach `at_least`
    may come out as 0, sooner.
    """
    if len(first) == len(second) == 1 and first[0].alone and second[0].alone:
        return _judge(first[0], second[0], closeness, at_least)
    found = [
        _judge(a, b, None, at_least / SENTENCES, among=True)
        for a in first
        for b in second
        if len(a.places.keys() & b.places.keys()) >= 2
    ]  # fmt: skip
    best = max(found, key=lambda judged: judged.score, default=NOTHING)
    return replace(best, score=SENTENCES * best.score)


def _judge(first: Claim, second: Claim, closeness: float | None, at_least: float, *, among: bool = False) -> Judgement:
    """`among`: the claims are sentences among others of their texts."""
    pair = _Pair(first, second)
    if not pair.shared or (among and not pair.says):
        return NOTHING
    near = 0.9 * pair.likeness if closeness is None else max(0.0, closeness)
    bar = (at_least - 0.08) / 0.92
    found = max(_negation(pair, near), _opposites(pair, near), _value(pair, near, bar, among), key=lambda j: j.score)
    score = found.score
    if score <= 0:
        return NOTHING
    if first.ended != second.ended:
        score *= 0.3
    if first.speaker and second.speaker and first.speaker != second.speaker:  # each speaks of himself
        score *= 0.3
    return replace(found, score=min(1.0, 0.92 * score + 0.04 * (pair.likeness + near)))


class _Pair:
    """Two claims side by side: the places that both share, and those that each has alone."""

    def __init__(self, first: Claim, second: Claim) -> None:
        self.first, self.second = first, second
        a, b = first.places, second.places
        matched_a: list[int] = []
        matched_b: list[int] = []
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

    def subject(self) -> str:
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
    claims = sorted(denied.scope)
    if not claims:
        return NOTHING
    covered = sum(i in held for i in claims) / len(claims)
    score = (0.35 + 0.65 * (0.55 * covered + 0.45 * near)) * min(1.0, 0.35 + covered)
    if not denied.focus & held:
        score *= 0.45
    if any(denied.kinds[i] > CONTENT for i in claims if i not in held):
        score *= 0.5  # what is denied is denied of another thing
    if sum(i in held for i in claims) < 2:  # the subject alone is no claim
        score *= 0.4
    said = _joined([denied.words[i] for i in claims if i in held][:6])
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
            if (other in opposites_of(word) or word in opposites_of(other)) and not (
                word in second.folded or other in first.folded
            ):
                return word, other
    joined = first.unspaced, second.unspaced
    for pair in known.UNSPACED_OPPOSITES:
        for x, y in (pair, pair[::-1]):
            if x in joined[0] and y in joined[1] and not (y in joined[0] or x in joined[1]):
                return x, y
    return None


def _value(pair: _Pair, near: float, bar: float, among: bool) -> Judgement:
    """The same subject and property with another value."""
    options = [_judged_value(pair, *values, near, bar, among) for values in _values(pair)]
    return max(options, key=lambda judged: judged.score, default=NOTHING)


def _judged_value(
    pair: _Pair, a: list[int], b: list[int], kind: str, near: float, bar: float, among: bool
) -> Judgement:
    first, second = pair.first, pair.second
    rest_a = [i for i in pair.alone[0] if i not in a]
    rest_b = [j for j in pair.alone[1] if j not in b]
    alike = _property(pair, len(rest_a) + len(rest_b), near)
    score = _VALUES[kind] * max(alike, 0.9 if _same_slot(first, second, a[0], b[0]) else 0.0)
    if score < bar:
        return NOTHING
    if kind == "content":
        score *= _reaches(pair, a[-1], b[-1]) * (1 - _same_statement(near)) * (0.6 if among else 1.0)
    if kind == "number" and not _same_unit(pair, a[-1], b[-1]):
        score *= 0.3
    if first.scope or second.scope:  # denying two values is no conflict, and denying one is judged as a negation
        score *= 0.2
    if len(pair.shared) >= 4 and _governor(first, a[0]) in rest_a and _governor(second, b[0]) in rest_b:
        score *= 0.4  # so much is shared that the cosine is high whatever this property is
    score *= _single(first, second, a, b, kind)
    if score < bar:
        return NOTHING
    if all(
        any(c.kinds[i] == TIME for i in rest) and not c.recurring for c, rest in ((first, rest_a), (second, rest_b))
    ):
        score *= 0.15  # each at its own time
    score *= _subject(pair, a, b, rest_a, rest_b)
    values = _joined([first.words[i] for i in a]), _joined([second.words[j] for j in b])
    return Judgement(score, f"same subject and property ({pair.subject()}), other value: {' / '.join(values)}", values)


def _property(pair: _Pair, rest: int, near: float) -> float:
    """How sure it is that both speak of the same property, `rest` words aside from the values being different."""
    if not rest:
        return 1.0
    beyond = 2 * (len(pair.shared) - 1)
    same = _same_property(near)
    return float(max(0.5 * beyond / (beyond + rest) + 0.5 * same, 0.92 * same) * 0.85 ** max(0, rest - 3))


_VALUES: Final = {"number": 1.0, "time": 1.0, "name": 1.0, "mixed": 0.9, "content": 0.8}


def _values(pair: _Pair) -> Iterator[tuple[list[int], list[int], str]]:
    """What may be the values: their places on each side, and their kind.

    A time is one where it comes last on both sides, else it tells when the rest held.
    """
    alone_a, alone_b = pair.alone
    if not alone_a or not alone_b:
        return
    kinds_a, kinds_b = pair.first.kinds, pair.second.kinds
    if kinds_a[alone_a[-1]] == kinds_b[alone_b[-1]] == TIME:
        a = _last_run([i for i in alone_a if kinds_a[i] in (TIME, NUMBER)])
        b = _last_run([j for j in alone_b if kinds_b[j] in (TIME, NUMBER)])
        if {_sort(pair.first.folded[i]) for i in a} & {_sort(pair.second.folded[j]) for j in b}:
            yield a, b, "time"
        if not (pair.first.recurring and pair.second.recurring):
            return
    for kind, name in ((NUMBER, "number"), (NAME, "name")):
        a = [i for i in alone_a if kinds_a[i] == kind]
        b = [j for j in alone_b if kinds_b[j] == kind]
        if a and b:
            yield _last_run(a), _last_run(b), name
            return
    a, b = _last_run([i for i in alone_a if kinds_a[i] != TIME]), _last_run([j for j in alone_b if kinds_b[j] != TIME])
    if a and b:
        if is_unspaced(pair.first.words[a[-1]]) and is_unspaced(pair.second.words[b[-1]]):
            sort = "name"  # no capitals there: what differs in few characters is as good as a name
        else:
            sort = "content" if kinds_a[a[-1]] == kinds_b[b[-1]] == CONTENT else "mixed"
        yield a, b, sort


def _sort(word: str) -> str:
    return known.CALENDAR.get(word, "year" if YEAR.fullmatch(word) else "number")


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
        role = (
            not rest_a
            and not rest_b
            and _has_definite(first, a[-1], begin[0])
            and _has_definite(second, b[-1], begin[1])
        )
        score *= 0.8 if role else 0.15
    elif (a[-1] < begin[0] and not _is_role(first, a[-1])) or (b[-1] < begin[1] and not _is_role(second, b[-1])):
        score *= 0.7
    names = [any(c.kinds[i] == NAME for i in rest) for c, rest in ((first, rest_a), (second, rest_b))]
    if (_possessed(first, rest_a) and _possessed(second, rest_b)) or (all(names) and between):
        score *= 0.25
    elif _modified(pair, rest_a, rest_b, a[0]):
        score *= 0.35
    return score


def _is_role(claim: Claim, value: int) -> bool:
    """Whether the value that opens a sentence is what someone or something is: "Ann is the ..."."""
    return value + 1 < len(claim.folded) and claim.folded[value + 1] in known.COPULAS


def _modified(pair: _Pair, rest_a: list[int], rest_b: list[int], value: int) -> bool:
    """Whether different words before the value tell two things of one kind apart: mean / minimum temperature."""
    second = dict(pair.shared)
    return any(second.get(i + 1, -1) - 1 in rest_b for i in rest_a if i < value)


def _same_slot(first: Claim, second: Claim, a: int, b: int) -> bool:
    """Whether the same words lead to both values: works at ... / works at ..."""
    one, other = _governor(first, a), _governor(second, b)
    return (
        min(one, other) >= 0
        and first.keys[one] == second.keys[other]
        and first.folded[one + 1 : a] == second.folded[other + 1 : b]
    )


def _governor(claim: Claim, value: int) -> int:
    """The place of the word before a value that says what it is the value of: the *leader* is Ann; -1 if none is near."""
    for i in range(value - 1, max(-1, value - 5), -1):
        if claim.kinds[i] == CONTENT:
            return i
        if claim.kinds[i] != FUNCTION:
            break
    return -1


def _same_unit(pair: _Pair, a: int, b: int) -> bool:
    """Whether what is counted is the same, as far as both say it in the next words: 3 g of fat / 5 g of protein."""
    counted = []
    for claim, at in ((pair.first, a), (pair.second, b)):
        span = range(at + 1, min(at + 4, len(claim.keys)))
        counted.append([claim.keys[i] for i in span if claim.kinds[i] == CONTENT])
    return all(one == other or _same_word(one, other) for one, other in zip(*counted, strict=False))


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
    if claim.folded[at] in known.PREPOSITIONS or is_unspaced(claim.words[at]):
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


def _joined(words: list[str]) -> str:
    """Words as they stood in the sentence: characters of a script without spaces stand together."""
    return ("" if words and is_unspaced(words[0]) else " ").join(words)
