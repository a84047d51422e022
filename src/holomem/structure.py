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
from functools import reduce
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holomem import fusion, hrr, kernels
from holomem.asked import Asked, parse
from holomem.index import Index, Names
from holomem.mentions import Texts
from holomem.store import Store
from holomem.types import Companion, Filter, StructuralHit
from holomem.vectors import Keys

__all__ = ["Held", "companions", "gain", "held", "keys", "probe", "reason", "related", "threshold", "too_full"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

COMPANIONS: Final = 20  # the second hop of `related` follows the strongest ones
_CHUNK: Final = 512  # facts summed at a time: 4 MB
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
    texts = Texts(asked, links, index, names, store, allowed)
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
    found = (
        index.phases.above([part.first() for part in parts], rows, index.ids.array[rows], bar) if len(rows) else rows
    )
    # Without the texts, a fact that has links is in by all parts or out: no algebra over those that have some.
    linked_rows = [reduce(np.intersect1d, links)] if texts is None else [*links, *texts.candidates]
    near = np.concatenate([found, *linked_rows])
    near = np.unique(near[allowed[near]])
    told = np.stack([index.among(near, linked) for linked in links])  # (p, m)
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

    Two hops: what stands in the sum of the entity's facts, and the facts that hold most of that. The companions are
    weighed down by how common they are; the noise of a sum of keys is that of one key times its root mean square.
    """
    allowed = index.allowed(chosen)
    found = _beside(entity, allowed, index, names, store)
    allowed[found.own] = False
    others = np.flatnonzero(allowed)
    if not found.strength or not len(others):
        return []
    width = index.phases.width
    everywhere = store.links.link_counts(list(found.strength))
    weights = {i: strength / np.log2(2 + everywhere.get(i, 0)) for i, strength in found.strength.items()}
    strongest = sorted(weights, key=lambda i: (-weights[i], names.name(i)))[:COMPANIONS]
    total = sum((weights[i] * _entity_key(i, names, width) for i in strongest), np.zeros(2 * width))
    key = index.phases.keys((total / _size(total))[None].astype(np.float32))
    beside = index.phases.above([key], others, index.ids.array[others], COMPANION_NOISE * hrr.noise(width))
    similarity = _strength(key, beside, index)
    presence = np.clip(similarity / gain(beside, index), 0, 1)
    return _hits(Held(beside, presence, similarity, np.zeros(len(beside), bool)), index, store, limit, half_life_days)


def companions(
    entity: str, index: Index, names: Names, store: Store, chosen: Filter, *, limit: int, half_life_days: float
) -> list[Companion]:
    """The entities that stand in facts together with this one, strongest first, each with its other facts."""
    allowed = index.allowed(chosen)
    found = _beside(entity, allowed, index, names, store)
    allowed[found.own] = False
    result = []
    for entity_id in sorted(found.strength, key=lambda i: (-found.strength[i], names.name(i)))[:limit]:
        rows = _linked([entity_id], index, store)
        rows = rows[allowed[rows]]
        decay = fusion.decay(index.age_days(rows), half_life_days)
        order = np.lexsort((-rows, -(index.trust.array[rows] * decay)))[:limit]
        ids = index.ids.array[rows[order]].tolist()
        facts = store.fetch(ids)
        others = tuple(facts[i] for i in ids if i in facts)
        name = names.name(entity_id) or ""
        result.append(Companion(name, found.strength[entity_id], found.together.get(entity_id, 0), others))
    return result


class _Beside(NamedTuple):
    """The rows (m,) of an entity, and by id the entities in them: how strong, and in how many facts by their links."""

    own: Rows
    strength: dict[int, float]
    together: dict[int, int]


def _beside(entity: str, allowed: NDArray[np.bool_], index: Index, names: Names, store: Store) -> _Beside:
    """What stands in the facts of an entity beside it.

    C = sum of their phasors, each divided by what one of its parts can give; less the entity itself. The strength of a
    name is <C, its key>, about the number of facts that hold it. Links say which names; without any (a file of another
    program), all known ones are compared, and count above COMPANION_NOISE deviations of C's noise.
    """
    asked = parse([entity], names, index)
    own_keys = [keys(_spellings(each, names), hrr.ENTITY, index) for each in asked]
    links = [_linked(each.entity_ids, index, store) for each in asked]
    texts = Texts(asked, links, index, names, store, allowed)
    own = held(own_keys, links, allowed, _unlinked(index), index, texts).rows
    ids = index.ids.array[own].tolist()
    known = [i for each in asked for i in each.entity_ids]
    together = {
        i: count for i, count in store.links.entities_of(ids).items() if i not in known and names.name(i) is not None
    }
    width = index.phases.width
    total = np.zeros(2 * width)
    for start in range(0, len(own), _CHUNK):
        rows = own[start : start + _CHUNK]
        phasors = index.phases.unbound(_nothing(width), rows, index.ids.array[rows]) / gain(rows, index)[:, None]
        total += np.nan_to_num(phasors).sum(axis=0)
    for spelling in (spelling for each in asked for spelling in _spellings(each, names)):
        key = hrr.key(spelling, hrr.ENTITY, width)
        total -= float(total @ key) / width * key
    bar = COMPANION_NOISE * hrr.noise(width) * _size(total)
    compared = list(together) or [i for i in names.canonical() if i not in known]
    strength: dict[int, float] = {}
    if len(own) and compared:
        near = index.entity_keys.similarity(kernels.rounded(total[None]), index.entity_keys.rows(compared))[0]
        strength = dict(zip(compared, near.tolist(), strict=True))
    kept = {i: max(value, 0.0) for i, value in strength.items() if i in together or value > bar}
    return _Beside(own, kept, together)


def _entity_key(entity_id: int, names: Names, width: int) -> NDArray[np.float32]:
    return hrr.key((names.name(entity_id) or "").lower(), hrr.ENTITY, width)


def _nothing(width: int) -> NDArray[np.float32]:
    """The phasors of the angle 0: unbinding them changes nothing."""
    return np.concatenate([np.ones(width, np.float32), np.zeros(width, np.float32)])


def _size(total: Floats) -> float:
    """The root mean square of a sum's phasors (2 width,)."""
    return float(np.sqrt((total**2).sum() * 2 / len(total))) or 1.0


def _spellings(asked: Asked, names: Names) -> list[str]:
    """What the atoms of an entity are made of: the lower-case canonical names, or the name itself if it is unknown."""
    known = [name.lower() for name in map(names.name, asked.entity_ids) if name is not None]
    return list(dict.fromkeys(known)) or [asked.name.strip().lower()]


def _linked(entity_ids: Sequence[int], index: Index, store: Store) -> Rows:
    """The rows that the file links to an entity."""
    return index.rows(fact_id for fact_id, _ in store.links.linked_facts(entity_ids))


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
