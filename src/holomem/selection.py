"""Which of the ranked facts are shown: the floor of relevance, diversity, the budget of characters. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["MIN_SCORE", "UNASKED_MIN_SCORE", "answering", "check", "diverse", "fitting", "sinking"]

# Floors of relevance, before trust and decay. docs/quality.md has what they keep and let through.
MIN_SCORE: Final = 0.056  # of `search` where meaning works: most unrelated questions find nothing
UNASKED_MIN_SCORE: Final = 0.088  # for facts that nobody asked for, put into a prompt: rather none than a wrong one
MANY: Final = 500  # facts from which on a floor is what it says
TAIL: Final = 0.4  # of the floor, for hits behind one that reaches it: the right one is often behind a better match


def check(min_score: float | None, diversity: float, max_chars: int | None) -> None:
    """Raise ValueError for what no selection can be made by."""
    for name, share in (("min_score", 0.0 if min_score is None else min_score), ("diversity", diversity)):
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ValueError(f"{name} is {share!r}; use a number from 0 to 1")
    if max_chars is not None and (isinstance(max_chars, bool) or not isinstance(max_chars, int) or max_chars < 1):
        raise ValueError(f"max_chars is {max_chars!r}; use a positive whole number, or None for no budget")


def answering(
    relevance: NDArray[np.float64],
    certain: NDArray[np.bool_],
    min_score: float | None,
    *,
    meaning: bool,
    among: int,
    named: float = 0.0,
) -> NDArray[np.bool_]:
    """Which facts (m,) are shown at all: none when no relevance reaches the floor, else those above `TAIL` of it.

    `named` is what of the best relevance does not count, because a fact has as much for the question's names alone.
    `among` says how many facts might have answered (`sinking`). A fact that is `certain` is always shown, one without
    any evidence never. `min_score` None is `MIN_SCORE`, and nothing where the question is not compared by meaning:
    keywords alone do not tell a weak match from a chance one.
    """
    floor = min_score if min_score is not None else MIN_SCORE if meaning else 0.0
    floor *= sinking(among)
    answered = bool(len(relevance)) and float(relevance.max()) - named >= floor
    return np.asarray((relevance > 0) & (certain | (answered & (relevance >= TAIL * floor))))


def sinking(among: int) -> float:
    """The part of a floor that counts among so many facts, in (0, 1].

    The best of many unrelated facts is nearer than the best of few, so among fewer than `MANY` the floor sinks with the
    fifth root of their number (measured from 5 facts on).
    """
    return float(min(1.0, among / MANY) ** (1 / 5))


def diverse(scores: NDArray[np.float64], similarity: NDArray[np.float64], diversity: float) -> NDArray[np.int64]:
    """The order (m,) in which to show facts, by maximal marginal relevance; the first is the one of the best score.

    Next comes the fact with the most of (1 - diversity) x score / best score - diversity x its similarity, (m, m) in
    [0, 1], to the nearest of those before it. 0 is the order of the scores; equal facts keep their order.
    """
    left = np.argsort(-scores, kind="stable")
    if diversity == 0 or len(left) < 2:
        return left
    gain = (1 - diversity) * scores / max(float(scores.max()), 1e-12)
    order = [int(left[0])]
    left = left[1:]
    nearest = similarity[order[0]].copy()
    while len(left):
        at = int(np.argmax(gain[left] - diversity * nearest[left]))
        order.append(int(left[at]))
        nearest = np.maximum(nearest, similarity[order[-1]])
        left = np.delete(left, at)
    return np.array(order, np.int64)


def fitting(lengths: Sequence[int], limit: int, max_chars: int | None) -> list[int]:
    """The places of at most `limit` texts that together have at most `max_chars` characters, in their order.

    One that does not fit is passed over for a shorter one behind it.
    """
    if max_chars is None:
        return list(range(min(limit, len(lengths))))
    chosen: list[int] = []
    for place, length in enumerate(lengths):
        if len(chosen) < limit and length <= max_chars:
            chosen.append(place)
            max_chars -= length
    return chosen
