"""Where the texts say a name that was asked for, also one that nobody extracted: "bread", "Žan Tabak", "Канада".

    Asked("What do we know about Oslo and bread?")     units, of which only Oslo and bread must be there
    strength in a text   the whole name stands there .9, inside a longer known name .75, in two to four pieces .8,
                         an acronym .7, most of its rare words, or words that begin alike, .5 x their share

A fact whose names were given is what was said of it and no more: its text is not read here. The constants rank a text
below a link, whose presence is about 1, and kinds of evidence among each other; they were set on four sets of sentences.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holomem import entities, kernels, text
from holomem._stopwords import STOPWORDS
from holomem.index import Index, Names
from holomem.lexicon import Lexicon
from holomem.store import Store

__all__ = ["Asked", "Texts", "parse"]

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

# Words in which somebody wraps the names that he asks about; they need not stand in a fact.
_CARRIERS: Final = frozenset(
    """know known tell show find list say says remember recall facts fact info information everything anything
    про знаем знаю знаешь известно расскажи расскажите скажи найди покажи вспомни информация факты всё все
    wissen weiß weißt erzähl zeig finde savons sais savez dis sabemos sabes dime sappiamo sai sabe""".split()
)
_ASKING: Final = re.compile(
    "关于|有关|我们|知道|什么|哪些|告诉|请问|吗|呢|和|与|跟|的|について|に関して|に関する|何を|何が|何|知っていますか|知って|いますか|ですか"
    "|教えて|ください|とは|と|は|の|を"
)
_SENTENCE: Final = re.compile("[?？。！!]\\s*$|关于|有关|知道|什么|について|に関")
_BRACKETS: Final = re.compile(r"\s*[(（][^()（）]*[)）]\s*")
_BRACKETED: Final = re.compile(r"[(（][^()（）]*[)）]|«[^«»]*»|“[^“”]*”|„[^„“”]*[“”]|\"[^\"]*\"")
_JOINT: Final = re.compile(r"\s*[,;]\s+|\s+(?:and|or|и|или|und|oder|et|ou|y|o|e)\s+", re.IGNORECASE)
_OPENING: Final = re.compile(r"[(\[\"'«“„]+$")
_CLOSING: Final = re.compile(r"[)\]\"'»”“]+")
_INITIALS: Final = re.compile(r"(?<=(?<!\w)[^\W\d_])\.\s?(?=[^\W\d_]\.)")
_QUOTE: Final = re.compile('["«“„]')


@dataclass(frozen=True, slots=True)
class Wanted:
    """The units of a name, and which of them must stand in a text; `known` are known names in it by first unit."""

    said: str  # the name without what need not stand in a text
    units: tuple[str, ...]
    forms: tuple[frozenset[str], ...]  # of each unit: other keys that say the same
    required: tuple[bool, ...]
    chars: tuple[bool, ...]  # units of a script without spaces
    breaks: frozenset[int]  # before which units a name may begin that is written without spaces
    known: dict[int, tuple[int, int]]  # first unit -> (unit behind the last, entity id)
    weights: tuple[float, ...]  # idf
    acronym: str  # its initials, "" for a name that has none


@dataclass(frozen=True)
class Asked:
    """One name that was asked for: the entities that have it, and the forms in which a text may write it."""

    name: str
    entity_ids: tuple[int, ...]
    names: Names = field(compare=False, repr=False)
    index: Index = field(compare=False, repr=False)

    @cached_property
    def forms(self) -> list[str]:
        """The ways a label may stand in a text: without what is in brackets, each side of a slash, J.R.R. as J. R. R."""
        sides = [self.name, *(self.name.split(" / ") if " / " in self.name else ())]
        forms = [form for side in sides for form in (side, _BRACKETS.sub(" ", side).strip())]
        forms += [
            _INITIALS.sub("." if " " in run[0] else ". ", form) for form in forms if (run := _INITIALS.search(form))
        ]
        return [form for form in dict.fromkeys(forms) if entities.key(form)] or [self.name]

    @cached_property
    def wanted(self) -> tuple[Wanted, ...]:
        """What each form wants of a text. Of a known name it is seldom asked: its links say the most."""
        found = (_wanted(form, self.names, self.index) for form in self.forms)
        return tuple(wanted for wanted in found if wanted.units)


def parse(asked: Sequence[str], names: Names, index: Index) -> list[Asked]:
    """What is asked for by each of the strings: a name each, or what a single one consists of.

    Of a list, each string is a name. A string by itself may be a question or a row of names.
    """
    found: list[Asked] = []
    for string in asked:
        whole = Asked(string, names.gazetteer.ids(string), names, index)
        if whole.entity_ids or len(asked) > 1:
            found.append(whole)
            continue
        for name in _names_in(string, names):
            one = whole if name == string else Asked(name, names.gazetteer.ids(name), names, index)
            parts = [] if one.entity_ids else _known_parts(one)
            found += [Asked(part, names.gazetteer.ids(part), names, index) for part in parts] or [one]
    return list({each.entity_ids or each.name: each for each in found}.values())


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
                found += self._acronyms(_acronym(_tokens(form)), open_rows)
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


def _names_in(string: str, names: Names) -> list[str]:
    """What a question asks about, without its frame: the pieces between its commas and conjunctions; else the string.

    Known names at both ends of a label with a slash ("Oslo spare ribs / ribs") are names of their own.
    """
    if not _SENTENCE.search(string):
        return _around_slash(string, names)
    units = entities.units(string)
    if any(entities.is_char(unit) for unit, _, _ in units):
        return [string]  # no words by which it could be cut
    needed = [
        (start, end) for at, (_, start, end) in enumerate(units) if not _is_carrier(string[start:end], opens=at == 0)
    ]
    if not needed:
        return [string]
    found = [(mention.start, mention.end) for mention in names.gazetteer.find(string)]
    kept = [*found, *(match.span() for match in _BRACKETED.finditer(string))]
    cuts = [
        match for match in _JOINT.finditer(string) if not any(a < match.end() and match.start() < b for a, b in kept)
    ]
    edges = [0, *(at for match in cuts for at in match.span()), len(string)]
    pieces = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        inside = [span for span in needed if start <= span[0] < end]
        if inside:
            closing = _CLOSING.match(string, inside[-1][1])
            opening = _OPENING.search(string[start : inside[0][0]])
            first = inside[0][0] - (len(opening[0]) if opening else 0)
            pieces.append(string[first : closing.end() if closing else inside[-1][1]])
    return [name for piece in pieces for name in _around_slash(piece, names)]


def _around_slash(string: str, names: Names) -> list[str]:
    """A label with a slash, and before it the known or unquoted names that a row has at its ends."""
    if " / " not in string:
        return [string]
    first, last = string.index(" / "), string.rindex(" / ") + 3
    start, end = 0, len(string)
    found = names.gazetteer.find(string)
    for mention in found:
        if mention.start <= start + 1 and mention.end + 1 < first:
            start = mention.end + 1
    quote = _QUOTE.search(string, start, first)
    if quote and string[start : quote.start()].strip():
        start = quote.start()
    for mention in reversed(found):
        if mention.end >= end - 1 and mention.start - 1 > last:
            end = mention.start - 1
    ends = (string[:start].strip(), string[end:].strip())
    return [*(name for name in ends if entities.key(name)), string[start:end]]


def _known_parts(asked: Asked) -> list[str]:
    """The known names that make up all that is required of a string; [] when something is left over."""
    string, wanted = asked.name, asked.wanted[0] if asked.wanted else None
    if wanted is None or " / " in string or (_BRACKETS.search(string) and not _SENTENCE.search(string)):
        return []  # "Perth (Australia)", "bacon sarnie / BLT": a label, not two names
    covered = {at for start, (end, _) in wanted.known.items() for at in range(start, end)}
    if not all(at in covered for at, required in enumerate(wanted.required) if required):
        return []
    found = (string[mention.start : mention.end] for mention in asked.names.gazetteer.find(string))
    return list(dict.fromkeys(found))


def _wanted(name: str, names: Names, index: Index) -> Wanted:
    units = entities.units(name)[: text.MAX_QUERY_CHARS]
    tokens = [name[start:end] for _, start, end in units]
    sentence = _SENTENCE.search(name) is not None
    asking = [match.span() for match in _ASKING.finditer(name)] if sentence else []
    optional = [
        any(a <= start and end <= b for a, b in asking) or _is_carrier(token, at == 0 and sentence)
        for at, (token, (_, start, end)) in enumerate(zip(tokens, units, strict=True))
    ]
    required = tuple(not each for each in optional) if not all(optional) else (True,) * len(units)
    known: dict[int, tuple[int, int]] = {}
    for mention in names.gazetteer.find(name):
        inside = [at for at, (_, start, end) in enumerate(units) if mention.start <= start and end <= mention.end]
        if inside and inside[0] not in known:
            known[inside[0]] = (inside[-1] + 1, mention.entity_id)
    chars = tuple(entities.is_char(unit) for unit, _, _ in units)
    breaks = {0, len(units), *known, *(end for end, _ in known.values())}
    breaks |= {at for at in range(1, len(units)) if units[at - 1][2] < units[at][1] or chars[at] != chars[at - 1]}
    breaks |= {at for at in range(1, len(units)) if required[at] != required[at - 1]}
    said = list(name)
    for (_, start, end), needed in zip(units, required, strict=True):
        if not needed:
            said[start:end] = " " * (end - start)
    return Wanted(
        "".join(said),
        tuple(unit for unit, _, _ in units),
        tuple(frozenset((unit, *entities.other_units(t))) for (unit, _, _), t in zip(units, tokens, strict=True)),
        required,
        chars,
        frozenset(breaks),
        known,
        tuple(_idf(token, index) for token in tokens),
        _acronym(tokens),
    )


def _is_carrier(token: str, opens: bool) -> bool:
    """Whether a word only wraps the names: lower-case function words and words of asking, capital ones at the start."""
    folded = text.normalise(token)
    return (folded in STOPWORDS or folded in _CARRIERS) and (token.islower() or opens)


def _tokens(name: str) -> list[str]:
    return [name[start:end] for _, start, end in entities.units(name)]


def _acronym(tokens: Sequence[str]) -> str:
    """The initials of two to five capitalised words, as a key; "" when they are none."""
    capitals = [token for token in tokens if token[:1].isupper()]
    if not 2 <= len(capitals) <= 5 or len(capitals) < sum(len(token) > 3 for token in tokens):
        return ""
    return entities.key("".join(token[0] for token in capitals))


def _idf(token: str, index: Index) -> float:
    terms = text.query_terms(token)
    return float(index.terms.idf_each(terms).max()) if terms else 0.1
