"""Times that a question names, and what they mean for the order of facts. Pure.

    named("what did Ilya fix last week?", now)        the week before this one
    named("в мае 2023", now)                          that month
    named("which port does it listen on now", now)    the present: the newest of those that say it

A fact carries the time at which it was said (`Fact.created_at`). It tells of what happened then or shortly before, so a
period prefers the facts from its beginning until some days behind its end. Words that it does not know name no time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holomem import _timewords as words

__all__ = ["NONE", "Named", "Period", "named", "newest", "preference"]

Floats = NDArray[np.float64]

PREFERENCE: Final = 0.75  # what a fact of the named time is worth more
TOLD_DAYS: Final = 7.0  # how long after it a time is still told of
YEARS: Final = 30  # a month or a day without a year means that of each of so many years
CLOSE: Final = 0.55  # calibrated cosine of two facts from which on they tell of the same thing
NEARLY: Final = 0.45  # of the best score, that a newer fact needs to come before the best
DEEP: Final = 20  # facts among which a newer one is looked for


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` until before `end`, in seconds since 1970."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Named:
    """What a question says of time: periods, any of them, and whether it asks for how things are now."""

    periods: tuple[Period, ...] = ()
    present: bool = False


NONE: Final = Named()


def named(question: str, now: datetime) -> Named:
    """The times in a question. `now` has a zone: the days, weeks and months are those of its calendar."""
    text = " ".join(question.lower().split())
    said = set(_WORD.findall(text))
    there = {
        "digit": any(map(str.isdigit, text)),
        "month": not said.isdisjoint(words.MONTHS),
        "word": any(word[:3] in _BEGINNINGS and word.startswith(words.HINTS) for word in said),
        "han": _HAN.search(text) is not None,
    }
    if not any(there.values()):
        return NONE
    patterns = _patterns()
    periods: list[Period] = []
    taken: list[tuple[int, int]] = []
    for need, pattern, kind, value in patterns.periods:
        for match in pattern.finditer(text) if there[need] else ():
            if all(match.end() <= start or end <= match.start() for start, end in taken):
                found = list(_periods(kind, value, match.groupdict(), now))
                taken += [match.span()] if found else []
                periods += found
    present = not periods and (there["word"] or there["han"]) and patterns.present.search(text) is not None
    return Named(tuple(periods), present)


def preference(created: Floats, periods: Sequence[Period]) -> Floats:
    """What each fact's score (m,) is multiplied with: 1 + `PREFERENCE` in a period, 1 far from all of them.

    Behind the end of a period it falls to 1 within `TOLD_DAYS`. Where all facts are of one time, nothing is preferred
    to anything else.
    """
    best = np.zeros(len(created))
    for period in periods:
        late = np.clip((created - period.end) / (TOLD_DAYS * 86_400), 0, 1)
        best = np.maximum(best, np.where(created >= period.start, 1 - late, 0))  # NaN is in no period
    return np.asarray(1 + PREFERENCE * best)


def newest(score: Floats, created: Floats, cosines: Floats) -> Floats:
    """What each score (m,) is multiplied with so that newer facts about what the best one tells of come before it.

    Those are `CLOSE` to it by their calibrated cosines (m,) with it and have `NEARLY` its score; of several the one that
    is closest and best by itself leads. Only the best fact is overtaken: chains of ever newer ones lead astray (measured).
    """
    factors = np.ones(len(score))
    if not len(score):
        return factors
    best = int(score.argmax())
    newer = (created > created[best]) & (cosines >= CLOSE) & (score >= NEARLY * score[best]) & (score > 0)
    over = np.flatnonzero(newer)
    for place, at in enumerate(over[np.argsort((score * cosines)[over], kind="stable")], 1):
        factors[at] = (1 + 1e-6 * place) * score[best] / score[at]
    return factors


# ---- what a match means --------------------------------------------------------------------------------------------


def _periods(kind: str, value: int, groups: dict[str, str | None], now: datetime) -> Iterator[Period]:
    """What a match says: a date of the groups y, m, d (0: not said), or a unit of time so many back."""
    if kind == "date":
        day, year = int(groups.get("d") or 0), int(groups.get("y") or 0)
        said = groups.get("m") or ""
        month = int(said) if said.isdigit() else words.MONTHS.get(said, 0)
        if said and not month:
            return
        if not said and not 1970 <= year <= now.year + 1:
            return
        for each in [year] if year else range(now.year, now.year - YEARS, -1):
            yield from _date(each, month, day, now)
    elif kind == "weekday":
        weekday = words.WEEKDAYS.get(groups["w"] or "")
        if weekday is not None:
            yield from _unit("day", (now.weekday() - weekday) % 7 or 7, now)
    else:
        number = groups.get("n") or groups.get("n2") or ""
        yield from _unit(kind, int(number) if number.isdigit() else _NUMBERS.get(number, value), now)


def _date(year: int, month: int, day: int, now: datetime) -> Iterator[Period]:
    """The day, the month when `day` is 0, or the year when both are; nothing for a date that does not exist."""
    try:
        start = datetime(year, month or 1, day or 1, tzinfo=now.tzinfo)
        if day:
            end = start + timedelta(days=1)
        elif month:
            end = start.replace(year=year + month // 12, month=month % 12 + 1)
        else:
            end = start.replace(year=year + 1)
        yield Period(start.timestamp(), end.timestamp())
    except (ValueError, OverflowError):
        return


def _unit(unit: str, back: int, now: datetime) -> Iterator[Period]:
    """The day, week, weekend, month or year that lies so many of them back; 0 is the one of now."""
    if unit == "year":
        yield from _date(now.year - back, 0, 0, now)
    elif unit == "month":
        months = 12 * now.year + now.month - 1 - back
        yield from _date(months // 12, months % 12 + 1, 0, now)
    else:
        days = 1 if unit == "day" else 2 if unit == "weekend" else 7
        try:
            start = now.replace(hour=0, minute=0, second=0, microsecond=0)
            if unit == "day":
                start -= timedelta(days=back)
            else:
                start -= timedelta(days=start.weekday() - (5 if unit == "weekend" else 0), weeks=back)
            yield Period(start.timestamp(), (start + timedelta(days=days)).timestamp())
        except (ValueError, OverflowError):
            return


# ---- patterns ------------------------------------------------------------------------------------------------------

_NUMBERS: Final = {
    **dict(zip("一二三四五六七八九十", range(1, 11), strict=True)),
    **{"两": 2, "two": 2, "два": 2, "две": 2, "три": 3},
}
_BEGINNINGS: Final = frozenset(hint[:3] for hint in words.HINTS)  # spares most words the longer test
_WORD: Final = re.compile(r"[^\W\d_]+")
_HAN: Final = re.compile(r"[\u4e00-\u9fff\uac00-\ud7a3]")


class _Patterns(NamedTuple):
    """(what a text must have, pattern, kind, value) for `_periods`, the more exact first; what asks for the present."""

    periods: tuple[tuple[str, re.Pattern[str], str, int], ...]
    present: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    """Compiled at the first question that may name a time: it takes a few milliseconds."""
    year, month = r"(?P<y>(?:19|20)\d\d)(?!\d)", r"(?P<m>[^\W\d_]+)\.?"
    day = r"(?P<d>\d\d?)(?:st|nd|rd|th|er|º|-?го|\.)?"
    number = r"(?P<{}>\d{{1,3}}|an?|one|two|einer?|einem|una?|une?|два|две|три)"
    dates = (
        ("digit", r"(?<![\w.-])(?P<y>\d{4})[-/.](?P<m>\d\d?)[-/.](?P<d>\d\d?)(?![\w-]*[-/\w])"),
        ("digit", r"(?<![\w.-])(?P<d>\d\d?)\. ?(?P<m>\d\d?)\. ?(?P<y>\d{4})(?![\w-])"),
        ("han", r"(?:(?P<y>\d{4}) ?年 ?)?(?P<m>\d\d?) ?月(?: ?(?P<d>\d\d?) ?[日号號])?"),
        ("han", r"(?<!\d)(?P<y>\d{4}) ?年(?!之?前)"),
        ("digit", r"(?<![\w.-])(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)(?![\w-])"),
        ("month", rf"(?<![\w.:-]){day} (?:of |de )?{month}(?:,? (?:de )?{year})?(?!\w)"),
        ("month", rf"(?<![\w-]){month} {day}(?![\w:/-]|\.\d)(?:,? {year})?"),
        ("month", rf"(?<!\w){month},? (?:de |of )?{year}"),
        ("month", rf"(?<!\w)(?:{words.LEADS})[ -]{month}(?!\w)"),
        ("digit", rf"(?<![\w.:/-]){year}(?![\w:/%-]|\.\d)"),
    )
    found = [(need, pattern, "date", 0) for need, pattern in dates]
    found += [("word", rf"(?<![\w-])(?:{pattern})(?!\w)", unit, back) for pattern, unit, back in words.RELATIVE]
    found += [("han", pattern, unit, back) for pattern, unit, back in words.HAN_RELATIVE]
    for unit, pattern in words.UNITS.items():
        ago = words.AGO.format(n=number.format("n"), n2=number.format("n2"), unit=f"(?:{pattern})")
        found.append(("word", rf"(?<!\w)(?:{ago})(?!\w)", unit, 1))
    found += [("han", pattern.replace("(", "(?P<n>", 1), unit, 1) for pattern, unit in words.HAN_AGO]
    found.append(("word", rf"(?<!\w)(?:{words.LEADS}) (?P<w>[^\W\d_]+)", "weekday", 0))
    present = rf"(?<![\w-])(?:{words.PRESENT})(?![\w-])|{words.HAN_PRESENT}"
    compiled = tuple((need, re.compile(pattern), kind, value) for need, pattern, kind, value in found)
    return _Patterns(compiled, re.compile(present))
