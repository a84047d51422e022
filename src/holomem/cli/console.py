"""Text on a console of any encoding: nothing stored can steer the terminal, and columns line up in any script."""

from __future__ import annotations

import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import IO, Any, Final, Literal

import click

__all__ = [
    "Column",
    "JsonLines",
    "fold",
    "pad",
    "print_json",
    "print_lines",
    "read_stdin",
    "say",
    "table",
    "time",
    "visible",
    "width",
]

# Control characters, bidirectional overrides, invisible format characters (a channel for hidden text), line and
# paragraph separators, lone surrogates. The joiners U+200C and U+200D stay: Persian and emoji need them.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_CJK: Final = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60\U0001f000-\U0003ffff"
_UNIT: Final = re.compile(f"[{_CJK}][\u0300-\u036f\u3001\u3002\uff01\uff09\uff0c\uff1f]*\\s*|[^\\s{_CJK}]+\\s*|\\s+")
_LEAST_COLUMNS: Final = 24  # the last column of a table is not folded below this

Column = tuple[str, Literal["left", "right"]]


def say(text: str = "", *, err: bool = False) -> None:
    """Write one line."""
    click.echo(text, err=err)


def print_lines(lines: Iterable[str]) -> None:
    """Write lines."""
    for line in lines:
        say(line)


def read_stdin() -> str:
    """The whole standard input, which is UTF-8 whatever the console's encoding is. Raises ValueError."""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"standard input is not UTF-8 at byte {error.start}; convert it first") from None


def visible(text: str) -> str:
    """`text` with everything that could steer a terminal, or that this one cannot show, written as an escape."""
    safe = _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return safe.encode(encoding, "backslashreplace").decode(encoding)


def width(text: str) -> int:
    """The terminal columns that `text` takes: 2 for East Asian wide characters and emoji, 0 for combining ones."""
    return len(text) if text.isascii() else sum(_columns(char) for char in text)


def pad(text: str, columns: int, align: Literal["left", "right"] = "left") -> str:
    """`text` filled with spaces to a width."""
    space = " " * (columns - width(text))
    return space + text if align == "right" else text + space


def fold(text: str, columns: int) -> list[str]:
    """`text` in lines of at most `columns`, broken at spaces, between CJK characters, and inside of what is longer."""
    lines, line = [], ""
    for unit in _UNIT.findall(text):
        if line and width(line) + width(unit.rstrip()) > columns:
            lines.append(line.rstrip())
            line = ""
        while width(unit.rstrip()) > columns:
            head = _head(unit, columns)
            lines.append(head)
            unit = unit[len(head) :]
        line += unit
    return [*lines, line.rstrip()]


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table; the cells are made visible. On a terminal the last column is folded to its width."""
    if not rows:
        return
    cells = [[visible(cell) for cell in row] for row in rows]
    widths = [max(width(name), *(width(row[i]) for row in cells)) for i, (name, _) in enumerate(columns)]
    indent = sum(size + 2 for size in widths[:-1])
    for row in [[name for name, _ in columns], *cells]:
        first = "".join(
            pad(cell, size, align) + "  " for cell, size, (_, align) in zip(row, widths, columns[:-1], strict=False)
        )
        head, *rest = _folded(row[-1], indent)
        yield (first + head).rstrip()
        yield from (" " * indent + line for line in rest)


def print_json(value: Any) -> None:
    """Write a value, dataclasses included, as JSON in UTF-8, whatever the console's encoding is."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=_plain)
    click.echo(_escape_json(text).encode("utf-8"))


class JsonLines:
    """A text sink that writes UTF-8 to a binary stream; for a terminal, unsafe characters become JSON escapes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._escaped = stream.isatty()

    def write(self, text: str) -> None:
        """Take one line of JSON."""
        if self._escaped:
            text = _escape_json(text.removesuffix("\n")) + "\n"
        self._stream.write(text.encode("utf-8"))


def time(moment: datetime) -> str:
    """A time in UTC to the second: 2026-05-03 10:00:00Z."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "seconds") + "Z"


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf") or "\u1160" <= char <= "\u11ff":  # Hangul vowels join
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _head(text: str, columns: int) -> str:
    """As much of the beginning as fits, at least one character."""
    used = 0
    for place, char in enumerate(text):
        used += _columns(char)
        if used > columns and place:
            return text[:place]
    return text


def _folded(text: str, indent: int) -> list[str]:
    if not sys.stdout.isatty():
        return [text]
    return fold(text, max(_LEAST_COLUMNS, shutil.get_terminal_size().columns - indent))


def _escape_json(text: str) -> str:
    """JSON with the characters that could steer a terminal as its own escapes; line feeds stand between values."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] == "\n" else json.dumps(match[0])[1:-1], text)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
