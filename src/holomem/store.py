"""Every SQL statement about facts. Rows in, rows out: no analysis, no arithmetic on vectors.

What belongs to facts is in parts of its own: `links` (entities and roles), `models` (semantic vectors), `records` (what
stands beside a fact, and its history). Each method is one step inside the caller's `database.read()` or
`database.write()`, or makes its own.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

from holomem import banks
from holomem.database import Database, batches, placeholders
from holomem.errors import DuplicateFact, FactNotFound
from holomem.links import Links, drop_orphans
from holomem.models import Models
from holomem.records import PLAIN, Records, condition
from holomem.types import Fact, Filter, Order

__all__ = ["FactRow", "Store"]

_FACT: Final = (
    "f.fact_id, f.content, f.category, f.tags, f.trust_score, f.retrieval_count, f.helpful_count,"
    " f.created_at, f.updated_at"
)
_LOOKED_AT: Final = 32  # facts of which the first two with a word in lower case are sought
_KEPT_CHANGES: Final = 20_000  # a reader that is further behind reads everything anew
_EPOCH: Final = "CAST(strftime('%s', {0}) AS REAL)"


_ORDERS: Final[dict[Order, str]] = {
    "newest": "f.fact_id DESC",
    "oldest": "f.fact_id",
    "trusted": "f.trust_score DESC, f.fact_id DESC",
    "doubtful": "f.trust_score, f.fact_id DESC",
    "retrieved": "f.retrieval_count DESC, f.fact_id DESC",
}


class FactRow(NamedTuple):
    """What the index keeps of a fact; times are seconds since 1970, None where the file holds no valid time."""

    fact_id: int
    trust_score: float
    category: str
    created: float | None
    updated: float | None
    entities: str | None
    """ids, separated by commas"""
    roles: int
    terms: str | None


class Store:
    """The statements of one open file."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.links = Links(database)
        self.models = Models(database)
        self.records = Records(database)
        database.create_function("holds_tags", _holds_tags)

    # ---- facts ------------------------------------------------------------------------------------------------

    def get(self, fact_id: int) -> Fact:
        """One fact. Raises FactNotFound."""
        found = self.fetch([fact_id])
        if fact_id not in found:
            raise FactNotFound(fact_id)
        return found[fact_id]

    def fetch(self, fact_ids: Sequence[int]) -> dict[int, Fact]:
        """The facts with these ids; an id that no longer exists is left out."""
        with self.database.read() as connection:
            rows = []
            for ids, marks in batches(fact_ids):
                rows += connection.execute(f"SELECT {_FACT} FROM facts f WHERE f.fact_id IN ({marks})", ids).fetchall()
            return {fact.fact_id: fact for fact in self._facts(connection, rows)}

    def find(self, content: str) -> int | None:
        """The id of the fact that says exactly this, however its accents are composed; None when there is none."""
        forms = {content, unicodedata.normalize("NFC", content), unicodedata.normalize("NFD", content)}
        with self.database.read() as connection:
            row = connection.execute(
                f"SELECT fact_id FROM facts WHERE content IN ({placeholders(forms)}) ORDER BY fact_id", tuple(forms)
            ).fetchone()
        return None if row is None else int(row[0])

    def facts(
        self,
        chosen: Filter,
        *,
        match: str | None = None,
        order: Order = "newest",
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Fact]:
        """Facts that pass the filter, in an order; with `match` (an FTS5 query) those that hold its words."""
        where, values = _where(chosen)
        if match is not None:
            where += " AND f.fact_id IN (SELECT rowid FROM facts_fts WHERE facts_fts MATCH ?)"
            values.append(match)
        with self.database.read() as connection:
            rows = connection.execute(
                f"SELECT {_FACT} FROM facts f WHERE {where} ORDER BY {_ORDERS[order]} LIMIT ? OFFSET ?",
                (*values, -1 if limit is None else limit, offset),
            ).fetchall()
            return self._facts(connection, rows)

    def categories(self, chosen: Filter) -> dict[str, int]:
        """The categories of the facts that pass the filter, and how many facts each has, by name."""
        where, values = _where(chosen)
        statement = f"SELECT coalesce(f.category, 'general'), count(*) FROM facts f WHERE {where} GROUP BY 1 ORDER BY 1"
        with self.database.read() as connection:
            return {str(name): int(count) for name, count in connection.execute(statement, values)}

    def ids(self, chosen: Filter) -> list[int]:
        """The ids of the facts that pass the filter."""
        where, values = _where(chosen)
        with self.database.read() as connection:
            return [row[0] for row in connection.execute(f"SELECT f.fact_id FROM facts f WHERE {where}", values)]

    def contents(self, fact_ids: Sequence[int]) -> list[tuple[int, str]]:
        """(fact_id, content) of the facts with these ids that still exist."""
        found: list[tuple[int, str]] = []
        with self.database.read() as connection:
            for ids, marks in batches(fact_ids):
                found += connection.execute(f"SELECT fact_id, content FROM facts WHERE fact_id IN ({marks})", ids)
        return found

    def count(self) -> int:
        """How many facts there are."""
        return self.database.number("SELECT count(*) FROM facts")

    @cached_property
    def width(self) -> int:
        """The width of the file's HRR vectors; it never changes."""
        return int(self.meta("hrr_width"))

    @cached_property
    def compact(self) -> bool:
        """Whether the file's HRR vectors are written as uint16 turns; that is decided while it is empty."""
        return bool(self.meta("hrr_format") == "uint16")

    def insert(
        self,
        content: str,
        *,
        category: str,
        tags: str,
        trust_score: float,
        terms: str,
        hrr_vector: bytes,
        fact_id: int | None = None,
    ) -> int:
        """Store a new fact, of this id if it once had one, and return its id. Nobody says the same, the caller knows."""
        with self.database.write() as connection:
            connection.execute("DELETE FROM tombstones WHERE content_hash = ?", (_hash(content),))
            cursor = connection.execute(
                "INSERT INTO facts (fact_id, content, category, tags, trust_score, terms, hrr_vector)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (fact_id, content, category, tags, trust_score, terms, hrr_vector),
            )
            fact_id = int(cursor.lastrowid or 0)
            banks.follow(connection, None, fact_id, self.width)
            if fact_id % 1000 == 0:
                self._trim_changes(connection)
            return fact_id

    def set_content(self, fact_id: int, content: str, terms: str) -> None:
        """Replace what a fact says. Raises DuplicateFact when another fact says it."""
        with self.database.write() as connection:
            old = self.get(fact_id).content
            other = self.find(content)
            if other not in (None, fact_id):
                raise DuplicateFact(int(other or 0))
            self._bury(connection, old)
            connection.execute("DELETE FROM tombstones WHERE content_hash = ?", (_hash(content),))
            # In two steps: content with its old terms is how the triggers know another program's edit.
            connection.execute("UPDATE facts SET terms = NULL WHERE fact_id = ?", (fact_id,))
            connection.execute(
                "UPDATE facts SET content = ?, terms = ?, updated_at = CURRENT_TIMESTAMP WHERE fact_id = ?",
                (content, terms, fact_id),
            )
            connection.execute("DELETE FROM fact_vectors WHERE fact_id = ?", (fact_id,))

    def set_terms(self, fact_id: int, terms: str) -> None:
        """Store the analysed terms of a fact that another program wrote."""
        with self.database.write() as connection:
            connection.execute("UPDATE facts SET terms = ? WHERE fact_id = ?", (terms, fact_id))

    def set_labels(self, fact_id: int, *, category: str | None, tags: str | None) -> None:
        """Replace category and tags where they are given; naming `tags` at all would rewrite the text index."""
        given = {name: value for name, value in (("category", category), ("tags", tags)) if value is not None}
        assignments = ", ".join(f"{name} = ?" for name in given)
        with self.database.write() as connection:
            before = banks.part(connection, fact_id)
            connection.execute(
                f"UPDATE facts SET {assignments}, updated_at = CURRENT_TIMESTAMP WHERE fact_id = ?",
                (*given.values(), fact_id),
            )
            banks.follow(connection, before, fact_id, self.width)

    def set_record(self, fact_id: int, **columns: str | float | int) -> None:
        """Set counters, trust, times or labels to recorded values, as an import does."""
        assert columns.keys() <= {
            "category", "tags", "trust_score", "retrieval_count", "helpful_count", "created_at", "updated_at"
        }  # fmt: skip
        with self.database.write() as connection:
            before = banks.part(connection, fact_id)
            assignments = ", ".join(f"{name} = ?" for name in columns)
            connection.execute(f"UPDATE facts SET {assignments} WHERE fact_id = ?", (*columns.values(), fact_id))
            banks.follow(connection, before, fact_id, self.width)

    def change_trust(self, fact_id: int, delta: float, *, helpful: bool = False) -> None:
        """Add to the trust of a fact, clamped to [0, 1]; a helpful vote is counted.

        Relative, so that two processes lose no vote; rounded, so that the order of votes does not decide (0.1 + 0.2).
        """
        with self.database.write() as connection:
            cursor = connection.execute(
                "UPDATE facts SET trust_score = round(min(1.0, max(0.0, trust_score + ?)), 6),"
                " helpful_count = helpful_count + ?, updated_at = CURRENT_TIMESTAMP WHERE fact_id = ?",
                (delta, int(helpful), fact_id),
            )
            if cursor.rowcount == 0:
                raise FactNotFound(fact_id)

    def count_retrievals(self, retrieved: dict[int, int], *, wait: bool) -> None:
        """Add to the retrieval counters, without waiting for the disk: a power loss may cost the last ones."""
        with self.database.write(durable=False, wait=wait) as connection:
            connection.executemany(
                "UPDATE facts SET retrieval_count = retrieval_count + ? WHERE fact_id = ?",
                [(times, fact_id) for fact_id, times in retrieved.items()],
            )

    def remove(self, fact_id: int) -> None:
        """Remove a fact with its vectors and links, and the entities that nothing holds any more."""
        with self.database.write() as connection:
            self._bury(connection, self.get(fact_id).content)
            linked = self.links.linked_entities(fact_id)
            before = banks.part(connection, fact_id)
            connection.execute("DELETE FROM fact_entities WHERE fact_id = ?", (fact_id,))
            connection.execute("DELETE FROM facts WHERE fact_id = ?", (fact_id,))
            banks.follow(connection, before, fact_id, self.width)
            drop_orphans(connection, linked)

    def is_buried(self, content: str) -> bool:
        """Whether a fact that said this was removed or edited away here."""
        return bool(self.database.number("SELECT count(*) FROM tombstones WHERE content_hash = ?", _hash(content)))

    def unanalysed(self, limit: int | None = None) -> list[tuple[int, str]]:
        """(fact_id, content) of facts that another program wrote or edited."""
        with self.database.read() as connection:
            return connection.execute(
                "SELECT fact_id, content FROM facts WHERE terms IS NULL ORDER BY fact_id LIMIT ?",
                (-1 if limit is None else limit,),
            ).fetchall()

    def outdate_terms(self) -> None:
        """Mark every fact as not analysed, as a new analyzer needs."""
        with self.database.write() as connection:
            connection.execute("UPDATE facts SET terms = NULL")

    def candidates(self, match: str) -> Iterator[int]:
        """Ids of the facts that an FTS5 query matches, best bm25 first."""
        with self.database.read() as connection:
            for (fact_id,) in connection.execute(
                "SELECT rowid FROM facts_fts WHERE facts_fts MATCH ? ORDER BY rank", (match,)
            ):
                yield fact_id

    def is_in_lower_case(self, word: str) -> bool:
        """Whether at least two facts hold a word in lower case, among the first that hold it at all."""
        pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        found = 0
        with self.database.read() as connection:
            for (content,) in connection.execute(
                "SELECT f.content FROM facts_fts JOIN facts f ON f.fact_id = facts_fts.rowid"
                " WHERE facts_fts MATCH ? LIMIT ?",
                ('content : "{}"'.format(word.replace('"', "")), _LOOKED_AT),
            ):
                found += pattern.search(content) is not None
                if found == 2:
                    return True
        return False

    def set_phases(self, fact_id: int, blob: bytes) -> None:
        """Store the HRR vector of a fact."""
        with self.database.write() as connection:
            before = banks.part(connection, fact_id)
            connection.execute("UPDATE facts SET hrr_vector = ? WHERE fact_id = ?", (blob, fact_id))
            banks.follow(connection, before, fact_id, self.width)

    def phases(self, fact_ids: Sequence[int]) -> dict[int, bytes | None]:
        """The HRR BLOBs of these facts."""
        found: dict[int, bytes | None] = {}
        with self.database.read() as connection:
            for ids, marks in batches(fact_ids):
                found.update(
                    connection.execute(f"SELECT fact_id, hrr_vector FROM facts WHERE fact_id IN ({marks})", ids)
                )
        return found

    # ---- what the index reads -----------------------------------------------------------------------------------

    def rows(self, fact_ids: Sequence[int] | None = None) -> Iterator[FactRow]:
        """The index's view of all facts, or of those with these ids."""
        columns = (
            f"f.fact_id, f.trust_score, f.category, {_EPOCH.format('f.created_at')}, {_EPOCH.format('f.updated_at')},"
            " l.links, ifnull(r.roles, 0), f.terms"
        )
        with self.database.read() as connection:
            if fact_ids is None:
                links = "(SELECT fact_id, group_concat(entity_id) AS links FROM fact_entities GROUP BY fact_id)"
                roles = "(SELECT fact_id, count(*) AS roles FROM fact_roles GROUP BY fact_id)"
                yield from map(
                    FactRow._make,
                    connection.execute(
                        f"SELECT {columns} FROM facts f"
                        f" LEFT JOIN {links} l USING (fact_id) LEFT JOIN {roles} r USING (fact_id)"
                    ),
                )
                return
            columns = columns.replace(
                "l.links", "(SELECT group_concat(entity_id) FROM fact_entities l WHERE l.fact_id = f.fact_id)"
            ).replace("ifnull(r.roles, 0)", "(SELECT count(*) FROM fact_roles r WHERE r.fact_id = f.fact_id)")
            for ids, marks in batches(fact_ids):
                yield from map(
                    FactRow._make,
                    connection.execute(f"SELECT {columns} FROM facts f WHERE f.fact_id IN ({marks})", ids),
                )

    def last_change(self) -> int:
        """The number of the newest change."""
        return self.database.number("SELECT ifnull(max(seq), 0) FROM changes")

    def changes_since(self, seq: int) -> tuple[list[int], list[int]] | None:
        """(fact ids, entity ids) that changed after change `seq`; None when it is too long ago to tell."""
        with self.database.read() as connection:
            oldest = connection.execute("SELECT min(seq) FROM changes").fetchone()[0]
            if oldest is None or oldest > seq + 1:
                return None
            rows = connection.execute(
                "SELECT DISTINCT fact_id, entity_id FROM changes WHERE seq > ?", (seq,)
            ).fetchall()
        return [f for f, _ in rows if f is not None], [e for _, e in rows if e is not None]

    # ---- meta -------------------------------------------------------------------------------------------------

    def meta(self, key: str) -> Any:
        """A value of the file's own settings; None when it was never set."""
        with self.database.read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def set_meta(self, key: str, value: str | int) -> None:
        """Set a value of the file's own settings."""
        with self.database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    # ---- helpers ----------------------------------------------------------------------------------------------

    def _trim_changes(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM changes WHERE seq <= (SELECT max(seq) FROM changes) - ?", (_KEPT_CHANGES,))

    def _facts(self, connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> list[Fact]:
        names: dict[int, dict[int, str]] = {}
        roles: dict[int, dict[str, str]] = {}
        fact_ids = [row[0] for row in rows]
        for ids, marks in batches(fact_ids):
            for fact_id, entity_id, name, role in connection.execute(
                "SELECT l.fact_id, l.entity_id, e.name, r.role FROM fact_entities l JOIN entities e USING (entity_id)"
                " LEFT JOIN fact_roles r ON r.fact_id = l.fact_id AND r.entity_id = l.entity_id"
                f" WHERE l.fact_id IN ({marks}) ORDER BY l.rowid, r.role",
                ids,
            ):
                names.setdefault(fact_id, {})[entity_id] = name
                if role is not None:
                    roles.setdefault(fact_id, {})[role] = name
        extras, scopes = self.records.extras(fact_ids), self.records.scopes(fact_ids)
        return [
            Fact(
                fact_id,
                content,
                category if category is not None else "general",
                tags or "",
                float(trust) if isinstance(trust, int | float) else 0.0,
                retrievals or 0,
                helpful or 0,
                tuple(names.get(fact_id, {}).values()),
                _time(created),
                _time(updated if updated is not None else created),
                dict(sorted(roles.get(fact_id, {}).items())),
                (extra := extras.get(fact_id, PLAIN)).source,
                None if extra.metadata is None else json.loads(extra.metadata),
                None if extra.expires_at is None else _time(extra.expires_at),
                extra.superseded_by,
                scopes.get(fact_id, ()),
            )
            for fact_id, content, category, tags, trust, retrievals, helpful, created, updated in rows
        ]

    def _bury(self, connection: sqlite3.Connection, content: str) -> None:
        connection.execute("INSERT OR REPLACE INTO tombstones (content_hash) VALUES (?)", (_hash(content),))


def split_list(text: str | None) -> tuple[str, ...]:
    """The items of a comma-separated list, without the empty ones."""
    return tuple(item for item in (part.strip() for part in (text or "").split(",")) if item)


def _where(chosen: Filter) -> tuple[str, list[Any]]:
    """The filter as a condition over `facts f`."""
    parts: list[str] = ["f.trust_score >= ?"]
    values: list[Any] = [chosen.min_trust]
    if chosen.category is not None:
        parts.append("f.category = ?")
        values.append(chosen.category)
    if chosen.tags:
        parts.append("holds_tags(f.tags, ?, ?)")
        values += [",".join(chosen.tags), chosen.match_tags == "all"]
    for bound, sign in ((chosen.since, ">="), (chosen.until, "<=")):
        if bound is not None:
            parts.append(f"{_EPOCH.format('f.created_at')} {sign} ?")
            values.append(bound.timestamp())
    for part, given in condition(chosen):
        parts.append(part)
        values += given
    return " AND ".join(parts), values


def _holds_tags(tags: str | None, wanted: str, every: int) -> bool:
    """Whether a fact's tags hold one, or every one, of the wanted: whole tags, case folded as SQLite cannot."""
    held = {tag.casefold() for tag in split_list(tags)}
    found = [tag.casefold() in held for tag in split_list(wanted)]
    return all(found) if every else any(found)


def _time(text: object) -> datetime:
    """A time of the file as UTC; the start of 1970 where it holds none that can be read."""
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return datetime(1970, 1, 1, tzinfo=UTC)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _hash(content: str) -> bytes:
    return hashlib.sha256(unicodedata.normalize("NFC", content).encode()).digest()
