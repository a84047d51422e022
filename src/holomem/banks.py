"""The category banks of the Hermes plugin, kept right in files that have them.

    memory_banks.vector of "cat:X" = angles of S        S = sum over the facts of category X of e^(i phases)

Angles alone cannot be updated, so S is kept beside them (`bank_sums`): a write adds the fact's new phasors and takes
the old ones away, at a cost that does not grow with the category. When the plugin wrote a bank after us, which the
hash of what we wrote last tells, S is summed up anew once. Files without banks pay one look at an empty table.

The statements stand here and not in `store` since nothing else knows these two tables.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holomem import hrr

__all__ = ["Part", "follow", "part"]

Phasors = NDArray[np.complex128]


class Part(NamedTuple):
    """What a fact adds to the bank of its category."""

    category: str
    vector: bytes


def part(connection: sqlite3.Connection, fact_id: int) -> Part | None:
    """What the fact adds to a bank now, to be handed to `follow` after the change; None where there are no banks."""
    if connection.execute("SELECT 1 FROM memory_banks LIMIT 1").fetchone() is None:
        return None
    row = connection.execute("SELECT category, hrr_vector FROM facts WHERE fact_id = ?", (fact_id,)).fetchone()
    return Part(*row) if row is not None and isinstance(row[0], str) and isinstance(row[1], bytes) else None


def follow(connection: sqlite3.Connection, before: Part | None, fact_id: int, width: int) -> None:
    """Bring the banks in step with a fact that was added, changed or removed, inside the same transaction."""
    after = part(connection, fact_id)
    if after == before:
        return
    for category in {each.category for each in (before, after) if each is not None}:
        total, facts = _sum(connection, category, width)
        if total is None:
            total, facts = _summed(connection, category, width)
        else:
            for each, sign in ((before, -1), (after, 1)):
                phasors = None if each is None or each.category != category else _phasors(each.vector, width)
                if phasors is not None:
                    total, facts = total + sign * phasors, facts + sign
        _write(connection, category, total, facts, width)


def _sum(connection: sqlite3.Connection, category: str, width: int) -> tuple[Phasors | None, int]:
    """The sum behind a bank and its facts; None when there is none that belongs to what the bank holds now."""
    row = connection.execute(
        "SELECT s.total, s.facts, s.written, b.vector FROM bank_sums s JOIN memory_banks b USING (bank_name)"
        " WHERE bank_name = ?",
        (_name(category),),
    ).fetchone()
    if row is None or len(row[0]) != 16 * width or hashlib.sha256(row[3]).digest() != row[2]:
        return None, 0
    return np.frombuffer(row[0], "<c16").astype(np.complex128), row[1]


def _summed(connection: sqlite3.Connection, category: str, width: int) -> tuple[Phasors, int]:
    total, facts = np.zeros(width, np.complex128), 0
    for (vector,) in connection.execute("SELECT hrr_vector FROM facts WHERE category = ?", (category,)):
        phasors = _phasors(vector, width)
        if phasors is not None:
            total, facts = total + phasors, facts + 1
    return total, facts


def _phasors(vector: bytes | None, width: int) -> Phasors | None:
    phases = hrr.decode(vector, width)
    return None if phases is None else np.exp(1j * phases)


def _write(connection: sqlite3.Connection, category: str, total: Phasors, facts: int, width: int) -> None:
    name = _name(category)
    if facts < 1:
        connection.execute("DELETE FROM memory_banks WHERE bank_name = ?", (name,))
        connection.execute("DELETE FROM bank_sums WHERE bank_name = ?", (name,))
        return
    vector = hrr.encode(np.mod(np.angle(total), 2 * math.pi))
    connection.execute(
        "INSERT INTO memory_banks (bank_name, vector, dim, fact_count, updated_at)"
        " VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP) ON CONFLICT (bank_name) DO UPDATE SET vector = excluded.vector,"
        " dim = excluded.dim, fact_count = excluded.fact_count, updated_at = excluded.updated_at",
        (name, vector, width, facts),
    )
    connection.execute(
        "INSERT OR REPLACE INTO bank_sums (bank_name, total, facts, written) VALUES (?, ?, ?, ?)",
        (name, total.astype("<c16").tobytes(), facts, hashlib.sha256(vector).digest()),
    )


def _name(category: str) -> str:
    return f"cat:{category}"
