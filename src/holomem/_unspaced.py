"""Names in Chinese and Japanese, which write no spaces: by frames, particles and the kind of character.

Serves `_extraction` alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holomem._commonwords import (
    CHINESE_COMMON,
    CHINESE_ROLES,
    HAN_CUTS,
    JAPANESE_COMMON,
    JAPANESE_HONORIFICS,
    JAPANESE_TITLES,
    SURNAMES,
)
from holomem._namekeys import MAX_NAME_CHARS
from holomem.text import HAN

__all__ = ["Span", "chinese", "japanese"]

_BREAKS = ".!?…:。！？：\n•，、；"


@dataclass(frozen=True, slots=True)
class Span:
    """A candidate name; the higher `rank` is kept when there are too many."""

    name: str
    start: int
    end: int
    rank: int


_JAPANESE_PIECE = re.compile(f"[{HAN}\u30a1-\u30fa\u30fc-\u30ff·・＝=\\d]+")


def japanese(text: str, start: int, end: int) -> Iterator[Span]:
    """Runs of katakana, kanji and digits in text[start:end], cut at hiragana."""
    for match in _JAPANESE_PIECE.finditer(text, start, end):
        name = match[0].strip("·・=＝")
        first, last = match.span()
        before, after = text[max(0, first - 1) : first], text[last : last + 1]
        kanji = re.fullmatch(f"[{HAN}\\d]+", name) is not None
        person = kanji and _person(name, text[last : last + 3])
        if person:  # 田中さん, 佐藤部長
            yield Span(person, first, first + len(person), 2)
            continue
        if len(name) < 2 or name.isdigit() or len(name) > MAX_NAME_CHARS:
            continue
        if name in JAPANESE_COMMON or (kanji and after in tuple("しすさせれりるいきくけっめみむんえげべてた")):
            continue  # a verb or an adjective
        if before == "の" and after in ("は", "が") and "・" not in name:
            continue  # the property in "X の 出生地 は Y"
        yield Span(name, first, last, 1 if kanji else 2)


def _person(name: str, after: str) -> str:
    """The name before an honorific, which follows in hiragana or ends the name itself; "" when there is none."""
    if after.startswith(JAPANESE_HONORIFICS):
        return name if name not in JAPANESE_COMMON else ""
    title = next((title for title in JAPANESE_TITLES if name.endswith(title)), "")
    bare = name.removesuffix(title)
    return bare if title and 2 <= len(bare) <= 4 else ""


_CHINESE_FRAME = re.compile("(位于|的|是|在|和|与|與|(?<![因仍])为|為)")
_CHINESE_CUT = re.compile("|".join(sorted(HAN_CUTS, key=len, reverse=True)))


_ROLE = re.compile("|".join(CHINESE_ROLES))
_TOLD = re.compile(f"[由请让叫找]([{SURNAMES}][{HAN}]{{1,2}}?)(?:负责|维护|管理|主持|处理|审核|开发|编写|接手|帮|来)")


def chinese(text: str, at: int, end: int) -> Iterator[Span]:
    """Foreign names with a dot, what stands in "X 的 ..." or "... 是 Y", and short pieces that begin with a surname."""
    pieces = _CHINESE_FRAME.split(text[at:end])
    led = not pieces[0] and (not at or text[at - 1] in _BREAKS)
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
        acting = before == "在" and cut is not None and cut.start() > 1 and len(cut[0]) > 1
        if cut and before == "在" and cut.start() > 1:  # 在腾讯工作
            name, after, cut = name[: cut.start()], "", None
        person = cut is not None and cut.start() in (2, 3) and name[0] in SURNAMES  # 赵凯 不
        framed = (after in ("的", "是", "和", "与", "與", "位于") and not before) or (
            before in ("是", "为", "為", "位于") and not after
        )
        framed = framed or ("在" in (before, after) and not (before and after) and (len(name) <= 4 or acting))
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
                yield Span(name, start, start + len(name), 2 if "·" in name else 1)
            continue
        told = _TOLD.search(piece)
        if told:  # 由陈静负责
            yield Span(told[1], start + told.start(1), start + told.end(1), 2)
        role = _ROLE.match(piece)
        if role:  # 女儿张雨欣
            piece, start = piece[role.end() :], start + role.end()
            cut = _CHINESE_CUT.search(piece)
        name = piece[: cut.start()] if cut else piece
        if 2 <= len(name) <= 3 and name[0] in SURNAMES:
            yield Span(name, start, start + len(name), 2)
