"""The pages about the memory as a whole: contradictions, health, the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holomem.types import Contradiction, MapPoint, Status
from holomem.web.frame import CHANNELS, COLOURS, Page, badge, colour, told_line
from holomem.web.markup import Child, Markup, tag
from holomem.web.texts import Words

# The longer one first: how `claims` begins the reason of a pair.
REASONS: Final = ("same subject and property (", "same subject (", "same subject, one denies what the other says:")

__all__ = ["chart", "contradictions", "health"]


def contradictions(page: Page, pairs: Sequence[Contradiction], told: str, undo: str | None) -> Markup:
    """Pairs side by side, with the reason."""
    w = page.words
    listed = []
    for pair in pairs:
        sides = []
        for fact, other in ((pair.first, pair.second), (pair.second, pair.first)):
            keep = page.button(f"/fact/{other.fact_id}/remove", w["keep"])
            sides.append(
                tag(
                    "div",
                    tag("p", fact.content, dir="auto"),
                    tag("p", f"#{fact.fact_id} ", badge(fact.category), class_="dim"),
                    keep,
                )
            )
        hidden = [
            tag("input", type="hidden", name=n, value=f.fact_id)
            for n, f in (("first", pair.first), ("second", pair.second))
        ]
        both = page.button("/contradictions/both", w["keep_both"], hidden)
        listed.append(
            tag(
                "li",
                tag("p", _reason(w, pair.reason), tag("small", f" · {w['sure']} {pair.score:.2f}"), class_="reason"),
                tag("div", sides, class_="sides"),
                both,
            )
        )
    shown = tag("ol", listed, class_="pairs") if listed else tag("p", w["no_pairs"], class_="empty")
    return tag("div", tag("h1", w["contradictions"]), told_line(page, told, undo), shown)


def _reason(words: Words, reason: str) -> str:
    """The reason in the visitor's language, as far as it is ours and not the facts'."""
    for said in REASONS:
        if reason.startswith(said):
            return words[said] + reason.removeprefix(said).replace("), other value:", words["), other value:"]).replace(
                "), opposites:", words["), opposites:"]
            )
    return reason


def health(
    page: Page, status: Status, progress: tuple[int, int] | None, failed: str | None, *, checked: bool
) -> Markup:
    """The state of the memory."""
    w = page.words
    channels: list[tuple[str, Child]] = []
    for name in CHANNELS:
        why = status.channels.get(name)
        dot = tag("span", class_="dot" if why is None else "dot off")
        channels.append((f"{w['channel']}: {w[name]}", [dot, w["on"] if why is None else f"{w['off']}: {why}"]))
    rss = "–" if status.rss_bytes is None else f"{status.rss_bytes / 1e6:.0f} MB"
    rows: list[tuple[str, Child]] = [
        (w["file"], status.path), (w["size"], f"{status.file_bytes / 1e6:.1f} MB, {status.journal_mode}"),
        (w["facts"], f"{status.facts:,}"), (w["entities"], f"{status.entities:,}"),
        *channels,
        (w["model"], "–" if status.model is None else f"{status.model.name} {status.model.revision[:12]}"),
        (w["vectors"], f"{status.vectors:,} / {status.facts:,}"), (w["memory"], rss),
        (w["kernel"], f"{status.kernel}, SQLite {status.sqlite_version}"),
        *((w["problem"], problem) for problem in status.problems), *((w["note"], note) for note in status.notes),
    ]  # fmt: skip
    table = tag(
        "table", [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows], class_="state"
    )
    parts: list[Child] = [tag("h1", w["health"]), table]
    if checked and not status.problems:
        parts.append(tag("p", w["sound"], class_="note", role="status"))
    if failed:
        parts.append(tag("p", failed, class_="note", role="alert"))
    poll: dict[str, object] = {}
    if progress is not None:
        done, total = progress
        bar = tag("progress", value=done, max=max(total, 1), aria_label=w["running"])
        parts.append(tag("p", w["running"], f" {done}/{total} ", bar))
        poll = {
            "hx_get": "/health",
            "hx_trigger": "every 1s",
            "hx_select": "#health",
            "hx_target": "#health",
            "hx_swap": "outerHTML",
        }
    elif status.missing_vectors and status.channels.get("semantic") is None:
        parts.append(page.button("/health/backfill", f"{w['backfill']} ({status.missing_vectors:,})", class_="primary"))
    parts.append(page.button("/health/check", w["check"]))
    return tag("div", parts, id="health", **poll)


def chart(page: Page, points: Sequence[MapPoint]) -> Markup:
    """The facts as dots in a plane."""
    w = page.words
    if not points:
        return tag("div", tag("h1", w["map"]), tag("p", w["no_map"], class_="empty"))
    dots = []
    for p in points:
        place = {"cx": f"{20 + 760 * p.x:.1f}", "cy": f"{20 + 460 * p.y:.1f}"}
        title = tag("title", f"{p.category}: {p.content[:120]}")
        dot = tag("circle", title, r=5, class_=colour(p.category), **place)
        dots.append(tag("a", dot, href=f"/fact/{p.fact_id}", aria_label=p.content[:120]))
    legend = tag("p", [badge(name) for name in sorted({p.category for p in points})[:COLOURS]], class_="legend")
    drawn = tag("svg", dots, viewBox="0 0 800 500", class_="map", role="group", aria_label=w["map"])
    return tag("div", tag("h1", w["map"]), tag("p", w["map_said"], class_="dim"), legend, drawn)
