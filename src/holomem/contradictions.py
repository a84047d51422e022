"""Pairs of facts that cannot both hold: which pairs are worth a look, and the surest of them.

    facts -> partners (shared entities, likest terms, nearest meanings) -> the likest few of each fact -> claims.judge

Every fact has its partners, a few each, so the cost grows with the facts and not with their square; only the search
for the nearest meanings is quadratic, a matrix product that takes a second at 10,000 facts, and is left out above
`MEANT` facts. Two facts are never reported for being about one thing alone: `claims` says what a conflict is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holomem import claims, text
from holomem.index import Index, Names
from holomem.store import Store
from holomem.types import Conflict, Contradiction, Filter

__all__ = ["MIN_SCORE", "Judged", "conflicts", "contradictions"]

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]

# Set by hand: of the 50 surest pairs in plain facts 36 were worth a look; in chat almost none pass it.
MIN_SCORE: Final = 0.7
HUB: Final = 24  # facts of an entity up to which all of their pairs are looked at
NEIGHBOURS: Final = 8  # of a fact by terms, and by meaning
PARTNERS: Final = 5  # of a fact that are judged
KEPT: Final = 5000  # pairs that stay in memory: half a megabyte
MEANT: Final = 30_000
NEAR: Final = 0.45  # calibrated cosine below which two statements are about different things
SAME: Final = 0.58  # and from which they may be about the same property, whatever their words
TEMPLATE: Final = 0.35  # share of terms, by weight, from which one may be the other with another value
TOUCHING: Final = 0.1  # the same with a model: two statements without a word in common cannot be compared
ALIKE: Final = 0.2  # share of terms, by weight, below which they are, without a model
SHARED: Final = 0.15  # what a shared entity adds to the likeness
TOGETHER: Final = 0.6  # what a conflict of two values counts that one fact has both of
_BLOCK: Final = 512
_CROWD: Final = 200  # facts near to one, on average, above which sorting them all costs too much
_COMMON: Final = 60  # facts that may hold a term for it to propose partners


class _Pair(NamedTuple):
    """A pair of facts, the one of the smaller id first, and how it was judged."""

    score: float
    first_id: int
    second_id: int
    reason: str


class Judged:
    """The pairs that were judged last. They hold until a fact or a link changes, or others are asked about."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._pairs: list[_Pair] = []

    def pairs(self, index: Index, store: Store, chosen: Filter, min_score: float) -> list[_Pair]:
        """The contradictions among the chosen facts, surest first; at most `KEPT`."""
        allowed = index.allowed(chosen)
        key = index.seen, index.meanings, np.packbits(allowed).tobytes(), min_score
        if key != self._key:
            self._pairs = _judge(index, store, np.flatnonzero(allowed), min_score)[:KEPT]
            self._key = key
        return self._pairs


def contradictions(
    judged: Judged, index: Index, names: Names, store: Store, chosen: Filter, *, limit: int, min_score: float
) -> list[Contradiction]:
    """The surest contradictions among the chosen facts, each pair once, with the reason.

    A pair that was said to be none (`Records.both_hold`) is left out. `judged` keeps what this finds.
    """
    settled = store.records.both_hold()
    pairs = [
        pair for pair in judged.pairs(index, store, chosen, min_score) if (pair.first_id, pair.second_id) not in settled
    ]
    pairs = pairs[:limit]
    facts = store.fetch(list({fact_id for pair in pairs for fact_id in (pair.first_id, pair.second_id)}))
    held = store.links.links_of(list(facts))
    return [
        Contradiction(
            facts[pair.first_id],
            facts[pair.second_id],
            pair.score,
            pair.reason,
            _shared(names, held.get(pair.first_id, set()) & held.get(pair.second_id, set())),
        )
        for pair in pairs
    ]


def _judge(index: Index, store: Store, rows: Rows, min_score: float) -> list[_Pair]:
    if len(rows) < 2:
        return []
    rows = rows[np.argsort(index.ids.array[rows])]
    ids = index.ids.array[rows].tolist()
    contents = dict(store.contents(ids))
    parsed = _Parsed([contents[fact_id] for fact_id in ids])
    links = store.links.links_of(ids)
    entities = [links.get(fact_id, set()) for fact_id in ids]
    found = []
    for a, b, near in _pairs(index, rows, entities, _units(index, rows), parsed):
        judged = claims.judge(parsed[a], parsed[b], None if np.isnan(near) else near, at_least=min_score)
        if judged.score >= min_score:
            score = judged.score * (TOGETHER if _said_together(index, rows, judged) else 1.0)
            if score >= min_score:
                found.append(_Pair(score, ids[a], ids[b], judged.reason))
    return sorted(found, key=lambda pair: (-pair.score, pair.first_id, pair.second_id))


def conflicts(
    index: Index,
    names: Names,
    store: Store,
    chosen: Filter,
    content: str,
    vector: Floats | None,
    *,
    limit: int,
    min_score: float,
) -> list[Conflict]:
    """The chosen facts that a statement contradicts, surest first.

    `vector` (dim,) is its embedding, None without a model; of a statement that is stored already, the stored one serves.
    """
    rows = np.flatnonzero(index.allowed(chosen))
    if not len(rows):
        return []
    mentioned = sorted({mention.entity_id for mention in names.gazetteer.find(content)})
    terms, weights = index.terms.query(text.analyze(content))
    shared = index.terms.shared(terms, weights, rows)
    likeness = 2 * shared / (weights.sum() + index.terms.mass(rows) + 1e-9)
    near = np.full(len(rows), np.nan, np.float32)
    unit = _unit(index, store, content, vector)
    if unit is not None and index.meanings is not None:
        near = index.meanings.cosines(unit, index.row_of)[rows]
        likeness = np.where(np.isnan(near), likeness, near)
    linked = index.rows(fact_id for fact_id, _ in store.links.linked_facts(mentioned)) if mentioned else rows[:0]
    likeness = likeness + SHARED * np.isin(rows, linked)
    best = np.argsort(-likeness, kind="stable")[: 4 * NEIGHBOURS]
    facts = store.fetch(index.ids.array[rows[best]].tolist())
    new, own = claims.parse(content), store.find(content)
    settled = set() if own is None else store.records.both_hold()
    found: list[Conflict] = []
    for place in best:
        fact = facts[int(index.ids.array[rows[place]])]
        judged = claims.judge(claims.parse(fact.content), new, None if np.isnan(near[place]) else float(near[place]))
        score = judged.score * (TOGETHER if judged.score >= min_score and _said_together(index, rows, judged) else 1.0)
        if score < min_score or fact.content == content:
            continue
        if own is None or (min(own, fact.fact_id), max(own, fact.fact_id)) not in settled:
            found.append(Conflict(fact, score, judged.reason))
    return sorted(found, key=lambda c: (-c.score, c.fact.fact_id))[:limit]


def _pairs(
    index: Index, rows: Rows, held: Sequence[Set[int]], units: Floats | None, parsed: _Parsed
) -> Iterator[tuple[int, int, float]]:
    """(smaller place in `rows`, larger, cosine or NaN) of the pairs worth a look, each once.

    Facts that deny something or hold a word that has an opposite may contradict with less; so that few facts are
    parsed, only those of pairs that this bar lets pass are asked for it.
    """
    count = len(rows)
    alike = _Alike(index, rows)
    keys = [alike.neighbours(np.arange(count))]
    by_entity: dict[int, list[int]] = {}
    for place, entities in enumerate(held):
        for entity in entities:
            by_entity.setdefault(entity, []).append(place)
    linked = []
    for places in by_entity.values():
        if 2 <= len(places) <= HUB:
            one, other = np.triu_indices(len(places), 1)
            members = np.array(places)
            linked.append(members[one] * count + members[other])
        elif len(places) > HUB:
            linked.append(alike.neighbours(np.array(places)))
    entity_keys = np.unique(np.concatenate(linked)) if linked else np.zeros(0, np.int64)
    if units is not None and count <= MEANT:
        keys.append(_nearest(units))
    keys.append(entity_keys)
    unique = np.unique(np.concatenate(keys))
    a, b = unique // count, unique % count
    likeness = alike.likeness(a, b)
    near = np.full(len(a), np.nan, np.float32) if units is None else _cosines(units, a, b)
    possible = np.where(np.isnan(near), likeness >= ALIKE, (likeness >= TOUCHING) & (near >= NEAR))
    polar = parsed.polar(np.unique(np.concatenate([a[possible], b[possible]])), count)
    unlike = polar[a] | polar[b]
    worth = possible & (unlike | (likeness >= TEMPLATE) | (near >= SAME))
    rank = np.where(np.isnan(near), likeness, near) + SHARED * np.isin(unique, entity_keys)
    kept = _likest(a, b, np.where(worth, rank, -1.0), PARTNERS)
    for i in np.flatnonzero(kept & worth):
        yield int(a[i]), int(b[i]), float(near[i])


def _likest(a: Rows, b: Rows, rank: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """Which pairs are among the `most` highest of either of their two facts."""
    pairs = np.tile(np.arange(len(a)), 2)
    ends = np.concatenate([a, b])
    order = np.argsort(ends - 0.25 * rank[pairs], kind="stable")  # by fact, then by rank, which lies within 2 of 0
    ends = ends[order]
    starts = np.flatnonzero(np.append(True, ends[1:] != ends[:-1]))
    within = np.arange(len(ends)) - np.repeat(starts, np.diff(np.append(starts, len(ends))))
    kept = np.zeros(len(a), bool)
    kept[pairs[order[within < most]]] = True
    return kept


class _Parsed:
    """The claims of some texts, each parsed when it is first asked for."""

    def __init__(self, contents: Sequence[str]) -> None:
        self._contents = contents
        self._claims: dict[int, tuple[claims.Claim, ...]] = {}

    def __getitem__(self, place: int) -> tuple[claims.Claim, ...]:
        if place not in self._claims:
            self._claims[place] = claims.parse(self._contents[place])
        return self._claims[place]

    def polar(self, places: Rows, count: int) -> NDArray[np.bool_]:
        """Which of `count` texts (count,) deny something or hold a word that has an opposite, as far as in `places`."""
        found = np.zeros(count, bool)
        for place in places.tolist():
            found[place] = any(claim.scope or claim.opposed for claim in self[place])
        return found


class _Alike:
    """The terms of some facts, to find those that share rare ones."""

    def __init__(self, index: Index, rows: Rows) -> None:
        terms = [index.terms.terms_of(int(row)) for row in rows]
        self._count = len(rows)
        self._sizes = np.array([len(t) for t in terms], np.int64)
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._sizes)])
        every = np.concatenate(terms) if terms else np.zeros(0, np.uint32)
        _, self._terms = np.unique(every, return_inverse=True)  # (terms of all facts,): their numbers, fact by fact
        frequency = np.bincount(self._terms)
        self._idf = np.log1p(self._count / (frequency + 0.5))
        places = np.repeat(np.arange(self._count), self._sizes)
        self._mass = np.bincount(places, weights=self._idf[self._terms], minlength=self._count)

    def neighbours(self, places: Rows) -> Rows:
        """Pairs (smaller x count + larger) of each of the places with the likest others of them."""
        if len(places) < 2:
            return np.zeros(0, np.int64)
        members = np.sort(places)
        terms, owners = self._of(members)
        order = np.argsort(terms, kind="stable")
        terms, owners = terms[order], owners[order]
        starts = np.flatnonzero(np.append(True, terms[1:] != terms[:-1]))
        sizes = np.diff(np.append(starts, len(terms)))
        # Of a term that many hold each fact meets those written just before it: no fact is without partners.
        reach = np.minimum(np.arange(len(terms)) - np.repeat(starts, sizes), _COMMON)
        rare = np.repeat(sizes, sizes) <= _COMMON
        reach = np.where(rare, reach, np.minimum(reach, NEIGHBOURS))
        weights = self._idf[terms]
        found = []
        for start in range(0, len(terms), 20_000):
            span = slice(start, start + 20_000)
            steps = reach[span]
            later = np.repeat(np.arange(len(terms))[span], steps)
            back = np.arange(int(steps.sum())) - np.repeat(np.cumsum(steps) - steps, steps) + 1
            pair = owners[later - back] * self._count + owners[later]
            unique, inverse = np.unique(pair, return_inverse=True)
            found.append((unique, np.bincount(inverse, weights=weights[later])))
        keys = np.concatenate([k for k, _ in found])
        shared = np.concatenate([s for _, s in found])
        unique, inverse = np.unique(keys, return_inverse=True)
        if not len(unique):
            return unique
        a, b = unique // self._count, unique % self._count
        likeness = 2 * np.bincount(inverse, weights=shared) / (self._mass[a] + self._mass[b])
        return unique[_likest(a, b, likeness, NEIGHBOURS)]

    def likeness(self, a: Rows, b: Rows) -> NDArray[np.float64]:
        """Twice the weight of the terms that both share by the weight of all terms of both, in [0, 1], for each pair."""
        order = np.argsort(self._terms + np.repeat(np.arange(self._count), self._sizes) * len(self._idf), kind="stable")
        keys = self._terms[order] + np.repeat(np.arange(self._count), self._sizes) * len(self._idf)
        sizes = self._sizes[a]
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        terms = self._terms[np.repeat(self._starts[a], sizes) + within]
        pairs = np.repeat(np.arange(len(a)), sizes)
        wanted = terms + np.repeat(b, sizes) * len(self._idf)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        there = keys[place] == wanted if len(keys) else np.zeros(0, bool)
        shared = np.bincount(pairs[there], weights=self._idf[terms[there]], minlength=len(a))
        return np.asarray(2 * shared / np.maximum(self._mass[a] + self._mass[b], 1e-9))

    def _of(self, members: Rows) -> tuple[Rows, Rows]:
        """(terms, the members that hold them), members ascending."""
        sizes = self._sizes[members]
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self._terms[np.repeat(self._starts[members], sizes) + within], np.repeat(members, sizes)


def _nearest(units: Floats) -> Rows:
    """Pairs (smaller x count + larger) of facts near in meaning; each fact has at least those nearest to it."""
    count = len(units)
    sound = np.where(np.isnan(units), 0, units)
    most = min(NEIGHBOURS, count - 1)
    found = []
    for start in range(0, count, _BLOCK):
        block = np.arange(start, min(count, start + _BLOCK))
        cosines = sound[block] @ sound.T
        cosines[np.arange(len(block)), block] = -2
        one, other = np.divmod(np.flatnonzero(cosines >= NEAR), count)
        if len(one) > _CROWD * len(block):
            other = np.argpartition(-cosines, most - 1, axis=1)[:, :most].ravel()
            one = np.repeat(np.arange(len(block)), most)
        near = cosines[one, other]
        keys = np.minimum(one + start, other) * count + np.maximum(one + start, other)
        order = np.argsort(one - 0.25 * near, kind="stable")
        starts = np.flatnonzero(np.append(True, one[1:] != one[:-1]))[: len(one)]
        within = np.arange(len(one)) - np.repeat(starts, np.diff(np.append(starts, len(one))))
        found.append(keys[order][(within < most) & (near[order] >= NEAR)])
    return np.unique(np.concatenate(found))


def _cosines(units: Floats, a: Rows, b: Rows) -> Floats:
    """The cosine of each pair, NaN where one of them has no vector."""
    parts = [
        np.einsum("ij,ij->i", units[a[start : start + 8192]], units[b[start : start + 8192]])
        for start in range(0, len(a), 8192)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def _units(index: Index, rows: Rows) -> Floats | None:
    """The calibrated vectors (r, dim) of the rows, NaN where there is none; None without a model."""
    return None if index.meanings is None else index.meanings.units(rows, index.ids.array[rows])


def _said_together(index: Index, rows: Rows, judged: claims.Judgement) -> bool:
    """Whether one of the facts at `rows` has both values: "born in Lyon, France" makes Lyon and France no conflict."""
    if judged.values is None:
        return False
    terms, _ = index.terms.query([term for value in judged.values for term in text.analyze(value)])
    return bool((index.terms.shared(terms, np.ones(len(terms), np.float32), rows) >= len(terms)).any())


def _unit(index: Index, store: Store, content: str, vector: Floats | None) -> Floats | None:
    """The calibrated vector (dim,) of a statement; None when there is none."""
    if index.meanings is None:
        return None
    if vector is not None:
        unit = index.meanings.calibration.passages(vector[None])[0]
    else:
        stored = store.find(content)
        row = index.rows([] if stored is None else [stored])
        if not len(row):
            return None
        unit = index.meanings.units(row, index.ids.array[row])[0]
    return None if np.isnan(unit).any() else unit


def _shared(names: Names, entity_ids: Set[int]) -> tuple[str, ...]:
    return tuple(name for name in (names.name(entity_id) for entity_id in sorted(entity_ids)) if name is not None)
