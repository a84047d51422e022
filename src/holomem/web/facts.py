"""Which facts a page shows: what was found by searching, or a piece of the list."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self, cast, get_args
from urllib.parse import urlencode

from holomem.memory import Memory
from holomem.types import Fact, Hit, Order

__all__ = ["ORDERS", "Found", "Listing", "exported", "listing"]

PAGE: Final = 50
HITS: Final = 20
PIECE: Final = 2000  # facts of an export made at once
ORDERS: Final = get_args(Order)


@dataclass(frozen=True, slots=True)
class Listing:
    """What the search form says."""

    q: str = ""
    filter: bool = False
    category: str = ""
    order: Order = "newest"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """The listing of an address; what it says in another form counts as not said."""
        order, page = query.get("order", ""), query.get("page", "")
        return cls(
            q=query.get("q", ""),
            filter=bool(query.get("filter")),
            category=query.get("category", ""),
            order=cast(Order, order) if order in ORDERS else "newest",
            page=int(page) if page.isascii() and page.isdecimal() and 0 < len(page) < 10 and int(page) else 1,
        )

    def at(self, page: int) -> str:
        """The query string of another page of this listing."""
        return urlencode({**self.fields(), "page": str(page)})

    def fields(self) -> dict[str, str]:
        """What belongs into an address."""
        given = {"q": self.q, "filter": "1" if self.filter else "", "category": self.category, "order": self.order}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class Found:
    """What a listing gives: hits of a search, or facts; `more` when another page follows."""

    hits: tuple[Hit, ...] = ()
    facts: tuple[Fact, ...] = ()
    more: bool = False


def listing(memory: Memory, asked: Listing) -> Found:
    """The facts of a page. Looking at it counts nothing as retrieved."""
    category = asked.category or None
    if asked.q.strip() and not asked.filter:
        hits = memory.search(asked.q, limit=HITS, category=category, min_trust=0.0, min_score=0.0, count=False)
        return Found(hits=tuple(hits))
    facts = memory.facts(
        matching=asked.q, category=category, order=asked.order, limit=PAGE + 1, offset=(asked.page - 1) * PAGE
    )
    return replace(Found(facts=tuple(facts[:PAGE])), more=len(facts) > PAGE)


def exported(memory: Memory, asked: Listing) -> Iterator[bytes]:
    """The facts of all pages as lines of JSON, oldest first, in pieces, between which others use the memory.

    A fact that is changed or removed meanwhile is there as it is when its piece is made.
    """
    ids = _ids(memory, asked)
    return (_lines(memory, ids[start : start + PIECE]) for start in range(0, len(ids), PIECE))


def _ids(memory: Memory, asked: Listing) -> list[int]:
    if asked.q.strip() and not asked.filter:
        return sorted(hit.fact.fact_id for hit in listing(memory, asked).hits)
    ids: list[int] = []
    while found := memory.facts(
        matching=asked.q, category=asked.category or None, order="oldest", limit=PIECE, offset=max(0, len(ids) - 1)
    ):
        more = [fact.fact_id for fact in found]
        if ids and more[0] != ids[-1]:
            ids = []  # one before was removed meanwhile, so that the next ones moved up
        elif ids and len(more) == 1:
            break
        else:
            ids = ids[:-1] + more
    return ids


def _lines(memory: Memory, fact_ids: list[int]) -> bytes:
    lines = io.StringIO()
    memory.export(lines, fact_ids=fact_ids)
    return lines.getvalue().encode()
