"""What is asked for: the names in a list, in a row or in a sentence, and the ways a text may write each of them.

parse(["What do we know about Oslo and bread?"])    Oslo, bread
parse(["Bob bacon sarnie / BLT"])                   Bob, if it is known, and a label with two forms
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from holomem import entities, text
from holomem._stopwords import STOPWORDS
from holomem.index import Index, Names

__all__ = ["Asked", "Wanted", "acronym", "parse"]

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
        whole = Asked(string, _ids(string, names), names, index)
        if whole.entity_ids or len(asked) > 1:
            found.append(whole)
            continue
        for name in _names_in(string, names):
            one = whole if name == string else Asked(name, _ids(name, names), names, index)
            parts = [] if one.entity_ids else _known_parts(one)
            found += [Asked(part, names.gazetteer.ids(part), names, index) for part in parts] or [one]
    return list({each.entity_ids or each.name: each for each in found}.values())


def _ids(name: str, names: Names) -> tuple[int, ...]:
    """The entities of this name, and those whose names sound so in another script: Ilya of Илья."""
    return tuple(dict.fromkeys((*names.gazetteer.ids(name), *names.gazetteer.alike(name))))


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
        acronym(name),
    )


def _is_carrier(token: str, opens: bool) -> bool:
    """Whether a word only wraps the names: lower-case function words and words of asking, capital ones at the start."""
    folded = text.normalise(token)
    return (folded in STOPWORDS or folded in _CARRIERS) and (token.islower() or opens)


def acronym(name: str) -> str:
    """The initials of two to five capitalised words of a name, as a key; "" when they are none."""
    tokens = [name[start:end] for _, start, end in entities.units(name)]
    capitals = [token for token in tokens if token[:1].isupper()]
    if not 2 <= len(capitals) <= 5 or len(capitals) < sum(len(token) > 3 for token in tokens):
        return ""
    return entities.key("".join(token[0] for token in capitals))


def _idf(token: str, index: Index) -> float:
    terms = text.query_terms(token)
    return float(index.terms.idf_each(terms).max()) if terms else 0.1
