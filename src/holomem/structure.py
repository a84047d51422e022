"""What the algebra answers: probe, related, reason.

    strength of X in a fact = similarity(fact, bind(X, ENTITY))      significant above z(N) noise deviations
    presence                = strength / what one of the fact's n parts can give

Links and algebra together: a link gives membership, which is exact; the algebra gives the strength, and finds what a
program without links wrote. A fact with more than `hrr.CAPACITY` parts can hold a name that sinks in the noise; there
the link decides and presence is its expected value, 1. Ranking is by presence x trust x decay among the members, so a
trusted stranger never passes a member.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holomem import fusion, hrr
from holomem.index import Index, Names
from holomem.store import Store
from holomem.types import Filter, StructuralHit

__all__ = ["Held", "gain", "held", "keys", "probe", "reason", "related", "threshold", "too_full"]

Floats = NDArray[np.float64]
Keys = NDArray[np.float32]
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
    rows = np.flatnonzero(index.allowed(chosen))
    entity_keys = [keys(_spellings(entity, names), hrr.ENTITY, index) for entity in entities]
    links = _links(entities, rows, index, names, store)  # (e, r)
    found = held(entity_keys, links, rows, index)
    linked = np.asarray(links.all(axis=0))
    return _hits(rows, found.member, found.presence, found.similarity, linked, index, store, limit, half_life_days)


class Held(NamedTuple):
    """For each row: whether it holds every part that was asked for, and the smallest presence and similarity."""

    member: NDArray[np.bool_]
    presence: Floats
    similarity: Floats


def held(parts: Sequence[Keys], links: NDArray[np.bool_], rows: Rows, index: Index) -> Held:
    """Which rows (r,) hold all of the parts (p), by links (p, r) or by the algebra.

    The keys (s, 2 width) of a part are those of its spellings: the nearest counts.
    """
    # Facts without a link to any part can only be members by every key: one pass, which keeps just the minimum.
    first = np.stack([part[0] for part in parts])
    similarity = np.nan_to_num(index.phases.least_similarity(first, rows, index.ids.array[rows]).astype(np.float64))
    member = similarity > threshold(len(rows), index)
    presence = np.clip(similarity / gain(rows, index), 0, 1)
    near = np.flatnonzero(links.any(axis=0))
    if len(near):
        strength = np.stack([_strength(part, rows[near], index) for part in parts])
        similarity[near] = np.nan_to_num(strength).min(axis=0)
        significant = strength > threshold(len(rows), index)
        member[near] = (links[:, near] | significant).all(axis=0)
        # A part that is linked but sinks in the noise, because the bundle is too full or there is no vector.
        sunk = links[:, near] & ~significant & (too_full(rows[near], index) | np.isnan(strength))
        present = np.where(sunk, 1.0, np.nan_to_num(strength) / gain(rows[near], index))
        presence[near] = np.clip(present, 0, 1).min(axis=0)
    return Held(member, presence, similarity)


def related(
    entity: str, index: Index, names: Names, store: Store, chosen: Filter, *, limit: int, half_life_days: float
) -> list[StructuralHit]:
    """Facts that stand beside an entity: not bound to it, but to its companions; strongest first.

    Two hops. The companions are the other entities of its facts, weighed by how often they stand there against how
    common they are; the sum of their keys is compared with every other fact. Its noise is that of a sum: the deviation
    for one key times the root of the summed squares.
    """
    rows = np.flatnonzero(index.allowed(chosen))
    own: NDArray[np.bool_] = _links([entity], rows, index, names, store)[0]
    own_keys = keys(_spellings(entity, names), hrr.ENTITY, index)
    own |= np.nan_to_num(_strength(own_keys, rows, index)) > threshold(len(rows), index)
    companions = _companions(entity, rows[own], index, names, store)
    if not companions or own.all():
        return []
    width = index.phases.width
    strongest = sorted(companions.items(), key=lambda item: (-item[1], item[0]))[:COMPANIONS]
    total = sum((weight * hrr.key(name, hrr.ENTITY, width) for name, weight in strongest), np.zeros(2 * width))
    size = float(np.sqrt((total**2).sum() / width))  # root mean square of the sum's phasors
    others = rows[~own]
    similarity = index.phases.similarity((total / size)[None].astype(np.float32), others, index.ids.array[others])[0]
    similarity = np.nan_to_num(similarity.astype(np.float64))
    member = similarity > COMPANION_NOISE * hrr.noise(width)
    presence = np.clip(similarity / gain(others, index), 0, 1)
    linked = np.zeros(len(others), bool)
    return _hits(others, member, presence, similarity, linked, index, store, limit, half_life_days)


def _spellings(entity: str, names: Names) -> list[str]:
    """What the atoms of an entity are made of: the lower-case canonical names, or the name itself if it is unknown."""
    known = [name.lower() for name in map(names.name, names.gazetteer.ids(entity)) if name is not None]
    return list(dict.fromkeys(known)) or [entity.strip().lower()]


def _links(entities: Sequence[str], rows: Rows, index: Index, names: Names, store: Store) -> NDArray[np.bool_]:
    """Which rows the file links to which entity: (e, r)."""
    ids = index.ids.array[rows]
    linked = [[fact_id for fact_id, _ in store.linked_facts(names.gazetteer.ids(entity))] for entity in entities]
    return np.stack([np.isin(ids, np.array(facts, np.int64)) for facts in linked])


def keys(spellings: Sequence[str], role: str, index: Index) -> Keys:
    """The keys (s, 2 width) of a name bound to a role's token, one for each spelling."""
    return np.stack([hrr.key(spelling, role, index.phases.width) for spelling in spellings])


def _strength(part: Keys, rows: Rows, index: Index) -> Floats:
    """The similarity (r,) of each row with the nearest of the keys; NaN without a vector."""
    return np.asarray(index.phases.similarity(part, rows, index.ids.array[rows]).max(axis=0), np.float64)


def threshold(compared: int, index: Index) -> float:
    """What a similarity must exceed to be no accident among so many comparisons."""
    return hrr.significance(compared) * hrr.noise(index.phases.width)


def gain(rows: Rows, index: Index) -> Floats:
    """The similarity (r,) that each of a row's parts is expected to have."""
    return hrr.gain(1 + index.bound.array[rows])


def too_full(rows: Rows, index: Index) -> NDArray[np.bool_]:
    """Which rows (r,) have more parts than the algebra can surely tell."""
    return np.asarray(1 + index.bound.array[rows] > hrr.CAPACITY)


def _companions(entity: str, rows: Rows, index: Index, names: Names, store: Store) -> dict[str, float]:
    """The other entities (lower-case names) of these facts: how many of them hold it / log2(2 + all its facts)."""
    own = set(names.gazetteer.ids(entity))
    together: dict[int, int] = {}
    for fact_id in index.ids.array[rows].tolist():
        for entity_id in store.linked_entities(fact_id):
            together[entity_id] = together.get(entity_id, 0) + 1
    everywhere: dict[int, int] = {}
    for _, entity_id in store.linked_facts(list(together)):
        everywhere[entity_id] = everywhere.get(entity_id, 0) + 1
    return {
        name.lower(): count / np.log2(2 + everywhere[entity_id])
        for entity_id, count in together.items()
        if entity_id not in own and (name := names.name(entity_id)) is not None
    }


def _hits(
    rows: Rows,
    member: NDArray[np.bool_],
    presence: Floats,
    similarity: Floats,
    linked: NDArray[np.bool_],
    index: Index,
    store: Store,
    limit: int,
    half_life_days: float,
) -> list[StructuralHit]:
    members = np.flatnonzero(member)
    decay = fusion.decay(index.age_days(rows[members]), half_life_days)
    score = presence[members] * index.trust.array[rows[members]] * decay
    ids = index.ids.array[rows[members]]
    order = np.lexsort((ids, -score))[:limit]
    best = members[order]
    facts = store.fetch(ids[order].tolist())
    factors = (score[order], presence[best], similarity[best], decay[order], linked[best])
    return [
        StructuralHit(facts[fact_id], *values)
        for fact_id, *values in zip(ids[order].tolist(), *(array.tolist() for array in factors), strict=True)
        if fact_id in facts
    ]
