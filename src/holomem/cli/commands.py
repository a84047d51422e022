"""The commands about facts: putting in, finding again, mending."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeVar

import click

from holomem.cli import render
from holomem.cli.console import print_json, print_lines, read_stdin, say, visible
from holomem.cli.program import Command, asker, json_option, note, opened
from holomem.errors import FactNotFound
from holomem.types import NewFact, Scope, StructuralHit

__all__ = [
    "add",
    "ask",
    "contradictions",
    "edit",
    "feedback",
    "history",
    "list_facts",
    "probe",
    "reason",
    "related",
    "remove",
    "search",
    "show",
    "undo",
]

EXPLAINED: Final = 3  # hits that `search --explain` takes apart
CHECKED: Final = 10  # of the facts that one `add` adds, those compared with the others
NOTED: Final = 3  # facts that `add` tells a new one contradicts
LARGEST: Final = 2**63 - 1  # an integer of SQLite

LONG_CHARS: Final = 400  # a shorter fact fits into one window of every model

F = TypeVar("F", bound=Callable[..., Any])


def _moment(_: click.Context, option: click.Parameter, value: str | None) -> datetime | None:
    """A day or a time in ISO 8601; a day as --until lasts until its end."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no time; use 2026-05-03 or 2026-05-03T10:00") from None
    if option.name == "until" and ":" not in value and "T" not in value:
        moment += timedelta(days=1, microseconds=-1)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _end(_: click.Context, __: click.Parameter, value: str | None) -> datetime | str | None:
    """The time after which a fact is no longer recalled: a time, a number of days such as 30d, or never."""
    if value is None or value == "never":
        return value
    if value.endswith("d") and value[:-1].isdecimal():
        return datetime.now(UTC) + timedelta(days=int(value[:-1]))
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no time; use 30d, 2026-05-03, 2026-05-03T10:00 or never") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _fillers(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    """ROLE=NAME pairs as a mapping, None when there are none; a single "" is the empty one."""
    if values == ("",):
        return {}
    pairs = [value.partition("=") for value in values]
    for value, (_role_name, sign, name) in zip(values, pairs, strict=True):
        if not sign or not name.strip():
            raise click.BadParameter(f"{value!r} is no ROLE=NAME pair; use such as owner=Alice")
    if len({role for role, _, _ in pairs}) < len(pairs):
        raise click.BadParameter("a role is given twice")
    return {role: name for role, _, name in pairs} or None


_ID: Final = click.IntRange(1, LARGEST)
_category = click.option("--category", metavar="NAME", help="Only facts of this category.")
_fact_id = click.argument("fact_id", metavar="ID", type=_ID)
_since = click.option("--since", callback=_moment, metavar="TIME", help="Only facts made then or later.")
_until = click.option("--until", callback=_moment, metavar="TIME", help="Only facts made then or earlier.")
_limit = click.option(
    "--limit", type=click.IntRange(1, 1000), default=10, metavar="N", help="At most so many; 10 unless given."
)
_min_trust = click.option(
    "--min-trust", type=click.FloatRange(0, 1), metavar="X", help="Only facts trusted so much; 0.3 unless given."
)
_role = click.option(
    "--role",
    "roles",
    multiple=True,
    callback=_fillers,
    metavar="ROLE=NAME",
    help='Who has which part in it, such as owner=Alice; may be repeated; "" for none.',
)
_half_life = click.option(
    "--half-life", type=click.FloatRange(min=0), default=0.0, metavar="DAYS", help="A fact of this age counts half."
)


_source = click.option("--source", metavar="TEXT", help="Where it is from.")
_expires = click.option(
    "--expires",
    "expires_at",
    callback=_end,
    metavar="TIME",
    help="Not recalled from then on: 30d, a day, a time, never.",
)


def _structural(function: F) -> F:
    """The options that probe, related and reason share."""
    for option in (json_option, asker, _half_life, _min_trust, _category, _limit):
        function = option(function)
    return function


@click.command(cls=Command)
@click.argument("contents", metavar="CONTENT...", nargs=-1, required=True)
@click.option("--category", default="general", metavar="NAME", help="What sort of fact it is; general unless given.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; may be repeated.")
@click.option("--entity", "entities", multiple=True, metavar="NAME", help="A name it is about; else found by itself.")
@_role
@_source
@_expires
@click.option("--time", callback=_moment, metavar="TIME", help="When it was said; now unless given.")
@click.option("--supersedes", type=_ID, metavar="ID", help="The fact that this one replaces.")
@asker
@json_option
def add(
    contents: tuple[str, ...], as_json: bool, entities: tuple[str, ...], roles: dict[str, str] | None, **labels: Any
) -> None:
    """Add facts: each CONTENT is one. A single `-` reads them from stdin, one per line.

    A content that is there already stays as it is.
    """
    if contents == ("-",):
        contents = tuple(line for line in read_stdin().split("\n") if line.strip())
    elif len(contents) > 1 and not any(" " in content for content in contents):
        raise click.UsageError("several words without quotes; put each fact in quotes")
    if not contents or not all(content.strip() for content in contents):
        raise click.UsageError("nothing to add; a fact needs some text")
    contents = tuple(dict.fromkeys(content.strip() for content in contents))
    if labels["expires_at"] == "never":
        labels["expires_at"] = None
    if labels["supersedes"] is not None and len(contents) > 1:
        raise click.UsageError("--supersedes names one fact; give one to replace it")
    with opened(create=True) as memory:
        before = len(memory)
        ids = memory.add_many(
            [NewFact(content, entities=entities or None, roles=roles, **labels) for content in contents]
        )
        known = len(ids) - (len(memory) - before)
        scope = labels.get("scope")
        facts = [memory.get(fact_id) for fact_id in ids]
        against = [(fact, memory.contradicted_by(fact.content, limit=NOTED, scope=scope)) for fact in facts[:CHECKED]]
    for fact, conflicts in against:
        for conflict in conflicts:
            note(f"{fact.fact_id} contradicts {conflict.fact.fact_id} ({conflict.reason})")
    if as_json:
        print_json(facts)
        return
    print_lines(render.fact_table(facts))
    if known > 0:
        note(f"{known} of these {'was' if known == 1 else 'were'} there already and stayed as before")


@click.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@_limit
@_category
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only facts with this tag; may be repeated.")
@click.option("--all-tags", is_flag=True, help="Only facts with all of the tags, not just one.")
@_min_trust
@_since
@_until
@click.option(
    "--min-score", type=click.FloatRange(0, 1), metavar="X", help="Nothing if no fact is so relevant; 0 shows all."
)
@click.option(
    "--diversity", type=click.FloatRange(0, 1), default=0.0, metavar="X", help="Facts that repeat come later."
)
@click.option("--max-chars", type=click.IntRange(1), metavar="N", help="At most so many characters of facts.")
@click.option("--cascade", is_flag=True, help="Only facts that hold every word; else the nearest meanings.")
@_half_life
@click.option("--explain", is_flag=True, help="Take the scores of the first hits apart.")
@asker
@json_option
def search(
    query: tuple[str, ...],
    limit: int,
    category: str | None,
    tags: tuple[str, ...],
    all_tags: bool,
    min_trust: float | None,
    since: datetime | None,
    until: datetime | None,
    min_score: float | None,
    diversity: float,
    max_chars: int | None,
    cascade: bool,
    half_life: float,
    explain: bool,
    scope: Scope | None,
    as_json: bool,
) -> None:
    """Find the facts that answer QUERY, best first.

    Any text is a query; a single `-` reads it from stdin. The table has the score of every channel. Facts that have
    next to nothing to do with the question are not shown; --min-score 0 shows them.
    """
    question = read_stdin() if query == ("-",) else " ".join(query)
    mode: Literal["union", "cascade"] = "cascade" if cascade else "union"
    with opened(candidates=mode, half_life_days=half_life) as memory:
        hits = memory.search(
            question,
            limit=limit,
            category=category,
            tags=tags,
            match_tags="all" if all_tags else "any",
            since=since,
            until=until,
            scope=scope,
            diversity=diversity,
            max_chars=max_chars,
            **_given(min_trust=min_trust, min_score=min_score),
        )
        off = memory.status().channels if explain else {}
    if as_json:
        print_json(hits)
        return
    _shown(render.hit_table(hits))
    for hit in hits[:EXPLAINED] if explain else ():
        say()
        print_lines(render.explanation(hit, half_life, off))


@click.command(cls=Command)
@click.argument("entity")
@_structural
def probe(entity: str, half_life: float, as_json: bool, **chosen: Any) -> None:
    """Find the facts that are bound to an entity."""
    with opened(half_life_days=half_life, model=False) as memory:
        _structure(memory.probe(entity, **_given(**chosen)), as_json)


@click.command(cls=Command)
@click.argument("entity")
@click.option("--companions", is_flag=True, help="The names that it stands together with, and their other facts.")
@_structural
def related(entity: str, companions: bool, half_life: float, as_json: bool, **chosen: Any) -> None:
    """Find what stands beside an entity.

    Not its own facts, but those of the names that it stands together with.
    """
    with opened(half_life_days=half_life, model=False) as memory:
        if companions:
            found = memory.companions(entity, **_given(**chosen))
            print_json(found) if as_json else _shown(render.companion_lines(found))
            return
        _structure(memory.related(entity, **_given(**chosen)), as_json)


@click.command(cls=Command)
@click.argument("entities", metavar="ENTITY...", nargs=-1, required=True)
@_structural
def reason(entities: tuple[str, ...], half_life: float, as_json: bool, **chosen: Any) -> None:
    """Find the facts that several entities have in common."""
    with opened(half_life_days=half_life, model=False) as memory:
        _structure(memory.reason(entities, **_given(**chosen)), as_json)


@click.command(cls=Command)
@click.argument("role")
@click.argument("where", metavar="ROLE=NAME...", nargs=-1, required=True, callback=_fillers)
@_structural
def ask(role: str, where: dict[str, str], half_life: float, as_json: bool, **chosen: Any) -> None:
    """Find who fills a role in some facts.

    ROLE is what is asked for, ROLE=NAME what the facts must say: `ask owner service=nginx` finds the owners of nginx.
    """
    with opened(half_life_days=half_life, model=False) as memory:
        found = memory.ask(role, where, **_given(**chosen))
    if as_json:
        print_json(found)
    else:
        _shown(render.answer_lines(found))


@click.command(cls=Command)
@_limit
@_category
@_min_trust
@click.option("--min-score", type=click.FloatRange(0, 1), metavar="X", help="Only pairs so sure; 0.7 unless given.")
@click.option("--keep-both", nargs=2, type=_ID, metavar="ID ID", help="Say first that these two do hold together.")
@click.option("--doubt", nargs=2, type=_ID, metavar="ID ID", help="Take --keep-both back for these two.")
@asker
@json_option
def contradictions(
    as_json: bool, keep_both: tuple[int, int] | None, doubt: tuple[int, int] | None, scope: Scope | None, **chosen: Any
) -> None:
    """Find pairs of facts that cannot both hold, surest first."""
    with opened() as memory:
        for pair, keep in ((keep_both, True), (doubt, False)):
            if pair:
                memory.keep_both(*pair, keep=keep, scope=scope)
        found = memory.contradictions(**_given(scope=scope, **chosen))
    if as_json:
        print_json(found)
    else:
        _shown(render.conflicts(found))


@click.command("list", cls=Command)
@click.option("--matching", default="", metavar="WORDS", help="Only facts that hold all of these words.")
@_category
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only facts with this tag; may be repeated.")
@_since
@_until
@click.option(
    "--limit", type=click.IntRange(1, LARGEST), default=50, metavar="N", help="At most so many; 50 unless given."
)
@click.option("--offset", type=click.IntRange(0, LARGEST), default=0, metavar="N", help="Pass over so many first.")
@click.option("--current", is_flag=True, default=None, help="Only what is neither expired nor superseded.")
@asker
@json_option
def list_facts(limit: int, offset: int, as_json: bool, **chosen: Any) -> None:
    """List facts, newest first, also those of low trust. Also called `facts`."""
    with opened(model=False) as memory:
        # One more than is shown tells whether there are more.
        facts = memory.facts(limit=min(limit + 1, LARGEST), offset=offset, **_given(**chosen))
    more, facts = len(facts) > limit, facts[:limit]
    if as_json:
        print_json(facts)
    else:
        _shown(render.fact_table(facts))
    if more:
        note(f"there are more; the next ones with --offset {offset + limit}")


@click.command(cls=Command)
@_fact_id
@json_option
def show(fact_id: int, as_json: bool) -> None:
    """Show everything about one fact.

    Of a long one also how much of it the model reads: up to four windows.
    """
    with opened() as memory:
        fact = memory.get(fact_id)
        reading = memory.reading(fact_id) if len(fact.content) > LONG_CHARS else None
    print_json(fact) if as_json else print_lines(render.fact_lines(fact, reading))


@click.command(cls=Command)
@_fact_id
@click.option("--content", metavar="TEXT", help="What it says from now on; `-` reads it from stdin.")
@click.option("--category", metavar="NAME", help="Its category.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help='Its tags, in place of the old ones; "" for none.')
@click.option("--entity", "entities", multiple=True, metavar="NAME", help='The names it is about; "" for none.')
@_role
@click.option("--trust-delta", type=click.FloatRange(-1, 1), metavar="X", help="Add this to its trust.")
@_source
@_expires
@json_option
def edit(fact_id: int, content: str | None, as_json: bool, **changes: Any) -> None:
    """Change what is given of a fact; the rest stays."""
    given = _given(content=read_stdin().strip() if content == "-" else content, **changes)
    if not given:
        raise click.UsageError("nothing to change; `holomem edit --help` lists what can be")
    with opened(model="content" in given) as memory:
        fact = memory.update(fact_id, **given)
    print_json(fact) if as_json else print_lines(render.fact_lines(fact))


@click.command(cls=Command)
@click.argument("fact_ids", metavar="ID...", nargs=-1, required=True, type=_ID)
@json_option
@click.pass_context
def remove(ctx: click.Context, fact_ids: tuple[int, ...], as_json: bool) -> None:
    """Remove facts. One that is not there does not keep the others."""
    removed = []
    with opened(model=False) as memory:
        for fact_id in dict.fromkeys(fact_ids):
            try:
                fact = memory.get(fact_id)
                memory.remove(fact_id)
            except FactNotFound as error:
                say(f"error: {error}", err=True)
                continue
            removed.append(fact)
            if not as_json:
                say(f"removed {fact_id}  {visible(fact.content)}")
    if as_json:
        print_json([fact.fact_id for fact in removed])
    if len(removed) < len(set(fact_ids)):
        ctx.exit(1)


@click.command(cls=Command)
@_fact_id
@click.option("--helpful/--unhelpful", "helpful", default=None, help="Trust + 0.05, or - 0.10.")
@json_option
def feedback(fact_id: int, helpful: bool | None, as_json: bool) -> None:
    """Say whether a fact helped; its trust follows."""
    if helpful is None:
        raise click.UsageError("say --helpful or --unhelpful")
    with opened(model=False) as memory:
        fact = memory.feedback(fact_id, helpful=helpful)
    if as_json:
        print_json(fact)
    else:
        say(f"trust of {fact_id} is {fact.trust_score:.2f} now")


@click.command(cls=Command)
@click.argument("fact_id", metavar="[ID]", type=_ID, required=False)
@_limit
@json_option
def history(fact_id: int | None, limit: int, as_json: bool) -> None:
    """List what was done to a fact, or to all, newest first.

    `holomem undo` takes the number of a change.
    """
    with opened(model=False) as memory:
        found = memory.history(fact_id, limit=limit)
    if as_json:
        print_json(found)
    else:
        _shown(render.change_table(found))


@click.command(cls=Command)
@click.argument("change_id", metavar="CHANGE", type=_ID)
@json_option
def undo(change_id: int, as_json: bool) -> None:
    """Take back a change that `holomem history` lists.

    That is a change too, and can be undone.
    """
    with opened() as memory:
        memory.undo(change_id)
    print_json({"undone": change_id}) if as_json else say(f"change {change_id} is undone")


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given, so that the others keep the defaults of `Memory`."""
    return {name: value for name, value in options.items() if value is not None and value != ()}


def _shown(lines: Iterable[str]) -> None:
    shown = list(lines)
    print_lines(shown)
    if not shown:
        note("nothing found")


def _structure(hits: list[StructuralHit], as_json: bool) -> None:
    if as_json:
        print_json(hits)
    else:
        _shown(render.structural_table(hits))
