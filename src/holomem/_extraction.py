"""New names out of a text, by capitals, quotes, the shape of identifiers and the cuts of Chinese and Japanese.

Without a model a common noun is no name and the start of a sentence is a guess; `entities.Gazetteer` finds what is
known already. Serves `entities` alone.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holomem._commonwords import (
    CHINESE_COMMON,
    COMMON,
    CONNECTORS,
    GENERIC,
    GERMAN_NOUNS,
    HAN_CUTS,
    HEADS,
    JAPANESE_COMMON,
    NAME_HEADS,
    NO_NAMES,
    SURNAMES,
    TITLES,
    is_function_word,
    is_identifier,
    is_ordinary,
)
from holomem._namekeys import CLITIC, MAX_NAME_CHARS, key
from holomem._stopwords import DE, EN, ES, FR, IT, PT, RU, STOPWORDS
from holomem.text import HAN, HANGUL, KANA, KHMER, LAO, MYANMAR, THAI, WORD, normalise

__all__ = ["MAX_NAMES", "MAX_NAME_CHARS", "aliases", "extract"]

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
    r"(?:ung|ungen|heit|keit|keiten|schaft|ion|ionen|tät|nis|tum|ling|chen|lein|"
    + "|".join(GERMAN_NOUNS)
    + r")(?:e|en|n|er|ern|es|s)?$"
)
_RUSSIAN_ADJECTIVE = re.compile(
    r"..(?:ый|ий|ая|яя|ое|ее|ые|ие|ого|его|ому|ему|ым|им|ых|их|ыми|ими|ую|юю|(?:ск|льн|нн|вн)(?:ом|ой))$"
)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Span:
    """A candidate name; the higher `rank` is kept when there are too many."""

    name: str
    start: int
    end: int
    rank: int


def extract(text: str, is_common: Callable[[str], bool] | None = None) -> list[str]:
    """The names in `text` as they are written there, each once, in order of appearance, at most MAX_NAMES.

    `is_common(lower-case word)` may tell that a word is used in lower case elsewhere, so that a capital at the start of
    a sentence says nothing. Weekdays, months, flags, settings, numbers and addresses are no names.
    """
    spans: dict[str, _Span] = {}
    for span in _spans(text[:MAX_TEXT_CHARS], is_common):
        name_key = key(span.name)
        if name_key and (name_key not in spans or spans[name_key].rank < span.rank):
            spans[name_key] = (
                span if name_key not in spans else _Span(span.name, spans[name_key].start, span.end, span.rank)
            )
    kept = sorted(spans.values(), key=lambda span: (-span.rank, span.start))[:MAX_NAMES]
    return [span.name for span in sorted(kept, key=lambda span: span.start)]


_ALIAS = re.compile(
    r"""[\s,;(（]{0,4} (?<!\w) (?: aka | a\.k\.a\.? | also\s+known\s+as | better\s+known\s+as | alias | он\s+же | она\s+же
      | (?:также\s+)?известн\w{1,3}\s+(?:также\s+)?как | auch\s+bekannt\s+als | également\s+connue?\s+sous\s+le\s+nom\s+de
      | también\s+conocid[oa]\s+como | também\s+conhecid[oa]\s+como | noto\s+anche\s+come | 又名 | 又称 | 亦称 | 也叫 | 别名 | 別名 )
      [\s:]*""",
    re.VERBOSE | re.IGNORECASE,
)
_BARE_NAME = re.compile(rf"""["'«“„「『]?({WORD}+(?:[-.]{WORD}+)*)""")


def aliases(text: str) -> list[tuple[str, str]]:
    """(name, alias) wherever the text says "X aka Y" or "X, также известный как Y"."""
    found: list[tuple[str, str]] = []
    spans: list[_Span] | None = None
    text = text[:MAX_TEXT_CHARS]
    for match in itertools.islice(_ALIAS.finditer(text), MAX_NAMES):
        spans = list(_spans(text, None)) if spans is None else spans
        before = [span for span in spans if match.start() - 2 <= span.end <= match.start() + 1]
        after = [span for span in spans if match.end() <= span.start <= match.end() + 1]
        bare = _BARE_NAME.match(text, match.end())
        name = max(before, key=lambda span: span.end - span.start).name if before else ""
        alias = max(after, key=lambda span: span.end - span.start).name if after else bare[1] if bare else ""
        if key(name) and key(alias) and key(name) != key(alias):
            found.append((name, alias))
    return found


def _spans(text: str, is_common: Callable[[str], bool] | None) -> Iterator[_Span]:
    """Candidate names, in no order; they may overlap only where a quoted name holds another."""
    quoted: list[tuple[int, int]] = []
    for match in _QUOTED.finditer(text):
        inner = str(match[match.lastindex or 0])
        name = inner.strip(" ,;:\t")
        if _is_quoted_name(name, code=match[0][0] == "`"):
            yield _Span(name, match.start(match.lastindex or 0), match.end(match.lastindex or 0), 4)
            quoted.append(match.span())
        elif match[0][0] in "\"'`" and re.search(r"[=/\\$|<>{}]|(?:^|\s)-", inner):
            quoted.append(match.span())  # a piece of code: nothing in it is a name
    tokens = _tokens(text, quoted)
    kana = re.search("[\u3041-\u309f]", text) is not None
    for token in tokens:
        if token.kind in ("url", "mail", "handle", "path", "host", "version"):
            name = token.text.rstrip(".,;:!?)]}") if token.kind == "url" else token.text
            if len(name) <= MAX_NAME_CHARS and not re.fullmatch(r"[\w]\.[\w]", name):
                yield _Span(name, token.start, token.start + len(name), 3)
        elif token.kind == "han":
            yield from _japanese(text, token.start, token.end) if kana else _chinese(text, token.start, token.end)
    yield from _runs(text, tokens, is_common)


def _tokens(text: str, quoted: list[tuple[int, int]]) -> list[_Token]:
    """The tokens of `text` that do not begin inside one of the quoted pieces (in order, apart)."""
    starts = [start for start, _ in quoted]
    tokens: list[_Token] = []
    for match in _LEX.finditer(text):
        before = bisect_right(starts, match.start()) - 1
        if before < 0 or match.start() >= quoted[before][1]:
            tokens.append(_Token(match[0], match.start(), match.end(), str(match.lastgroup)))
    return tokens


def _is_quoted_name(name: str, *, code: bool) -> bool:
    """Whether what stands in quotes is a name: short, no sentence, no piece of code."""
    words = name.split()
    if not words or len(name) > MAX_NAME_CHARS or len(words) > 6 or not key(name) or len(key(name)) < 2:
        return False
    if re.search(r"[=\\$|<>{}*;]|(?:^|\s)-|[.!?,:。！？，]$|[，。！？]|^\d[\d.:/%-]*$|^[~./]", name):
        return False
    if code:
        return len(words) == 1 and len(name) > 2 and re.fullmatch(r"[\w.+#@-]+", name) is not None
    if len(words) == 1 and (normalise(name) in STOPWORDS or name.lower() in COMMON):
        return False
    return not (len(words) > 2 and name.islower()) and not (
        len(words) > 4 and sum(word.islower() for word in words) > 2
    )


_JAPANESE_PIECE = re.compile(f"[{HAN}\u30a1-\u30fa\u30fc-\u30ff·・＝=\\d]+")


def _japanese(text: str, start: int, end: int) -> Iterator[_Span]:
    """Runs of katakana, kanji and digits in text[start:end], cut at hiragana."""
    for match in _JAPANESE_PIECE.finditer(text, start, end):
        name = match[0].strip("·・=＝")
        first, last = match.span()
        before, after = text[max(0, first - 1) : first], text[last : last + 1]
        kanji = re.fullmatch(f"[{HAN}\\d]+", name) is not None
        if len(name) < 2 or name.isdigit() or len(name) > MAX_NAME_CHARS:
            continue
        if name in JAPANESE_COMMON or (kanji and after in tuple("しすさせれりるいきくけっめみむんえげべてた")):
            continue  # a verb or an adjective
        if before == "の" and after in ("は", "が") and "・" not in name:
            continue  # the property in "X の 出生地 は Y"
        yield _Span(name, first, last, 1 if kanji else 2)


_CHINESE_FRAME = re.compile("(位于|的|是|在|和|与|與|(?<![因仍])为|為)")
_CHINESE_CUT = re.compile("|".join(sorted(HAN_CUTS, key=len, reverse=True)))


def _chinese(text: str, at: int, end: int) -> Iterator[_Span]:
    """Foreign names with a dot, what stands in "X 的 ..." or "... 是 Y", and short pieces that begin with a surname."""
    pieces = _CHINESE_FRAME.split(text[at:end])
    led = not pieces[0] and (not at or text[at - 1] in _SENTENCE_END or text[at - 1] in "，、；")
    if led:  # 的黎波里: no cut at the start
        pieces = ["".join(pieces[:3]), *pieces[3:]]
    for i, piece in enumerate(pieces):
        start, at = at, at + len(piece)
        if i % 2:
            continue
        before = pieces[i - 1] if i else ""
        after = pieces[i + 1] if i + 1 < len(pieces) else ""
        name = piece.strip("·・=")
        cut = _CHINESE_CUT.search(name)
        person = cut is not None and cut.start() in (2, 3) and name[0] in SURNAMES  # 赵凯 不
        framed = (after in ("的", "是", "和", "与", "與", "位于") and not before) or (
            before in ("是", "为", "為", "位于") and not after
        )
        framed = framed or ("在" in (before, after) and not (before and after) and len(name) <= 4)
        if 2 <= len(name) <= 24 and (
            "·" in name
            or (
                framed
                and not _CHINESE_CUT.match(name, int(led and not i))
                and not person
                and name not in CHINESE_COMMON
            )
        ):
            if not (before == "的" and after == "是"):  # the property in "X 的 首都 是 Y"
                yield _Span(name, start, at, 2 if "·" in name else 1)
            continue
        name = piece[: cut.start()] if cut else piece
        if 2 <= len(name) <= 3 and name[0] in SURNAMES:
            yield _Span(name, start, start + len(name), 2)


def _runs(text: str, tokens: list[_Token], is_common: Callable[[str], bool] | None) -> Iterator[_Span]:
    """Runs of capitalised words and single identifiers among the words of a text."""
    words = [token for token in tokens if token.kind in ("word", "initials")]
    shouting = text.isupper() and len(words) > 4
    stops = _stop_words(words)
    i = 0
    while i < len(tokens):
        if not _capital(tokens[i]) or shouting:
            if tokens[i].kind == "word" and is_identifier(tokens[i].text):
                yield _Span(tokens[i].text, tokens[i].start, tokens[i].end, 3)
            i += 1
            continue
        run, following = _run(tokens, i)
        yield from _names(text, tokens, i, run, stops, is_common)
        i = following


def _stop_words(words: list[_Token]) -> frozenset[str]:
    """The function words of the language that most lower-case words are of, and of English and Russian.

    Those of all languages at once would take La Paz and Tony Tan apart.
    """
    lower = {token.text for token in words}
    best = max(_LANGUAGES, key=lambda stops: len(lower & stops))
    return best | _LANGUAGES[0] | _LANGUAGES[1] if len(lower & best) > 1 else _LANGUAGES[0] | _LANGUAGES[1]


def _capital(token: _Token) -> bool:
    if token.kind == "initials":
        return token.text[0].isupper()
    return (
        token.kind == "word"
        and (token.text[0].isupper() or (token.text[0] == "." and token.text[1:2].isupper()))
        and (token.text not in ("I", "I'm", "I’m", "I'd", "I've", "I'll", "I’ve", "I’d", "I’ll", "Я"))
    )


def _run(tokens: list[_Token], i: int) -> tuple[list[_Token], int]:
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
        if token.text.lower() in TITLES:
            break
        if _capital(token):
            if (token.text[0] < "\u0370") != (run[-1].text[0] < "\u0370") and run[-1].kind != "number":
                break  # another script, another name: "ИБП Eaton"
            run.append(token)
            at += 2
            continue
        if token.kind == "number" and _numbered(tokens, at + 1):
            run.append(token)
            at += 2
            continue
        joined = _connected(tokens, at + 1, run)
        if joined is None:
            break
        run += [token for token in tokens[at + 1 : joined + 1] if token.kind != "space"]
        at = joined + 1
    return run, at


def _numbered(tokens: list[_Token], at: int) -> bool:
    """Whether the number at `at` belongs to the name before it: "VLAN 30", but not "pays Ilya 88 euros"."""
    if not tokens[at].text.isdigit() or tokens[at - 2].text.lower() in GENERIC:  # PHP 8.2, TCP 1194
        return False
    if at + 2 < len(tokens) and tokens[at + 1].kind == "space" and tokens[at + 2].kind == "word":
        word = tokens[at + 2].text
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
) -> Iterator[_Span]:
    """The name in one capitalised run, if there is one."""
    first = _starts_sentence(tokens, i)
    titled = False
    while run and run[0].text.lower() in TITLES:
        run, first, titled = run[1:], False, True
    while len(run) > 1 and not titled and _leads(run[0].text, first, stops, is_common):
        run, first = run[1:], False
        while len(run) > 1 and not _capital(run[0]):
            run = run[1:]
    while run and (run[-1].text in CONNECTORS or run[-1].text.lower() in NO_NAMES):
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
        yield _Span(name, start, start + len(name), rank)


def _leads(word: str, first: bool, stops: frozenset[str], is_common: Callable[[str], bool] | None) -> bool:
    """Whether the first word of a run is no part of the name."""
    lower = word.lower()
    if stops >= _GERMAN and lower not in ("frau", "herr") and _GERMAN_NOUN.search(lower):
        return True
    if lower in NO_NAMES or (word.isupper() and lower in GENERIC) or is_function_word(word, stops):
        return True
    if first and word in ("Ο", "Η"):  # Greek articles
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
    if lower in NO_NAMES or lower.removesuffix("s") in NO_NAMES or is_function_word(token.text, stops):
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
    if stops >= _GERMAN and (_previous(tokens, at) in _DETERMINERS or _GERMAN_NOUN.search(lower)):
        return "", 0
    if _RUSSIAN_ADJECTIVE.search(lower) and at + 2 < len(tokens) and tokens[at + 1].text == " ":
        following = tokens[at + 2]
        if following.kind == "word" and following.text.islower() and following.text not in stops:
            return "" if first else f"{name} {following.text}", 2  # Национальный реестр
    if (
        first
        and lower.endswith("ing")
        and lower not in COMMON
        and "".join(token.text for token in tokens[at + 1 : at + 3]).rstrip().endswith("s")
    ):
        return name, 2  # "Syncthing shares ..." has a verb, "Building windrose" has not
    return "" if first and is_ordinary(name, stops, is_common) else name, 2


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
