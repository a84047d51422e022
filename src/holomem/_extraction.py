"""New names out of a text, by capitals, quotes, the shape of identifiers and the cuts of Chinese and Japanese.

Without a model a common noun is no name and the start of a sentence is a guess; `entities.Gazetteer` finds what is
known already. Serves `entities` alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holomem._commonwords import (
    CALENDAR,
    COMMON,
    COMMON_RU,
    CONNECTORS,
    GENERIC,
    HAN_CUTS,
    SURNAMES,
    TITLES,
)
from holomem._namekeys import key
from holomem._stopwords import DE, STOPWORDS
from holomem.text import HAN, HANGUL, KANA, KHMER, LAO, MYANMAR, THAI, WORD, normalise, stem

__all__ = ["MAX_NAMES", "MAX_NAME_CHARS", "aliases", "extract"]

MAX_NAMES = 24  # what a bundle of 1024 phases holds with no entity missed
MAX_NAME_CHARS = 80

_LETTERS = rf"(?:(?!\d|_){WORD})"
_LEX = re.compile(
    rf"""
      (?P<url> \b[a-zA-Z][a-zA-Z0-9+.-]{{1,15}}://[^\s<>"'`「」『』《》«»“”（）{HAN}{KANA}{HANGUL}]+ )
    | (?P<mail> (?<![\w.+-]) [\w.+-]{{1,64}} @ [\w-]{{1,63}} (?:\.[\w-]{{1,63}})+ )
    | (?P<handle> (?<![\w@.]) @[A-Za-z_][\w-]{{1,38}}(?:\.[\w-]+)* )
    | (?P<junk>
          (?<![\w-]) --?[A-Za-z][\w.-]* (?:=\S*)?                                         # --flag -x --key=value
        | (?<!\w) [A-Za-z_][\w.-]*=[^\s,;)]* | (?<!\w) \$\{{?\w+\}}?                           # X=5 $HOME
        | (?<![\w.]) \d{{1,3}}(?:\.\d{{1,3}}){{3}} (?:[:/]\d+)? (?![\w.]*\w)                    # 192.168.1.1
        | (?<![\w-]) \d+(?:[-/.:]\d+){{2,}} (?!{WORD}) )                                       # 2025-12-01 10:20:30
    | (?P<path> (?<![\w/.]) ~?(?:/[\w.@+-]*\w){{2,}}/? )
    | (?P<host> (?<![\w.-]) [a-z0-9][a-z0-9_-]{{0,62}}(?:\.[a-z0-9][a-z0-9_-]{{0,62}})*\.[a-z][a-z0-9]{{1,17}} (?![\w-]) )
    | (?P<version> (?<![\w.]) v\d+(?:\.\d+)+ (?:-[\w.]*\w)? (?!\w) )
    | (?P<han> [{HAN}{KANA}] (?: [{HAN}{KANA}·・･=＝] | \d(?=\d*[{HAN}{KANA}]) )* )
    | (?P<other> [{HANGUL}]+ | [{THAI}{LAO}{KHMER}{MYANMAR}]+ )
    | (?P<initials> (?:{_LETTERS}\.){{2,}} (?:{_LETTERS}(?!{WORD}))? | {_LETTERS}\.(?=[ ]?{_LETTERS}) )
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
_SENTENCE_END = frozenset(".!?…。！？\n•")
_OPENING = frozenset("\"'«“„(（[「『*-–—#>")
_GERMAN = frozenset(DE.split()) - {"was", "an", "in", "so", "die", "des", "am", "es", "du", "als", "hier", "mit", "bei", "mir"}
_DETERMINERS = frozenset(
    """der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner mein meine meinen meinem meiner
    sein seine seinen seinem seiner ihr ihre ihren ihrem ihrer unser unsere im am zum zur ins vom beim jede jeder jedes jeden
    alle allen diese dieser dieses diesen diesem welche viele zwei drei vier fünf sechs pro""".split()
)
_GERMAN_NOUN = re.compile(r"(?:ung|ungen|heit|keit|keiten|schaft|tion|tionen|tät|nis|tum|ling|chen|lein|e|en|er|ern|zeit|tag|plan|geld|haus)$")
_RUSSIAN_COMMON = frozenset(stem(normalise(word)) for word in COMMON_RU)
_RUSSIAN_START = re.compile(r"(?:ться|тся|ать|ить|еть|ять|ую|юю|ого|его|ому|ему|ыми|ыми|ыйся|ение|ения|ению|ость|ости|ация|ации)$")
_ENGLISH_START = re.compile(r"(?:[a-z]{3}ing|[a-z]{2}ly|[a-z]{3}ed|[a-z]{3}ments?|[a-z]{3}tions?|[a-z]{3}ness|n't|'(?:s|re|ll|ve|d|m))$")


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
    for span in _spans(text, is_common):
        name_key = key(span.name)
        if name_key and (name_key not in spans or spans[name_key].rank < span.rank):
            spans[name_key] = span if name_key not in spans else _Span(span.name, spans[name_key].start, span.end, span.rank)
    kept = sorted(spans.values(), key=lambda span: (-span.rank, span.start))[:MAX_NAMES]
    return [span.name for span in sorted(kept, key=lambda span: span.start)]


_ALIAS = re.compile(
    r"""[\s,;]*[(（]?\s* (?<!\w) (?: aka | a\.k\.a\.? | also\s+known\s+as | better\s+known\s+as | alias | он\s+же | она\s+же
      | (?:также|также\s+)?\s*известн\w+\s+(?:также\s+)?как | auch\s+bekannt\s+als | également\s+connue?\s+sous\s+le\s+nom\s+de
      | también\s+conocid[oa]\s+como | também\s+conhecid[oa]\s+como | noto\s+anche\s+come | 又名 | 又称 | 亦称 | 也叫 | 别名 | 別名 )
      [\s:]*""",
    re.VERBOSE | re.IGNORECASE,
)
_BARE_NAME = re.compile(rf"""["'«“„「『]?({WORD}+(?:[-.]{WORD}+)*)""")


def aliases(text: str) -> list[tuple[str, str]]:
    """(name, alias) wherever the text says "X aka Y" or "X, также известный как Y"."""
    found: list[tuple[str, str]] = []
    spans: list[_Span] | None = None
    for match in _ALIAS.finditer(text):
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
    tokens = [
        _Token(match[0], match.start(), match.end(), str(match.lastgroup))
        for match in _LEX.finditer(text)
        if not any(start <= match.start() < end for start, end in quoted)
    ]
    for token in tokens:
        if token.kind in ("url", "mail", "handle", "path", "host", "version"):
            name = token.text.rstrip(".,;:!?)]}") if token.kind == "url" else token.text
            if len(name) <= MAX_NAME_CHARS and not re.fullmatch(r"[\w]\.[\w]", name):
                yield _Span(name, token.start, token.start + len(name), 3)
        elif token.kind == "han":
            yield from _cjk(text, token)
    yield from _runs(text, tokens, is_common)


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
    return not (len(words) > 2 and name.islower()) and not (len(words) > 4 and sum(word.islower() for word in words) > 2)


def _cjk(text: str, token: _Token) -> Iterator[_Span]:
    """Names in a run of Han and kana: Japanese if it or its sentence has hiragana, else Chinese."""
    if re.search("[\u3041-\u309f]", text):
        yield from _japanese(text, token)
    else:
        yield from _chinese(text, token)


_JAPANESE_PIECE = re.compile(f"[{HAN}\u30a1-\u30fa\u30fc-\u30ff·・＝=\\d]+")


def _japanese(text: str, token: _Token) -> Iterator[_Span]:
    for match in _JAPANESE_PIECE.finditer(token.text):
        name = match[0].strip("·・=＝ー")
        start, end = token.start + match.start(), token.start + match.end()
        before, after = text[max(0, start - 1) : start], text[end : end + 2]
        kanji = re.fullmatch(f"[{HAN}\\d]+", name) is not None
        if len(name) < 2 or name.isdigit() or len(name) > MAX_NAME_CHARS:
            continue
        if kanji and (after[:1] in tuple("しすさせれりるいきくけっめみむんえげべてた") or (before == "の" and after[:1] in ("は", "が"))):
            continue  # a verb or an adjective; the property in "X の 出生地 は Y"
        yield _Span(name, start, end, 1 if kanji else 2)


_CHINESE_CUT = re.compile("(" + "|".join(sorted(HAN_CUTS, key=len, reverse=True)) + ")")


def _chinese(text: str, token: _Token) -> Iterator[_Span]:
    pieces = _CHINESE_CUT.split(token.text)
    at = token.start
    for i, piece in enumerate(pieces):
        start, at = at, at + len(piece)
        name = piece.strip("·・=")
        if i % 2 or len(name) < 2 or len(name) > 24 or name.isdigit():
            continue
        before = pieces[i - 1] if i else ""
        after = pieces[i + 1] if i + 1 < len(pieces) else ""
        if before == "的" and after == "是":
            continue  # the property in "X 的 首都 是 Y"
        person = len(name) <= 3 and name[0] in SURNAMES
        framed = (after in ("的", "是", "在", "位于") and not before) or (before in ("是", "在", "为", "位于") and not after)
        if "·" in name or person or framed:
            yield _Span(name, start, at, 2 if "·" in name or person else 1)


def _runs(text: str, tokens: list[_Token], is_common: Callable[[str], bool] | None) -> Iterator[_Span]:
    """Runs of capitalised words and single identifiers among the words of a text."""
    words = [token for token in tokens if token.kind in ("word", "initials")]
    shouting = text.isupper() and len(words) > 4
    german = sum(token.text.lower() in _GERMAN for token in words) >= 2
    i = 0
    while i < len(tokens):
        if not _capital(tokens[i]) or shouting:
            if tokens[i].kind == "word" and _is_identifier(tokens[i].text):
                yield _Span(tokens[i].text, tokens[i].start, tokens[i].end, 3)
            i += 1
            continue
        run, following = _run(tokens, i)
        yield from _names(tokens, i, run, german=german, is_common=is_common)
        i = following


def _capital(token: _Token) -> bool:
    if token.kind == "initials":
        return token.text[0].isupper()
    return token.kind == "word" and (token.text[0].isupper() or (token.text[0] == "." and token.text[1:2].isupper())) and (
        token.text not in ("I", "I'm", "I’m", "I'd", "I've", "I'll", "I’ve", "I’d", "I’ll", "Я")
    )


def _run(tokens: list[_Token], i: int) -> tuple[list[_Token], int]:
    """The tokens of the capitalised run that begins at `i` (without spaces), and the index behind it."""
    run = [tokens[i]]
    at = i + 1
    while at + 1 < len(tokens):
        if tokens[at].kind == "sign" and tokens[at].text == "." and run[-1].text.lower() in TITLES | {"st", "mt"}:
            at += 1
            continue
        if tokens[at].kind != "space" or "\n" in tokens[at].text:
            break
        token = tokens[at + 1]
        if _capital(token):
            run.append(token)
            at += 2
            continue
        if token.kind == "number" and _numbered(tokens, at + 1):
            run.append(token)
            at += 2
            continue
        joined = _connected(tokens, at + 1)
        if joined is None:
            break
        run += [token for token in tokens[at + 1 : joined + 1] if token.kind != "space"]
        at = joined + 1
    return run, at


def _numbered(tokens: list[_Token], at: int) -> bool:
    """Whether the number at `at` belongs to the name before it: "VLAN 30", but not "pays Ilya 88 euros"."""
    if ":" in tokens[at].text:
        return False
    if at + 2 < len(tokens) and tokens[at + 1].kind == "space" and tokens[at + 2].kind == "word":
        word = tokens[at + 2].text
        return word[0].isupper() or word.lower() in STOPWORDS
    return not (at + 1 < len(tokens) and tokens[at + 1].text in "%€$£₽")


def _connected(tokens: list[_Token], at: int) -> int | None:
    """Index of the capitalised word that "of", "von der", "&" at `at` lead to."""
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
    tokens: list[_Token], i: int, run: list[_Token], *, german: bool, is_common: Callable[[str], bool] | None
) -> Iterator[_Span]:
    """The name in one capitalised run, if there is one."""
    first = _starts_sentence(tokens, i)
    titled = False
    while run and run[0].text.lower() in TITLES:
        run, first, titled = run[1:], False, True
    while len(run) > 1 and not titled and (
        _is_function_word(run[0].text) or (first and _is_common(run[0].text, is_common)) or run[0].text.lower() in CALENDAR
    ):
        run, first = run[1:], False
        while len(run) > 1 and not _capital(run[0]):
            run = run[1:]
    while run and (run[-1].text in CONNECTORS or run[-1].text.lower() in CALENDAR or _is_function_word(run[-1].text)):
        run = run[:-1]
    if not run or not any(_capital(token) for token in run):
        return
    start, end = run[0].start, run[-1].end
    name = re.sub(r"['’]s?$", "", _between(tokens, start, end))
    if len(name) > MAX_NAME_CHARS or len(key(name)) < 2:
        return
    if len(run) == 1:
        word = run[0].text
        if _is_identifier(word):
            yield _Span(name, start, end, 3)
        elif _is_single_name(tokens, i, word, first=first, german=german, is_common=is_common):
            yield _Span(name, start, start + len(name), 1 if word.isupper() else 2)
    else:
        yield _Span(name, start, start + len(name), 3)


def _between(tokens: list[_Token], start: int, end: int) -> str:
    text = "".join(token.text for token in tokens if start <= token.start and token.end <= end)
    return re.sub(r"\s+", " ", text)


def _is_single_name(
    tokens: list[_Token], i: int, word: str, *, first: bool, german: bool, is_common: Callable[[str], bool] | None
) -> bool:
    bare = re.sub(r"['’]s?$", "", word)
    lower = bare.lower()
    if lower in CALENDAR or _is_function_word(word) or len(bare) < 2:
        return False
    if bare.isupper():
        return lower not in GENERIC and not bare.isdigit()
    if german and (_previous(tokens, i) in _DETERMINERS or _GERMAN_NOUN.search(lower)):
        return False
    return not (first and _is_common(bare, is_common))


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


def _is_function_word(word: str) -> bool:
    return normalise(word) in STOPWORDS and not (len(word) > 1 and word.isupper())


def _is_common(word: str, is_common: Callable[[str], bool] | None) -> bool:
    """Whether a capitalised word is an ordinary one, as far as lists, endings and the caller can tell."""
    lower = word.lower().replace("’", "'")
    if lower in COMMON or lower.partition("-")[0] in COMMON or _is_function_word(word):
        return True
    folded = normalise(word)
    if "\u0400" <= folded[0] < "\u0530":
        if stem(folded) in _RUSSIAN_COMMON or _RUSSIAN_START.search(folded):
            return True
    elif word.isascii() and _ENGLISH_START.search(lower):
        return True
    return is_common is not None and is_common(lower)


def _is_identifier(word: str) -> bool:
    """pve-01, PLAT-15800, snake_case, GitHub, C++: a name whatever its case and place."""
    if word.endswith(("++", "#")):
        return word[0].isalpha()
    if "_" in word:
        return any(map(str.isalpha, word)) and word.isascii()
    if not word.isascii():
        return False
    if any(map(str.isdigit, word)):
        return word[0].isalpha() and (len(word) > 3 or word[0].isupper()) and not re.fullmatch(r"[a-z]\d+", word)
    return re.search(r"[a-z][A-Z]", word) is not None and len(word) > 3
