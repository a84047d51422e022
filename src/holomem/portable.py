"""Facts as lines of JSON, lossless both ways: everything but the vectors, which are made anew from the text.

One fact a line: content, category, tags, trust_score, retrieval_count, helpful_count, created_at, updated_at, entities,
each with name, type and aliases, roles as an object of names, and `unlinked`, the keys of names that it is not about;
where they are there source, metadata, expires_at, superseded_by (the content of the fact that replaced this one, "" if it
is gone) and scopes. Exporting, importing into an empty store and exporting again gives the same lines. The history stays
with the file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from holomem import ingest, scoping, text
from holomem.history import Journal
from holomem.index import Names
from holomem.records import PLAIN
from holomem.store import Store
from holomem.types import Fact, Filter, ImportReport, NewFact, Scope

__all__ = ["Record", "Writable", "export", "load", "read"]

_COLUMNS: Final = ("category", "tags", "trust_score", "retrieval_count", "helpful_count", "created_at", "updated_at")


class Writable(Protocol):
    """What `export` writes to: a text file."""

    def write(self, text: str, /) -> object:
        """Take one line."""


@dataclass(frozen=True, slots=True)
class Record:
    """One good line: the fact, its recorded columns, its entities as (name, type, aliases), and what stands beside it."""

    statement: ingest.Statement
    columns: dict[str, Any]
    entities: tuple[tuple[str, str, tuple[str, ...]], ...]
    unlinked: frozenset[str] | None
    superseded_by: str | None
    scopes: tuple[Scope, ...]


def export(store: Store, lines: Writable, asker: Scope | None = None, fact_ids: Collection[int] | None = None) -> int:
    """Write every fact that the asker sees, or those of these ids, as one line, oldest first, and return how many."""
    entities = {
        e.name: {"name": e.name, "type": e.entity_type, "aliases": list(e.aliases)} for e in store.links.entities()
    }
    if fact_ids is None:
        facts = store.facts(Filter(scope=asker), order="oldest")
    else:
        found = [fact for fact in store.fetch(list(fact_ids)).values() if scoping.sees(asker, fact.scopes)]
        facts = sorted(found, key=lambda fact: fact.fact_id)
    facts = [scoping.own(fact, asker) for fact in facts]
    newer = dict(store.contents([fact.superseded_by for fact in facts if fact.superseded_by]))
    for fact in facts:
        line = {**_line(fact, entities, newer), "unlinked": sorted(store.links.unlinked(fact.fact_id))}
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
    store: Store,
    names: Names,
    records: Iterable[tuple[int, Record | str]],
    asker: Scope | None = None,
    *,
    restore: bool,
    dry_run: bool,
) -> ImportReport:
    """Take the records over inside the caller's transaction: `Memory.load` states the rule for conflicts."""
    added = updated = unchanged = skipped = 0
    errors = []
    seen: set[str] = set()
    superseded: list[tuple[int, str]] = []
    for number, record in records:
        if isinstance(record, str):
            errors.append((number, record))
            continue
        try:
            scopes = _scopes_for(record, asker)
        except ValueError as error:
            errors.append((number, str(error)))
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
                _complete(store, names, fact_id, record, scopes)
                Journal(store, "import").made(fact_id, content, scopes)
        elif fact_id is not None and _is_newer(record, fact := store.get(fact_id)) and scoping.sees(asker, fact.scopes):
            updated += 1
            if not dry_run:
                statement = record.statement
                with Journal(store, "import").changing(fact_id):
                    if statement.entities is not None or statement.roles is not None:
                        ingest.relink(store, names, fact_id, statement.entities, statement.roles)
                    _complete(store, names, fact_id, record, _together(fact.scopes, scopes))
        else:
            unchanged += 1
            if fact_id is not None and not dry_run:
                _join(store, fact_id, scopes)
        seen.add(content)
        if record.superseded_by is not None and fact_id is not None and not dry_run:
            superseded.append((fact_id, record.superseded_by))
    for fact_id, newer in superseded:
        extras = store.records.extras([fact_id]).get(fact_id, PLAIN)
        store.records.set_extras(fact_id, extras._replace(superseded_by=store.find(newer) or 0))
    return ImportReport(added, updated, unchanged, skipped, tuple(errors))


def _line(fact: Fact, entities: dict[str, dict[str, Any]], newer: dict[int, str]) -> dict[str, Any]:
    line: dict[str, Any] = {
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
    if fact.source is not None:
        line["source"] = fact.source
    if fact.metadata is not None:
        line["metadata"] = fact.metadata
    if fact.expires_at is not None:
        line["expires_at"] = fact.expires_at.isoformat()
    if fact.superseded_by is not None:
        line["superseded_by"] = newer.get(fact.superseded_by, "")
    if fact.scopes:
        line["scopes"] = [{part: name for part, name in asdict(s).items() if name is not None} for s in fact.scopes]
    return line


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
            source=line.get("source"),
            metadata=line.get("metadata"),
            expires_at=None if line.get("expires_at") is None else _time(line["expires_at"]),
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
    newer = line.get("superseded_by")
    scopes = line.get("scopes") or []
    if not isinstance(scopes, list):
        raise ValueError(f"scopes is {scopes!r}; it must be a list")
    return Record(
        statement,
        columns,
        entities,
        None if unlinked is None else frozenset(unlinked),
        None if newer is None else text.check(newer, "superseded_by").strip(),
        tuple(_scope(scope) for scope in scopes),
    )


def _scope(given: Any) -> Scope:
    if not isinstance(given, dict) or not given or not given.keys() <= {"user", "agent", "run"}:
        raise ValueError('a scope must be an object with "user", "agent" or "run"')
    scope = scoping.check(Scope(**given))
    if scope is None:
        raise ValueError("a scope must name something")
    return scope


def _scopes_for(record: Record, asker: Scope | None) -> tuple[Scope, ...]:
    """The scopes that a line's fact gets: its own within that of the asker. Raises ValueError."""
    within = (scoping.within(asker, scope) for scope in record.scopes or (None,))
    return tuple(scope for scope in within if scope is not None)


def _together(held: tuple[Scope, ...], given: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """What a fact belongs to when a newer line says whom it belongs to: both, or all."""
    return (*held, *given) if held and given else given


def _join(store: Store, fact_id: int, scopes: tuple[Scope, ...]) -> None:
    """Let a fact of some belong to more of them."""
    held = store.records.scopes([fact_id]).get(fact_id, ())
    more = [scope for scope in scopes if scope not in held]
    if held and more:
        with Journal(store, "import").changing(fact_id):
            store.records.set_scopes(fact_id, [*held, *more])


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
    return _time(value).replace(tzinfo=None).isoformat(sep=" ")


def _time(value: Any) -> datetime:
    """A time as UTC."""
    try:
        time = datetime.fromisoformat(value)
        return time.astimezone(UTC) if time.tzinfo is not None else time.replace(tzinfo=UTC)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"{value!r} is no time; use ISO 8601 such as 2026-05-03T10:00:00+00:00") from None


def _is_newer(record: Record, fact: Fact) -> bool:
    updated = record.columns.get("updated_at")
    return updated is not None and datetime.fromisoformat(updated).replace(tzinfo=UTC) > fact.updated_at


def _complete(store: Store, names: Names, fact_id: int, record: Record, scopes: tuple[Scope, ...]) -> None:
    for name, kind, aliases in record.entities:
        ingest.describe(store, names, name, kind, aliases)
    if record.unlinked is not None:
        store.links.set_unlinked([fact_id], store.links.unlinked(fact_id), unlinked=False)
        store.links.set_unlinked([fact_id], record.unlinked, unlinked=True)
    store.set_record(fact_id, **record.columns)
    store.records.set_extras(fact_id, record.statement.extras)
    store.records.set_scopes(fact_id, scopes)
