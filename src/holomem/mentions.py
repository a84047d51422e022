"""Where the texts say a name that was asked for, also one that nobody extracted: "bread", "Žan Tabak", "Канада".

    strength in a text   the whole name stands there .9, inside a longer known name .75, in two to four pieces .8,
                         an acronym .7, most of its rare words, or words that begin alike, .5 x their share

A fact whose names were given is what was said of it and no more: its text is not read here. The constants rank a text
below a link, whose presence is about 1, and kinds of evidence among each other; they were set on four sets of sentences.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holomem import entities, kernels, text
from holomem.asked import Asked, Wanted, acronym
from holomem.index import Index, Names
from holomem.lexicon import Lexicon
from holomem.store import Store

__all__ = ["Texts"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

WHOLE: Final = 0.9
PIECES: Final = 0.8
INSIDE: Final = 0.75  # "Connecticut" in "New Britain, Connecticut"
ACRONYM: Final = 0.7
WITHIN_WORD: Final = 0.55  # a katakana name in a longer katakana word
SOFT: Final = 0.5
MAX_PIECES: Final = 4
LENGTH: Final = 0.1  # what is taken off where the text has LONG units: it says other things too
LONG: Final = 100
ENOUGH: Final = 0.75  # of the idf of a name's words, for the soft match
ALIKE: Final = 0.8  # what a word counts that begins like the one asked for
ALIKE_CHARS: Final = 5
NEARLY: Final = 0.4  # of the idf of the asked terms: a fact that holds less is not read
ALL: Final = 0.9  # the same where the name is known, or in one word
READ: Final = 200  # facts read for one name at most
LIKE: Final = 60  # of those, facts that only have words like the asked ones


class Texts:
    """The texts of the facts as evidence for names: candidates first, then what each text says."""

    def __init__(
        self,
        asked: Sequence[Asked],
        links: Sequence[Rows],
        index: Index,
        names: Names,
        store: Store,
        allowed: NDArray[np.bool_],
    ) -> None:
        """`links` are the rows that the file links to each of the names."""
        self._asked = asked
        self._index = index
        self._names = names
        self._store = store
        open_rows = allowed & (index.given.array == 0)
        self.candidates: list[Rows] = []
        for each, linked in zip(asked, links, strict=True):
            found = self._candidates(each, open_rows)
            self.candidates.append(found)
            within = index.entities.array == 0  # the algebra may say the name there
            within[found] = within[linked] = True
            open_rows &= within  # what does not say one of the names need not be looked at for the next

    def strength(self, rows: Rows, settled: NDArray[np.bool_]) -> Floats:
        """How strongly each row's text says each name: (p, m), 0 where it does not or where that is `settled`."""
        strength = np.zeros(settled.shape)
        likely = np.stack([self._index.among(rows, candidates) for candidates in self.candidates])
        read = np.flatnonzero((settled | likely).all(axis=0) & ~settled.all(axis=0))
        if not len(read):
            return strength
        ids = self._index.ids.array[rows[read]].tolist()
        unlinked, linked, contents = (
            self._store.links.all_unlinked(ids), self._store.links.links_of(ids), dict(self._store.contents(ids))
        )  # fmt: skip
        for column, fact_id in zip(read.tolist(), ids, strict=True):
            said = _Said(contents[fact_id], linked.get(fact_id, set()), self._names)
            for part in np.flatnonzero(~settled[:, column]).tolist():
                asked = self._asked[part]
                if fact_id not in unlinked or entities.key(asked.name) not in unlinked[fact_id]:
                    strength[part, column] = said.strength(asked)
        return strength

    def _candidates(self, asked: Asked, open_rows: NDArray[np.bool_]) -> Rows:
        """The rows whose texts may say the name, by the terms in memory.

        Of a known name most are linked, so only texts that hold (nearly) all of its words are read.
        """
        found = [np.zeros(0, np.int64)]
        if not open_rows.any():
            return found[0]
        if asked.entity_ids:
            for form in asked.forms:
                terms = text.query_terms(form)
                found.append(_best(self._index.terms, terms, open_rows, ALL, READ))
                found += self._acronyms(acronym(form), open_rows)
            return np.unique(np.concatenate(found))
        for wanted in asked.wanted:
            terms = text.query_terms(wanted.said)
            if terms:
                found.append(_best(self._index.terms, terms, open_rows, NEARLY, READ))
                found.append(_best(self._index.trigrams, terms, open_rows, NEARLY, LIKE))
            found += self._acronyms(wanted.acronym, open_rows)
            if wanted.known:
                linked = self._store.links.linked_facts([entity_id for _, entity_id in wanted.known.values()])
                rows = self._index.rows(sorted({fact_id for fact_id, _ in linked}))
                found.append(rows[open_rows[rows]][:READ])
        return np.unique(np.concatenate(found))

    def _acronyms(self, acronym: str, open_rows: NDArray[np.bool_]) -> list[Rows]:
        """The rows that hold the acronym, with or without dots."""
        forms = [acronym, ".".join(acronym)] if acronym else []
        if not forms or not self._index.terms.frequencies(forms).any():
            return []
        return [_best(self._index.terms, [form], open_rows, ALL, READ) for form in forms]


class _Said:
    """What one text says."""

    def __init__(self, content: str, linked: set[int], names: Names) -> None:
        self.content = content
        self.linked = linked
        self._names = names
        self._units = entities.units(content)
        self._places: dict[str, list[int]] = {}
        for place, (unit, start, end) in enumerate(self._units):
            for form in (unit, *entities.other_units(content[start:end])):
                self._places.setdefault(form, []).append(place)
        self._inside: set[int] | None = None

    def strength(self, asked: Asked) -> float:
        """How strongly the text says the name, 0 when it does not."""
        best = max((self._strength(wanted) for wanted in asked.wanted), default=0.0)
        return best * (1 - LENGTH * min(1.0, len(self._units) / LONG))

    def _strength(self, wanted: Wanted) -> float:
        places = [sorted({p for form in forms for p in self._places.get(form, ())}) for forms in wanted.forms]
        runs = [self._runs(places, at) for at in range(len(places))]
        whole = self._whole(wanted, runs)
        if whole:
            return whole
        pieces = self._pieces(wanted, runs)
        if pieces:
            return PIECES if pieces > 1 else INSIDE
        if wanted.acronym and any(self._is_upper(place) for place in self._places.get(wanted.acronym, ())):
            return ACRONYM
        return self._soft(wanted, places)

    def _runs(self, places: list[list[int]], at: int) -> dict[int, int]:
        """Place in the text -> how many units of the name, from unit `at` on, stand there in a row."""
        runs = {}
        for start in places[at]:
            length = 1
            while at + length < len(places) and start + length in places[at + length]:
                length += 1
            runs[start] = length
        return runs

    def _whole(self, wanted: Wanted, runs: list[dict[int, int]]) -> float:
        """The strength of the whole name in one piece, less where a longer name or word holds it."""
        needed = [at for at, required in enumerate(wanted.required) if required]
        first, length = needed[0], needed[-1] + 1 - needed[0]
        found = [place for place, run in runs[first].items() if run >= length]
        if not found or (length == 1 and wanted.chars[first]):
            return 0.0
        best = 0.0
        for place in found:
            start, end = self._units[place][1], self._units[place + length - 1][2]
            if not entities.stands_alone(self.content, start, end):
                best = max(best, WITHIN_WORD)
            elif place in self._inner() and place + length - 1 in self._inner():
                best = max(best, INSIDE)
            else:
                return WHOLE
        return best

    def _inner(self) -> set[int]:
        """The units that belong to a longer known name, all but whole names: set once a whole name was found."""
        if self._inside is None:
            self._inside = set()
            for mention in self._names.gazetteer.find(self.content):
                inside = [i for i, (_, start, end) in enumerate(self._units) if mention.start <= start < mention.end]
                self._inside |= set(inside) if len(inside) > 1 else set()
        return self._inside

    def _pieces(self, wanted: Wanted, runs: list[dict[int, int]]) -> int:
        """In how few pieces the text, or its links, say all that is required; 0 when they do not."""
        count = len(wanted.units)
        fewest = [0] + [MAX_PIECES + 1] * count
        for at in range(count):
            if fewest[at] > MAX_PIECES:
                continue
            if not wanted.required[at]:
                fewest[at + 1] = min(fewest[at + 1], fewest[at])
            ends = {at + run for run in runs[at].values()}
            longest = max(ends, default=at)
            for end in range(at + 1, longest + 1):
                if self._is_piece(wanted, at, end):
                    fewest[end] = min(fewest[end], fewest[at] + 1)
            if at in wanted.known and wanted.known[at][1] in self.linked:
                end = wanted.known[at][0]
                fewest[end] = min(fewest[end], fewest[at] + 1)
        return fewest[count] if fewest[count] <= MAX_PIECES else 0

    def _is_piece(self, wanted: Wanted, at: int, end: int) -> bool:
        if not (wanted.chars[at] or wanted.chars[end - 1]):
            return any(wanted.required[at:end])
        return end - at > 1 and at in wanted.breaks and end in wanted.breaks

    def _soft(self, wanted: Wanted, places: list[list[int]]) -> float:
        """The share of the required words' idf that stands in the text somewhere, if it is enough in each part."""
        if any(wanted.chars):
            return 0.0
        edges = sorted({0, len(wanted.units), *wanted.known, *(end for end, _ in wanted.known.values())})
        least = 1.0
        for start, end in itertools.pairwise(edges):
            needed = [at for at in range(start, end) if wanted.required[at]]
            mass = sum(wanted.weights[at] for at in needed)
            held = sum(wanted.weights[at] * self._alike(wanted.units[at], places[at]) for at in needed)
            if needed and held <= ENOUGH * mass:
                return 0.0
            least = min(least, held / mass if needed else 1.0)
        return SOFT * least

    def _alike(self, unit: str, places: list[int]) -> float:
        if places:
            return 1.0
        if len(unit) < ALIKE_CHARS:
            return 0.0
        return ALIKE if any(form[:ALIKE_CHARS] == unit[:ALIKE_CHARS] for form in self._places) else 0.0

    def _is_upper(self, place: int) -> bool:
        _, start, end = self._units[place]
        return self.content[start:end].isupper()


def _best(lexicon: Lexicon, terms: Sequence[str], open_rows: NDArray[np.bool_], least: float, count: int) -> Rows:
    """The open rows with the largest shares of the terms, by idf, all at least `least`."""
    hashes, weights = lexicon.query(terms)
    total = float(weights.sum())
    rows = lexicon.holding(hashes, weights, least * total)
    rows = np.flatnonzero(open_rows) if rows is None else rows[open_rows[rows]]
    mass = lexicon.shared(hashes, weights, rows)
    enough = np.flatnonzero(mass >= least * total)
    if len(enough) > count:
        enough = enough[kernels.top_k(mass[enough], count)]
    return rows[enough]
