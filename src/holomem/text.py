"""Text analysis: what the keyword channels call a word, and the MATCH strings made of such words.

    text -> NFKC, look-alike signs unified -> tokens (one regular expression) -> terms of each token (cached)

One analyzer serves full text, Jaccard and HRR, so that the channels speak of the same terms. A token is a word, an
identifier with its inner punctuation, a run of a script without spaces, or an emoji:

    servers               -> server                       Snowball stem by script
    pve-01                -> pve-01 pve 01                 an identifier whole, then its parts
    a@b.example/x-1       -> a@b.example/x-1 a b.example b example x-1 x 1
    MariaDB               -> mariadb maria db              split on the case as typed
    供应商账期 / 배포는    -> 供应 应商 商账 账期 / 배포 포는   character bigrams
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain, pairwise

import Stemmer

from holomem._stopwords import STOPWORDS

__all__ = [
    "ANALYZER",
    "analyze",
    "check",
    "is_identifier",
    "match_all",
    "match_any",
    "normalise",
    "query_terms",
    "script",
]

ANALYZER = 1
"""Version of the terms. A file remembers it; when it differs the terms of every fact are made again."""

MAX_QUERY_CHARS = 10_000  # a pasted log is no question: the first two pages are, and cost 5 ms
MAX_QUERY_TERMS = 256  # FTS5 takes 256 levels of a flat AND/OR without complaint and more than that tells nothing
MAX_TERM_CHARS = 128  # a SHA-512 in hex; longer words are cut, longer identifiers give their parts alone

# Combining marks and vowel signs that belong to a word but are not \w.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0816-\u082d"
    "\u0859-\u085b\u0898-\u0963\u0971-\u0df3\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f84\u0f86-\u0fbc"
    "\u135d-\u135f\u1712-\u1734\u180b-\u180d\u1a17-\u1a1b\u1ab0-\u1aff\u1b00-\u1b44\u1b6b-\u1b73\u1b80-\u1baf"
    "\u1be6-\u1bf3\u1c24-\u1c37\u1cd0-\u1cf9\u1dc0-\u1dff\u20d0-\u20f0\ua66f-\ua67d\ua6f0\ua6f1\ua802-\ua827"
    "\ua880-\ua8c5\ua8e0-\ua8f1\ua926-\ua92d\ua947-\ua953\ua980-\ua9c0\uaae0-\uaaf6\uabe3-\uabed\ufe20-\ufe2f"
)
# Scripts that write no spaces between words, and Hangul, whose particles are glued to the word. Marks included.
HAN = "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
THAI, LAO = "\u0e01-\u0e3a\u0e40-\u0e4e", "\u0e81-\u0ece"
KHMER, MYANMAR = "\u1780-\u17d3\u17d7\u17dc\u17dd", "\u1000-\u103f\u1050-\u109d\ua9e0-\ua9ef\uaa60-\uaa7f"
UNSPACED = HAN + KANA + HANGUL + THAI + LAO + KHMER + MYANMAR
WORD = rf"(?:[{_MARKS}]|(?![{UNSPACED}])\w)"
_EMOJI = "\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff"

_TOKEN = re.compile(
    rf"""
      (?P<url> \b [a-zA-Z][a-zA-Z0-9+.-]{{1,15}} :// [^\s<>"'`{UNSPACED}{_EMOJI}\u3000-\u303f«»“”]+ )
    | (?P<run> [{HAN}{KANA}]+ | [{HANGUL}]+ | [{THAI}]+ | [{LAO}]+ | [{KHMER}]+ | [{MYANMAR}]+ )
    | (?: (?<![^\s(\[{{"'`=,:«“„]) (?: --? | ~?/ | \.\.?/ | [.@\#$] ) (?={WORD}) )?   # --flag /path .net @name #tag
      {WORD}+
      (?: (?: :[:\\/]? | \+\+ | [-./\\@&+'\#] | (?<=\d),(?=\d) ) {WORD}+ )*
      (?: \+\+ | (?<=\b\w)\# )?                                                    # C++ C# F#
    | [{_EMOJI}]
    """,
    re.VERBOSE,
)
_PART = re.compile(rf"(?:(?!_){WORD})+(?:'(?:(?!_){WORD})+)*(?:\+\+)?")
_SEGMENT = re.compile(r"[^@/\\:?&=,;#]+")
_UNSPACED_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc"
    "\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u17dd\u3099\u309a"
)
_MARKED = re.compile(f"[{_UNSPACED_MARKS}]")
_UNIT = re.compile(f".[{_UNSPACED_MARKS}]*")
_IDENTIFIER = re.compile(r"""[0-9]|[!-&(-/:-@\[-`{-~]""")

_ELISIONS = frozenset("c d j l m n s t qu jusqu lorsqu puisqu all dall dell nell sull un".split())


def _folds() -> dict[int, str]:
    """Table that takes accents off composed Latin and Greek letters. Cyrillic has only yo -> ye: short i is a letter."""
    table = {ord("ё"): "е", **str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i"})}
    table |= str.maketrans({"æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
    for code in chain(range(0xC0, 0x250), range(0x370, 0x400), range(0x1E00, 0x2000)):
        base = unicodedata.normalize("NFD", chr(code))
        if len(base) > 1 and not 0x300 <= ord(base[0]) <= 0x36F:
            table[code] = "".join(char for char in base if not 0x300 <= ord(char) <= 0x36F)
    return table | dict.fromkeys(range(0x300, 0x370), "")


# Before NFKC, which would turn an acute accent used as an apostrophe into a space and a mark.
_UNIFY: dict[int, str] = {
    **str.maketrans(dict.fromkeys("‘’‛ʼʻʹ′´՚＇", "'")),
    **str.maketrans(dict.fromkeys("‐‑−﹣－", "-")),
    **dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " "),
    **dict.fromkeys([0xAD, 0x61C, 0x180E, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F)], ""),
    **dict.fromkeys(range(0xD800, 0xE000), ""),  # halves of characters; FTS5 and the stemmers take none
    **dict.fromkeys([*range(0x2060, 0x2070), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE01F0)], ""),
}
_FOLD = _folds()


def check(text: str, what: str) -> str:
    """`text` itself. TypeError if it is not a str, ValueError if it holds a lone surrogate (half of a character)."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, not {type(text).__name__}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} holds the lone surrogate {text[error.start]!a} at position {error.start}; it must be valid Unicode "
            "(decode bytes with errors='replace')"
        ) from None
    return text


def clean(text: str) -> str:
    """`text` in NFKC with one sort of apostrophe and hyphen, without control and zero-width characters
    and lone surrogates; case kept.
    """
    if text.isascii() and text.isprintable():
        return text
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text.translate(_UNIFY)).translate(_UNIFY))


def _casefold(text: str) -> str:
    """`clean` text case-folded, accents kept, yo as ye."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text.casefold()).replace("ё", "е")


def _unaccent(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_FOLD))


def normalise(text: str) -> str:
    """`text` for comparison: NFKC, case-folded, yo as ye, without Latin and Greek accents.

    Short i (й), dakuten and the vowel signs of Indic scripts and Thai stay: they make other letters.
    """
    return _unaccent(_casefold(clean(text)))


class _Stemmers(threading.local):
    """Snowball stemmers of this thread, by script; a Stemmer object must not be used by two threads at once."""

    def __init__(self) -> None:
        self.latin: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
        self.cyrillic: Callable[[str], str] = Stemmer.Stemmer("russian").stemWord
        self.greek: Callable[[str], str] = Stemmer.Stemmer("greek").stemWord
        self.arabic: Callable[[str], str] = Stemmer.Stemmer("arabic").stemWord


_stemmers = _Stemmers()


def stem(word: str) -> str:
    """Snowball stem of a normalised word, by the script of its last letter; the word itself in other scripts."""
    last = word[-1]
    if last < "\u0250":
        return _stemmers.latin(word)
    if "\u0400" <= last < "\u0530":
        return _stemmers.cyrillic(word)
    if "\u0370" <= last < "\u0400":
        return _stemmers.greek(word)
    if "\u0620" <= last < "\u0700":
        return _stemmers.arabic(word) or word
    return word


def _humps(word: str) -> list[str]:
    """The parts of camelCase and PascalCase; [] for other words."""
    if word[1:].islower() or word.isupper() or word.islower():
        return []
    parts, start = [], 0
    for i in range(1, len(word)):
        up = word[i].isupper()
        if up and (word[i - 1].islower() or (word[i - 1].isupper() and word[i + 1 : i + 2].islower())):
            parts.append(word[start:i])
            start = i
    parts.append(word[start:])
    return parts if len(parts) > 1 else []


@lru_cache(maxsize=65536)
def _word(word: str, *, humps: bool) -> list[tuple[str, bool]]:
    """(term, is a stop word) of one word without punctuation (an apostrophe aside), then of its camelCase parts."""
    if len(word) > 2 and word[-1] == "s" and word[:-1].isupper():
        word = word[:-1]  # VMs -> VM
    folded = _casefold(word)[:MAX_TERM_CHARS]
    if folded in STOPWORDS:
        return [(_unaccent(folded), not (len(word) > 1 and word.isupper()))]
    if "'" in folded:
        folded = folded.removesuffix("'s")
        head, apostrophe, tail = folded.partition("'")
        if apostrophe and head in _ELISIONS and len(tail) > 1:
            return _word(tail, humps=False)
    term = _unaccent(folded)
    if not term or term.isspace():
        return []
    if not any(char.isdigit() or char == "_" for char in term):
        term = stem(term)
    terms = [(term, False)]
    if humps:
        terms += [pair for part in _humps(word) if len(part) > 1 for pair in _word(part, humps=False)]
    return terms


def _identifier(token: str, *, humps: bool) -> list[tuple[str, bool]]:
    """The identifier whole, its segments (host, file name, ...), and their parts, each once."""
    found: dict[str, bool] = {}
    whole = _unaccent(_casefold(token))
    if len(whole) <= MAX_TERM_CHARS:
        found[whole] = False
    version = re.fullmatch(r"[vV](\d+(?:\.\d+)+)", token)
    if version:
        token = version[1]
        found[token] = False
    _, scheme, rest = token.partition("://")
    for segment in _SEGMENT.findall(rest if scheme else token):
        bare = segment.strip("-._+'$~")
        parts = _PART.findall(bare)
        if len(parts) > 1 and len(bare) <= MAX_TERM_CHARS:
            found.setdefault(_unaccent(_casefold(bare)), False)
        for part in parts:
            if part + "++" == token or part + "#" == token:  # "C++" is not about "C"
                continue
            for term, stop in _word(part, humps=humps):
                found.setdefault(term, stop and len(part) > 1)
    return list(found.items())


@lru_cache(maxsize=65536)
def _terms(token: str, humps: bool) -> tuple[tuple[str, bool], ...]:
    """(term, is a stop word) for every term of one token; `humps`: also of its camelCase parts."""
    if (
        token.isalpha()
        or (token.count("'") == 1 and token.replace("'", "").isalpha())
        or (_PART.fullmatch(token) and not token.endswith("+"))
    ):
        found = _word(token, humps=humps)
    elif re.match(rf"[{_EMOJI}]", token):
        found = [(token, False)]
    else:
        found = _identifier(token, humps=humps)
    return tuple((term, stop) for term, stop in found if term and not re.search(r"\s", term))


def _bigrams(run: str) -> Iterable[str]:
    units = _UNIT.findall(run) if _MARKED.search(run) else run
    return [run] if len(units) == 1 else [a + b for a, b in pairwise(units)]


def _analyze(text: str, *, humps: bool) -> list[str]:
    text = clean(text)
    shouting = text.isupper()
    terms: list[str] = []
    stops: list[str] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if match.lastgroup == "run":
            terms += _bigrams(token)
            continue
        for term, stop in _terms(token, humps) if len(token) < 64 else _terms.__wrapped__(token, humps):
            if stop or (shouting and term in STOPWORDS):
                stops.append(term)
            else:
                terms.append(term)
    return terms or stops


def analyze(text: str) -> list[str]:
    """The terms of `text` in order, repeats kept. No term is empty or holds white space.

    Stop words are left out where other words remain; an all-capitals one (IT, US) is a word unless the text shouts.
    """
    return _analyze(text, humps=True)


def query_terms(text: str) -> list[str]:
    """The distinct terms of a question, in order; of a long text those of its beginning.

    The parts of camelCase words are left out: they depend on how the question is typed, and a fact that says
    "github" should be a full match for "GitHub". The facts have them, so "maria db" still finds "MariaDB".
    """
    return list(dict.fromkeys(_analyze(text[:MAX_QUERY_CHARS], humps=False)))[:MAX_QUERY_TERMS]


def is_identifier(term: str) -> bool:
    """Whether a term is one that is typed exactly or not at all: pve-01, --no-verify, 10.0.0.7; no year, no word."""
    return _IDENTIFIER.search(term) is not None and len(term) > 3 and not (term.isdigit() and len(term) < 6)


def _quoted(term: str) -> str:
    return '"' + term.replace("\0", "").replace('"', '""') + '"'


def _searchable(terms: Iterable[str]) -> list[str]:
    """Distinct terms in which FTS5's unicode61 finds at least one letter or digit; others would match nothing."""
    return [term for term in dict.fromkeys(terms) if any(char.isalnum() for char in term)]


def match_all(terms: Iterable[str]) -> str:
    """FTS5 query for rows whose column `terms` holds every term; "" if there is nothing to look for."""
    quoted = [_quoted(term) for term in _searchable(terms)]
    return f"{{terms}} : ({' AND '.join(quoted)})" if quoted else ""


def match_any(terms: Iterable[str]) -> str:
    """FTS5 query for rows whose column `terms` holds one of the terms; "" if there is nothing to look for.

    Identifier-like terms of three letters and digits or more are prefixes too: plat-158 finds PLAT-15800.
    """
    quoted = [
        _quoted(term)
        + ("*" if _IDENTIFIER.search(term) and term[-1].isalnum() and sum(map(str.isalnum, term)) >= 3 else "")
        for term in _searchable(terms)
    ]
    return f"{{terms}} : ({' OR '.join(quoted)})" if quoted else ""


_SCRIPTS = {
    "latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
    "cyrillic": "\u0400-\u052f",
    "han": HAN,
    "kana": KANA,
    "hangul": HANGUL,
    "arabic": "\u0620-\u06ff",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "hebrew": "\u05d0-\u05ea",
    "devanagari": "\u0900-\u097f",
    "thai": THAI,
}
_SCRIPT = re.compile("|".join(f"(?P<{name}>[{chars}]+)" for name, chars in _SCRIPTS.items()))


def script(text: str) -> str:
    """The script most letters of `text` are in: latin, cyrillic, han, kana, hangul, ..., "other" if there are none.

    Text with a fifth of kana is Japanese, whatever share of Han it has.
    """
    counts: dict[str, int] = {}
    for match in _SCRIPT.finditer(text[:2000]):
        name = str(match.lastgroup)
        counts[name] = counts.get(name, 0) + len(match[0])
    if counts.get("kana", 0) * 5 >= sum(counts.values()) > 0:
        return "kana"
    return max(counts, key=counts.__getitem__, default="other")
