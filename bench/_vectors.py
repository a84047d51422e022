"""An embedder that remembers: vectors of texts in an SQLite file, so that a second run of a bench embeds nothing."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holomem.embedding import Embedder
from holomem.types import ModelId

CHUNK = 64  # texts embedded between two commits: what an interrupted run keeps


def default_cache() -> Path:
    """Where the vectors lie unless the caller says otherwise: the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holomem-bench"


class CachedEmbedder:
    """The vectors of `inner`, read from a file in `folder` where it has them. Several processes may share the file."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._inner = inner
        self.model: ModelId = inner.model
        self.computed = 0
        self._file = sqlite3.connect(folder / "vectors.sqlite", timeout=60, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
        )

    def is_available(self) -> bool:
        return self._inner.is_available()

    def problem(self) -> str | None:
        return self._inner.problem()

    def unload(self) -> None:
        self._inner.unload()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        keys = [self._key(text, query) for text in texts]
        known = {key: vector for key in set(keys) if (vector := self._read(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        items = list(missing.items())
        for start in range(0, len(items), CHUNK):
            part = items[start : start + CHUNK]
            vectors = self._inner.embed([text for _, text in part], query=query)
            rows = [(key, vector.astype("<f4").tobytes()) for (key, _), vector in zip(part, vectors, strict=True)]
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
            self._file.execute("COMMIT")
            known.update(rows)
            self.computed += len(part)
        if not keys:
            return np.zeros((0, self.model.dim), np.float32)
        return np.stack([np.frombuffer(known[key], "<f4") for key in keys])

    def _read(self, key: bytes) -> bytes | None:
        row = self._file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def _key(self, text: str, query: bool) -> bytes:
        model = self.model
        prefix = model.query_prefix if query else model.passage_prefix
        identity = "\0".join([model.file_hash, model.pooling, str(model.max_tokens), prefix, text])
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()
