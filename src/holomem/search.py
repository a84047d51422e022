"""From a question to a ranked list: parse, propose, score, fuse, take the top.

Every channel is a share in [0, 1], squared: a fact that covers a fifth of the question says almost nothing, one that
covers four fifths nearly everything (linear channels lose a point of MRR, measured). None depends on which other
candidates happen to be there, so scores of two questions can be compared. W is the idf mass of the question's terms;
terms that no fact holds count in it, or one shared word would look like a full match.

    fts       ((B + 0.3 B3) / (W + 0.3 W3))^2     B: BM25 without its factor k1 + 1; B3, W3: of character trigrams
    jaccard   (idf(q & f) / (W + idf(f) - idf(q & f)))^2
    hrr       (idf of the terms and names that the HRR vector holds / W)^2        see `_structure`
    semantic  `Calibration.score` of the calibrated cosine

A fact in another script than the question's cannot share its words, so its channels of words are worth a tenth of its
meaning at least: a weak match in the question's own script is no better answer for having them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from holomem import entities, fusion, hrr, kernels, selection, text, times
from holomem.index import Index, Names
from holomem.store import Store
from holomem.types import Filter, Hit, Scores
from holomem.vectors import Keys

__all__ = ["Query", "parse", "search"]

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
Candidates = Literal["union", "cascade"]

TRIGRAMS: Final = 0.3  # their weight beside the stems (measured: as a replacement they lose)
PRIOR: Final = 0.1  # of a term of the question, to be in a candidate; .05 and .2 are as good (measured)
FOREIGN: Final = 0.1  # of `semantic`: what the other channels are worth at least where the scripts differ (measured)
MARGIN: Final = 10  # more of the nearest meanings, for those that the rounded scan takes for nearer than they are
AS_MUCH: Final = 0.85  # the most would let a near duplicate hide an answer (measured: it costs a fifth of locomo's)
OTHERS: Final = 3  # facts with the same names that it takes to tell what the names are worth
PROPOSALS: Final = 50  # of each channel; 30 already lose nothing against scoring every fact (measured)


@dataclass(frozen=True, slots=True)
class Query:
    """A question as the channels see it. `vector` (dim,) is calibrated; None when meaning is off."""

    text: str
    terms: tuple[str, ...]
    entities: tuple[tuple[int, str, tuple[str, ...]], ...]  # (id, canonical name, the query's terms that it stands for)
    vector: Floats | None
    times: times.Named = times.NONE


def parse(question: str, names: Names, vector: Floats | None) -> Query:
    """The question's terms, and the known entities that it names."""
    terms = tuple(text.query_terms(question))
    named = {}
    for mention in names.gazetteer.find(question[: text.MAX_QUERY_CHARS]):
        held = set(text.analyze(question[mention.start : mention.end]))
        name = names.name(mention.entity_id)
        if name is not None:
            named[mention.entity_id] = (mention.entity_id, name, tuple(t for t in terms if t in held))
    said = times.named(question[: text.MAX_QUERY_CHARS], datetime.now(UTC).astimezone())
    return Query(question, terms, tuple(named.values()), vector, said)


def search(
    query: Query,
    index: Index,
    store: Store,
    chosen: Filter,
    *,
    limit: int,
    half_life_days: float = 0.0,
    candidates: Candidates = "union",
    min_score: float | None = 0.0,
    diversity: float = 0.0,
    max_chars: int | None = None,
) -> list[Hit]:
    """The best `limit` facts that pass the filter, best first; a fact without any evidence is no hit.

    When none is as relevant as `min_score`, there are only those that hold every term of the question or an identifier
    of it (`selection.answering`).
    `diversity` puts facts that say what a better one says behind others, and `max_chars` bounds all contents together.
    """
    allowed = index.allowed(chosen)
    if candidates == "union":
        rows = _propose(query, index, store, allowed, max(PROPOSALS, 5 * limit))
    else:
        rows = _propose_cascade(query, index, store, allowed, 3 * limit)
    channels, cosines = _score(query, index, rows)
    relevance = fusion.relevance(channels)
    decay = fusion.decay(index.age_days(rows), half_life_days)
    score = relevance * index.trust.array[rows] * decay
    timely = _timely(query, index, rows, score)
    score *= timely
    order = np.lexsort((index.ids.array[rows], -score))  # ties by the lower id, so that lists never shuffle
    meaning = query.vector is not None and index.meanings is not None
    certain, among = _certain(query, index, rows), int(allowed.sum())
    named = _uncounted(query, index, rows, channels, relevance)
    shown = selection.answering(relevance, certain, min_score, named=named, meaning=meaning, among=among)
    best = order[shown[order]]
    if diversity:
        best = best[: max(PROPOSALS, 3 * limit)]
        best = best[selection.diverse(score[best], _alike(index, rows[best]), diversity)]
    best = best[: limit if max_chars is None else max(PROPOSALS, 3 * limit)]
    ids = index.ids.array[rows[best]].tolist()
    facts = store.fetch(ids)
    best = best[[at for at, fact_id in enumerate(ids) if fact_id in facts]]
    contents = [facts[fact_id].content for fact_id in index.ids.array[rows[best]].tolist()]
    best = best[selection.fitting([len(content) for content in contents], limit, max_chars)]
    ids = index.ids.array[rows[best]].tolist()
    factors = np.column_stack([score, relevance, decay, timely])[best].tolist()
    names = {name for _, name, _ in query.entities}
    channels = channels[best]
    weights = np.where(np.isnan(channels), np.nan, fusion.weights(channels)).tolist()
    return [
        Hit(
            facts[fact_id],
            score,
            relevance,
            decay,
            _scores(shares),
            _scores(weighed),
            timely,
            None if math.isnan(cosine) else cosine,
            tuple(name for name in facts[fact_id].entities if name in names),
        )
        for fact_id, (score, relevance, decay, timely), shares, weighed, cosine in zip(
            ids, factors, channels.tolist(), weights, cosines[best].tolist(), strict=True
        )
    ]


def _propose(query: Query, index: Index, store: Store, allowed: NDArray[np.bool_], count: int) -> Rows:
    """Rows (m,) that any channel proposes: words by BM25, nearest meanings, facts of named entities.

    BM25 is computed for every fact: a pass over the terms in memory takes a tenth of what FTS5 needs to rank the
    matches of a common word, and leaves nothing out. FTS5 proposes for a word that no fact holds: as the beginning of
    a longer one.
    """
    proposed = [np.zeros(0, np.int64)]
    if query.terms:
        proposed.append(_top(index.terms.bm25(*index.terms.query(query.terms)), allowed, count, above=0.0))
        unknown = [t for t, df in zip(query.terms, index.terms.frequencies(query.terms), strict=True) if df == 0]
        proposed.append(_matching(text.match_any(unknown), index, store, allowed, count))
    proposed.append(_nearest(query, index, allowed, count))
    if query.entities:
        links = store.links.linked_facts([entity_id for entity_id, _, _ in query.entities])
        held: dict[int, int] = {}
        for fact_id, _ in links:
            held[fact_id] = held.get(fact_id, 0) + 1
        ranked = sorted(held, key=lambda fact_id: -held[fact_id])  # facts that hold most of the names first
        rows = index.rows(ranked)
        proposed.append(rows[allowed[rows]][:count])
    return np.unique(np.concatenate(proposed))


def _propose_cascade(query: Query, index: Index, store: Store, allowed: NDArray[np.bool_], count: int) -> Rows:
    """SPEC's reference: facts that hold all words by FTS5, and only where there are none the nearest meanings."""
    rows = _matching(text.match_all(query.terms), index, store, allowed, count)
    return np.unique(rows if len(rows) else _nearest(query, index, allowed, count))


def _matching(match: str, index: Index, store: Store, allowed: NDArray[np.bool_], count: int) -> Rows:
    if not match:
        return np.zeros(0, np.int64)
    rows = (index.row_of.get(fact_id) for fact_id in store.candidates(match))
    return np.array(list(islice((row for row in rows if row is not None and allowed[row]), count)), np.int64)


def _nearest(query: Query, index: Index, allowed: NDArray[np.bool_], count: int) -> Rows:
    """The allowed rows nearest in meaning; a few more than `count`, since the scan is rounded."""
    if query.vector is None or index.meanings is None:
        return np.zeros(0, np.int64)
    return _top(index.meanings.nearly(query.vector, index.row_of), allowed, count + MARGIN, above=-1.0)


def _top(scores: Floats, allowed: NDArray[np.bool_], count: int, *, above: float) -> Rows:
    """The allowed rows with the highest scores above a bound; a NaN is none."""
    scores = np.where(allowed & (scores > above), scores, np.float32(np.nan))
    top = kernels.top_k(scores, count)
    return top[~np.isnan(scores[top])]


def _score(query: Query, index: Index, rows: Rows) -> tuple[NDArray[np.float64], Floats]:
    """The four channels (m, 4) of each row, in the order of `fusion.CHANNELS`, and the cosine (m,); NaN where one is absent."""
    channels = np.zeros((len(rows), 4))
    channels[:, 3] = np.nan
    cosines = np.full(len(rows), np.nan, np.float32)
    if not len(rows):
        return channels, cosines
    if query.terms:
        hashes, weights = index.terms.query(query.terms)
        mass = float(weights.sum())
        parts, part_weights = index.trigrams.query(query.terms)
        covered = index.terms.bm25(hashes, weights, rows) + TRIGRAMS * index.trigrams.bm25(parts, part_weights, rows)
        channels[:, 0] = np.minimum(1, covered / (mass + TRIGRAMS * float(part_weights.sum()))) ** 2
        shared = index.terms.shared(hashes, weights, rows)
        channels[:, 1] = (shared / (mass + index.terms.mass(rows) - shared)) ** 2
    channels[:, 2] = _structure(query, index, rows)
    if query.vector is not None and index.meanings is not None:
        cosines = index.meanings.cosines(query.vector, index.row_of, rows)
        channels[:, 3] = index.meanings.calibration.score(cosines)
        foreign = index.script.array[rows] != index.script_code(query.text)
        least = FOREIGN * np.nan_to_num(channels[foreign, 3:])
        channels[foreign, :3] = np.maximum(channels[foreign, :3], least)  # maximum keeps the NaN of an absent one
    return channels, cosines


def _certain(query: Query, index: Index, rows: Rows) -> NDArray[np.bool_]:
    """Which rows (m,) no floor hides: those that hold every term of the question, or an identifier of it."""
    if not query.terms or not len(rows):
        return np.zeros(len(rows), bool)
    hashes, weights = index.terms.query(query.terms)
    certain = index.terms.shared(hashes, weights, rows) >= 0.9999 * float(weights.sum())
    identifiers = [term for term in query.terms if text.is_identifier(term)]
    if identifiers:
        certain |= index.terms.shared(*index.terms.query(identifiers), rows) > 0
    return np.asarray(certain)


def _timely(query: Query, index: Index, rows: Rows, score: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each score (m,) is multiplied with for the times that the question names; 1 where it names none."""
    timely = np.ones(len(rows))
    created = index.created.array[rows]
    if query.times.periods:
        timely = times.preference(created, query.times.periods)
    if query.times.present and index.meanings is not None and len(rows):
        best = np.argsort(-score, kind="stable")[: times.DEEP]
        units = index.meanings.units(rows[best], index.ids.array[rows[best]])
        timely[best] = times.newest(score[best], created[best], np.asarray(units @ units[0], np.float64))
    return timely


def _uncounted(
    query: Query, index: Index, rows: Rows, channels: NDArray[np.float64], relevance: NDArray[np.float64]
) -> float:
    """What of the highest relevance does not count before the floor.

    A question that is a name and nothing else is answered by its words: names are near to other names in meaning, so
    only half of what the words give counts; in another script, where they cannot agree, all does.
    """
    if not len(rows):
        return 0.0
    named = _named(query, index, rows, relevance)
    best = int(relevance.argmax())
    if query.vector is not None and _is_name(query) and index.script.array[rows[best]] == index.script_code(query.text):
        words = (fusion.weights(channels[best : best + 1]) * np.nan_to_num(channels[best : best + 1]))[0, :3].sum()
        named = max(named, float(relevance[best] - words / 2))
    return named


def _is_name(query: Query) -> bool:
    """Whether the question is a name of several words, known or not, and nothing else."""
    words = query.text.split()
    if len(query.terms) < 2 or len(words) > 6 or 2 * sum(word[0].islower() for word in words) > len(words):
        return False
    if any(text.is_identifier(term) for term in query.terms):
        return False  # exact already, or the beginning of one
    held = {term for name in entities.extract(query.text) for term in text.analyze(name)}
    return held.issuperset(query.terms)


def _named(query: Query, index: Index, rows: Rows, relevance: NDArray[np.float64]) -> float:
    """What of the highest relevance the names in the question explain by themselves.

    What do facts get for the names alone? What most of the others that hold as many of them as the best one get
    (`AS_MUCH` of them at most). Where the names are a share n of the question's idf, n^2 of it is what was asked for, as in the
    channels; the rest is no evidence that the best fact answers what is asked about them.
    """
    terms = {term for _, _, stands_for in query.entities for term in stands_for}
    if not terms:
        return 0.0
    entity_ids, places = index.linked(rows)
    held = np.zeros(len(rows), np.int64)
    for entity_id, _, _ in query.entities:
        held[places[entity_ids == entity_id]] += 1
    best = int(relevance.argmax())
    others = held >= held[best]
    others[best] = False
    if not held[best] or others.sum() < OTHERS:
        return 0.0
    idf = index.terms.idf_each(query.terms)
    share = float(idf[[term in terms for term in query.terms]].sum() / idf.sum())
    sizes = np.sort(relevance[others])  # np.quantile takes as long as all the rest
    low, between = divmod(AS_MUCH * (len(sizes) - 1), 1)
    much = sizes[int(low)] + between * (sizes[min(int(low) + 1, len(sizes) - 1)] - sizes[int(low)])
    return float(much) * (1 - share**2)


def _alike(index: Index, rows: Rows) -> NDArray[np.float64]:
    """How much each fact says what each other says (m, m): the larger of shared terms and meaning, in [0, 1]."""
    alike = np.stack([index.terms.jaccard(index.terms.terms_of(row), rows) for row in rows]).astype(np.float64)
    if index.meanings is not None:
        units = index.meanings.units(rows, index.ids.array[rows])
        meaning = index.meanings.calibration.score((units @ units.T).astype(np.float32))
        alike = np.fmax(alike, meaning)
    return alike


def _structure(query: Query, index: Index, rows: Rows) -> NDArray[np.float64]:
    """The HRR channel (m,): the share of W that the fact holds, squared; NaN for a fact without an HRR vector.

    Each term of the question counts with the probability that it is a part of the fact (`_held`), or with the presence
    of an entity that it names where that is more; a presence below three deviations of the noise is nothing.
    """
    ids, width = index.ids.array[rows], index.phases.width
    if not query.terms:
        return np.where(index.phases.unusable(rows, ids), np.nan, 0.0)
    gain = hrr.gain(index.parts(rows))
    terms = np.stack([hrr.key(term, hrr.CONTENT, width) for term in query.terms])
    names = [hrr.key(name.lower(), hrr.ENTITY, width)[None] for _, name, _ in query.entities]
    keys = index.phases.keys(np.concatenate([terms, *names]))
    similarities = index.phases.similarity(keys, rows, ids).astype(np.float64)
    held = _held(keys.first(len(terms)), similarities[: len(terms)], gain, index, rows)
    place = {term: at for at, term in enumerate(query.terms)}
    for (_, _, stands_for), similarity in zip(query.entities, similarities[len(terms) :], strict=True):
        presence = np.clip(similarity / gain, 0, 1)
        presence[similarity < 3 * hrr.noise(width)] = 0
        at = [place[term] for term in stands_for]
        held[at] = np.maximum(held[at], presence)
    idf = np.asarray(index.terms.idf_each(query.terms), np.float64)
    return np.asarray(np.minimum(idf @ held / idf.sum(), 1) ** 2)


def _held(
    keys: Keys, similarities: NDArray[np.float64], gain: NDArray[np.float64], index: Index, rows: Rows
) -> NDArray[np.float64]:
    """The probability (t, m) that each term is in each fact, from the similarities (t, m) of its key.

    A term of the fact has similarity s = gain of the text's terms x gain of the fact's parts, another one 0, both with
    the deviation of the noise; `PRIOR` of the terms of a question are in a candidate. What the fact's entities, which
    are known, have by chance in common with the term is subtracted, and their share of the noise with it: that makes
    as good a channel as the terms themselves, where without it a long fact's terms sink (measured).
    """
    entity_ids, places = index.linked(rows)
    known, which = np.unique(entity_ids, return_inverse=True)
    chance = index.entity_keys.similarity(keys.whole, index.entity_keys.rows(known.tolist()))  # (t, e)
    common = np.stack([np.bincount(places, each, len(rows)) for each in chance[:, which]])
    left = np.maximum(0.2, 1 - index.entities.array[rows] * gain**2)
    signal = hrr.gain(index.terms.distinct(rows)) * gain
    odds = signal * (similarities - gain * common - signal / 2) / (hrr.noise(index.phases.width) ** 2 * left)
    return np.asarray(1 / (1 + (1 - PRIOR) / PRIOR * np.exp(-np.clip(odds, -50, 50))))


def _scores(row: list[float]) -> Scores:
    return Scores(*(None if math.isnan(value) else value for value in row))
