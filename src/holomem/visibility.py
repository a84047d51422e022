"""Which rows of the index a scope sees, and which are outdated: arrays over the few facts that have scopes or an end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holomem.lexicon import Growing
from holomem.store import Store
from holomem.types import Filter

__all__ = ["Visibility"]

_PARTS: Final = ("user", "agent", "run")


class Visibility:
    """What hides rows. A row that is neither scoped nor limited in time takes no place here."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ending = Growing(np.int64)  # rows that are superseded or have an end
        self._ends = Growing(np.float64)  # seconds since 1970; -inf: superseded
        self._linked = Growing(np.int64)  # a row for each scope of each fact
        self._parts = Growing(np.int32, len(_PARTS))  # (l, 3) codes; 0: not named
        self._codes: dict[str, int] = {}

    def extend(self, fact_ids: Sequence[int], first_row: int, *, every: bool) -> None:
        """Take in facts whose rows follow each other; with `every` they are all of the file."""
        records = self._store.records
        asked = None if every else fact_ids
        extras, scopes = records.extras(asked), records.scopes(asked)
        if not extras and not scopes:
            return
        row_of = {fact_id: row for row, fact_id in enumerate(fact_ids, first_row)}
        ends = {
            row_of[fact_id]: -np.inf if extra.superseded_by is not None else _seconds(extra.expires_at)
            for fact_id, extra in extras.items()
            if fact_id in row_of and (extra.superseded_by is not None or extra.expires_at is not None)
        }
        self._ending.extend(np.array(list(ends), np.int64))
        self._ends.extend(np.array(list(ends.values()), np.float64))
        links = [(row_of[fact_id], scope) for fact_id, held in scopes.items() if fact_id in row_of for scope in held]
        self._linked.extend(np.array([row for row, _ in links], np.int64))
        codes = [[self._code(getattr(scope, part)) for part in _PARTS] for _, scope in links]
        self._parts.extend(np.array(codes, np.int32).reshape(-1, len(_PARTS)))

    def narrow(self, allowed: NDArray[np.bool_], chosen: Filter) -> None:
        """Take out of the mask (n,) what the filter's scope does not see and, where it asks for that, what is over."""
        if chosen.current and len(self._ending):
            allowed[self._ending.array[self._ends.array <= time.time()]] = False
        if chosen.scope is not None and len(self._linked):
            asker = [self._codes.get(value, -1) if (value := getattr(chosen.scope, p)) else 0 for p in _PARTS]
            both = (self._parts.array != 0) & (np.array(asker) != 0)
            same = self._parts.array == np.array(asker)
            seen = both.any(axis=1) & (same | ~both).all(axis=1)
            hidden = np.zeros(len(allowed), bool)
            hidden[self._linked.array] = True
            hidden[self._linked.array[seen]] = False
            allowed &= ~hidden

    def _code(self, name: str | None) -> int:
        return 0 if name is None else self._codes.setdefault(name, len(self._codes) + 1)


def _seconds(stored: str | None) -> float:
    """A stored time as seconds since 1970; one that cannot be read is no end."""
    try:
        return datetime.fromisoformat(str(stored)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return np.inf
