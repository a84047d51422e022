"""Facts as lines of JSON, lossless both ways: everything but the vectors, which are made anew from the text.

One fact a line: content, category, tags, trust_score, retrieval_count, helpful_count, created_at, updated_at, entities,
each with name, type and aliases, roles as an object of names, and `unlinked`, the keys of names that it is not about.
Exporting, importing into an empty store and exporting again gives the same lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from holomem import ingest, text
from holomem.index import Names
from holomem.store import Store
from holomem.types import Fact, Filter, ImportReport, NewFact

__all__ = ["Record", "Writable", "export", "load", "read"]

_COLUMNS: Final = ("category", "tags", "trust_score", "retrieval_count", "helpful_count", "created_at", "updated_at")


class Writable(Protocol):
    """What `export` writes to: a text file."""

    def write(self, text: str, /) -> object:
        """Take one line."""


@dataclass(frozen=True, slots=True)
class Record:
    """One good line: the fact, its recorded columns, and its entities as (name, type, aliases)."""

    statement: ingest.Statement
    columns: dict[str, Any]
    entities: tuple[tuple[str, str, tuple[str, ...]], ...]
    unlinked: frozenset[str] | None


def export(store: Store, lines: Writable) -> int:
    """Write every fact as one line, oldest first, and return how many."""
    entities = {e.name: {"name": e.name, "type": e.entity_type, "aliases": list(e.aliases)} for e in store.entities()}
    facts = store.facts(Filter())
    for fact in reversed(facts):
        line = {**_line(fact, entities), "unlinked": sorted(store.unlinked(fact.fact_id))}
        lines.write(json.dumps(line, ensure_ascii=False) + "\n")
    return len(facts)


def read(lines: Iterable[str]) -> Iterator[tuple[int, Record | str]]:
    """(line number, the record, or what is wrong with the line); empty lines are passed over."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, _record(json.loads(line))
            except json.JSONDecodeError as error:
                yield number, f"not JSON: {error.msg} at character {error.pos + 1}"
            except RecursionError:
                yield number, "not JSON that can be read: nested too deeply"
            except (ValueError, TypeError, OverflowError) as error:
                yield number, str(error)


def load(
    store: Store, names: Names, records: Iterable[tuple[int, Record | str]], *, restore: bool, dry_run: bool
) -> ImportReport:
    """Take the records over inside the caller's transaction: `Memory.load` states the rule for conflicts."""
    added = updated = unchanged = skipped = 0
    errors = []
    seen: set[str] = set()
    for number, record in records:
        if isinstance(record, str):
            errors.append((number, record))
            continue
        content = record.statement.content
        fact_id = store.find(content)
        if fact_id is None and content not in seen:
            if store.is_buried(content) and not restore:
                skipped += 1
                continue
            added += 1
            if not dry_run:
                fact_id, _ = ingest.insert(store, names, record.statement)
                _complete(store, names, fact_id, record)
        elif fact_id is not None and _is_newer(record, store.get(fact_id)):
            updated += 1
            if not dry_run:
                statement = record.statement
                if statement.entities is not None or statement.roles is not None:
                    ingest.relink(store, names, fact_id, statement.entities, statement.roles)
                _complete(store, names, fact_id, record)
        else:
            unchanged += 1
        seen.add(content)
    return ImportReport(added, updated, unchanged, skipped, tuple(errors))


def _line(fact: Fact, entities: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "content": fact.content,
        "category": fact.category,
        "tags": fact.tags,
        "trust_score": fact.trust_score,
        "retrieval_count": fact.retrieval_count,
        "helpful_count": fact.helpful_count,
        "created_at": fact.created_at.isoformat(),
        "updated_at": fact.updated_at.isoformat(),
        "entities": [entities[name] for name in fact.entities],
        "roles": fact.roles,
    }


def _record(line: Any) -> Record:
    if not isinstance(line, dict) or not isinstance(line.get("content"), str):
        raise ValueError('a line must be a JSON object with a "content" string')
    given = line.get("entities")
    if given is not None and not isinstance(given, list):
        raise ValueError(f"entities is {given!r}; it must be a list")
    entities = tuple(_entity(entity) for entity in given or ())
    statement = ingest.statement(
        NewFact(
            line["content"],
            line.get("category") or "general",
            line.get("tags") or "",
            None if given is None else [name for name, _, _ in entities],
            roles=line.get("roles"),
        )
    )
    columns: dict[str, Any] = {"category": statement.category, "tags": statement.tags}
    trust = line.get("trust_score", 0.5)
    if isinstance(trust, bool) or not isinstance(trust, int | float) or not 0 <= trust <= 1:
        raise ValueError(f"trust_score is {trust!r}; it must be a number from 0 to 1")
    columns["trust_score"] = float(trust)
    for name in ("retrieval_count", "helpful_count"):
        count = line.get(name, 0)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**63:
            raise ValueError(f"{name} is {count!r}; it must be a whole number from 0 to 2^63 - 1")
        columns[name] = count
    for name in ("created_at", "updated_at"):
        if line.get(name) is not None:
            columns[name] = _stored_time(line[name])
    unlinked = line.get("unlinked")
    if unlinked is not None and not (isinstance(unlinked, list) and all(isinstance(key, str) for key in unlinked)):
        raise ValueError(f"unlinked is {unlinked!r}; it must be a list of strings")
    return Record(statement, columns, entities, None if unlinked is None else frozenset(unlinked))


def _entity(entity: Any) -> tuple[str, str, tuple[str, ...]]:
    if isinstance(entity, str):
        return entity, "unknown", ()
    if not isinstance(entity, dict) or not isinstance(entity.get("name"), str):
        raise ValueError('an entity must be a name or an object with a "name" string')
    aliases = entity.get("aliases") or []
    if not isinstance(aliases, list):
        raise ValueError("the aliases of an entity must be a list of strings")
    kind = text.check(entity.get("type") or "unknown", "the type of an entity")
    return entity["name"], kind, tuple(text.check(alias, "an alias") for alias in aliases)


def _stored_time(value: Any) -> str:
    """A time as the file holds it: UTC, to the second where it has no fraction."""
    try:
        time = datetime.fromisoformat(value)
        time = time.astimezone(UTC) if time.tzinfo is not None else time
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"{value!r} is no time; use ISO 8601 such as 2026-05-03T10:00:00+00:00") from None
    return time.replace(tzinfo=None).isoformat(sep=" ")


def _is_newer(record: Record, fact: Fact) -> bool:
    updated = record.columns.get("updated_at")
    return updated is not None and datetime.fromisoformat(updated).replace(tzinfo=UTC) > fact.updated_at


def _complete(store: Store, names: Names, fact_id: int, record: Record) -> None:
    for name, kind, aliases in record.entities:
        ingest.describe(store, names, name, kind, aliases)
    if record.unlinked is not None:
        store.set_unlinked([fact_id], store.unlinked(fact_id), unlinked=False)
        store.set_unlinked([fact_id], record.unlinked, unlinked=True)
    store.set_record(fact_id, **record.columns)
