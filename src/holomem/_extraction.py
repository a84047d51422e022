"""New names out of a text, by capitals, quotes, the shape of identifiers and the cuts of Chinese and Japanese.

Without a model a common noun is no name and the start of a sentence is a guess; `entities.Gazetteer` finds what is
known already. Serves `entities` alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holomem._commonwords import (
    COMMON,
    CONNECTORS,
    GENERIC,
    GERMAN_NOUNS,
    HEADS,
    NAME_HEADS,
    NO_NAMES,
    TITLES,
    is_function_word,
    is_identifier,
    is_ordinary,
)
from holomem._namekeys import CLITIC, MAX_NAME_CHARS, key
from holomem._stopwords import DE, EN, ES, FR, IT, PT, RU, STOPWORDS
from holomem._unspaced import Span, chinese, japanese
from holomem.text import HAN, HANGUL, KANA, KHMER, LAO, MYANMAR, THAI, WORD, normalise

__all__ = ["MAX_NAMES", "MAX_NAME_CHARS", "MAX_TEXT_CHARS", "Span", "candidates", "extract"]

MAX_NAMES = 24  # what a bundle of 1024 phases holds with no entity missed
MAX_TEXT_CHARS = 20_000  # a fact is a statement: what it is about stands in its first ten pages

_LETTERS = rf"(?:(?!\d|_){WORD})"
_LEX = re.compile(
    rf"""
      (?P<url> \b[a-zA-Z][a-zA-Z0-9+.-]{{1,15}}://[^\s<>"'`「」『』《》«»“”（）{HAN}{KANA}{HANGUL}]+ )
    | (?P<mail> (?<![\w.+-]) [\w.+-]{{1,64}} @ [\w-]{{1,63}} (?:\.[\w-]{{1,63}})+ )
    | (?P<handle> (?<![\w@.]) @[A-Za-z_][\w-]{{1,38}}(?:\.[\w-]+)* )
    | (?P<junk>
          (?<![\w-]) --?[A-Za-z][\w.-]{{0,62}} (?:=\S{{0,200}})?                                         # --flag -x --key=value
        | (?<!\w) [A-Za-z_][\w.-]{{0,62}}=[^\s,;)]{{0,200}} | (?<!\w) \$\{{?\w+\}}?                           # X=5 $HOME
        | (?<![\w.]) \d{{1,3}}(?:\.\d{{1,3}}){{3}} (?:[:/]\d+)? (?![\w.]*\w)                    # 192.168.1.1
        | (?<![\w-]) \d+(?:[-/.:]\d+){{2,}} (?!{WORD}) )                                       # 2025-12-01 10:20:30
    | (?P<path> (?<![\w/.]) ~?(?:/[\w.@+-]*\w){{2,}}/? )
    | (?P<host> (?<![\w.-]) [A-Za-z0-9][A-Za-z0-9_-]{{1,62}}(?:\.[A-Za-z0-9][A-Za-z0-9_-]{{0,62}})*\.[a-z][a-z0-9]{{1,17}} (?![\w-]) )
    | (?P<version> (?<![\w.]) v\d+(?:\.\d+)+ (?:-[\w.]*\w)? (?!\w) )
    | (?P<han> [{HAN}{KANA}] (?: [{HAN}{KANA}·・･=＝] | \d(?=\d*[{HAN}{KANA}]) )* )
    | (?P<other> [{HANGUL}]+ | [{THAI}{LAO}{KHMER}{MYANMAR}]+ )
    | (?P<initials> (?:{_LETTERS}\.)+ (?:{_LETTERS}(?!{WORD}))? )
    | (?P<number> \d+(?:[.,:]\d+)* (?!{WORD}) )
    | (?P<word> \.?{WORD}+ (?:[-‐‑'’ʼ&]{WORD}+)* (?:\+\+|\#(?!{WORD})|%)? )
    | (?P<space> \s+ )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(
    r"""«([^«»\n]{1,82})» | “([^“”\n]{1,82})[”“] | „([^„“”"\n]{1,82})[“”"] | 「([^「」\n]{1,82})」 | 『([^『』\n]{1,82})』
      | 《([^《》\n]{1,82})》 | (?<!\w)"([^"\n]{1,82})"(?!\w) | (?<!\w)'([^'\n]{1,82})'(?!\w) | (?<!\w)`([^`\n]{1,82})`""",
    re.VERBOSE,
)
_SENTENCE_END = frozenset(".!?…:。！？：\n•")
_OPENING = frozenset("\"'«“„(（[「『*-–—#>")
_LANGUAGES = [frozenset(words.replace("ё", "е").split()) for words in (EN, RU, DE, ES, FR, PT, IT)]
_GERMAN = _LANGUAGES[2]
_POSSESSIVE = re.compile(rf"['’]{CLITIC}?$")
_DETERMINERS = frozenset(
    """der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner mein meine meinen meinem meiner
    sein seine seinen seinem seiner ihr ihre ihren ihrem ihrer unser unsere im am zum zur ins vom beim jede jeder jedes jeden
    alle allen diese dieser dieses diesen diesem welche viele zwei drei vier fünf sechs pro""".split()
)
_GERMAN_NOUN = re.compile(
    r"(?:^|(?<=[^\W\d_]{3}))(?:ung|ungen|heit|keit|keiten|schaft|ion|ionen|tät|nis|tum|ling|(?<!s)chen|lein|"
    + "|".join(GERMAN_NOUNS)
    + r")(?:e|en|n|er|ern|es|s)?$"
)
_APPOSED = frozenset("projekt firma server stadt band verein hotel rechner app produkt".split())
"""German class nouns that a name may follow directly; a noun behind them is one."""
_ARTICLES = frozenset(
    "a an the this these that those my your our his her their its all any some each every multiple no".split()
)
_PLURAL_VERBS = frozenset("are were have do don't aren't weren't haven't".split())
_GIVEN_MONTHS = frozenset("may april june august".split())
_ELISION = re.compile(r"(?:[cdjlmnst]|qu|dell|all|nell|sull|un)['’](?=[^\W\d_])", re.IGNORECASE)
_TURKISH_CASE = re.compile(rf"['’](?!s$){CLITIC}$")
_MODEL = re.compile(r"\d{1,2}[a-eA-E]")  # Pixel 8a
_BRAND = re.compile(r"[a-z]{1,3}[A-Z][A-Za-z]+")  # iPhone, eBay, macOS
_RUSSIAN_ADJECTIVE = re.compile(
    r"..(?:ый|ий|ая|яя|ое|ее|ые|ие|ого|его|ому|ему|ым|им|ых|их|ыми|ими|ую|юю|(?:ск|льн|нн|вн)(?:ом|ой))$"
)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int
    kind: str


def extract(text: str, is_common: Callable[[str], bool] | None = None) -> list[str]:
    """The names in `text` as they are written there, each once, in order of appearance, at most MAX_NAMES.

    `is_common(lower-case word)` may tell that a word is used in lower case elsewhere, so that a capital at the start of
    a sentence says nothing. Weekdays, months, flags, settings, numbers and addresses are no names.
    """
    spans: dict[str, Span] = {}
    for span in candidates(text[:MAX_TEXT_CHARS], is_common):
        name_key = key(span.name)
        if name_key and (name_key not in spans or spans[name_key].rank < span.rank):
            spans[name_key] = (
                span if name_key not in spans else Span(span.name, spans[name_key].start, span.end, span.rank)
            )
    kept = sorted(spans.values(), key=lambda span: (-span.rank, span.start))[:MAX_NAMES]
    return [span.name for span in sorted(kept, key=lambda span: span.start)]


def candidates(text: str, is_common: Callable[[str], bool] | None) -> Iterator[Span]:
    """Candidate names, in no order; they may overlap only where a quoted name holds another."""
    quoted: list[tuple[int, int]] = []
    for match in _QUOTED.finditer(text):
        inner = str(match[match.lastindex or 0])
        name = inner.strip(" ,;:\t")
        if _is_quoted_name(name, code=match[0][0] == "`"):
            yield Span(name, match.start(match.lastindex or 0), match.end(match.lastindex or 0), 4)
            quoted.append(match.span())
        elif match[0][0] in "\"'`" and re.search(r"[=/\\$|<>{}]|(?:^|\s)-", inner):
            quoted.append(match.span())  # a piece of code: nothing in it is a name
    tokens = _tokens(text, quoted)
    kana = re.search("[\u3041-\u309f]", text) is not None
    for token in tokens:
        if token.kind in ("url", "mail", "handle", "path", "host", "version"):
            name = token.text.rstrip(".,;:!?)]}") if token.kind == "url" else token.text
            if len(name) <= MAX_NAME_CHARS and not re.fullmatch(r"[\w]\.[\w]", name):
                yield Span(name, token.start, token.start + len(name), 3)
        elif token.kind == "han":
            yield from japanese(text, token.start, token.end) if kana else chinese(text, token.start, token.end)
    yield from _runs(text, tokens, is_common)


def _tokens(text: str, quoted: list[tuple[int, int]]) -> list[_Token]:
    """The tokens of `text` that do not begin inside one of the quoted pieces (in order, apart)."""
    starts = [start for start, _ in quoted]
    tokens: list[_Token] = []
    for match in _LEX.finditer(text):
        before = bisect_right(starts, match.start()) - 1
        if before < 0 or match.start() >= quoted[before][1]:
            token = _Token(match[0], match.start(), match.end(), str(match.lastgroup))
            elided = _ELISION.match(token.text) if token.kind == "word" else None
            if elided and (token.text[0].islower() or token.text[elided.end()].islower()):  # l'Hôtel, L'équipe
                middle = token.start + elided.end()
                tokens.append(_Token(elided[0].lower(), token.start, middle, "sign"))
                token = _Token(token.text[elided.end() :], middle, token.end, "word")
            tokens.append(token)
    return tokens


def _is_quoted_name(name: str, *, code: bool) -> bool:
    """Whether what stands in quotes is a name: short, no sentence, no piece of code."""
    words = name.split()
    if not words or len(name) > MAX_NAME_CHARS or len(words) > 6 or not key(name) or len(key(name)) < 2:
        return False
    if re.search(r"[=\\$|<>{}*;]|(?:^|\s)-|[.!?,:。！？，]$|[，。！？]|^\d[\d.:/%-]*$|^[~./]", name):
        return False
    if code:
        return (
            len(words) == 1 and len(name) > 2 and name not in COMMON and re.fullmatch(r"[\w.+#@-]+", name) is not None
        )
    if len(words) == 1 and (normalise(name) in STOPWORDS or name.lower() in COMMON):
        return False
    return not (len(words) > 2 and name.islower()) and not (
        len(words) > 4 and sum(word.islower() for word in words) > 2
    )


def _runs(text: str, tokens: list[_Token], is_common: Callable[[str], bool] | None) -> Iterator[Span]:
    """Runs of capitalised words and single identifiers among the words of a text."""
    words = [token for token in tokens if token.kind in ("word", "initials")]
    shouting = text.isupper() and len(words) > 4
    stops = _stop_words(words)
    i = 0
    while i < len(tokens):
        if not _capital(tokens[i]) or shouting:
            if tokens[i].kind == "word" and is_identifier(tokens[i].text):
                yield Span(tokens[i].text, tokens[i].start, tokens[i].end, 3)
            i += 1
            continue
        run, following = _run(tokens, i, german=stops >= _GERMAN)
        yield from _names(text, tokens, i, run, stops, is_common)
        i = following


def _stop_words(words: list[_Token]) -> frozenset[str]:
    """The function words of the language that most lower-case words are of, and of English and Russian.

    Those of all languages at once would take La Paz and Tony Tan apart.
    """
    lower = {token.text for token in words} | {token.text.lower() for token in words[:1]}
    best = max(_LANGUAGES, key=lambda stops: len(lower & stops))
    return best | _LANGUAGES[0] | _LANGUAGES[1] if len(lower & best) > 1 else _LANGUAGES[0] | _LANGUAGES[1]


def _capital(token: _Token) -> bool:
    if token.kind == "initials":
        return token.text[0].isupper()
    return (
        token.kind == "word"
        and (
            token.text[0].isupper()
            or (token.text[0] == "." and token.text[1:2].isupper())
            or _BRAND.fullmatch(token.text) is not None
        )
        and (token.text not in ("I", "I'm", "I’m", "I'd", "I've", "I'll", "I’ve", "I’d", "I’ll", "Я"))
    )


def _run(tokens: list[_Token], i: int, *, german: bool) -> tuple[list[_Token], int]:
    """The tokens of the capitalised run that begins at `i` (without spaces), and the index behind it."""
    run = [tokens[i]]
    at = i + 1
    while at + 1 < len(tokens):
        if tokens[at].kind == "sign" and tokens[at].text == "." and run[-1].text.lower() in TITLES | {"st", "mt"}:
            at += 1
            continue
        if run[-1].kind == "initials" and _capital(tokens[at]):  # Б.Зеллнер
            run.append(tokens[at])
            at += 1
            continue
        if tokens[at].kind != "space" or "\n" in tokens[at].text:
            break
        token = tokens[at + 1]
        if token.text.lower() in TITLES or (run[-1].text[-2:] in ("'s", "’s") and is_identifier(token.text)):
            break  # Lily's EpiPen
        if _TURKISH_CASE.search(run[-1].text):
            break  # İstanbul'da Türk Telekom
        if _capital(token):
            if (token.text[0] < "\u0370") != (run[-1].text[0] < "\u0370") and run[-1].kind != "number":
                break  # another script, another name: "ИБП Eaton"
            run.append(token)
            at += 2
            continue
        if (token.kind == "number" and _numbered(tokens, at + 1, german=german)) or _MODEL.fullmatch(token.text):
            run.append(token)
            at += 2
            continue
        joined = _connected(tokens, at + 1, run)
        if joined is None:
            break
        run += [token for token in tokens[at + 1 : joined + 1] if token.kind != "space"]
        at = joined + 1
    return run, at


def _numbered(tokens: list[_Token], at: int, *, german: bool) -> bool:
    """Whether the number at `at` belongs to the name before it: "VLAN 30", but not "pays Ilya 88 euros"."""
    if not tokens[at].text.isdigit() or tokens[at - 2].text.lower() in GENERIC:  # PHP 8.2, TCP 1194
        return False
    if at + 2 < len(tokens) and tokens[at + 1].kind == "space" and tokens[at + 2].kind == "word":
        word = tokens[at + 2].text
        unit = bool({word.lower(), word.lower() + "s"} & (NO_NAMES | GENERIC))
        if re.fullmatch("[A-Z]{2}", tokens[at - 2].text) and not unit:
            return True  # flight LH 441
        if word[0].isupper() and not german and not unit:
            return True  # iPhone 15 Pro
        return word.lower() in STOPWORDS
    return not (at + 1 < len(tokens) and tokens[at + 1].text in "%€$£₽/°-")


def _connected(tokens: list[_Token], at: int, run: list[_Token]) -> int | None:
    """Index of the capitalised word that "of", "von der", "&" at `at` lead to.

    "University of Leipzig" is a name, "Anna Schmidt of the University" and "CTO of Parcelwind" are two.
    """
    if tokens[at].text == "of" and (run[-1].text.isupper() or (len(run) > 1 and run[-1].text.lower() not in HEADS)):
        return None
    for _ in range(3):
        if at + 2 >= len(tokens) or tokens[at + 1].kind != "space":
            return None
        if tokens[at].text not in CONNECTORS and tokens[at].text != "&":
            return None
        at += 2
        if _capital(tokens[at]):
            return at
    return None


def _names(
    text: str,
    tokens: list[_Token],
    i: int,
    run: list[_Token],
    stops: frozenset[str],
    is_common: Callable[[str], bool] | None,
) -> Iterator[Span]:
    """The name in one capitalised run, if there is one."""
    first = _starts_sentence(tokens, i)
    titled = False
    while run and run[0].text.lower() in TITLES:
        run, first, titled = run[1:], False, True
    while len(run) > 1 and not titled and _leads(run[0].text, run[1].text, first, stops, is_common):
        run, first = run[1:], False
        while len(run) > 1 and not _capital(run[0]):
            run = run[1:]
    while run and _trails(tokens, run):
        run = run[:-1]
    if not run or not any(_capital(token) for token in run):
        return
    start, end = run[0].start, run[-1].end
    name = _POSSESSIVE.sub("", re.sub(r"\s+", " ", text[start:end]))
    if len(run) == 1:
        name, rank = _single(tokens, i, run[0], name, first=first, stops=stops, is_common=is_common)
    else:
        rank = 3
        if i > 1 and tokens[i - 2].kind == "number" and tokens[i - 1].text == " " and run[0] is tokens[i]:
            start, name = tokens[i - 2].start, f"{tokens[i - 2].text} {name}"  # 250 Delaware Avenue
    if name and len(name) <= MAX_NAME_CHARS and len(key(name)) > 1:
        yield Span(name, start, start + len(name), rank)


def _trails(tokens: list[_Token], run: list[_Token]) -> bool:
    """Whether the last word of a run is no part of the name. Theresa May is one, "Standup May 5" is not."""
    last = run[-1].text.lower()
    if last in _GIVEN_MONTHS and len(run) > 1:
        behind = tokens[tokens.index(run[-1]) + 1 :][:2]
        return any(token.kind == "number" for token in behind)
    return run[-1].text in CONNECTORS or last in NO_NAMES


def _leads(
    word: str, following: str, first: bool, stops: frozenset[str], is_common: Callable[[str], bool] | None
) -> bool:
    """Whether the first word of a run is no part of the name."""
    lower = word.lower()
    if stops >= _GERMAN and lower not in ("frau", "herr") and _GERMAN_NOUN.search(lower):
        return True
    if lower in NO_NAMES or (word.isupper() and lower in GENERIC) or is_function_word(word, stops):
        return True
    if first and word in ("Ο", "Η"):  # Greek articles
        return True
    if first and following in _ARTICLES and is_ordinary(word, stops, is_common):  # Open the Git repository
        return True
    return first and lower not in NAME_HEADS and is_ordinary(word, stops, is_common)


def _single(
    tokens: list[_Token],
    i: int,
    token: _Token,
    name: str,
    *,
    first: bool,
    stops: frozenset[str],
    is_common: Callable[[str], bool] | None,
) -> tuple[str, int]:
    """The name that one capitalised word makes ("" for none), and its rank."""
    lower = name.lower()
    if is_identifier(token.text):
        return name, 3
    if (
        lower in NO_NAMES
        or (len(lower) > 4 and lower.removesuffix("s") in NO_NAMES)
        or is_function_word(token.text, stops)
    ):
        return "", 0
    if name.isupper() or (name[-1] == "s" and name[:-1].isupper()):
        return "" if lower.removesuffix("s") in GENERIC or lower in GENERIC else name, 1
    head, hyphen, tail = name.rpartition("-")
    if hyphen and tail in (
        "aware",
        "based",
        "compatible",
        "free",
        "friendly",
        "like",
        "only",
        "ready",
        "side",
        "style",
    ):
        name = head
    at = tokens.index(token, i)
    after = [other.text.lower() for other in tokens[at + 1 : at + 6] if other.kind == "word"]
    if first and after and after[0] in _ARTICLES and tokens[at + 1].text == " ":
        return "", 0  # Encrypt an archive
    if first and lower.endswith("s") and after and after[0] in _PLURAL_VERBS:
        return "", 0  # Pets are welcome
    if first and any(other.kind in ("handle", "mail") for other in tokens[at + 2 : at + 3]):
        return "", 0  # Ping @anna
    if stops >= _GERMAN and _previous(tokens, at) in _APPOSED:
        return name, 2
    if stops >= _GERMAN and (_previous(tokens, at) in _DETERMINERS or _GERMAN_NOUN.search(lower)):
        return "", 0
    if _RUSSIAN_ADJECTIVE.search(lower) and at + 2 < len(tokens) and tokens[at + 1].text == " ":
        following = tokens[at + 2]
        if following.kind == "word" and following.text.islower() and following.text not in stops:
            return "" if first else f"{name} {following.text}", 2  # Национальный реестр
    if first and lower.endswith("ing") and lower not in COMMON and _acts(after, stops):
        return name, 2  # "Syncthing shares ..." has a verb, "Building windrose" has not
    return "" if first and is_ordinary(name, stops, is_common) else name, 2


def _acts(after: list[str], stops: frozenset[str]) -> bool:
    """Whether the words behind an opening one are a verb and its object, not an object and what it is of."""
    if not after or not after[0].endswith("s") or after[0] in stops:
        return False
    return len(after) < 2 or after[1] not in stops or after[1] in _ARTICLES


def _previous(tokens: list[_Token], i: int) -> str:
    for token in reversed(tokens[max(0, i - 2) : i]):
        if token.kind in ("word", "number"):
            return token.text.lower()
        if token.kind != "space":
            break
    return ""


def _starts_sentence(tokens: list[_Token], i: int) -> bool:
    while i > 0:
        i -= 1
        token = tokens[i]
        if "\n" in token.text or token.text[-1] in _SENTENCE_END:
            return True
        if token.kind != "space" and token.text not in _OPENING:
            return False
    return True
