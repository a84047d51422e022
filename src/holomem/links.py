"""Every SQL statement about entities: their names, which facts they are linked to, and by which roles.

A part of `store`, whose `Store.links` this is. Each method is one step inside the caller's `database.read()` or
`database.write()`, or makes its own.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from holomem.database import Database, batches
from holomem.types import Entity

__all__ = ["Links", "drop_orphans"]


class Links:
    """The statements about one open file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # ---- entities ---------------------------------------------------------------------------------------------

    def entities(self, entity_id: int | None = None) -> list[Entity]:
        """All entities with the number of their facts, most facts first; or just the one with this id."""
        with self._database.read() as connection:
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
        with self._database.read() as connection:
            if entity_ids is None:
                rows = connection.execute(statement).fetchall()
            else:
                rows = []
                for ids, marks in batches(entity_ids):
                    rows += connection.execute(f"{statement} WHERE entity_id IN ({marks})", ids).fetchall()
        return [(entity_id, name, _split_aliases(aliases)) for entity_id, name, aliases in rows]

    def entities_by_key(self, key: str) -> list[int]:
        """Ids of the entities that have this key as name or alias, oldest first."""
        with self._database.read() as connection:
            return [
                row[0]
                for row in connection.execute(
                    "SELECT entity_id FROM entity_keys WHERE key = ? ORDER BY entity_id", (key,)
                )
            ]

    def without_keys(self) -> list[tuple[int, str, tuple[str, ...]]]:
        """(entity_id, name, aliases) of entities that another program wrote."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT entity_id, name, aliases FROM entities e"
                " WHERE NOT EXISTS (SELECT 1 FROM entity_keys k WHERE k.entity_id = e.entity_id)"
            ).fetchall()
        return [(entity_id, name, _split_aliases(aliases)) for entity_id, name, aliases in rows]

    def add_entity(self, name: str, kind: str = "unknown") -> int:
        """Store a new entity and return its id; its keys are set apart."""
        with self._database.write() as connection:
            cursor = connection.execute("INSERT INTO entities (name, entity_type) VALUES (?, ?)", (name, kind))
            return int(cursor.lastrowid or 0)

    def set_aliases(self, entity_id: int, aliases: Sequence[str]) -> None:
        """Replace the other spellings of an entity; its keys are set apart."""
        with self._database.write() as connection:
            joined = ",".join(alias.replace(",", "\\,") for alias in aliases)
            connection.execute("UPDATE entities SET aliases = ? WHERE entity_id = ?", (joined, entity_id))

    def set_name(self, entity_id: int, name: str) -> None:
        """Replace the canonical name of an entity; its keys are set apart."""
        with self._database.write() as connection:
            connection.execute("UPDATE entities SET name = ? WHERE entity_id = ?", (name, entity_id))

    def set_entity_type(self, entity_id: int, kind: str) -> None:
        """Set what kind of thing an entity is."""
        with self._database.write() as connection:
            connection.execute("UPDATE entities SET entity_type = ? WHERE entity_id = ?", (kind, entity_id))

    def set_keys(self, entity_id: int, keys: Iterable[str]) -> None:
        """Replace the lookup keys of an entity."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM entity_keys WHERE entity_id = ?", (entity_id,))
            connection.executemany(
                "INSERT OR IGNORE INTO entity_keys (key, entity_id) VALUES (?, ?)", [(key, entity_id) for key in keys]
            )

    # ---- links ------------------------------------------------------------------------------------------------

    def link(self, fact_id: int, entity_ids: Sequence[int]) -> None:
        """Make these the entities of a fact; those that nothing holds any more disappear."""
        with self._database.write() as connection:
            before = self.linked_entities(fact_id)
            gone = set(before) - set(entity_ids)
            connection.executemany(
                "DELETE FROM fact_entities WHERE fact_id = ? AND entity_id = ?", [(fact_id, e) for e in gone]
            )
            connection.executemany(
                "INSERT OR IGNORE INTO fact_entities (fact_id, entity_id) VALUES (?, ?)",
                [(fact_id, e) for e in entity_ids if e not in before],
            )
            drop_orphans(connection, gone)

    def move_links(self, source: int, target: int, fact_ids: Sequence[int]) -> None:
        """Bind these facts, with the roles that `source` has in them, to `target` instead, each link in its place.

        An entity that nothing holds any more disappears.
        """
        with self._database.write() as connection:
            for fact_id in fact_ids:
                link = (target, fact_id, source)
                connection.execute("UPDATE fact_roles SET entity_id = ? WHERE fact_id = ? AND entity_id = ?", link)
                connection.execute(
                    "UPDATE OR IGNORE fact_entities SET entity_id = ? WHERE fact_id = ? AND entity_id = ?", link
                )
                connection.execute("DELETE FROM fact_entities WHERE fact_id = ? AND entity_id = ?", link[1:])
            drop_orphans(connection, [source])

    def unlinked(self, fact_id: int) -> set[str]:
        """The keys of the names that this fact was said not to be about; "" stands for all that it is not bound to."""
        with self._database.read() as connection:
            return {row[0] for row in connection.execute("SELECT key FROM unlinked WHERE fact_id = ?", (fact_id,))}

    def all_unlinked(self, fact_ids: Sequence[int]) -> dict[int, set[str]]:
        """The same for these facts, those left out of which everything may be said."""
        found: dict[int, set[str]] = {}
        with self._database.read() as connection:
            for ids, marks in batches(fact_ids):
                for fact_id, key in connection.execute(
                    f"SELECT fact_id, key FROM unlinked WHERE fact_id IN ({marks})", ids
                ):
                    found.setdefault(fact_id, set()).add(key)
        return found

    def given(self, fact_ids: Sequence[int]) -> set[int]:
        """Those of these facts whose names were given: their texts say nothing about others."""
        found: set[int] = set()
        with self._database.read() as connection:
            for ids, marks in batches(fact_ids):
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
        with self._database.read() as connection:
            for ids, marks in batches(fact_ids):
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
        with self._database.write() as connection:
            connection.executemany(statement, pairs)

    def linked_entities(self, fact_id: int) -> list[int]:
        """Ids of the entities of a fact, in the order in which they were linked."""
        with self._database.read() as connection:
            return [
                row[0]
                for row in connection.execute(
                    "SELECT entity_id FROM fact_entities WHERE fact_id = ? ORDER BY rowid", (fact_id,)
                )
            ]

    def linked_facts(self, entity_ids: Sequence[int]) -> list[tuple[int, int]]:
        """(fact_id, entity_id) of every link of these entities."""
        links = []
        with self._database.read() as connection:
            for ids, marks in batches(entity_ids):
                links += connection.execute(
                    f"SELECT fact_id, entity_id FROM fact_entities WHERE entity_id IN ({marks})", ids
                ).fetchall()
        return links

    def entities_of(self, fact_ids: Sequence[int]) -> dict[int, int]:
        """Entity id -> how many of these facts hold it."""
        held: dict[int, int] = {}
        with self._database.read() as connection:
            for ids, marks in batches(fact_ids):
                for entity_id, facts in connection.execute(
                    f"SELECT entity_id, count(*) FROM fact_entities WHERE fact_id IN ({marks}) GROUP BY entity_id", ids
                ):
                    held[entity_id] = held.get(entity_id, 0) + facts
        return held

    def link_counts(self, entity_ids: Sequence[int]) -> dict[int, int]:
        """Entity id -> how many facts hold it."""
        counts: dict[int, int] = {}
        with self._database.read() as connection:
            for ids, marks in batches(entity_ids):
                counts.update(
                    connection.execute(
                        "SELECT entity_id, count(*) FROM fact_entities"
                        f" WHERE entity_id IN ({marks}) GROUP BY entity_id",
                        ids,
                    )
                )
        return counts

    def pairs(self) -> list[tuple[int, int]]:
        """(fact_id, entity_id) of every link in the file."""
        with self._database.read() as connection:
            return connection.execute("SELECT fact_id, entity_id FROM fact_entities").fetchall()

    # ---- roles ------------------------------------------------------------------------------------------------

    def set_roles(self, fact_id: int, fillers: Mapping[str, int]) -> None:
        """Make these (role -> entity id) the roles of a fact; the fillers are linked to it already."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM fact_roles WHERE fact_id = ?", (fact_id,))
            connection.executemany(
                "INSERT INTO fact_roles (fact_id, role, entity_id) VALUES (?, ?, ?)",
                [(fact_id, role, entity_id) for role, entity_id in fillers.items()],
            )

    def roles(self, fact_id: int) -> dict[str, int]:
        """Role -> entity id of a fact."""
        with self._database.read() as connection:
            return dict(connection.execute("SELECT role, entity_id FROM fact_roles WHERE fact_id = ?", (fact_id,)))

    def filled(self, role: str, entity_ids: Sequence[int]) -> list[int]:
        """Ids of the facts in which one of these entities has this role."""
        with self._database.read() as connection:
            return [
                fact_id
                for ids, marks in batches(entity_ids)
                for (fact_id,) in connection.execute(
                    f"SELECT fact_id FROM fact_roles WHERE role = ? AND entity_id IN ({marks})", (role, *ids)
                )
            ]

    def has_role(self, role: str) -> bool:
        """Whether any fact has this role."""
        return bool(self._database.number("SELECT EXISTS (SELECT 1 FROM fact_roles WHERE role = ?)", role))

    def fillers(self, role: str) -> list[int]:
        """Ids of the entities that have this role in some fact."""
        with self._database.read() as connection:
            return [
                row[0]
                for row in connection.execute("SELECT DISTINCT entity_id FROM fact_roles WHERE role = ?", (role,))
            ]

    def fillers_of(self, role: str, fact_ids: Sequence[int]) -> dict[int, int]:
        """Fact id -> the entity that has this role in it, of those facts that have the role."""
        found: dict[int, int] = {}
        with self._database.read() as connection:
            for ids, marks in batches(fact_ids):
                found.update(
                    connection.execute(
                        f"SELECT fact_id, entity_id FROM fact_roles WHERE role = ? AND fact_id IN ({marks})",
                        (role, *ids),
                    )
                )
        return found


def drop_orphans(connection: sqlite3.Connection, entity_ids: Iterable[int]) -> None:
    """Remove those of these entities that no fact holds."""
    connection.executemany(
        "DELETE FROM entities WHERE entity_id = ?1 AND NOT EXISTS (SELECT 1 FROM fact_entities WHERE entity_id = ?1)",
        [(entity_id,) for entity_id in entity_ids],
    )


def _split_aliases(text: str | None) -> tuple[str, ...]:
    """The names in a comma-separated list in which a comma of a name is written with a backslash."""
    parts = (part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", text or ""))
    return tuple(part for part in parts if part)
