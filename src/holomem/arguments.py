"""What callers of `Memory` give, checked and made into what the layers below take. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Literal

from holomem import ingest, text
from holomem.store import split_list
from holomem.types import Filter

__all__ = ["MAX_LIMIT", "Match", "check_limit", "check_score", "chosen", "name"]

MAX_LIMIT: Final = 1000

Match = Literal["any", "all"]


def chosen(
    category: str | None,
    tags: str | Sequence[str],
    match_tags: Match,
    min_trust: float,
    since: datetime | None,
    until: datetime | None,
) -> Filter:
    """The filter of a call; times without a zone are UTC. Raises ValueError or TypeError."""
    if match_tags not in ("any", "all"):
        raise ValueError(f"match_tags is {match_tags!r}; use 'any' or 'all'")
    if not isinstance(min_trust, int | float) or not 0 <= min_trust <= 1:
        raise ValueError(f"min_trust is {min_trust!r}; use a number from 0 to 1")
    if category is not None:
        category = text.check(category, "category")
    bounds = (_utc(since), _utc(until))
    return Filter(category, split_list(ingest.tag_list(tags)), match_tags, float(min_trust), *bounds)


def _utc(time: datetime | None) -> datetime | None:
    """A time without a zone is UTC, as everything in the file."""
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time


def name(entity: str) -> str:
    """The name of an entity, trimmed. Raises ValueError or TypeError."""
    given = text.check(entity, "entity").strip()
    if not given:
        raise ValueError("entity is empty; give a name")
    return given


def check_score(min_score: float) -> None:
    """Raise ValueError for what is no share."""
    if not 0 <= min_score <= 1:
        raise ValueError(f"min_score is {min_score!r}; use a number from 0 to 1")


def check_limit(limit: int) -> None:
    """Raise ValueError for what no list can be cut to."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise ValueError(f"limit is {limit!r}; use a whole number from 1 to {MAX_LIMIT}")
