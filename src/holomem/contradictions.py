"""Pairs of facts that cannot both hold: the same subject with another value in the same slot, or with a negation.

Only pairs that share an entity are looked at, and within an entity of many facts only a fact's likest neighbours, so
the cost grows with the facts and not with their square, and no fact is skipped.

* other value: the two sentences are one template: what they share before and after the slot is at least half of the
  words, the slot is short, not at the start, and reaches the end or holds names or numbers on both sides.
* negation: one side only has a negating word, and the other says most of what the negated one says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from holomem import text
from holomem.index import Index, Names
from holomem.store import Store
from holomem.types import Contradiction, Fact, Filter

__all__ = ["contradictions"]

NEIGHBOURS: Final = 8  # of a fact within an entity of many facts (measured: keeps the pairs and bounds the cost)
HUB: Final = 40  # facts of an entity up to which all pairs are looked at
SLOT: Final = 4  # words that a value may have

_NEGATIONS: Final = frozenset(
    (
        "not no never none nobody nothing without cannot can't don't doesn't didn't isn't aren't wasn't weren't won't "
        "не нет ни никогда без nicht kein keine keinen nie niemals ohne no nunca jamás nadie sin ne pas jamais aucun "
        "rien 不 没 无 未 别 ない ません"
    ).split()
)
_CJK_NEGATION: Final = re.compile("[不没无未别]|ない|ません")
_SEVERAL: Final = frozenset(  # words that say that several values may hold at once
    (
        "also another too twin sister speaks understands knows likes loves enjoys uses visits visited plays member "
        "friend includes contains has depends hosts attended collects invited и ещё также тоже знает любит говорит "
        "играет auch spricht kennt mag también habla conoce aussi parle aime 也 还 会"
    ).split()
)
_WORD: Final = re.compile(r"[^\W_]+(?:['’.\-/:][^\W_]+)*")


def contradictions(
    index: Index, names: Names, store: Store, chosen: Filter, *, limit: int, threshold: float
) -> list[Contradiction]:
    """The surest contradictions first, each pair once, with its reason."""
    rows = np.flatnonzero(index.allowed(chosen))
    facts = store.fetch(index.ids.array[rows].tolist())
    canonical = names.canonical()
    found = []
    for first_id, second_id, shared in _pairs(index, store, facts):
        first, second = facts[first_id], facts[second_id]
        subjects = tuple(canonical[e] for e in shared if e in canonical)
        score, reason = _conflict(first.content, second.content, subjects)
        if score >= threshold:
            found.append(Contradiction(first, second, score, reason, subjects))
    found.sort(key=lambda c: (-c.score, c.first.fact_id, c.second.fact_id))
    return found[:limit]


def _pairs(index: Index, store: Store, facts: dict[int, Fact]) -> Iterator[tuple[int, int, list[int]]]:
    """(smaller id, larger id, shared entities) of the pairs worth a look."""
    holders: dict[int, list[int]] = {}
    for fact_id, entity_id in store.links():
        if fact_id in facts:
            holders.setdefault(entity_id, []).append(fact_id)
    shared: dict[tuple[int, int], list[int]] = {}
    for entity_id, ids in holders.items():
        for pair in _all_pairs(ids) if len(ids) <= HUB else _likest_pairs(ids, index):
            shared.setdefault(pair, []).append(entity_id)
    for (first, second), entity_ids in shared.items():
        yield first, second, entity_ids


def _all_pairs(ids: list[int]) -> Iterator[tuple[int, int]]:
    ordered = sorted(ids)
    return ((a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :])


def _likest_pairs(ids: list[int], index: Index) -> Iterable[tuple[int, int]]:
    rows = index.rows(ids)
    pairs = set()
    for place, row in enumerate(rows):
        likeness = index.terms.jaccard(index.terms.terms_of(int(row)), rows)
        likeness[place] = -1
        for other in np.argsort(-likeness, kind="stable")[:NEIGHBOURS]:
            a, b = sorted((int(index.ids.array[row]), int(index.ids.array[rows[other]])))
            pairs.add((a, b))
    return sorted(pairs)


def _conflict(a: str, b: str, subjects: tuple[str, ...]) -> tuple[float, str]:
    """How sure it is that the two sentences cannot both hold, in [0, 1], and why."""
    first, second = _words(a), _words(b)
    negated = _negated(a, first), _negated(b, second)
    subject = ", ".join(subjects)
    if negated[0] != negated[1]:
        said, denied = (second, first) if negated[0] else (first, second)
        claims = {w for w in text.analyze(" ".join(denied)) if w not in _NEGATIONS}
        held = claims & set(text.analyze(" ".join(said)))
        covered = len(held) / len(claims) if claims else 0.0
        # names alone are the subject; a claim must be shared beyond it
        beyond = held - {w for s in subjects for w in text.analyze(s)}
        score = (0.35 + 0.65 * covered) * min(1.0, 0.35 + covered) if beyond else 0.0
        return (score if covered >= 0.6 else 0.0), f"same subject ({subject}), one of them denies what the other says"
    slot = _slot(first, second)
    if slot is None:
        return 0.0, ""
    start, ends = slot
    values = first[start : ends[0]], second[start : ends[1]]
    frame = [w.casefold() for w in first[:start] + first[ends[0] :]]
    subject_words = {w for s in subjects for w in text.analyze(s)}
    if not subject_words & set(text.analyze(_joined(first[:start]))):  # the shared name is behind the slot
        return 0.0, ""
    share = len(frame) / max(len(first), len(second))
    several = bool(_SEVERAL & set(frame)) or bool(_SEVERAL & {w.casefold() for side in values for w in side})
    score = (0.4 + 0.6 * share) * (0.12 if several else 1.0)
    shown = " / ".join(_joined(side) for side in values)
    return score, f"same subject and property ({subject}), other value: {shown}"


def _slot(first: list[str], second: list[str]) -> tuple[int, tuple[int, int]] | None:
    """(start, (end in first, end in second)) of the one place where two sentences of one template differ."""
    a, b = [w.casefold() for w in first], [w.casefold() for w in second]
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    tail = 0
    while tail < min(len(a), len(b)) - start and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    ends = len(a) - tail, len(b) - tail
    sizes = ends[0] - start, ends[1] - start
    if start == 0 or 0 in sizes or max(sizes) > SLOT or 2 * (start + tail) < max(len(a), len(b)):
        return None
    reaches_end = tail == 0
    named = all(any(_is_value(w) for w in side) for side in (first[start : ends[0]], second[start : ends[1]]))
    return (start, ends) if (reaches_end and (named or max(sizes) <= 2)) or named else None


def _is_value(word: str) -> bool:
    return word[:1].isupper() or any(c.isdigit() for c in word) or _is_unspaced(word)


def _negated(sentence: str, words: list[str]) -> bool:
    lowered = {w if w.isupper() and len(w) > 1 else w.casefold().replace("’", "'") for w in words}
    return bool(lowered & _NEGATIONS) or bool(_CJK_NEGATION.search(sentence))


def _joined(words: list[str]) -> str:
    """Words as they stood in the sentence: characters of a script without spaces stand together."""
    return ("" if words and _is_unspaced(words[0]) else " ").join(words)


def _is_unspaced(word: str) -> bool:
    return text.script(word) in {"han", "kana", "thai"}


def _words(sentence: str) -> list[str]:
    """Words in order; in a run without spaces each character is one, so that a template can be seen in it."""
    words: list[str] = []
    for word in _WORD.findall(sentence):
        words += list(word) if _is_unspaced(word) else [word]
    return words
