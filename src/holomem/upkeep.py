"""What keeps a memory whole: vectors that are missing or foreign, and the state of everything."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from holomem import ingest, kernels
from holomem.database import has_wal_reset_bug
from holomem.errors import ModelError
from holomem.index import Index, Names
from holomem.semantics import Semantics
from holomem.store import Store
from holomem.types import Status

__all__ = ["Progress", "doctor", "embed_facts", "reencode", "rss_bytes", "status"]

Progress = Callable[[int, int], None]
"""Called with (done, total) after each step."""

BATCH: Final = 32  # facts embedded between two commits


def embed_facts(store: Store, semantics: Semantics, fact_ids: Sequence[int], progress: Progress | None = None) -> int:
    """Write the vectors of these facts, and return how many were written.

    Every `BATCH` is stored at once: stopping it loses nothing, and others can write in between.
    Raises ModelError when the model does not work.
    """
    written = 0
    for start in range(0, len(fact_ids), BATCH):
        batch = store.contents(fact_ids[start : start + BATCH])
        vectors = semantics.embed([content for _, content in batch])
        if vectors is None:
            raise ModelError(semantics.problem() or "the embedding model failed")
        blobs = ingest.vector_blobs(vectors)
        written += store.models.set_vectors(
            semantics.register(), [(i, c, b) for (i, c), b in zip(batch, blobs, strict=True)]
        )
        if progress is not None:
            progress(min(start + BATCH, len(fact_ids)), len(fact_ids))
    return written


def reencode(store: Store, names: Names, fact_ids: Sequence[int]) -> None:
    """Write the HRR vectors of these facts anew from their terms and links."""
    for row in list(store.rows(fact_ids)):  # read to its end before the first write
        with store.database.write():
            terms = (row.terms or "").split()
            ingest.encode(store, names, row.fact_id, terms, store.links.linked_entities(row.fact_id))


def status(store: Store, index: Index, names: Names, semantics: Semantics) -> Status:
    """The state of the memory, without loading the model."""
    index.refresh()
    names.refresh()
    model_id = semantics.model_id()
    vectors, foreign = store.models.vector_counts(model_id)
    facts = store.count()
    database = store.database
    return Status(
        path=database.path,
        facts=facts,
        entities=len(names.canonical()),
        file_bytes=database.file_bytes(),
        rss_bytes=rss_bytes(),
        journal_mode=database.journal_mode(),
        sqlite_version=sqlite3.sqlite_version,
        kernel=kernels.isa(),
        channels={"fts": None, "jaccard": None, "hrr": None, "semantic": semantics.problem()},
        model=semantics.model,
        vectors=vectors,
        missing_vectors=facts - vectors,
        foreign_vectors=foreign,
        unanalysed=len(store.unanalysed()),
        problems=tuple(_problems(store, semantics, facts - vectors, foreign)),
        notes=tuple(_notes(store, semantics)),
    )


def doctor(store: Store, index: Index, names: Names, semantics: Semantics, *, repair: bool) -> Status:
    """The state with the integrity checks of SQLite and FTS5 and every vector read; `repair` mends what can be."""
    faults = store.database.faults()
    if repair and any("full-text" in fault for fault in faults):
        store.database.rebuild_fts()
        faults = store.database.faults()
    unusable = index.without_phases()
    if repair and unusable:
        reencode(store, names, unusable)
        index.refresh()
        unusable = index.without_phases()
    problems = [f"the file is damaged: {fault}; {_cure(fault)}" for fault in faults]
    if unusable:
        problems.append(f"{len(unusable)} facts have no usable HRR vector; run `holomem doctor --repair`")
    found = status(store, index, names, semantics)
    return dataclasses.replace(found, problems=(*problems, *found.problems))


def rss_bytes() -> int | None:
    """The resident memory of this process now (not its peak); None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        import resource

        return pages * resource.getpagesize()
    except (OSError, ImportError):
        return None


def _problems(store: Store, semantics: Semantics, missing: int, foreign: int) -> list[str]:
    problems = []
    off = semantics.problem()
    if off is not None and semantics.wanted:
        problems.append(f"semantic search is off: {off}")
    if off is None and missing:
        problems.append(f"{missing} of {store.count()} facts have no vector of this model; run `holomem backfill`")
    if off is None and foreign:
        problems.append(f"{foreign} facts have only vectors of another model; run `holomem reembed`")
    unanalysed = len(store.unanalysed())
    if unanalysed:
        problems.append(f"{unanalysed} facts of another program are not analysed yet; open the file for writing once")
    if kernels.why_reference() is not None:
        problems.append(f"the NumPy reference kernels run, which is slow: {kernels.why_reference()}")
    return problems


def _notes(store: Store, semantics: Semantics) -> list[str]:
    notes = []
    if has_wal_reset_bug() and store.database.journal_mode() == "wal":
        notes.append(
            f"SQLite {sqlite3.sqlite_version} can corrupt a WAL file when another program writes to it at the same time"
            " (holomem's own processes are safe with each other); SQLite 3.51.3 and later are not affected"
        )
    if semantics.form is not None:
        notes.append(f"the model takes more memory than it need: {semantics.form}")
    if expired := len(store.records.expired(datetime.now(UTC))):
        notes.append(f"{expired} facts are expired; `holomem purge` removes them")
    return notes


def _cure(fault: str) -> str:
    repairable = "full-text" in fault
    return "run `holomem doctor --repair`" if repairable else "restore a backup, or recover it with the sqlite3 shell"
