"""Every SQL statement about embedding models: which there are in a file, how they are calibrated, their vectors.

A part of `store`, whose `Store.models` this is. Each method is one step inside the caller's `database.read()` or
`database.write()`, or makes its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from holomem.database import Database, batches
from holomem.types import ModelId

__all__ = ["Models"]


class Models:
    """The statements about one open file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, identity: ModelId) -> int | None:
        """The number of a model in this file; None when no vector of it was ever stored."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT model_id FROM models WHERE identity = ?", (_identity(identity),)
            ).fetchone()
        return None if row is None else int(row[0])

    def add(self, identity: ModelId, calibration: bytes | None = None) -> int:
        """The number of a model in this file, which is given one if it has none."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO models (identity, calibration) VALUES (?, ?) ON CONFLICT (identity)"
                " DO UPDATE SET calibration = coalesce(excluded.calibration, calibration)",
                (_identity(identity), calibration),
            )
        return self.find(identity) or 0

    def calibration(self, identity: ModelId) -> bytes | None:
        """The stored calibration of a model."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT calibration FROM models WHERE identity = ?", (_identity(identity),)
            ).fetchone()
        return None if row is None else row[0]

    def kept(self) -> ModelId | None:
        """The model that this file was filled with, or was told to use; None while it holds vectors of none or many."""
        with self._database.read() as connection:
            found = (
                connection.execute(
                    "SELECT identity FROM models WHERE model_id = (SELECT value FROM meta WHERE key = 'model')"
                ).fetchall()
                or connection.execute(
                    "SELECT identity FROM models AS m"
                    " WHERE EXISTS (SELECT 1 FROM fact_vectors AS v WHERE v.model_id = m.model_id) LIMIT 2"
                ).fetchall()
            )
        return ModelId(**json.loads(found[0][0])) if len(found) == 1 else None

    def keep(self, model_id: int) -> None:
        """Remember which model this file uses."""
        with self._database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('model', ?)", (model_id,))

    def set_vectors(self, model_id: int, vectors: Iterable[tuple[int, str, bytes]]) -> int:
        """Store (fact_id, content, vector) and return how many were taken.

        A vector is for a content: it is dropped when the fact is gone or says something else by now.
        """
        with self._database.write() as connection:
            stored = 0
            for fact_id, content, vector in vectors:
                cursor = connection.execute(
                    "INSERT INTO fact_vectors (fact_id, model_id, semantic_vector)"
                    " SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM facts WHERE fact_id = ? AND content = ?)"
                    " ON CONFLICT (fact_id, model_id) DO UPDATE SET semantic_vector = excluded.semantic_vector",
                    (fact_id, model_id, vector, fact_id, content),
                )
                stored += cursor.rowcount
            return stored

    def vectors(self, model_id: int, fact_ids: Sequence[int] | None = None) -> Iterator[tuple[int, bytes]]:
        """(fact_id, vector) of one model, of all facts or of those with these ids."""
        statement = "SELECT fact_id, semantic_vector FROM fact_vectors WHERE model_id = ?"
        with self._database.read() as connection:
            if fact_ids is None:
                yield from connection.execute(statement, (model_id,))
                return
            for ids, marks in batches(fact_ids):
                yield from connection.execute(f"{statement} AND fact_id IN ({marks})", (model_id, *ids))

    def vector_counts(self, model_id: int | None) -> tuple[int, int]:
        """(vectors of this model, facts whose vectors are all of other models)."""
        own = self._database.number("SELECT count(*) FROM fact_vectors WHERE model_id IS ?", model_id)
        every = self._database.number("SELECT count(DISTINCT fact_id) FROM fact_vectors")
        return own, every - own

    def drop_vectors(self, *, except_model: int) -> int:
        """Remove the vectors of other models and return how many there were."""
        with self._database.write() as connection:
            dropped = connection.execute("DELETE FROM fact_vectors WHERE model_id != ?", (except_model,)).rowcount
            connection.execute("DELETE FROM models WHERE model_id != ?", (except_model,))
            return int(dropped)


def _identity(model: ModelId) -> str:
    return json.dumps(asdict(model), sort_keys=True)
