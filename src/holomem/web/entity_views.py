"""The pages of entities: the list, and one with its facts and what stands beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import cos, pi, sin, sqrt
from typing import Final
from urllib.parse import urlencode

from holomem.types import Entity, StructuralHit
from holomem.web.fact_views import fact_item
from holomem.web.frame import Page, name_link, told_line
from holomem.web.markup import Child, Markup, tag

__all__ = ["NAMES", "entities", "entity"]

NAMES: Final = 200  # on a page
BESIDE: Final = 14  # drawn around one


def entities(page: Page, shown: Sequence[Entity], wanted: str, number: int, total: int) -> Markup:
    """The list of names."""
    w = page.words
    said = tag("p", w["entities_said"], class_="dim") if shown else None
    form = tag(
        "form",
        tag("input", type="search", name="q", value=wanted, aria_label=w["find_name"], placeholder=w["find_name"]),
        tag("button", w["show"]),
        class_="search", role="search", method="get", action="/entities",
    )  # fmt: skip
    rows = [
        tag(
            "li",
            name_link(e.name),
            " ",
            tag("span", f"{e.facts}", class_="dim"),
            tag("span", f" · {', '.join(e.aliases)}", class_="dim") if e.aliases else None,
        )
        for e in shown
    ]
    turns = []
    for other, label in ((number - 1, w["newer"]), (number + 1, w["older"])):
        if other >= 1 and (other - 1) * NAMES < total and other != number:
            turns.append(tag("a", label, href=f"/entities?{urlencode({'q': wanted, 'page': other})}", class_="turn"))
    listed: Child = (
        tag("ul", rows, class_="names")
        if rows
        else tag("p", w["nothing"] if wanted else w["no_entities"], class_="empty")
    )
    return tag("div", tag("h1", w["entities"]), form, said, listed, turns)


def entity(
    page: Page,
    name: str,
    known: Entity | None,
    hits: Sequence[StructuralHit],
    related: Sequence[StructuralHit],
    told: str,
) -> Markup:
    """One name: its facts, what stands beside it, and the forms to mend it."""
    w = page.words
    beside = Counter(other for hit in hits for other in hit.fact.entities if other != name)
    parts: list[Child] = [tag("h1", name), told_line(page, told, None)]
    if known is not None:
        own = tag("input", type="hidden", name="name", value=name)
        aliases = [
            tag(
                "span",
                alias,
                page.button(
                    "/entity/unalias",
                    "×",
                    own,
                    tag("input", type="hidden", name="other", value=alias),
                    name=w["unalias"],
                ),
            )
            for alias in known.aliases
        ]
        parts.append(tag("div", w["aliases"], ": ", aliases, class_="row") if aliases else None)
        for action, label, button in (
            ("rename", "new_name", "rename"),
            ("merge", "other_name", "merge"),
            ("alias", "other_name", "alias"),
        ):
            box = tag(
                "input",
                name="other",
                required=True,
                aria_label=f"{w[button]}: {w[label]}",
                placeholder=w[label],
                autocomplete="off",
            )
            parts.append(page.form(f"/entity/{action}", own, box, tag("button", w[button]), class_="row"))
    if beside:
        parts += [tag("h2", w["beside"]), tag("p", w["beside_said"], class_="dim")]
        parts.append(_graph(name, beside.most_common(BESIDE)))
    listed = tag("ol", [fact_item(page, hit.fact) for hit in hits], class_="facts")
    parts += [tag("h2", w["its_facts"]), listed if hits else tag("p", w["unknown"], class_="empty")]
    if related:
        parts += [tag("h2", w["related"]), tag("ol", [fact_item(page, hit.fact) for hit in related], class_="facts")]
    return tag("div", parts)


def _graph(name: str, beside: Sequence[tuple[str, int]]) -> Markup:
    """The name in the middle, those beside it around, with stronger lines the more facts hold both."""
    most = max(count for _, count in beside)
    lines, labels = [], [tag("text", _cut(name), x=400, y=184, class_="hub")]
    for place, (other, count) in enumerate(beside):
        angle = 2 * pi * (place + 0.5) / len(beside) - pi / 2
        x, y = 400 + 280 * cos(angle), 180 + 145 * sin(angle)
        width = 1 + 2 * sqrt(count / most) * (most > 1)
        lines.append(tag("line", x1=400, y1=180, x2=f"{x:.0f}", y2=f"{y:.0f}", stroke_width=f"{width:.1f}"))
        link = f"/entity?{urlencode({'name': other}, errors='replace')}"
        labels.append(tag("a", tag("text", f"{_cut(other)} {count}", x=f"{x:.0f}", y=f"{y + 4:.0f}"), href=link))
    return tag("svg", lines, labels, viewBox="0 0 800 360", class_="graph", role="group", aria_label=name)


def _cut(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"
