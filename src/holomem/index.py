"""The file's facts as arrays: what may be returned, what weighs it, and where its terms and vectors are.

The file is the truth, this is a cache. A fact is a row; `refresh` compares the file's newest change with the one it
knows and reads just the facts that changed, whoever changed them, into new rows. Rows of the past stay, marked as
dead, until they are a quarter of all.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holomem import kernels, text
from holomem.embedding import Calibration
from holomem.entities import Gazetteer
from holomem.lexicon import Growing, Lexicon
from holomem.store import FactRow, Store
from holomem.types import Filter
from holomem.vectors import EntityKeys, Meanings, Phases
from holomem.visibility import Visibility

__all__ = ["Index", "Names"]

Rows = NDArray[np.int64]
_DAY: Final = 86_400.0


class Index:
    """Everything that a recall looks at before it reads the facts that it returns."""

    def __init__(self, store: Store, *, width: int, cache_bytes: int) -> None:
        self._store = store
        self._width = width
        self._cache_bytes = cache_bytes
        self.seen: int | None = None  # the newest change that is in here
        self._model: tuple[int, Calibration] | None = None
        self.meanings: Meanings | None = None
        self._clear()

    def use_model(self, model_id: int, calibration: Calibration) -> None:
        """Compare vectors of this model from now on."""
        if self._model is None or self._model[0] != model_id:
            self._model = (model_id, calibration)
            self.meanings = Meanings(self._store, model_id, calibration, self._cache_bytes)
            self.meanings.extend(self.ids.array.tolist())

    def refresh(self) -> None:
        """Bring the arrays in step with the file, inside the caller's `database.read()`."""
        newest = self._store.last_change()
        if newest == self.seen:
            return
        changes = None if self.seen is None else self._store.changes_since(self.seen)
        dead = len(self.ids) - len(self.row_of)
        if changes is None or dead > 1000 + len(self.row_of) // 3:
            self._clear()
            self._append(self._store.rows(), every=True)
        else:
            facts, entities = changes
            self.entity_keys.forget(entities)
            for fact_id in facts:
                self._drop(fact_id)
            self._append(self._store.rows(facts))
        self.seen = newest

    def allowed(self, chosen: Filter) -> NDArray[np.bool_]:
        """Which rows (n,) are facts that pass the filter."""
        mask = self.alive.array.astype(bool) & (self.trust.array >= chosen.min_trust)
        if chosen.category is not None:
            mask &= self.category.array == self._categories.get(chosen.category, -1)
        if chosen.since is not None:
            mask &= self.created.array >= chosen.since.timestamp()
        if chosen.until is not None:
            mask &= self.created.array <= chosen.until.timestamp()
        if chosen.tags:
            tagged = np.zeros(len(mask), bool)
            tagged[self.rows(self._store.ids(Filter(tags=chosen.tags, match_tags=chosen.match_tags)))] = True
            mask &= tagged
        if chosen.among is not None:
            among = np.zeros(len(mask), bool)
            among[self.rows(chosen.among)] = True
            mask &= among
        self.visibility.narrow(mask, chosen)
        return mask

    def rows(self, fact_ids: Iterable[int]) -> Rows:
        """The rows of these facts; those that are not in the file are left out."""
        return np.array([self.row_of[i] for i in fact_ids if i in self.row_of], np.int64)

    def among(self, rows: Rows, others: Rows) -> NDArray[np.bool_]:
        """Which of the rows (r,) are among the others."""
        mask = np.zeros(len(self.ids), bool)
        mask[others] = True
        return np.asarray(mask[rows])

    def script_code(self, content: str) -> int:
        """A number for the script of a text, the same for texts of one script."""
        return self._scripts.setdefault(text.script(content), len(self._scripts))

    def parts(self, rows: Rows) -> Rows:
        """How many parts the HRR vector of each row bundles: its text, its entities, its roles."""
        return np.asarray(1 + self.entities.array[rows] + self.roles.array[rows])

    def linked(self, rows: Rows) -> tuple[Rows, Rows]:
        """The links of these rows: entity ids (l,), and at which place of `rows` (l,)."""
        counts, last = self.entities.array[rows], self._last_link.array[rows]
        places = np.repeat(np.arange(len(rows)), counts)
        from_last = np.repeat(counts.cumsum(), counts) - np.arange(len(places))  # the last link of a row is 1 from it
        return self._linked.array[np.repeat(last, counts) - from_last], places

    def without_vector(self) -> list[int]:
        """Ids of the facts without a usable vector of the model in use; all of them when there is none in use."""
        missing = self.alive.array.astype(bool)
        if self.meanings is not None:
            missing &= self.meanings.missing()
        return [int(i) for i in self.ids.array[missing]]

    def without_phases(self) -> list[int]:
        """Ids of the facts without a usable HRR vector."""
        rows = np.flatnonzero(self.alive.array)
        ids = self.ids.array[rows]
        return [int(i) for i in ids[self.phases.unusable(rows, ids)]]

    def age_days(self, rows: Rows) -> NDArray[np.float64]:
        """Days since each fact was last changed; 0 where the file holds no valid time."""
        return np.nan_to_num((time.time() - self.updated.array[rows]) / _DAY, nan=0.0)

    def _clear(self) -> None:
        self.row_of: dict[int, int] = {}
        self.ids = Growing(np.int64)
        self.alive = Growing(np.int8)
        self.trust = Growing(np.float64)
        self.category = Growing(np.int32)
        self.created = Growing(np.float64)
        self.updated = Growing(np.float64)
        self.entities = Growing(np.int64)  # how many each fact is linked to
        self._linked = Growing(np.int64)  # their ids, those of one fact after those of the other
        self._last_link = Growing(np.int64)  # where those of each fact end
        self.roles = Growing(np.int64)  # how many each fact has
        self.given = Growing(np.int8)  # whether the names of each fact were given, so that its text says no others
        self.script = Growing(np.int16)  # `script_code` of the terms of each fact
        self._scripts: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self.visibility = Visibility(self._store)
        self.terms = Lexicon(kernels.term_hashes)
        self.trigrams = Lexicon(kernels.trigram_hashes)
        self.phases = Phases(self._store, self._width)
        self.entity_keys = EntityKeys(self._store, self._width)
        self.meanings = None if self._model is None else Meanings(self._store, *self._model, self._cache_bytes)

    def _append(self, facts: Iterable[FactRow], *, every: bool = False) -> None:
        rows = list(facts)
        if not rows:
            return
        ids, trust, categories, created, updated, linked, roles, terms = zip(*rows, strict=True)
        self.visibility.extend(ids, len(self.ids), every=every)
        self.row_of.update(zip(ids, range(len(self.ids), len(self.ids) + len(ids)), strict=True))
        names = (c if c is not None else "general" for c in categories)
        codes = [self._categories.setdefault(name, len(self._categories)) for name in names]
        self.ids.extend(np.array(ids, np.int64))
        self.alive.extend(np.ones(len(ids), np.int8))
        self.trust.extend(np.nan_to_num(np.array([_number(t) for t in trust])))
        self.category.extend(np.array(codes, np.int32))
        self.created.extend(np.array(created, np.float64))
        self.updated.extend(np.array(updated, np.float64))
        entities = [[int(i) for i in ids.split(",")] if ids else [] for ids in linked]
        counts = np.array([len(ids) for ids in entities], np.int64)
        self.entities.extend(counts)
        self._last_link.extend(len(self._linked) + counts.cumsum())
        self._linked.extend(np.array([i for ids in entities for i in ids], np.int64))
        self.roles.extend(np.array(roles, np.int64))
        given = self._store.links.given(ids)
        self.given.extend(np.array([fact_id in given for fact_id in ids], np.int8))
        texts = [t or "" for t in terms]
        self.script.extend(np.array([self.script_code(t) for t in texts], np.int16))
        self.terms.extend(texts)
        self.trigrams.extend(texts)
        self.phases.extend(len(ids))
        if self.meanings is not None:
            self.meanings.extend(list(ids))

    def _drop(self, fact_id: int) -> None:
        row = self.row_of.pop(fact_id, None)
        if row is not None:
            self.alive.array[row] = 0
            self.terms.drop(row)
            self.trigrams.drop(row)


class Names:
    """The names and aliases of the file's entities, to be found in texts; a cache like the index, but for itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.forget()

    def forget(self) -> None:
        """Read everything anew at the next `refresh`: what was learnt since may have been rolled back."""
        self._seen: int | None = None
        self.gazetteer = Gazetteer()
        self._names: dict[int, tuple[str, ...]] = {}
        self._common: set[str] = set()
        self._asked: dict[str, int] = {}

    def is_common(self, word: str) -> bool:
        """Whether a lower-case word is used as a plain word in the facts, so that a capital may say nothing.

        The facts are looked at when a word comes up the first, second, fourth, eighth ... time.
        """
        if word in self._common:
            return True
        times = self._asked[word] = self._asked.get(word, 0) + 1
        if not times & (times - 1) and self._store.is_in_lower_case(word):
            self._common.add(word)
        return word in self._common

    def refresh(self) -> None:
        """Bring the names in step with the file, inside the caller's `database.read()`."""
        newest = self._store.last_change()
        if newest == self._seen:
            return
        changes = None if self._seen is None else self._store.changes_since(self._seen)
        if changes is None:
            self.forget()
            changed = None
        else:
            _, changed = changes
        for entity_id in changed or ():
            for spelling in self._names.pop(entity_id, ()):
                self.gazetteer.discard(spelling, entity_id)
        for entity_id, name, aliases in self._store.links.names(changed):
            self.learn(entity_id, name, aliases)
        self._seen = newest

    def learn(self, entity_id: int, name: str, aliases: Sequence[str] = ()) -> None:
        """Know an entity by its name and aliases from now on."""
        for spelling in self._names.get(entity_id, ()):
            self.gazetteer.discard(spelling, entity_id)
        self._names[entity_id] = (name, *aliases)
        for spelling in self._names[entity_id]:
            self.gazetteer.add(spelling, entity_id)

    def name(self, entity_id: int) -> str | None:
        """The canonical name of an entity; None when there is none of this id."""
        names = self._names.get(entity_id)
        return names[0] if names else None

    def canonical(self) -> dict[int, str]:
        """Entity id -> canonical name, of all entities."""
        return {entity_id: names[0] for entity_id, names in self._names.items()}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
