"""Every SQL statement about facts, entities and vectors. Rows in, rows out: no analysis, no arithmetic on vectors.

Each method is one step inside the caller's `database.read()` or `database.write()`, or makes its own.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

from holomem import banks
from holomem.database import Database
from holomem.errors import DuplicateFact, FactNotFound
from holomem.records import PLAIN, Records, condition
from holomem.types import Entity, Fact, Filter, ModelId, Order

__all__ = ["FactRow", "Store"]

_FACT: Final = (
    "f.fact_id, f.content, f.category, f.tags, f.trust_score, f.retrieval_count, f.helpful_count,"
    " f.created_at, f.updated_at"
)
_BATCH: Final = 500  # ids in one IN (...): well below SQLite's limit of 999 variables in old builds
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
            for ids, marks in _batches(fact_ids):
                rows += connection.execute(f"SELECT {_FACT} FROM facts f WHERE f.fact_id IN ({marks})", ids).fetchall()
            return {fact.fact_id: fact for fact in self._facts(connection, rows)}

    def find(self, content: str) -> int | None:
        """The id of the fact that says exactly this, however its accents are composed; None when there is none."""
        forms = {content, unicodedata.normalize("NFC", content), unicodedata.normalize("NFD", content)}
        with self.database.read() as connection:
            row = connection.execute(
                f"SELECT fact_id FROM facts WHERE content IN ({_marks(forms)}) ORDER BY fact_id", tuple(forms)
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
            for ids, marks in _batches(fact_ids):
                found += connection.execute(f"SELECT fact_id, content FROM facts WHERE fact_id IN ({marks})", ids)
        return found

    def count(self) -> int:
        """How many facts there are."""
        return self._number("SELECT count(*) FROM facts")

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
            linked = self.linked_entities(fact_id)
            before = banks.part(connection, fact_id)
            connection.execute("DELETE FROM fact_entities WHERE fact_id = ?", (fact_id,))
            connection.execute("DELETE FROM facts WHERE fact_id = ?", (fact_id,))
            banks.follow(connection, before, fact_id, self.width)
            self._drop_orphans(connection, linked)

    def is_buried(self, content: str) -> bool:
        """Whether a fact that said this was removed or edited away here."""
        return bool(self._number("SELECT count(*) FROM tombstones WHERE content_hash = ?", _hash(content)))

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
            for ids, marks in _batches(fact_ids):
                yield from map(
                    FactRow._make,
                    connection.execute(f"SELECT {columns} FROM facts f WHERE f.fact_id IN ({marks})", ids),
                )

    def last_change(self) -> int:
        """The number of the newest change."""
        return self._number("SELECT ifnull(max(seq), 0) FROM changes")

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

    # ---- entities ---------------------------------------------------------------------------------------------

    def entities(self, entity_id: int | None = None) -> list[Entity]:
        """All entities with the number of their facts, most facts first; or just the one with this id."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT e.entity_id, e.name, e.entity_type, e.aliases, count(l.fact_id) AS facts FROM entities e"
                " LEFT JOIN fact_entities l USING (entity_id) WHERE ?1 IS NULL OR e.entity_id = ?1"
                " GROUP BY e.entity_id ORDER BY facts DESC, e.entity_id",
                (entity_id,),
            ).fetchall()
        return [
            Entity(entity_id, name, kind or "unknown", _split_aliases(aliases), facts)
            for entity_id, name, kind, aliases, facts in rows
        ]

    def names(self, entity_ids: Sequence[int] | None = None) -> list[tuple[int, str, tuple[str, ...]]]:
        """(entity_id, name, aliases) of all entities, or of those with these ids."""
        statement = "SELECT entity_id, name, aliases FROM entities"
        with self.database.read() as connection:
            if entity_ids is None:
                rows = connection.execute(statement).fetchall()
            else:
                rows = []
                for ids, marks in _batches(entity_ids):
                    rows += connection.execute(f"{statement} WHERE entity_id IN ({marks})", ids).fetchall()
        return [(entity_id, name, _split_aliases(aliases)) for entity_id, name, aliases in rows]

    def entities_by_key(self, key: str) -> list[int]:
        """Ids of the entities that have this key as name or alias, oldest first."""
        with self.database.read() as connection:
            return [
                row[0]
                for row in connection.execute(
                    "SELECT entity_id FROM entity_keys WHERE key = ? ORDER BY entity_id", (key,)
                )
            ]

    def without_keys(self) -> list[tuple[int, str, tuple[str, ...]]]:
        """(entity_id, name, aliases) of entities that another program wrote."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT entity_id, name, aliases FROM entities e"
                " WHERE NOT EXISTS (SELECT 1 FROM entity_keys k WHERE k.entity_id = e.entity_id)"
            ).fetchall()
        return [(entity_id, name, _split_aliases(aliases)) for entity_id, name, aliases in rows]

    def add_entity(self, name: str, kind: str = "unknown") -> int:
        """Store a new entity and return its id; its keys are set apart."""
        with self.database.write() as connection:
            cursor = connection.execute("INSERT INTO entities (name, entity_type) VALUES (?, ?)", (name, kind))
            return int(cursor.lastrowid or 0)

    def set_aliases(self, entity_id: int, aliases: Sequence[str]) -> None:
        """Replace the other spellings of an entity; its keys are set apart."""
        with self.database.write() as connection:
            joined = ",".join(alias.replace(",", "\\,") for alias in aliases)
            connection.execute("UPDATE entities SET aliases = ? WHERE entity_id = ?", (joined, entity_id))

    def set_name(self, entity_id: int, name: str) -> None:
        """Replace the canonical name of an entity; its keys are set apart."""
        with self.database.write() as connection:
            connection.execute("UPDATE entities SET name = ? WHERE entity_id = ?", (name, entity_id))

    def set_entity_type(self, entity_id: int, kind: str) -> None:
        """Set what kind of thing an entity is."""
        with self.database.write() as connection:
            connection.execute("UPDATE entities SET entity_type = ? WHERE entity_id = ?", (kind, entity_id))

    def set_keys(self, entity_id: int, keys: Iterable[str]) -> None:
        """Replace the lookup keys of an entity."""
        with self.database.write() as connection:
            connection.execute("DELETE FROM entity_keys WHERE entity_id = ?", (entity_id,))
            connection.executemany(
                "INSERT OR IGNORE INTO entity_keys (key, entity_id) VALUES (?, ?)", [(key, entity_id) for key in keys]
            )

    def link(self, fact_id: int, entity_ids: Sequence[int]) -> None:
        """Make these the entities of a fact; those that nothing holds any more disappear."""
        with self.database.write() as connection:
            before = self.linked_entities(fact_id)
            gone = set(before) - set(entity_ids)
            connection.executemany(
                "DELETE FROM fact_entities WHERE fact_id = ? AND entity_id = ?", [(fact_id, e) for e in gone]
            )
            connection.executemany(
                "INSERT OR IGNORE INTO fact_entities (fact_id, entity_id) VALUES (?, ?)",
                [(fact_id, e) for e in entity_ids if e not in before],
            )
            self._drop_orphans(connection, gone)

    def move_links(self, source: int, target: int, fact_ids: Sequence[int]) -> None:
        """Bind these facts, with the roles that `source` has in them, to `target` instead, each link in its place.

        An entity that nothing holds any more disappears.
        """
        with self.database.write() as connection:
            for fact_id in fact_ids:
                link = (target, fact_id, source)
                connection.execute("UPDATE fact_roles SET entity_id = ? WHERE fact_id = ? AND entity_id = ?", link)
                connection.execute(
                    "UPDATE OR IGNORE fact_entities SET entity_id = ? WHERE fact_id = ? AND entity_id = ?", link
                )
                connection.execute("DELETE FROM fact_entities WHERE fact_id = ? AND entity_id = ?", link[1:])
            self._drop_orphans(connection, [source])

    def unlinked(self, fact_id: int) -> set[str]:
        """The keys of the names that this fact was said not to be about; "" stands for all that it is not bound to."""
        with self.database.read() as connection:
            return {row[0] for row in connection.execute("SELECT key FROM unlinked WHERE fact_id = ?", (fact_id,))}

    def all_unlinked(self, fact_ids: Sequence[int]) -> dict[int, set[str]]:
        """The same for these facts, those left out of which everything may be said."""
        found: dict[int, set[str]] = {}
        with self.database.read() as connection:
            for ids, marks in _batches(fact_ids):
                for fact_id, key in connection.execute(
                    f"SELECT fact_id, key FROM unlinked WHERE fact_id IN ({marks})", ids
                ):
                    found.setdefault(fact_id, set()).add(key)
        return found

    def given(self, fact_ids: Sequence[int]) -> set[int]:
        """Those of these facts whose names were given: their texts say nothing about others."""
        found: set[int] = set()
        with self.database.read() as connection:
            for ids, marks in _batches(fact_ids):
                found |= {
                    row[0]
                    for row in connection.execute(
                        f"SELECT fact_id FROM unlinked WHERE key = '' AND fact_id IN ({marks})", ids
                    )
                }
        return found

    def links_of(self, fact_ids: Sequence[int]) -> dict[int, set[int]]:
        """Fact id -> ids of its entities, those left out that have none."""
        found: dict[int, set[int]] = {}
        with self.database.read() as connection:
            for ids, marks in _batches(fact_ids):
                for fact_id, entity_id in connection.execute(
                    f"SELECT fact_id, entity_id FROM fact_entities WHERE fact_id IN ({marks})", ids
                ):
                    found.setdefault(fact_id, set()).add(entity_id)
        return found

    def set_unlinked(self, fact_ids: Iterable[int], keys: Iterable[str], *, unlinked: bool) -> None:
        """Remember that these facts are not about the names of these keys, or forget it."""
        statement = (
            "INSERT OR IGNORE INTO unlinked (fact_id, key) VALUES (?, ?)"
            if unlinked
            else "DELETE FROM unlinked WHERE fact_id = ? AND key = ?"
        )
        pairs = list(itertools.product(fact_ids, keys))
        with self.database.write() as connection:
            connection.executemany(statement, pairs)

    def linked_entities(self, fact_id: int) -> list[int]:
        """Ids of the entities of a fact, in the order in which they were linked."""
        with self.database.read() as connection:
            return [
                row[0]
                for row in connection.execute(
                    "SELECT entity_id FROM fact_entities WHERE fact_id = ? ORDER BY rowid", (fact_id,)
                )
            ]

    def linked_facts(self, entity_ids: Sequence[int]) -> list[tuple[int, int]]:
        """(fact_id, entity_id) of every link of these entities."""
        links = []
        with self.database.read() as connection:
            for ids, marks in _batches(entity_ids):
                links += connection.execute(
                    f"SELECT fact_id, entity_id FROM fact_entities WHERE entity_id IN ({marks})", ids
                ).fetchall()
        return links

    def entities_of(self, fact_ids: Sequence[int]) -> dict[int, int]:
        """Entity id -> how many of these facts hold it."""
        held: dict[int, int] = {}
        with self.database.read() as connection:
            for ids, marks in _batches(fact_ids):
                for entity_id, facts in connection.execute(
                    f"SELECT entity_id, count(*) FROM fact_entities WHERE fact_id IN ({marks}) GROUP BY entity_id", ids
                ):
                    held[entity_id] = held.get(entity_id, 0) + facts
        return held

    def link_counts(self, entity_ids: Sequence[int]) -> dict[int, int]:
        """Entity id -> how many facts hold it."""
        counts: dict[int, int] = {}
        with self.database.read() as connection:
            for ids, marks in _batches(entity_ids):
                counts.update(
                    connection.execute(
                        "SELECT entity_id, count(*) FROM fact_entities"
                        f" WHERE entity_id IN ({marks}) GROUP BY entity_id",
                        ids,
                    )
                )
        return counts

    def links(self) -> list[tuple[int, int]]:
        """(fact_id, entity_id) of every link in the file."""
        with self.database.read() as connection:
            return connection.execute("SELECT fact_id, entity_id FROM fact_entities").fetchall()

    # ---- roles ------------------------------------------------------------------------------------------------

    def set_roles(self, fact_id: int, fillers: Mapping[str, int]) -> None:
        """Make these (role -> entity id) the roles of a fact; the fillers are linked to it already."""
        with self.database.write() as connection:
            connection.execute("DELETE FROM fact_roles WHERE fact_id = ?", (fact_id,))
            connection.executemany(
                "INSERT INTO fact_roles (fact_id, role, entity_id) VALUES (?, ?, ?)",
                [(fact_id, role, entity_id) for role, entity_id in fillers.items()],
            )

    def roles(self, fact_id: int) -> dict[str, int]:
        """Role -> entity id of a fact."""
        with self.database.read() as connection:
            return dict(connection.execute("SELECT role, entity_id FROM fact_roles WHERE fact_id = ?", (fact_id,)))

    def filled(self, role: str, entity_ids: Sequence[int]) -> list[int]:
        """Ids of the facts in which one of these entities has this role."""
        with self.database.read() as connection:
            return [
                fact_id
                for ids, marks in _batches(entity_ids)
                for (fact_id,) in connection.execute(
                    f"SELECT fact_id FROM fact_roles WHERE role = ? AND entity_id IN ({marks})", (role, *ids)
                )
            ]

    def has_role(self, role: str) -> bool:
        """Whether any fact has this role."""
        return bool(self._number("SELECT EXISTS (SELECT 1 FROM fact_roles WHERE role = ?)", role))

    def fillers(self, role: str) -> list[int]:
        """Ids of the entities that have this role in some fact."""
        with self.database.read() as connection:
            return [
                row[0]
                for row in connection.execute("SELECT DISTINCT entity_id FROM fact_roles WHERE role = ?", (role,))
            ]

    def fillers_of(self, role: str, fact_ids: Sequence[int]) -> dict[int, int]:
        """Fact id -> the entity that has this role in it, of those facts that have the role."""
        found: dict[int, int] = {}
        with self.database.read() as connection:
            for ids, marks in _batches(fact_ids):
                found.update(
                    connection.execute(
                        f"SELECT fact_id, entity_id FROM fact_roles WHERE role = ? AND fact_id IN ({marks})",
                        (role, *ids),
                    )
                )
        return found

    # ---- vectors ----------------------------------------------------------------------------------------------

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
            for ids, marks in _batches(fact_ids):
                found.update(
                    connection.execute(f"SELECT fact_id, hrr_vector FROM facts WHERE fact_id IN ({marks})", ids)
                )
        return found

    def model(self, identity: ModelId) -> int | None:
        """The number of a model in this file; None when no vector of it was ever stored."""
        with self.database.read() as connection:
            row = connection.execute(
                "SELECT model_id FROM models WHERE identity = ?", (_identity(identity),)
            ).fetchone()
        return None if row is None else int(row[0])

    def add_model(self, identity: ModelId, calibration: bytes | None = None) -> int:
        """The number of a model in this file, which is given one if it has none."""
        with self.database.write() as connection:
            connection.execute(
                "INSERT INTO models (identity, calibration) VALUES (?, ?) ON CONFLICT (identity)"
                " DO UPDATE SET calibration = coalesce(excluded.calibration, calibration)",
                (_identity(identity), calibration),
            )
        return self.model(identity) or 0

    def calibration(self, identity: ModelId) -> bytes | None:
        """The stored calibration of a model."""
        with self.database.read() as connection:
            row = connection.execute(
                "SELECT calibration FROM models WHERE identity = ?", (_identity(identity),)
            ).fetchone()
        return None if row is None else row[0]

    def kept_model(self) -> ModelId | None:
        """The model that this file was filled with, or was told to use; None while it holds vectors of none or many."""
        with self.database.read() as connection:
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

    def keep_model(self, model_id: int) -> None:
        """Remember which model this file uses."""
        self.set_meta("model", model_id)

    def set_vectors(self, model_id: int, vectors: Iterable[tuple[int, str, bytes]]) -> int:
        """Store (fact_id, content, vector) and return how many were taken.

        A vector is for a content: it is dropped when the fact is gone or says something else by now.
        """
        with self.database.write() as connection:
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
        with self.database.read() as connection:
            if fact_ids is None:
                yield from connection.execute(statement, (model_id,))
                return
            for ids, marks in _batches(fact_ids):
                yield from connection.execute(f"{statement} AND fact_id IN ({marks})", (model_id, *ids))

    def vector_counts(self, model_id: int | None) -> tuple[int, int]:
        """(vectors of this model, facts whose vectors are all of other models)."""
        own = self._number("SELECT count(*) FROM fact_vectors WHERE model_id IS ?", model_id)
        every = self._number("SELECT count(DISTINCT fact_id) FROM fact_vectors")
        return own, every - own

    def drop_vectors(self, *, except_model: int) -> int:
        """Remove the vectors of other models and return how many there were."""
        with self.database.write() as connection:
            dropped = connection.execute("DELETE FROM fact_vectors WHERE model_id != ?", (except_model,)).rowcount
            connection.execute("DELETE FROM models WHERE model_id != ?", (except_model,))
            return int(dropped)

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

    def _number(self, statement: str, *values: object) -> int:
        with self.database.read() as connection:
            return int(connection.execute(statement, values).fetchone()[0])

    def _facts(self, connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> list[Fact]:
        names: dict[int, dict[int, str]] = {}
        roles: dict[int, dict[str, str]] = {}
        fact_ids = [row[0] for row in rows]
        for ids, marks in _batches(fact_ids):
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

    def _drop_orphans(self, connection: sqlite3.Connection, entity_ids: Iterable[int]) -> None:
        connection.executemany(
            "DELETE FROM entities WHERE entity_id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM fact_entities WHERE entity_id = ?1)",
            [(entity_id,) for entity_id in entity_ids],
        )


def split_list(text: str | None) -> tuple[str, ...]:
    """The items of a comma-separated list, without the empty ones."""
    return tuple(item for item in (part.strip() for part in (text or "").split(",")) if item)


def _split_aliases(text: str | None) -> tuple[str, ...]:
    """The names in a comma-separated list in which a comma of a name is written with a backslash."""
    parts = (part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", text or ""))
    return tuple(part for part in parts if part)


def _batches(ids: Sequence[int]) -> Iterator[tuple[list[int], str]]:
    for start in range(0, len(ids), _BATCH):
        batch = [int(i) for i in ids[start : start + _BATCH]]
        yield batch, _marks(batch)


def _marks(values: Iterable[object]) -> str:
    return ", ".join("?" for _ in values)


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


def _identity(model: ModelId) -> str:
    return json.dumps(asdict(model), sort_keys=True)
