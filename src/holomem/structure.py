"""What the algebra answers: probe, related, reason.

    strength of X in a fact = similarity(fact, bind(X, ENTITY))      significant above z(N) noise deviations
    presence                = strength / what one of the fact's n parts can give

Links and algebra together: a link gives membership, which is exact, and the algebra its strength. A fact that has links
has all of them, so only those without any (a program that knows no links wrote them, or lost them) are searched by the
algebra alone: one stranger in 100 questions would pass otherwise. A fact with more than `hrr.CAPACITY` parts can hold a
name that sinks in the noise; there presence is its expected value, 1. Ranking is by presence x trust x decay among the
members, so a trusted stranger never passes a member.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holomem import fusion, hrr
from holomem.index import Index, Names
from holomem.mentions import Asked, Texts, parse
from holomem.store import Store
from holomem.types import Filter, StructuralHit
from holomem.vectors import Keys

__all__ = ["Held", "gain", "held", "keys", "probe", "reason", "related", "threshold", "too_full"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

COMPANIONS: Final = 20  # the second hop of `related` follows the strongest ones
COMPANION_NOISE: Final = 4.5  # deviations that a fact must share with the companions (measured)


def probe(
    entity: str, index: Index, names: Names, store: Store, chosen: Filter, *, limit: int, half_life_days: float
) -> list[StructuralHit]:
    """The facts bound to an entity, strongest first; empty when it is nowhere."""
    return reason([entity], index, names, store, chosen, limit=limit, half_life_days=half_life_days)


def reason(
    entities: Sequence[str],
    index: Index,
    names: Names,
    store: Store,
    chosen: Filter,
    *,
    limit: int,
    half_life_days: float,
) -> list[StructuralHit]:
    """The facts bound to all of the entities, a join: similarity and presence are the minimum over the entities."""
    allowed = index.allowed(chosen)
    asked = parse(entities, names, index)
    links = [_linked(each.entity_ids, index, store) for each in asked]
    texts = Texts(asked, index, names, store, allowed)
    parts = [keys(_spellings(each, names), hrr.ENTITY, index) for each in asked]
    found = held(parts, links, allowed, _unlinked(index), index, texts)
    return _hits(found, index, store, limit, half_life_days)


class Held(NamedTuple):
    """Facts that hold every part that was asked for: their rows (m,), and the smallest of each over the parts."""

    rows: Rows
    presence: Floats
    similarity: Floats
    linked: NDArray[np.bool_]


def held(
    parts: Sequence[Keys],
    links: Sequence[Rows],
    allowed: NDArray[np.bool_],
    unlinked: NDArray[np.bool_],
    index: Index,
    texts: Texts | None = None,
) -> Held:
    """The allowed rows that hold all of the parts.

    By links (a part's rows, in any order), where `unlinked` by the algebra, or by what their texts say.

    Of the spellings of a part the nearest counts; the first alone finds what no link says.
    """
    rows = np.flatnonzero(allowed & unlinked)
    bar = threshold(len(rows), index)
    found = index.phases.above([part.first() for part in parts], rows, index.ids.array[rows], bar)
    near = np.concatenate([found, *links, *(texts.candidates if texts is not None else ())])
    near = np.unique(near[allowed[near]])
    told = np.stack([np.isin(near, linked) for linked in links])  # (p, m)
    strength = np.stack([_strength(part, near, index) for part in parts])
    significant = strength > bar
    settled = told | (significant & unlinked[near])
    said = np.zeros(settled.shape) if texts is None else texts.strength(near, settled)
    member = (settled | (said > 0)).all(axis=0)
    # A part that is linked but sinks in the noise, because the bundle is too full or there is no vector.
    sunk = told & ~significant & (too_full(near, index) | np.isnan(strength))
    strength = np.nan_to_num(strength)
    presence = np.clip(np.where(sunk, 1.0, strength / gain(near, index)), 0, 1)
    presence = np.where(settled, presence, said).min(axis=0)
    least, linked = strength.min(axis=0), np.asarray(told.all(axis=0))
    return Held(near[member], presence[member], least[member], linked[member])


def related(
    entity: str, index: Index, names: Names, store: Store, chosen: Filter, *, limit: int, half_life_days: float
) -> list[StructuralHit]:
    """Facts that stand beside an entity: not bound to it, but to its companions; strongest first.

    Two hops. The companions are the other entities of its facts, weighed by how often they stand there against how
    common they are; the sum of their keys is compared with every other fact. Its noise is that of a sum: the deviation
    for one key times the root of the summed squares.
    """
    allowed = index.allowed(chosen)
    asked = parse([entity], names, index)
    entity_keys = [keys(_spellings(each, names), hrr.ENTITY, index) for each in asked]
    links = [_linked(each.entity_ids, index, store) for each in asked]
    own = held(entity_keys, links, allowed, _unlinked(index), index, Texts(asked, index, names, store, allowed)).rows
    companions = _companions([i for each in asked for i in each.entity_ids], own, index, names, store)
    allowed[own] = False
    others = np.flatnonzero(allowed)
    if not companions or not len(others):
        return []
    width = index.phases.width
    strongest = sorted(companions.items(), key=lambda item: (-item[1], item[0]))[:COMPANIONS]
    total = sum((weight * hrr.key(name, hrr.ENTITY, width) for name, weight in strongest), np.zeros(2 * width))
    size = float(np.sqrt((total**2).sum() / width))  # root mean square of the sum's phasors
    key = index.phases.keys((total / size)[None].astype(np.float32))
    beside = index.phases.above([key], others, index.ids.array[others], COMPANION_NOISE * hrr.noise(width))
    similarity = _strength(key, beside, index)
    presence = np.clip(similarity / gain(beside, index), 0, 1)
    found = Held(beside, presence, similarity, np.zeros(len(beside), bool))
    return _hits(found, index, store, limit, half_life_days)


def _spellings(asked: Asked, names: Names) -> list[str]:
    """What the atoms of an entity are made of: the lower-case canonical names, or the name itself if it is unknown."""
    known = [name.lower() for name in map(names.name, asked.entity_ids) if name is not None]
    return list(dict.fromkeys(known)) or [asked.name.strip().lower()]


def _linked(entity_ids: Sequence[int], index: Index, store: Store) -> Rows:
    """The rows that the file links to an entity."""
    return index.rows(fact_id for fact_id, _ in store.linked_facts(entity_ids))


def _unlinked(index: Index) -> NDArray[np.bool_]:
    """Rows of which the file knows no entity: it has all links of the others."""
    return np.asarray(index.entities.array == 0)


def keys(spellings: Sequence[str], role: str, index: Index) -> Keys:
    """The keys of a name bound to a role's token, one for each spelling."""
    return index.phases.keys(np.stack([hrr.key(spelling, role, index.phases.width) for spelling in spellings]))


def _strength(part: Keys, rows: Rows, index: Index) -> Floats:
    """The similarity (r,) of each row with the nearest of the keys; NaN without a vector."""
    return np.asarray(index.phases.similarity(part, rows, index.ids.array[rows]).max(axis=0), np.float64)


def threshold(compared: int, index: Index) -> float:
    """What a similarity must exceed to be no accident among so many comparisons."""
    return hrr.significance(compared) * hrr.noise(index.phases.width)


def gain(rows: Rows, index: Index) -> Floats:
    """The similarity (r,) that each of a row's parts is expected to have."""
    return hrr.gain(index.parts(rows))


def too_full(rows: Rows, index: Index) -> NDArray[np.bool_]:
    """Which rows (r,) have more parts than the algebra can surely tell."""
    return np.asarray(index.parts(rows) > hrr.CAPACITY)


def _companions(own: Sequence[int], rows: Rows, index: Index, names: Names, store: Store) -> dict[str, float]:
    """The other entities (lower-case names) of these facts: how many of them hold it / log2(2 + all its facts)."""
    together = store.entities_of(index.ids.array[rows].tolist())
    everywhere = store.link_counts(list(together))
    return {
        name.lower(): count / np.log2(2 + everywhere[entity_id])
        for entity_id, count in together.items()
        if entity_id not in own and (name := names.name(entity_id)) is not None
    }


def _hits(found: Held, index: Index, store: Store, limit: int, half_life_days: float) -> list[StructuralHit]:
    decay = fusion.decay(index.age_days(found.rows), half_life_days)
    score = found.presence * index.trust.array[found.rows] * decay
    ids = index.ids.array[found.rows]
    best = np.lexsort((ids, -score))[:limit]
    facts = store.fetch(ids[best].tolist())
    factors = (score, found.presence, found.similarity, decay, found.linked)
    return [
        StructuralHit(facts[fact_id], *values)
        for fact_id, *values in zip(ids[best].tolist(), *(array[best].tolist() for array in factors), strict=True)
        if fact_id in facts
    ]
