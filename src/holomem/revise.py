"""Writes to facts that several may hold: who may, what becomes of the others, and the entry in the history.

Two who say the same hold one fact with two scopes. Removing it takes the asker's scopes off, and the fact goes with the
last one. Another content for one of them is a copy; category, tags, trust and counters are the fact's, for all of them.
What belongs to all is everybody's to change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from holomem import ingest, scoping
from holomem.errors import DuplicateFact, FactNotFound
from holomem.history import Journal
from holomem.index import Names
from holomem.records import PLAIN, Extras, stored_moment
from holomem.store import Store
from holomem.types import Entity, Fact, Filter, Scope

__all__ = ["Edit", "add", "entities", "feedback", "get", "purge", "remove", "update"]


@dataclass(frozen=True, slots=True)
class Edit:
    """What is to be changed of a fact; None where it stays. `statement` has its content, old or new."""

    statement: ingest.Statement
    category: str | None
    tags: str | None
    trust_delta: float
    source: str | None
    """"" for none"""
    expires_at: str | None
    """as it is stored, "" for never"""
    metadata: str | None = None
    """as it is stored, "" for none"""


def get(store: Store, fact_id: int, asker: Scope | None) -> Fact:
    """The fact as the asker sees it. Raises FactNotFound, also when it belongs to others."""
    fact = store.get(fact_id)
    if not scoping.sees(asker, fact.scopes):
        raise FactNotFound(fact_id)
    return scoping.own(fact, asker)


def add(store: Store, names: Names, new: ingest.Statement) -> int:
    """The id of the fact that says this, which is stored if nobody says it, and then belongs to the asker too.

    A fact that is expired or superseded counts again when it is stated again. Raises FactNotFound for what it should
    supersede.
    """
    journal = Journal(store, "add")
    fact_id, fresh = ingest.insert(store, names, new)
    if fresh:
        if new.time:
            store.set_record(fact_id, created_at=new.time, updated_at=new.time)
        if new.extras != PLAIN:
            store.records.set_extras(fact_id, new.extras)
        if new.scope is not None:
            store.records.set_scopes(fact_id, [new.scope])
        journal.made(fact_id, new.content, () if new.scope is None else (new.scope,))
    else:
        _state_again(store, journal, fact_id, new)
    if new.supersedes is not None:
        _supersede(store, journal, new.supersedes, fact_id, new.scope)
    return fact_id


def update(store: Store, names: Names, fact_id: int, edit: Edit, asker: Scope | None) -> int:
    """Change a fact, and return its id: another one when others hold it, or when one of others says the new content.

    Raises FactNotFound, and DuplicateFact when a fact that the asker sees says the new content.
    """
    old = get(store, fact_id, asker)
    journal = Journal(store, "update")
    if edit.statement.content != old.content:
        twin = store.find(edit.statement.content)
        twin = None if twin == fact_id else twin
        if twin is not None and scoping.sees(asker, _scopes(store, twin)):
            raise DuplicateFact(twin)
        if twin is not None or _others(store, fact_id, asker):
            fact_id = _part(store, names, journal, old, edit, asker)
            old = get(store, fact_id, asker)
    with journal.changing(fact_id):
        if edit.statement.content != old.content:
            ingest.replace(store, names, fact_id, edit.statement)
        elif edit.statement.entities is not None or edit.statement.roles is not None:
            ingest.relink(store, names, fact_id, edit.statement.entities, edit.statement.roles)
        if edit.category is not None or edit.tags is not None:
            store.set_labels(fact_id, category=edit.category, tags=edit.tags)
        if edit.trust_delta:
            store.change_trust(fact_id, edit.trust_delta)
        if (edit.source, edit.metadata, edit.expires_at) != (None, None, None):
            extras = store.records.extras([fact_id]).get(fact_id, PLAIN)
            if edit.source is not None:
                extras = extras._replace(source=edit.source or None)
            if edit.metadata is not None:
                extras = extras._replace(metadata=edit.metadata or None)
            if edit.expires_at is not None:
                extras = extras._replace(expires_at=edit.expires_at or None)
            store.records.set_extras(fact_id, extras)
            if (edit.source, edit.metadata) != (None, None):  # a longer life alone makes no newer fact
                store.set_record(fact_id, updated_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"))
    return fact_id


def remove(store: Store, fact_id: int, asker: Scope | None, *, action: str = "remove") -> None:
    """Remove a fact for the asker, and altogether when nobody else holds it. Raises FactNotFound."""
    get(store, fact_id, asker)
    _let_go(store, Journal(store, action), fact_id, asker)


def feedback(store: Store, fact_id: int, asker: Scope | None, delta: float, *, helpful: bool) -> None:
    """Change the trust of a fact. Raises FactNotFound."""
    get(store, fact_id, asker)
    with Journal(store, "feedback").changing(fact_id):
        store.change_trust(fact_id, delta, helpful=helpful)


def purge(store: Store, asker: Scope | None) -> int:
    """Remove the facts whose time is over, and return how many there were."""
    over = [i for i in store.records.expired(datetime.now(UTC)) if scoping.sees(asker, _scopes(store, i))]
    for fact_id in over:
        remove(store, fact_id, asker, action="purge")
    return len(over)


def entities(store: Store, asker: Scope | None) -> list[Entity]:
    """The entities of the facts that the asker sees, with the number of these facts; most facts first."""
    every = store.links.entities()
    if asker is None:
        return every
    seen = set(store.ids(Filter(scope=asker)))
    facts: dict[int, int] = {}
    for fact_id, entity_id in store.links.pairs():
        if fact_id in seen:
            facts[entity_id] = facts.get(entity_id, 0) + 1
    held = [replace(entity, facts=facts[entity.entity_id]) for entity in every if entity.entity_id in facts]
    return sorted(held, key=lambda entity: (-entity.facts, entity.entity_id))


def _state_again(store: Store, journal: Journal, fact_id: int, new: ingest.Statement) -> None:
    """Somebody states what a fact says already: let it belong to them too, and count again if it was over."""
    scopes = _scopes(store, fact_id)
    extras = store.records.extras([fact_id]).get(fact_id, PLAIN)
    over = extras.superseded_by is not None or (extras.expires_at or "9") <= stored_moment(datetime.now(UTC))
    joins = bool(scopes) and new.scope not in scopes
    if not over and not joins:
        return
    with journal.changing(fact_id):
        if scopes and new.scope is None:
            store.records.set_scopes(fact_id, ())
        elif joins and new.scope is not None:
            store.records.set_scopes(fact_id, [new.scope] if over else [*scopes, new.scope])
        if over:
            given = new.extras
            kept = Extras(given.source or extras.source, given.metadata or extras.metadata, given.expires_at)
            store.records.set_extras(fact_id, kept)


def _supersede(store: Store, journal: Journal, old: int, new: int, asker: Scope | None) -> None:
    if old == new:
        raise ValueError(f"supersedes is {old}, which is the fact itself; a fact cannot replace itself")
    get(store, old, asker)
    if _others(store, old, asker):
        _let_go(store, journal, old, asker)  # for them it still holds
        return
    with journal.changing(old):
        extras = store.records.extras([old]).get(old, PLAIN)
        store.records.set_extras(old, extras._replace(superseded_by=new))


def _part(store: Store, names: Names, journal: Journal, old: Fact, edit: Edit, asker: Scope | None) -> int:
    """Let the asker hold a fact of the new content in place of one that others hold too; the id of that fact."""
    roles = old.roles if edit.statement.roles is None else edit.statement.roles
    statement = replace(edit.statement, category=old.category, tags=old.tags, trust_score=old.trust_score, roles=roles)
    extras = store.records.extras([old.fact_id]).get(old.fact_id, PLAIN)
    _let_go(store, journal, old.fact_id, asker)
    fact_id, fresh = ingest.insert(store, names, statement)
    held = old.scopes or (() if asker is None else (asker,))
    if fresh:
        store.records.set_extras(fact_id, extras)
        store.records.set_scopes(fact_id, held)
        journal.made(fact_id, statement.content, held)
    else:
        with journal.changing(fact_id):
            store.records.set_scopes(fact_id, [*_scopes(store, fact_id), *held])
    return fact_id


def _let_go(store: Store, journal: Journal, fact_id: int, asker: Scope | None) -> None:
    others = _others(store, fact_id, asker)
    with journal.changing(fact_id):
        if others:
            store.records.set_scopes(fact_id, others)
        else:
            store.remove(fact_id)


def _others(store: Store, fact_id: int, asker: Scope | None) -> list[Scope]:
    """The scopes of a fact that the asker does not see."""
    return [scope for scope in _scopes(store, fact_id) if not scoping.sees(asker, [scope])]


def _scopes(store: Store, fact_id: int) -> tuple[Scope, ...]:
    return store.records.scopes([fact_id]).get(fact_id, ())
