"""The frame of every page, and what several of them hold: forms, badges, links to names."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final
from urllib.parse import urlencode

from holomem.types import Status
from holomem.web.markup import Child, Markup, document, tag
from holomem.web.texts import Words

__all__ = ["CHANNELS", "Page", "badge", "bare", "colour", "failure", "layout", "login", "name_link", "told_line"]

COLOURS: Final = 12  # of categories
BADGE_CHARS: Final = 40
_USUAL: Final = ("user_pref", "project", "tool", "general")
CHANNELS: Final = ("fts", "jaccard", "hrr", "semantic")
_CONFIG: Final = (
    '{"includeIndicatorStyles":false,"allowEval":false,"selfRequestsOnly":true,"historyCacheSize":0,'
    '"responseHandling":[{"code":"204","swap":false},{"code":"[2345]..","swap":true}]}'
)


@dataclass(frozen=True, slots=True)
class Page:
    """What every view needs: the words, the token of the forms, whether there are forms, and the page's address."""

    words: Words
    token: str
    read_only: bool
    here: str

    def form(self, action: str, *children: Child, **attributes: object) -> Markup | None:
        """A form that changes something and leads back here; none on a read-only page."""
        if self.read_only:
            return None
        hidden = [tag("input", type="hidden", name=n, value=v) for n, v in (("token", self.token), ("back", self.here))]
        return tag("form", *hidden, *children, method="post", action=action, **attributes)

    def button(
        self, action: str, label: str, *children: Child, class_: str | None = None, name: str | None = None
    ) -> Child:
        """A form that is one button; `name` is what it is called where the label is a sign."""
        return self.form(
            action, *children, tag("button", label, class_=class_, aria_label=name, title=name), class_="inline"
        )


def layout(page: Page, current: str, body: Markup, status: Status, note: str | None) -> str:
    """A whole page around its content; `note` is the key of what is to be known on every page."""
    w = page.words
    places = {
        "facts": "/",
        "entities": "/entities",
        "contradictions": "/contradictions",
        "map": "/map",
        "health": "/health",
    }
    links = [
        tag("a", w[name], href=href, aria_current="page" if name == current else None) for name, href in places.items()
    ]
    on = sum(reason is None for reason in status.channels.values())
    said = f"{w['channels']} {on}/4 · {w['facts']} {status.facts:,} · {PurePath(status.path).name}"
    state = tag(
        "a", tag("span", class_="dot" if on == len(CHANNELS) else "dot off"), said, href="/health", class_="status"
    )
    bar = tag(
        "div",
        tag("a", "holo", tag("span", "mem"), href="/", class_="brand"),
        tag("nav", links, aria_label="holomem"),
        state,
        class_="bar",
    )
    return _whole(
        w,
        tag("header", bar),
        tag("main", tag("p", w[note], class_="note") if note else None, body, id="main", tabindex="-1"),
    )


def bare(words: Words, body: Markup) -> str:
    """A page without navigation."""
    return _whole(words, tag("main", body, id="main", tabindex="-1"))


def _whole(words: Words, *content: Child) -> str:
    head = (
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="htmx-config", content=_CONFIG),
        tag("title", "holomem"),
        tag("link", rel="icon", href="/static/icon.svg"),
        tag("link", rel="stylesheet", href="/static/style.css"),
        tag("script", src="/static/htmx.min.js", defer=True),
    )
    boost = {"hx_boost": "true", "hx_target": "#main", "hx_select": "#main", "hx_swap": "outerHTML show:none"}
    return document(
        words.lang, head, tag("body", tag("a", words["skip"], href="#main", class_="skip"), *content, **boost)
    )


def colour(category: str) -> str:
    """The class of a category's colour, the same at each start; the usual ones never share one."""
    if category in _USUAL:
        return f"c{_USUAL.index(category)}"
    return f"c{zlib.crc32(category.encode('utf-8', 'replace')) % COLOURS}"


def badge(category: str) -> Markup:
    """The category in its colour."""
    shown = category if len(category) <= BADGE_CHARS else f"{category[:BADGE_CHARS]}…"
    return tag("span", shown, title=None if shown == category else category, class_=f"badge {colour(category)}")


def name_link(name: str) -> Markup:
    """A link to an entity's page."""
    return tag("a", name, href=f"/entity?{urlencode({'name': name}, errors='replace')}")


def told_line(page: Page, told: str, undo: str | None) -> Child:
    """What was just done, with a button to take it back where that is possible."""
    if told not in ("saved", "added", "removed", "restored", "rated", "kept"):
        return None
    change = tag("input", type="hidden", name="change", value=undo)
    again = page.button("/undo", page.words["undo"], change) if undo else None
    return tag("div", tag("span", page.words[told]), again, class_="note", role="status")


def login(words: Words, wrong: str | None) -> Markup:
    """The form for the token."""
    box = tag("input", type="password", name="secret", id="secret", required=True, autocomplete="current-password")
    form = tag(
        "form",
        tag("label", words["token"], for_="secret"),
        box,
        tag("button", words["enter"], class_="primary"),
        method="post",
        action="/login",
        class_="edit",
    )
    told = tag("p", wrong, class_="note", role="alert") if wrong else None
    return tag("div", tag("h1", "holomem"), told, form, tag("p", words["token_said"], class_="dim"))


def failure(words: Words, message: str) -> Markup:
    """What was wrong."""
    return tag(
        "div",
        tag("h1", words["error"]),
        tag("p", message, class_="note", role="alert"),
        tag("p", tag("a", words["home"], href="/")),
    )
