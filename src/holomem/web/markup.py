"""HTML from values: the one place that escapes. What is not `Markup` is text, wherever it comes from."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import cache
from typing import Final

__all__ = ["Child", "Markup", "document", "tag", "text"]

_VOID: Final = frozenset({"input", "link", "meta", "br"})
# Characters that HTML cannot hold, or that would reorder or hide what stands around them.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

_SPECIAL: Final = re.compile(f"[&<>\"']|{_UNSEEN.pattern}")


class Markup(str):
    """Text that is HTML already, made by this module."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]


def text(value: object) -> Markup:
    """The value as HTML text: escaped, unseen characters named, so that it can neither act nor deceive."""
    shown = str(value)
    if _SPECIAL.search(shown) is None:  # most are: a page has thousands of them
        return Markup(shown)
    return Markup(html.escape(_UNSEEN.sub(_name, shown), quote=True))


def tag(element: str, /, *children: Child, **attributes: object) -> Markup:
    """An element. `hx_get` becomes hx-get, `class_` class; an attribute of None or False is left out, True is bare."""
    parts: list[str] = [f"<{element}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        parts.append(f" {_attribute(key)}" + ("" if value is True else f'="{text(value)}"'))
    parts.append(">")
    if element not in _VOID:
        parts += [_joined(children), f"</{element}>"]
    return Markup("".join(parts))


def document(lang: str, head: Child, body: Markup) -> Markup:
    """A whole page."""
    return Markup("<!doctype html>" + tag("html", tag("head", head), body, lang=lang))


@cache
def _attribute(key: str) -> str:
    """The name of an attribute; the keys are those of this package's calls."""
    return key.rstrip("_").replace("_", "-")


def _joined(children: Iterable[Child]) -> str:
    out: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            out.append(child)
        elif isinstance(child, str | int | float):
            out.append(text(child))
        else:
            out.append(_joined(child))
    return "".join(out)


def _name(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # its picture
    return "\u2421" if code == 0x7F else f"[U+{code:04X}]"
