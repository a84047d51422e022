"""Which facts a page shows: what was found by searching, or a piece of the list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self, cast, get_args
from urllib.parse import urlencode

from holomem.memory import Memory
from holomem.types import Fact, Hit, Order

__all__ = ["ORDERS", "Found", "Listing", "listing"]

PAGE: Final = 50
HITS: Final = 30
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

    @property
    def fact_ids(self) -> list[int]:
        """The ids of what was found, in its order."""
        return [hit.fact.fact_id for hit in self.hits] + [fact.fact_id for fact in self.facts]


def listing(memory: Memory, asked: Listing, *, every: bool = False) -> Found:
    """The facts of a page, or with `every` of all pages. Looking at the page counts nothing as retrieved."""
    category = asked.category or None
    if asked.q.strip() and not asked.filter:
        hits = memory.search(asked.q, limit=HITS, category=category, min_trust=0.0, min_score=0.0, count=False)
        return Found(hits=tuple(hits))
    limit, offset = (None, 0) if every else (PAGE + 1, (asked.page - 1) * PAGE)
    facts = memory.facts(matching=asked.q, category=category, order=asked.order, limit=limit, offset=offset)
    if every:
        return Found(facts=tuple(facts))
    return replace(Found(facts=tuple(facts[:PAGE])), more=len(facts) > PAGE)
