"""The pages of facts: the list, what a search found and why, one fact, the form to change it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from holomem import text as analysis
from holomem.types import Fact, Hit
from holomem.web.facts import ORDERS, Found, Listing
from holomem.web.frame import CHANNELS, Page, badge, name_link, told_line
from holomem.web.markup import Child, Markup, tag
from holomem.web.texts import Words

__all__ = ["edit", "fact_item", "facts", "one", "state"]

LONG_CHARS: Final = 700
SHOWN_CHARS: Final = 300
_WORD: Final = re.compile(r"([\w-]+)")


def facts(
    page: Page, asked: Listing, found: Found, categories: Mapping[str, int], told: str, undo: str | None
) -> Markup:
    """The search form and what it found."""
    w = page.words
    chosen = [tag("option", w["any_category"], value="")]
    chosen += [tag("option", f"{n} ({c})", value=n, selected=n == asked.category) for n, c in categories.items()]
    orders = [tag("option", w[name], value=name, selected=name == asked.order) for name in ORDERS]
    search = tag(
        "form",
        tag("input", type="search", name="q", value=asked.q, placeholder=w["search"], aria_label=w["search"], autocomplete="off"),
        tag("button", w["show"]),
        tag("div",
            tag("select", chosen, name="category", aria_label=w["category"]),
            tag("select", orders, name="order", aria_label=w["order"]),
            tag("label", tag("input", type="checkbox", name="filter", value="1", checked=asked.filter), " ", w["filter"]),
            class_="row"),
        role="search", class_="search", method="get", action="/",
        hx_get="/", hx_trigger="input changed delay:120ms from:input, change, submit", hx_target="#results",
        hx_select="#results", hx_swap="outerHTML", hx_push_url="true", hx_sync="this:replace",
    )  # fmt: skip
    add = page.form("/add", _fields(page, None), tag("button", w["save"], class_="primary"), class_="edit")
    adding = tag("details", tag("summary", w["add"]), add, class_="add") if add else None
    results: list[Child] = [told_line(page, told, undo)]
    if found.hits:
        results += [_legend(w), tag("ol", [_hit(page, hit, asked.q) for hit in found.hits], class_="facts")]
    elif found.facts:
        results.append(tag("ol", [fact_item(page, fact) for fact in found.facts], class_="facts"))
    else:
        results.append(
            tag("p", w["nothing"] if asked.q or asked.category or asked.page > 1 else w["empty"], class_="empty")
        )
    if asked.page > 1:
        results.append(tag("a", "← ", w["newer"], href=f"/?{asked.at(asked.page - 1)}", class_="turn", rel="prev"))
    if found.more:
        results.append(tag("a", w["older"], " →", href=f"/?{asked.at(asked.page + 1)}", class_="turn", rel="next"))
    if found.hits or found.facts:
        address = f"/export.jsonl?{urlencode(asked.fields())}"
        results.append(tag("a", w["export"], href=address, class_="turn", hx_boost="false"))
    return tag(
        "div",
        tag("h1", w["facts"], class_="hidden"),
        search,
        adding,
        tag("section", results, id="results", aria_live="polite"),
    )


def one(page: Page, fact: Fact, told: str) -> Markup:
    """A page of one fact."""
    return tag(
        "div",
        tag("h1", f"#{fact.fact_id}"),
        told_line(page, told, None),
        tag("ol", fact_item(page, fact), class_="facts"),
    )


def state(fact: Fact) -> str:
    """What tells whether a fact still says what a form was made of."""
    said = repr((fact.content, fact.category, fact.tags, sorted(fact.entities)))
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


def edit(page: Page, fact: Fact, typed: Fact | None = None) -> Markup:
    """The form to change a fact; with `typed`, what it says by now above what a visitor was about to make of it."""
    w, page = page.words, replace(page, here=f"/fact/{fact.fact_id}")
    now = None
    if typed is not None:
        now = [
            tag("p", w["changed_meanwhile"], class_="note", role="alert"),
            tag("ol", fact_item(page, fact), class_="facts"),
        ]
    form = page.form(
        f"/fact/{fact.fact_id}/edit",
        tag("input", type="hidden", name="seen", value=state(fact)),
        tag("input", type="hidden", name="had_entities", value="1") if fact.entities else None,
        _fields(page, typed or fact),
        tag(
            "div",
            tag("button", w["save"], class_="primary"),
            tag("a", w["cancel"], href=f"/fact/{fact.fact_id}"),
            class_="row",
        ),
        class_="edit",
    )
    return tag(
        "div",
        tag("h1", f"{w['edit']} #{fact.fact_id}"),
        now,
        form,
        page.button(f"/fact/{fact.fact_id}/remove", w["remove"], class_="bad"),
    )


def _fields(page: Page, fact: Fact | None) -> list[Child]:
    w = page.words
    key = fact.fact_id if fact else "new"
    values = ("general", "", "") if fact is None else (fact.category, fact.tags, ", ".join(fact.entities))
    parts: list[Child] = [
        tag("label", w["content"], for_=f"content-{key}"),
        tag(
            "textarea",
            Markup("\n"),
            fact.content if fact else "",
            name="content",
            id=f"content-{key}",
            rows=3,
            required=True,
        ),
    ]
    for name, label, value in zip(("category", "tags", "entities"), ("category", "tags", "names"), values, strict=True):
        parts.append(tag("label", w[label], for_=f"{name}-{key}"))
        parts.append(tag("input", name=name, id=f"{name}-{key}", value=value, autocomplete="off"))
    return parts


def _hit(page: Page, hit: Hit, question: str) -> Markup:
    w = page.words
    score = tag("div", f"{hit.score:.3f}", tag("small", f"{w['trust']} {hit.fact.trust_score:.2f}"), class_="score")
    terms = dict.fromkeys(analysis.query_terms(question))
    held = set(analysis.analyze(hit.fact.content))
    shared = [term for term in terms if term in held]
    why = tag(
        "details",
        tag("summary", w["why"]),
        tag("div", _channels(w, hit), tag("dl", _reasons(w, hit, shared, len(terms))), class_="reasons"),
        class_="why",
    )
    return _row(page, hit.fact, score, _bars(w, hit), why, frozenset(shared))


def _channels(w: Words, hit: Hit) -> Markup:
    """What each channel gives, and the sum."""
    rows: list[Child] = [
        tag("tr", *(tag("th", w[name], scope="col") for name in ("channel", "share", "weight", "gives")))
    ]
    for name in CHANNELS:
        value, weight = getattr(hit.channels, name), getattr(hit.weights, name)
        absent = value is None or weight is None
        cells = (w["missing"], "", "") if absent else (f"{value:.3f}", f"× {weight:.2f}", f"= {value * weight:.3f}")
        rows.append(
            tag("tr", tag("th", tag("i", class_=name), w[name], scope="row"), *(tag("td", cell) for cell in cells))
        )
    total = (tag("td", cell) for cell in ("", "", f"= {hit.relevance:.3f}"))
    rows.append(tag("tr", tag("th", w["relevance"], scope="row"), *total, class_="total"))
    return tag("table", rows)


def _reasons(w: Words, hit: Hit, shared: list[str], asked: int) -> list[Markup]:
    """How the score comes about, and what question and fact have in common."""
    factors = {"relevance": f"{hit.relevance:.3f}", "trust": f"{hit.fact.trust_score:.2f}", "decay": f"{hit.decay:.2f}"}
    if hit.timely != 1:
        factors["timely"] = f"{hit.timely:.2f}"
    lines = {
        "score": f"{' × '.join(f'{w[name]} {value}' for name, value in factors.items())} = {hit.score:.3f}",
        "shared_terms": f"{', '.join(shared) or '–'} ({len(shared)}/{asked})",
        "shared_names": ", ".join(hit.named) or "–",
        "cosine": w["no_vector"] if hit.cosine is None else f"{hit.cosine:.3f} ({w['cosine_said']})",
    }
    return [tag("div", tag("dt", w[name], ": "), tag("dd", said)) for name, said in lines.items()]


def fact_item(page: Page, fact: Fact) -> Markup:
    """One fact in a list."""
    score = tag(
        "div", f"#{fact.fact_id}", tag("small", f"{page.words['trust']} {fact.trust_score:.2f}"), class_="score"
    )
    return _row(page, fact, score, None, None)


def _row(page: Page, fact: Fact, score: Child, bars: Child, why: Child, marked: frozenset[str] = frozenset()) -> Markup:
    w, place = page.words, f"/fact/{fact.fact_id}"
    meta = tag(
        "div", badge(fact.category), bars, [name_link(name) for name in fact.entities],
        tag("span", f"#{fact.tags.replace(',', ' #')}", class_="tags") if fact.tags else None,
        tag("meter", min=0, max=1, value=f"{fact.trust_score:.2f}", aria_label=f"{w['trust']} {fact.trust_score:.2f}"),
        tag("time", fact.created_at.strftime("%Y-%m-%d"), datetime=fact.created_at.isoformat()), class_="meta",
    )  # fmt: skip
    # One form with four ends: a form for each button makes a page of 50 facts a third longer.
    doors = [
        tag("button", sign, formaction=f"{place}/{action}", aria_label=w[action], title=w[action])
        for sign, action in (("▲", "helpful"), ("▼", "unhelpful"), ("×", "remove"))
    ]
    edit_link = tag("a", w["edit"], href=f"{place}/edit", class_="button")
    acts = page.form(f"{place}/helpful", *doors[:2], edit_link, doors[2], class_="act")
    return tag(
        "li",
        score,
        tag("div", _content(fact.content, marked), class_="content", dir="auto"),
        acts,
        meta,
        why,
        id=f"fact-{fact.fact_id}",
    )


def _content(content: str, marked: frozenset[str]) -> Child:
    """The text of a fact, of a long one its beginning, which opens; words whose terms are `marked` stand out."""
    if len(content) > LONG_CHARS:
        return tag("details", tag("summary", f"{content[:SHOWN_CHARS]}…"), content[SHOWN_CHARS:])
    if not marked:
        return content
    parts = _WORD.split(content)  # every second part is a word
    return [tag("mark", part) if place % 2 and _is_marked(part, marked) else part for place, part in enumerate(parts)]


def _is_marked(word: str, marked: frozenset[str]) -> bool:
    terms = analysis.analyze(word)
    return bool(terms) and marked.issuperset(terms)


def _bars(words: Words, hit: Hit) -> Markup:
    values = [(name, getattr(hit.channels, name) or 0.0) for name in CHANNELS]
    drawn = []
    for place, (name, value) in enumerate(values):
        drawn.append(
            tag(
                "rect",
                tag("title", f"{words[name]} {value:.2f}"),
                x=place * 44,
                y=0,
                width=40,
                height=8,
                rx=2,
                class_="ground",
            )
        )
        drawn.append(tag("rect", x=place * 44, y=0, width=f"{40 * value:.1f}", height=8, rx=2, class_=name))
    label = ", ".join(f"{words[name]} {value:.2f}" for name, value in values)
    return tag("svg", drawn, viewBox="0 0 172 8", class_="bars", role="img", aria_label=label)


def _legend(words: Words) -> Markup:
    return tag(
        "p",
        [tag("span", tag("i", class_=name), words[name]) for name in CHANNELS],
        tag("span", words["best_first"]),
        class_="legend",
    )
