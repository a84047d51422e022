"""Mending what entities are called and which facts are theirs: rename, merge, split, aliases, links.

Each runs inside the caller's `database.write()` and has an opposite that restores names, aliases, links and phases.
The atom of an entity is made of its canonical name, so whatever changes that, or a link, encodes the facts again.

A name that was taken away from a fact is remembered by its key (`Links.unlinked`): otherwise the next extraction would
read it out of the text again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from holomem import entities, ingest, text
from holomem.errors import DuplicateEntity, EntityNotFound
from holomem.index import Names
from holomem.store import Store
from holomem.types import Entity, Filter

__all__ = ["add_alias", "batches", "find", "link", "merge", "remove_alias", "rename", "split", "unlink"]

_EXTRACTED: Final = 200  # facts in one transaction: others can write in between


def find(store: Store, names: Names, name: str) -> int:
    """The id of the entity of this name: the very name first, then the very alias, then whatever is spelled so.

    Raises EntityNotFound, ValueError for an empty name.
    """
    wanted = _checked(name, "entity")
    names.refresh()
    # A name without a key (punctuation that another program took for one) stands in the table, not in the gazetteer.
    ids = store.links.entities_by_key(entities.key(wanted) or wanted)
    ranked = sorted((wanted != spelled, wanted not in aliases, i) for i, spelled, aliases in store.links.names(ids))
    if not ranked:
        raise EntityNotFound(wanted)
    return ranked[0][2]


def rename(store: Store, names: Names, entity: str, name: str, *, keep_alias: bool) -> Entity:
    """Give an entity another canonical name; one of its aliases changes places with the old name."""
    entity_id, name = find(store, names, entity), _new_name(name)
    _check_free(store, names, entity_id, name)
    ((_, old, aliases),) = store.links.names([entity_id])
    facts = _facts(store, entity_id)
    if name in aliases:
        aliases = tuple(old if alias == name else alias for alias in aliases)
    elif keep_alias and old != name:
        aliases = (*aliases, old)
    else:
        _forget(store, names, facts, old, keep=(name, *aliases))
    _spell(store, names, entity_id, name, aliases)
    _encode(store, names, facts)
    return store.links.entities(entity_id)[0]


def merge(store: Store, names: Names, into: str, others: Sequence[str]) -> Entity:
    """Make several entities one, that of `into`."""
    target = find(store, names, into)
    sources = list(dict.fromkeys(find(store, names, other) for other in others))
    if not sources:
        raise ValueError("nothing to merge; name at least one other entity")
    if target in sources:
        raise ValueError(f"{into!r} and one of the others are the same entity already")
    ((_, name, aliases),) = store.links.names([target])
    kinds = [store.links.entities(entity_id)[0].entity_type for entity_id in (target, *sources)]
    facts: list[int] = []
    for source in sources:
        ((_, other, further),) = store.links.names([source])
        aliases = (*aliases, other, *further)
        moved = _facts(store, source)
        store.links.move_links(source, target, moved)
        facts += moved
    aliases = tuple(dict.fromkeys(alias for alias in aliases if alias != name))
    kind = next((kind for kind in kinds if kind != "unknown"), "unknown")
    if kind != kinds[0]:
        store.links.set_entity_type(target, kind)
    names.refresh()
    _spell(store, names, target, name, aliases)
    _encode(store, names, facts)
    return store.links.entities(target)[0]


def split(
    store: Store, names: Names, entity: str, name: str, fact_ids: Sequence[int] | None, aliases: Sequence[str]
) -> Entity:
    """Make an alias, with some others, an entity of its own, and give it these facts of the old one."""
    entity_id = find(store, names, entity)
    ((_, canonical, known),) = store.links.names([entity_id])
    taken = [_own_alias(canonical, known, alias) for alias in dict.fromkeys((name, *aliases))]
    left = tuple(alias for alias in known if alias not in taken)
    own = _facts(store, entity_id)
    said = _named(store, names, own)
    new_keys, old_keys = _keys(taken), _keys((canonical, *left))
    if fact_ids is None:
        moved = [fact_id for fact_id in own if said[fact_id] & new_keys]
    else:
        moved = list(dict.fromkeys(fact_ids))
        for fact_id in moved:
            _check_linked(store, fact_id, entity_id, canonical)
    shared = [fact_id for fact_id in moved if said[fact_id] & new_keys and said[fact_id] & old_keys]
    if not moved:
        raise ValueError(f"no text says {taken[0]!r}; say which facts it is about")
    if len(moved) - len(shared) == len(own):
        raise ValueError(f"these are all the facts of {canonical!r}; rename it instead")
    new_id = store.links.add_entity(taken[0], store.links.entities(entity_id)[0].entity_type)
    _spell(store, names, entity_id, canonical, left)
    _spell(store, names, new_id, taken[0], taken[1:])
    store.links.move_links(entity_id, new_id, [fact_id for fact_id in moved if fact_id not in shared])
    for fact_id in shared:
        store.links.link(fact_id, [*store.links.linked_entities(fact_id), new_id])
    _encode(store, names, moved)
    return store.links.entities(new_id)[0]


def add_alias(store: Store, names: Names, entity: str, alias: str) -> Entity:
    """Let an entity be found by another name too."""
    entity_id, alias = find(store, names, entity), _new_name(alias)
    _check_free(store, names, entity_id, alias)
    ((_, name, aliases),) = store.links.names([entity_id])
    if alias not in (name, *aliases):
        _spell(store, names, entity_id, name, (*aliases, alias))
    return store.links.entities(entity_id)[0]


def remove_alias(store: Store, names: Names, entity: str, alias: str) -> Entity:
    """Take another name away from an entity; its facts stay its own."""
    entity_id = find(store, names, entity)
    ((_, name, aliases),) = store.links.names([entity_id])
    gone = _own_alias(name, aliases, _checked(alias, "alias"))
    left = tuple(other for other in aliases if other != gone)
    _forget(store, names, _facts(store, entity_id), gone, keep=(name, *left))
    _spell(store, names, entity_id, name, left)
    return store.links.entities(entity_id)[0]


def link(store: Store, names: Names, fact_id: int, entity: str) -> None:
    """Bind a fact to an entity, which is made when there is none of this name."""
    store.get(fact_id)
    try:
        entity_id = find(store, names, entity)
    except EntityNotFound:
        entity_id = ingest.resolve(store, names, _new_name(entity))
    ((_, name, aliases),) = store.links.names([entity_id])
    store.links.set_unlinked([fact_id], _keys((name, *aliases)), unlinked=False)
    store.links.link(fact_id, list(dict.fromkeys([*store.links.linked_entities(fact_id), entity_id])))
    _encode(store, names, [fact_id])


def unlink(store: Store, names: Names, fact_id: int, entity: str) -> None:
    """Take a fact away from an entity, and remember that its names mean something else in this text."""
    fact = store.get(fact_id)
    entity_id = find(store, names, entity)
    ((_, name, aliases),) = store.links.names([entity_id])
    _check_linked(store, fact_id, entity_id, name)
    role = next((role for role, filler in store.links.roles(fact_id).items() if filler == entity_id), None)
    if role is not None:
        raise ValueError(f"{name!r} is the {role!r} of fact {fact.fact_id}; give the fact other roles first")
    store.links.set_unlinked([fact_id], _keys((name, *aliases)), unlinked=True)
    store.links.link(fact_id, [other for other in store.links.linked_entities(fact_id) if other != entity_id])
    _encode(store, names, [fact_id])


def batches(store: Store, fact_ids: Sequence[int] | None) -> Iterator[Sequence[int]]:
    """These facts, or all, in portions for one transaction each. Raises FactNotFound before the first."""
    ids = sorted(store.ids(Filter())) if fact_ids is None else list(dict.fromkeys(fact_ids))
    for fact_id in ids if fact_ids is not None else ():
        store.get(fact_id)
    for start in range(0, len(ids), _EXTRACTED):
        yield ids[start : start + _EXTRACTED]


def _checked(name: str, what: str) -> str:
    name = text.check(name, what).strip()
    if not name:
        raise ValueError(f"{what} is empty; give a name")
    return name


def _new_name(name: str) -> str:
    """A name that something may be called. Raises ValueError or TypeError."""
    name = _checked(name, "name")
    if not entities.key(name):
        raise ValueError(f"{name!r} holds no letter, digit or character of a word; it cannot be a name")
    return name


def _check_free(store: Store, names: Names, entity_id: int, name: str) -> None:
    """Raises DuplicateEntity when another entity has this name or alias."""
    others = [other for other in names.gazetteer.ids(name) if other != entity_id]
    if others:
        raise DuplicateEntity(name, store.links.names(others)[0][1])


def _check_linked(store: Store, fact_id: int, entity_id: int, name: str) -> None:
    store.get(fact_id)
    if entity_id not in store.links.linked_entities(fact_id):
        raise ValueError(f"fact {fact_id} is not bound to {name!r}")


def _own_alias(name: str, aliases: Sequence[str], alias: str) -> str:
    """The alias as it is stored, by its spelling or its key. Raises ValueError."""
    if alias in aliases:
        return alias
    same = [own for own in aliases if entities.key(own) == entities.key(alias)]
    if not same:
        raise ValueError(f"{alias!r} is no alias of {name!r}; it has {', '.join(map(repr, aliases)) or 'none'}")
    return same[0]


def _facts(store: Store, entity_id: int) -> list[int]:
    return sorted(fact_id for fact_id, _ in store.links.linked_facts([entity_id]))


def _keys(names: Sequence[str]) -> set[str]:
    return set(map(entities.key, names))


def _named(store: Store, names: Names, fact_ids: Sequence[int]) -> dict[int, set[str]]:
    """The keys of the known names in the texts of these facts."""
    return {
        fact_id: {mention.name_key for mention in names.gazetteer.find(content)}
        for fact_id, content in store.contents(fact_ids)
    }


def _forget(store: Store, names: Names, fact_ids: Sequence[int], name: str, *, keep: Sequence[str]) -> None:
    """Let these facts, where their texts say a name that is taken away, not be linked to it again."""
    name_key = entities.key(name)
    if name_key not in _keys(keep):
        said = [fact_id for fact_id, keys in _named(store, names, fact_ids).items() if name_key in keys]
        store.links.set_unlinked(said, [name_key], unlinked=True)


def _spell(store: Store, names: Names, entity_id: int, name: str, aliases: Sequence[str]) -> None:
    """Give an entity its names; what its facts were said not to be about, it is called now."""
    store.links.set_unlinked(_facts(store, entity_id), _keys((name, *aliases)), unlinked=False)
    ingest.spell(store, names, entity_id, name, aliases)


def _encode(store: Store, names: Names, fact_ids: Sequence[int]) -> None:
    """Encode facts with the names and links as they are now; one that is not analysed yet is mended later."""
    for row in store.rows(fact_ids):
        if row.terms is not None:
            ingest.encode(store, names, row.fact_id, row.terms.split(), store.links.linked_entities(row.fact_id))
