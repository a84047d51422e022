"""Every SQL statement about what stands beside the facts: source, expiry, supersession, scopes, and the history.

A module of its own beside `store`, whose `Store.records` this is: the plain path touches none of it but by one row of
history. Each method is one step inside the caller's `database.read()` or `database.write()`, or makes its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from holomem.database import Database
from holomem.types import Change, Filter, Scope

__all__ = ["PLAIN", "Extras", "Records", "condition", "stored_moment"]

KEPT_CHANGES: Final = 10_000  # the newest ones; a thousand more for a while
_LISTED: Final = "(SELECT value FROM json_each(?))"  # ids as one JSON list: no limit on how many
_CHANGE: Final = "SELECT change_id, fact_id, action, changed_at, before, after, with_change FROM history"


class Extras(NamedTuple):
    """What `fact_extras` holds of a fact, as it is stored: metadata are JSON."""

    source: str | None = None
    metadata: str | None = None
    expires_at: str | None = None
    superseded_by: int | None = None


PLAIN: Final = Extras()


class Records:
    """The statements about one open file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # ---- beside the facts -------------------------------------------------------------------------------------

    def extras(self, fact_ids: Sequence[int] | None = None) -> dict[int, Extras]:
        """What stands beside these facts, or all; a fact without anything is left out."""
        rows = self._listed("fact_extras", "source, metadata, expires_at, superseded_by", fact_ids)
        return {fact_id: Extras(*values) for fact_id, *values in rows}

    def set_extras(self, fact_id: int, extras: Extras) -> None:
        """Replace what stands beside a fact."""
        with self._database.write() as connection:
            if extras == PLAIN:
                connection.execute("DELETE FROM fact_extras WHERE fact_id = ?", (fact_id,))
                return
            connection.execute(
                "INSERT INTO fact_extras (fact_id, source, metadata, expires_at, superseded_by) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (fact_id) DO UPDATE SET source = excluded.source, metadata = excluded.metadata,"
                " expires_at = excluded.expires_at, superseded_by = excluded.superseded_by",
                (fact_id, *extras),
            )

    def scopes(self, fact_ids: Sequence[int] | None = None) -> dict[int, tuple[Scope, ...]]:
        """The scopes of these facts, or of all; a fact that belongs to all is left out."""
        rows = self._listed("fact_scopes", "user, agent, run", fact_ids)
        found: dict[int, list[Scope]] = {}
        for fact_id, *parts in rows:
            found.setdefault(fact_id, []).append(Scope(*(part or None for part in parts)))
        return {fact_id: tuple(scopes) for fact_id, scopes in found.items()}

    def set_scopes(self, fact_id: int, scopes: Iterable[Scope]) -> None:
        """Let a fact belong to these scopes and no others; to all when there are none."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM fact_scopes WHERE fact_id = ?", (fact_id,))
            connection.executemany(
                "INSERT OR IGNORE INTO fact_scopes (fact_id, user, agent, run) VALUES (?, ?, ?, ?)",
                [(fact_id, scope.user or "", scope.agent or "", scope.run or "") for scope in scopes],
            )

    def both_hold(self) -> set[tuple[int, int]]:
        """The pairs (smaller id, larger) that were said to be no contradiction."""
        with self._database.read() as connection:
            return set(connection.execute("SELECT first_id, second_id FROM both_hold"))

    def set_both_hold(self, first_id: int, second_id: int, *, hold: bool) -> None:
        """Remember that a pair is no contradiction, until one of the two changes; or forget it."""
        statement = (
            "INSERT OR IGNORE INTO both_hold (first_id, second_id) VALUES (?, ?)"
            if hold
            else "DELETE FROM both_hold WHERE first_id = ? AND second_id = ?"
        )
        with self._database.write() as connection:
            connection.execute(statement, sorted((first_id, second_id)))

    def entities(self, fact_id: int) -> list[tuple[str, str, str]]:
        """(name, type, aliases as they are stored) of the entities of a fact, in the order of linking."""
        with self._database.read() as connection:
            return connection.execute(
                "SELECT e.name, ifnull(e.entity_type, 'unknown'), ifnull(e.aliases, '') FROM fact_entities l"
                " JOIN entities e USING (entity_id) WHERE l.fact_id = ? ORDER BY l.rowid",
                (fact_id,),
            ).fetchall()

    def expired(self, now: datetime) -> list[int]:
        """Ids of the facts whose time is over."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT fact_id FROM fact_extras JOIN facts USING (fact_id) WHERE expires_at <= ? ORDER BY fact_id",
                (stored_moment(now),),
            )
            return [row[0] for row in rows]

    # ---- history ----------------------------------------------------------------------------------------------

    def log(
        self,
        fact_id: int,
        action: str,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
        with_change: int | None = None,
    ) -> int:
        """Write down what was done to a fact, and return the number of the change."""
        with self._database.write() as connection:
            cursor = connection.execute(
                "INSERT INTO history (fact_id, action, before, after, with_change) VALUES (?, ?, ?, ?, ?)",
                (fact_id, action, _json(before), _json(after), with_change),
            )
            change_id = int(cursor.lastrowid or 0)
            if change_id % 1000 == 0:
                connection.execute("DELETE FROM history WHERE change_id <= ?", (change_id - KEPT_CHANGES,))
            return change_id

    def changes(self, fact_id: int | None = None) -> Iterator[Change]:
        """Changes of one fact or of all, newest first."""
        where = "" if fact_id is None else " WHERE fact_id = ?"
        with self._database.read() as connection:
            for row in connection.execute(
                f"{_CHANGE}{where} ORDER BY change_id DESC", () if fact_id is None else (fact_id,)
            ):
                yield _change(row)

    def write_of(self, change_id: int) -> list[Change]:
        """All changes of the write that a change belongs to, newest first; none when it is not kept."""
        with self._database.read() as connection:
            row = connection.execute(f"{_CHANGE} WHERE change_id = ?", (change_id,)).fetchone()
            if row is None:
                return []
            first = row[-1] or change_id
            rows = connection.execute(
                f"{_CHANGE} WHERE change_id = ? UNION ALL {_CHANGE} WHERE with_change = ? ORDER BY change_id DESC",
                (first, first),
            )
            return [_change(row) for row in rows]

    def forget_changes(self) -> int:
        """Erase the history and return how many changes it held."""
        with self._database.write() as connection:
            return int(connection.execute("DELETE FROM history").rowcount)

    def _listed(self, table: str, columns: str, fact_ids: Sequence[int] | None) -> list[tuple[Any, ...]]:
        statement = f"SELECT fact_id, {columns} FROM {table}"
        with self._database.read() as connection:
            if not connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").fetchone()[0]:  # a tenth of the work
                return []
            if fact_ids is None:
                return connection.execute(statement).fetchall()
            ids = json.dumps([int(i) for i in fact_ids])
            return connection.execute(f"{statement} WHERE fact_id IN {_LISTED}", (ids,)).fetchall()


def condition(chosen: Filter) -> Iterator[tuple[str, list[Any]]]:
    """The parts of a filter that these tables decide, as conditions over `facts f` with their values."""
    if chosen.current:
        yield (
            "NOT EXISTS (SELECT 1 FROM fact_extras x WHERE x.fact_id = f.fact_id"
            " AND (x.superseded_by IS NOT NULL OR x.expires_at <= ?))",
            [stored_moment(datetime.now(UTC))],
        )
    if chosen.source is not None:
        yield (
            "f.fact_id IN (SELECT fact_id FROM fact_extras WHERE source = ? OR source >= ? AND source < ?)",
            [chosen.source, f"{chosen.source}/", f"{chosen.source}0"],  # "0" follows "/"
        )
    scope = chosen.scope
    if scope is not None:
        named = [(part, value) for part in ("user", "agent", "run") if (value := getattr(scope, part)) is not None]
        same = " AND ".join(f"s.{part} IN ('', ?)" for part, _ in named)
        shared = " OR ".join(f"s.{part} = ?" for part, _ in named)
        yield (
            "(NOT EXISTS (SELECT 1 FROM fact_scopes s WHERE s.fact_id = f.fact_id) OR EXISTS"
            f" (SELECT 1 FROM fact_scopes s WHERE s.fact_id = f.fact_id AND {same} AND ({shared})))",
            [value for _, value in named] * 2,
        )


def stored_moment(moment: datetime) -> str:
    """A time as `fact_extras` holds it; one without a zone is UTC."""
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


def _json(value: dict[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _change(row: tuple[Any, ...]) -> Change:
    change_id, fact_id, action, changed_at, before, after, with_change = row
    moment = datetime.fromisoformat(changed_at).replace(tzinfo=UTC)
    was, became = (None if side is None else json.loads(side) for side in (before, after))
    return Change(change_id, fact_id, action, moment, was, became, with_change)
