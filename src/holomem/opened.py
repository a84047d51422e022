"""The parts of one open memory, and how they are kept in step with the file: what `Memory` stands on.

The file is the truth. Before a recall what another program wrote is analysed (`_mend`), a few missing vectors are made
(`_heal`), and the caches read what changed (`_refresh`), all on one snapshot. The model never runs under the lock.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, Literal, TypeVar

from holomem import ingest, scoping, upkeep
from holomem.arguments import check_limit
from holomem.database import Database
from holomem.embedding import Embedder
from holomem.embedding.sources import fetch_if_missing
from holomem.errors import DegradedWarning, HolomemError, ModelError, StoreError
from holomem.index import Index, Names
from holomem.semantics import Semantics
from holomem.store import Store
from holomem.types import Answer, Companion, Fact, Hit, Scope, StructuralHit

__all__ = ["CACHE_MB", "H", "Opened"]

CACHE_MB: Final = 256  # semantic vectors kept in memory: 170,000 facts; above, each search reads them from the file
COUNTED: Final = 256  # retrieved facts whose counters may wait in memory: written at each search they cost half of it
COUNTED_SECONDS: Final = 10.0  # how long, where recalls are rare
HEALED: Final = 32  # missing vectors that a search makes up for by itself: a third of a second

H = TypeVar("H", Hit, StructuralHit, Answer, Companion)


class Opened:
    """An open file, its model and its caches, under one lock."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        embedder: Embedder | Literal["auto"] | None,
        cache_mb: float,
        compact: bool,
        read_only: bool,
        fetch: bool,
    ) -> None:
        """Open the file; `Memory` says what the arguments mean. Raises StoreError."""
        self._lock = threading.RLock()
        self._mended = -1  # the newest change up to which everything is analysed
        self._uncounted: dict[int, int] = {}  # retrievals that are not written yet
        self._counted = time.monotonic()  # when they last were written
        self._healed = -1  # the newest change up to which no search needs to look for missing vectors
        self._reported: set[str] = set()
        self._database = Database(path, read_only=read_only)
        self._store = Store(self._database)
        if compact and not self._database.read_only and self._store.count() == 0:
            self._store.set_meta("hrr_format", "uint16")
        self._semantics = Semantics(self._store, embedder)
        if fetch and embedder == "auto":
            self._fetch()
        self._index = Index(self._store, width=self._store.width, cache_bytes=int(cache_mb * 1_000_000))
        self._names = Names(self._store)
        self._mend()

    @contextmanager
    def _write(self, *, flush: bool = False) -> Iterator[None]:
        """All or nothing, in the file and in what the caches learnt meanwhile; `flush` writes the counters first."""
        with self._lock:
            if flush:
                self._flush()
            try:
                with self._database.write():
                    yield
            except BaseException:
                self._names.forget()
                self._semantics.forget()
                raise

    def _set_vectors(self, vectors: list[tuple[int, str, bytes]]) -> None:
        if vectors:
            self._store.models.set_vectors(self._semantics.register(), vectors)

    def _recall(self, limit: int, asker: Scope | None, find: Callable[[], list[H]], *, count: bool = True) -> list[H]:
        """What `find` returns on one snapshot of the file; its facts are counted as retrieved if they are to be."""
        check_limit(limit)
        self._mend()
        with self._lock:
            with self._database.read():
                self._refresh()
                hits = [self._counting(hit, asker, int(count)) for hit in find()]
            if len(self._uncounted) >= COUNTED or time.monotonic() - self._counted > COUNTED_SECONDS:
                self._flush(wait=False)
        return hits

    def _counting(self, hit: H, asker: Scope | None, times: int) -> H:
        """The hit, its facts with the retrievals before this one that are not written yet; this one is counted then."""
        if isinstance(hit, Answer | Companion):
            return replace(hit, facts=tuple(self._retrieved(fact, asker, times) for fact in hit.facts))
        fact = self._retrieved(hit.fact, asker, times)
        return hit if fact is hit.fact else replace(hit, fact=fact)

    def _retrieved(self, fact: Fact, asker: Scope | None, times: int) -> Fact:
        fact = scoping.own(fact, asker)
        waiting = self._uncounted.get(fact.fact_id, 0)
        if waiting + times:
            self._uncounted[fact.fact_id] = waiting + times
        return replace(fact, retrieval_count=fact.retrieval_count + waiting) if waiting else fact

    def _flush(self, *, wait: bool = True) -> None:
        """Write the retrieval counters; where the file is locked or read-only they wait for the next time.

        Recalls let them wait for each other: a crash may cost the last `COUNTED` of them, never a fact.
        """
        if not self._uncounted or self._database.read_only:
            return
        try:
            self._store.count_retrievals(self._uncounted, wait=wait)
        except StoreError:
            return
        self._uncounted = {}
        self._counted = time.monotonic()

    def _refresh(self) -> None:
        """Bring the caches in step with the file, inside a read."""
        self._names.refresh()
        model_id = self._semantics.model_id()
        if model_id is not None and (ready := self._semantics.calibration_if_ready()) is not None:
            self._index.use_model(model_id, ready)
        self._index.refresh()

    def _refresh_now(self) -> None:
        with self._database.read():
            self._refresh()

    def _mend(self) -> None:
        """Analyse what another program wrote; a file that cannot be written just now is mended another time."""
        if self._database.read_only:
            return
        with self._lock, suppress(StoreError):
            if self._store.last_change() != self._mended:
                ingest.mend(self._store, self._names)
                self._mended = self._store.last_change()

    def _heal(self) -> None:
        """Write a few missing vectors before a search; of many, tell the remedy once."""
        if self._database.read_only:
            return
        with self._lock:
            newest = self._store.last_change()
        if newest == self._healed:
            return
        missing = self._without_vector()
        if len(missing) > HEALED:
            self._report(f"{len(missing)} facts have no vector of this model; run `holomem backfill`")
        if not 0 < len(missing) <= HEALED:
            self._healed = newest
        else:
            with suppress(HolomemError):  # locked, or the model failed, which is reported on its own
                upkeep.embed_facts(self._store, self._semantics, missing)

    def _fetch(self) -> None:
        try:
            fetch_if_missing()
        except ModelError as error:
            self._report(f"the embedding model was not fetched: {error}")

    def _without_vector(self) -> list[int]:
        self._semantics.calibration()
        with self._lock, self._database.read():
            self._refresh()
            return self._index.without_vector()

    def _embed(self, contents: list[str]) -> dict[str, bytes]:
        """The vectors of the contents, made outside of the lock; empty when the semantic channel is off."""
        vectors = self._semantics.embed(contents) if contents else None
        return {} if vectors is None else dict(zip(contents, ingest.vector_blobs(vectors), strict=True))

    def _report(self, problem: str) -> None:
        if problem not in self._reported:
            self._reported.add(problem)
            warnings.warn(problem, DegradedWarning, stacklevel=4)
