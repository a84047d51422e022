"""The commands about names: listing them, mending what is called how and which facts are whose."""

from __future__ import annotations

from typing import Final

import click

from holomem.cli import render
from holomem.cli.console import print_json, print_lines, say
from holomem.cli.program import Command, Group, json_option, note, opened
from holomem.types import Entity, Fact

__all__ = ["entities"]

_ID: Final = click.IntRange(1, 2**63 - 1)


@click.group(cls=Group, invoke_without_command=True)
@json_option
@click.pass_context
def entities(ctx: click.Context, as_json: bool) -> None:
    """List the known names, or mend them.

    Those of most facts come first. Each change is undone by its opposite: rename, merge and split, alias and unalias, link and unlink.
    """
    if ctx.invoked_subcommand is None:
        _list(as_json)


@entities.command("list", cls=Command)
@json_option
def list_entities(as_json: bool) -> None:
    """List the known names, those of most facts first."""
    _list(as_json)


@entities.command(cls=Command)
@click.argument("entity")
@click.argument("name")
@click.option("--keep-alias", is_flag=True, help="Let the old name find it still.")
@json_option
def rename(entity: str, name: str, keep_alias: bool, as_json: bool) -> None:
    """Give ENTITY another NAME. One of its aliases changes places with the name."""
    with opened(model=False) as memory:
        _show(memory.rename_entity(entity, name, keep_alias=keep_alias), as_json)


@entities.command(cls=Command)
@click.argument("into")
@click.argument("others", metavar="OTHER...", nargs=-1, required=True)
@json_option
def merge(into: str, others: tuple[str, ...], as_json: bool) -> None:
    """Make INTO and the OTHERs one; their names become its aliases."""
    with opened(model=False) as memory:
        _show(memory.merge_entities(into, *others), as_json)


@entities.command(cls=Command)
@click.argument("entity")
@click.argument("name", metavar="ALIAS")
@click.option("--fact", "fact_ids", multiple=True, type=_ID, metavar="ID", help="A fact that it takes; repeatable.")
@click.option("--alias", "aliases", multiple=True, metavar="NAME", help="A further alias that it takes; repeatable.")
@json_option
def split(entity: str, name: str, fact_ids: tuple[int, ...], aliases: tuple[str, ...], as_json: bool) -> None:
    """Make an ALIAS of ENTITY an entity of its own.

    It takes the facts given, else those whose texts say it.
    """
    with opened(model=False) as memory:
        _show(memory.split_entity(entity, name, fact_ids=fact_ids or None, aliases=aliases), as_json)


@entities.command(cls=Command)
@click.argument("entity")
@click.argument("name", metavar="ALIAS")
@json_option
def alias(entity: str, name: str, as_json: bool) -> None:
    """Let ENTITY be found by an ALIAS too."""
    with opened(model=False) as memory:
        _show(memory.add_alias(entity, name), as_json)


@entities.command(cls=Command)
@click.argument("entity")
@click.argument("name", metavar="ALIAS")
@json_option
def unalias(entity: str, name: str, as_json: bool) -> None:
    """Take an ALIAS away from ENTITY."""
    with opened(model=False) as memory:
        _show(memory.remove_alias(entity, name), as_json)


@entities.command(cls=Command)
@click.argument("fact_id", metavar="ID", type=_ID)
@click.argument("entity")
@json_option
def link(fact_id: int, entity: str, as_json: bool) -> None:
    """Bind the fact ID to ENTITY, which may be new."""
    with opened(model=False) as memory:
        _show_fact(memory.link(fact_id, entity), as_json)


@entities.command(cls=Command)
@click.argument("fact_id", metavar="ID", type=_ID)
@click.argument("entity")
@json_option
def unlink(fact_id: int, entity: str, as_json: bool) -> None:
    """Say that the fact ID is not about ENTITY, for good."""
    with opened(model=False) as memory:
        _show_fact(memory.unlink(fact_id, entity), as_json)


@entities.command(cls=Command)
@click.argument("fact_ids", metavar="[ID...]", nargs=-1, type=_ID)
@click.option("--replace", is_flag=True, help="Drop the names that are not in the text.")
@json_option
def extract(fact_ids: tuple[int, ...], replace: bool, as_json: bool) -> None:
    """Look for names in the texts of facts, or of all, again.

    What was unlinked stays away.
    """
    with opened(model=False) as memory:
        changed = memory.extract_entities(fact_ids or None, replace=replace)
    if as_json:
        print_json({"changed": changed})
    else:
        say(f"{changed} fact{'' if changed == 1 else 's'} got other names")


def _list(as_json: bool) -> None:
    with opened(model=False) as memory:
        found = memory.entities()
    if as_json:
        print_json(found)
        return
    print_lines(render.entity_table(found))
    if not found:
        note("nothing found")


def _show(entity: Entity, as_json: bool) -> None:
    print_json(entity) if as_json else print_lines(render.entity_table([entity]))


def _show_fact(fact: Fact, as_json: bool) -> None:
    print_json(fact) if as_json else print_lines(render.fact_lines(fact))
