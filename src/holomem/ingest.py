"""How a statement becomes a fact: checked, analysed, its entities resolved, encoded, stored.

    content -> text.analyze -> entities -> hrr.encode_fact -> store        (the embedder ran before, outside of it all)

The same steps mend what another program wrote into the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holomem import entities, fusion, hrr, roles, scoping, text
from holomem.index import Names
from holomem.records import PLAIN, Extras, stored_moment
from holomem.store import Store, split_list
from holomem.types import NewFact, Scope

__all__ = [
    "Statement",
    "describe",
    "encode",
    "insert",
    "mend",
    "metadata",
    "moment",
    "reextract",
    "relink",
    "replace",
    "resolve",
    "source",
    "spell",
    "statement",
    "tag_list",
    "vector_blobs",
]

_ANY = ("",)  # in `Links.unlinked`: a fact whose names were given is about no others
_SECONDS = len("2026-12-01 16:05:30")  # what the times of `facts` have of a moment
_MENDED = 200  # facts in one transaction: others can write in between


@dataclass(frozen=True, slots=True)
class Statement:
    """A new fact whose arguments are checked and whose content is analysed."""

    content: str
    category: str
    tags: str
    trust_score: float
    terms: tuple[str, ...]
    entities: tuple[str, ...] | None
    roles: dict[str, str] | None
    extras: Extras = PLAIN
    supersedes: int | None = None
    scope: Scope | None = None
    time: str = ""
    """when it was said, as it is stored; "" for now"""


def statement(new: NewFact) -> Statement:
    """The checked and analysed form of a new fact. Raises ValueError or TypeError that names the argument."""
    content = text.check(new.content, "content").strip()
    if not content:
        raise ValueError("content is empty; a fact needs at least one character that is not white space")
    category = text.check(new.category, "category").strip() or "general"
    if not isinstance(new.trust_score, int | float) or not fusion.MIN_TRUST <= new.trust_score <= 1:
        raise ValueError(f"trust_score is {new.trust_score!r}; a new fact starts between {fusion.MIN_TRUST} and 1")
    names = None
    if new.entities is not None:
        if isinstance(new.entities, str):
            raise TypeError(f"entities is the string {new.entities!r}; give a sequence of names")
        names = tuple(name.strip() for name in (text.check(n, "an entity") for n in new.entities) if entities.key(name))
    terms = tuple(text.analyze(content))
    fillers = None if new.roles is None else roles.checked(new.roles)
    extras = PLAIN
    if (new.source, new.metadata, new.expires_at) != (None, None, None):
        extras = Extras(source(new.source) or None, metadata(new.metadata) or None, moment(new.expires_at) or None)
    return Statement(
        content,
        category,
        tag_list(new.tags),
        float(new.trust_score),
        terms,
        names,
        fillers,
        extras,
        new.supersedes,
        scoping.check(new.scope),
        moment(new.time, "time")[:_SECONDS],
    )


def source(given: str | None) -> str:
    """Where a fact is from, as it is stored; "" when it is not known. Raises ValueError or TypeError."""
    return "" if given is None else text.check(given, "source").strip()


def metadata(given: Mapping[str, Any] | None) -> str:
    """The application's own data as JSON; "" for none. Raises TypeError or ValueError where JSON cannot hold it."""
    if not given:
        return ""
    if not isinstance(given, Mapping):
        raise TypeError(f"metadata is {given!r}; use a mapping")
    try:
        return text.check(json.dumps(dict(given), ensure_ascii=False, allow_nan=False), "metadata")
    except (TypeError, ValueError) as error:
        raise type(error)(f"metadata cannot be kept as JSON: {error}") from error


def moment(given: datetime | None, argument: str = "expires_at") -> str:
    """A time as it is stored; "" for none. Raises TypeError that names the argument."""
    if given is None:
        return ""
    if not isinstance(given, datetime):
        raise TypeError(f"{argument} is {given!r}; use a datetime, of UTC unless it has a zone")
    return stored_moment(given)


def tag_list(tags: str | Sequence[str]) -> str:
    """Tags as they are stored: comma separated, no empty ones, each once."""
    items = [tags] if isinstance(tags, str) else list(tags)
    split = [tag for item in items for tag in split_list(text.check(item, "a tag"))]
    return ",".join(dict.fromkeys(split))


def insert(store: Store, names: Names, new: Statement, *, fact_id: int | None = None) -> tuple[int, bool]:
    """The id of the fact that says this, and whether it is a new one, of `fact_id` if that is given.

    Inside the caller's `database.write()`. Scope and supersession are not looked at.
    """
    known = store.find(new.content)
    if known is not None:
        return known, False
    linked = _entities(store, names, new.content, new.entities)
    fillers = _fillers(store, names, new.roles or {})
    linked = list(dict.fromkeys([*linked, *fillers.values()]))
    fact_id = store.insert(
        new.content,
        category=new.category,
        tags=new.tags,
        trust_score=new.trust_score,
        terms=" ".join(new.terms),
        hrr_vector=_encoded(store, names, new.terms, linked, fillers),
        fact_id=fact_id,
    )
    store.links.link(fact_id, linked)
    if new.entities is not None:
        store.links.set_unlinked([fact_id], _ANY, unlinked=True)
    if fillers:
        store.links.set_roles(fact_id, fillers)
    return fact_id, True


def replace(store: Store, names: Names, fact_id: int, new: Statement) -> None:
    """Let a fact say something else; its entities, terms and HRR vector follow, its roles stay unless others are given.

    Raises DuplicateFact.
    """
    store.set_content(fact_id, new.content, " ".join(new.terms))
    store.links.set_unlinked([fact_id], _ANY, unlinked=new.entities is not None)
    _relate(store, names, fact_id, new.content, new.terms, new.entities, roles=new.roles)


def relink(
    store: Store, names: Names, fact_id: int, given: Sequence[str] | None, roles: Mapping[str, str] | None = None
) -> None:
    """Give a fact other entities, other roles or both; None keeps what it has, and a filler stays an entity."""
    content = store.get(fact_id).content
    keep = store.links.linked_entities(fact_id) if given is None else ()
    if given is not None:
        store.links.set_unlinked([fact_id], _ANY, unlinked=True)
    _relate(store, names, fact_id, content, text.analyze(content), given or (), keep=keep, roles=roles)


def reextract(store: Store, names: Names, fact_ids: Sequence[int], *, replace: bool = False) -> int:
    """Link facts to the names in their texts, and return how many got other links; inside `database.write()`.

    The links that they have stay, unless `replace`. A name that was unlinked from a fact stays away.
    """
    changed = 0
    for fact_id, content in store.contents(fact_ids):
        before = store.links.linked_entities(fact_id)
        store.links.set_unlinked([fact_id], _ANY, unlinked=False)
        _relate(store, names, fact_id, content, text.analyze(text.clean(content)), None, keep=() if replace else before)
        changed += store.links.linked_entities(fact_id) != before
    return changed


def mend(store: Store, names: Names) -> int:
    """Analyse and encode what other programs wrote or edited, and return how many facts that were.

    Links that they made are kept, and those that our extraction finds are added.
    """
    if store.meta("analyzer") != text.ANALYZER:
        with store.database.write():
            if store.meta("analyzer") is not None:
                store.outdate_terms()
            store.set_meta("analyzer", text.ANALYZER)
    mended = 0
    while store.unanalysed(1) or store.links.without_keys():
        with store.database.write():
            names.refresh()
            for entity_id, name, aliases in store.links.without_keys():
                store.links.set_keys(entity_id, _keys(name, aliases))
            batch = store.unanalysed(_MENDED)
            for fact_id, content in batch:
                terms = text.analyze(text.clean(content))
                store.set_terms(fact_id, " ".join(terms))
                given = () if "" in store.links.unlinked(fact_id) else None
                _relate(store, names, fact_id, content, terms, given, keep=store.links.linked_entities(fact_id))
            mended += len(batch)
    return mended


def _relate(
    store: Store,
    names: Names,
    fact_id: int,
    content: str,
    terms: Sequence[str],
    given: Sequence[str] | None,
    *,
    keep: Sequence[int] = (),
    roles: Mapping[str, str] | None = None,
) -> None:
    """Link a stored fact to its entities, those to `keep` first, and store the HRR vector that holds them.

    `roles` replace those of the fact; None keeps them.
    """
    linked = [*keep, *_entities(store, names, content, given, store.links.unlinked(fact_id))]
    fillers = store.links.roles(fact_id) if roles is None else _fillers(store, names, roles)
    linked = list(dict.fromkeys([*linked, *fillers.values()]))
    store.links.link(fact_id, linked)
    if roles is not None:
        store.links.set_roles(fact_id, fillers)
    encode(store, names, fact_id, terms, linked)


def _entities(
    store: Store, names: Names, content: str, given: Sequence[str] | None, unlinked: Set[str] = frozenset()
) -> list[int]:
    """Ids of the entities of a content: those given, or the known and new names in it; new ones are made.

    `unlinked` holds the keys of names that the text is not about, though it says them.
    """
    names.refresh()
    if given is not None:
        ids = list(dict.fromkeys(resolve(store, names, name) for name in given))
        _hear_aliases(store, names, content, set(ids))
        return ids
    mentions = [
        mention
        for mention in names.gazetteer.find(content)
        if mention.name_key not in unlinked and not _is_plain(names, mention, content)
    ]
    linked = [mention.entity_id for mention in mentions]
    spoken = [(names.name(mention.entity_id) or "", mention.start, mention.end) for mention in mentions]
    found = entities.extract(content, names.is_common)
    linked += [resolve(store, names, name) for name in found if entities.key(name) not in unlinked]
    for name, alias in entities.aliases(content, spoken):
        if not {entities.key(name), entities.key(alias)} & unlinked:
            linked.append(_alias(store, names, resolve(store, names, name), alias))
    return list(dict.fromkeys(linked))


def _hear_aliases(store: Store, names: Names, content: str, entity_ids: Set[int]) -> None:
    """Learn by what other names these entities go, where the content says so."""
    spoken = [mention for mention in names.gazetteer.find(content) if mention.entity_id in entity_ids]
    ids = {name: mention.entity_id for mention in spoken if (name := names.name(mention.entity_id)) is not None}
    known = [(names.name(mention.entity_id) or "", mention.start, mention.end) for mention in spoken]
    for name, alias in entities.aliases(content, known):
        if name in ids:
            _alias(store, names, ids[name], alias)


def _is_plain(names: Names, mention: entities.Mention, content: str) -> bool:
    """Whether a known name of one word with capitals is just a word here: Hope is somebody, "hope" and "Hope so" not.

    Where it is a name, `entities.extract` sees that by itself. What is always written in lower case (nginx) is a name.
    """
    name, said = names.name(mention.entity_id) or "", content[mention.start : mention.end]
    if not name.isalpha() or not (name.istitle() or (said.islower() and not name.islower())):
        return False
    return names.is_common(said.lower())


def _fillers(store: Store, names: Names, given: Mapping[str, str]) -> dict[str, int]:
    """Role -> id of its filler; new entities are made."""
    names.refresh()
    return {role: resolve(store, names, name) for role, name in given.items()}


def encode(store: Store, names: Names, fact_id: int, terms: Sequence[str], entity_ids: Sequence[int]) -> None:
    """Store the HRR vector of a fact with these terms, these entities and the roles that the file has for it."""
    store.set_phases(fact_id, _encoded(store, names, terms, entity_ids, store.links.roles(fact_id)))


def _encoded(
    store: Store, names: Names, terms: Sequence[str], entity_ids: Sequence[int], fillers: Mapping[str, int]
) -> bytes:
    bound = [name for name in map(names.name, entity_ids) if name is not None]
    filled = [(role, name) for role, i in sorted(fillers.items()) if (name := names.name(i)) is not None]
    return hrr.encode(hrr.encode_fact(terms, bound, store.width, roles=filled), compact=store.compact)


def resolve(store: Store, names: Names, name: str) -> int:
    """The id of the oldest entity of this name or alias, which is made when there is none."""
    known = names.gazetteer.ids(name)
    if known:
        return min(known)
    entity_id = store.links.add_entity(name)
    store.links.set_keys(entity_id, _keys(name, ()))
    names.learn(entity_id, name)
    return entity_id


def _alias(store: Store, names: Names, entity_id: int, alias: str) -> int:
    """Let an entity be known by another spelling too, unless that already names something; the entity's id."""
    if not names.gazetteer.ids(alias):
        ((_, name, aliases),) = store.links.names([entity_id])
        spell(store, names, entity_id, name, (*aliases, alias))
    return entity_id


def spell(store: Store, names: Names, entity_id: int, name: str, aliases: Sequence[str]) -> None:
    """Give an entity this name and these aliases; the facts that hold it are encoded apart."""
    store.links.set_name(entity_id, name)
    store.links.set_aliases(entity_id, aliases)
    store.links.set_keys(entity_id, _keys(name, aliases))
    names.learn(entity_id, name, aliases)


def _keys(name: str, aliases: Sequence[str]) -> set[str]:
    """The lookup keys; a name without a word (only punctuation) is its own key, so that it counts as seen."""
    return {entities.key(spelling) or spelling for spelling in (name, *aliases)}


def vector_blobs(vectors: NDArray[np.float32]) -> list[bytes]:
    """The BLOBs of semantic vectors (n, dim); a row that is not finite becomes zeros: no meaning, not a wrong one."""
    sound = np.isfinite(vectors).all(axis=1, keepdims=True)
    return [row.astype("<f4").tobytes() for row in np.where(sound, vectors, 0)]


def describe(store: Store, names: Names, name: str, kind: str, aliases: Sequence[str]) -> None:
    """Add what is known of an entity: its type and other spellings; one that is not there is passed over."""
    known = names.gazetteer.ids(name)
    if not known:
        return
    if kind != "unknown":
        store.links.set_entity_type(min(known), kind)
        store.links.set_keys(min(known), _keys(name, store.links.names([min(known)])[0][2]))
    for alias in aliases:
        _alias(store, names, min(known), alias)
