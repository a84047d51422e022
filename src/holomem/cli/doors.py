"""The commands for the programs that use a memory: Hermes Agent, and clients of the Model Context Protocol."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from holomem.cli.console import print_json, say, visible
from holomem.cli.program import Command, Failure, asker, json_option, note, settings
from holomem.types import Scope

__all__ = ["hermes", "mcp"]


def _home_option(function: Any) -> Any:
    option = click.option(
        "--home",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Hermes' folder; else $HERMES_HOME.",
    )
    return option(function)


@click.group()
def hermes() -> None:
    """Be the memory of Hermes Agent."""


@hermes.command(cls=Command)
@_home_option
def install(home: Path | None) -> None:
    """Write the plugin folder holomem below Hermes' folder.

    Hermes must run in the Python in which holomem is installed. Done again, it changes nothing.
    """
    from holomem.hermes.install import install as write_folder
    from holomem.hermes.settings import hermes_home

    folder = write_folder(home or hermes_home())
    say(visible(f"{folder} is written"))
    note(f"it needs holomem in the Python of Hermes; this one is {sys.executable}")
    note("switch it on with `hermes config set memory.provider holomem`, look with `hermes memory status`")


@hermes.command(cls=Command)
@_home_option
def uninstall(home: Path | None) -> None:
    """Remove the plugin folder; the memory's file stays."""
    from holomem.hermes.install import uninstall as remove_folder
    from holomem.hermes.settings import hermes_home

    chosen = home or hermes_home()
    say(visible(f"removed from {chosen}" if remove_folder(chosen) else f"nothing of holomem is in {chosen}"))


@hermes.command(cls=Command)
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@_home_option
@json_option
def adopt(file: Path | None, dry_run: bool, home: Path | None, as_json: bool) -> None:
    """Take over the facts of the bundled holographic plugin, in place.

    FILE is its memory_store.db; else the file that config.yaml names. The untouched copy stays beside it, and the
    bundled plugin can go on using the file.
    """
    from holomem.hermes.install import adopt as take_over
    from holomem.hermes.settings import hermes_home, memory_path, read

    chosen = home or hermes_home()
    report = take_over(file or memory_path(read(chosen), chosen), dry_run=dry_run)
    if as_json:
        print_json(report)
        return
    if not report.adopted:
        say(visible(f"{report.path} is a holomem memory already; nothing to do"))
    else:
        done = "would be taken over" if dry_run else "taken over"
        say(visible(f"{report.path}: {report.facts} facts, {report.entities} entities, {report.links} links {done}"))
    if report.copy is not None:
        say(visible(f"the untouched copy is {report.copy}"))
    if report.missing_vectors and not dry_run:
        note(f"{report.missing_vectors} facts have no vector yet; `holomem --db {report.path} backfill` makes them")


@click.command(cls=Command)
@click.option("--http", is_flag=True, help="Serve streamable HTTP on this machine instead of stdin and stdout.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="For --http.")
@click.option("--read-only", is_flag=True, help="Offer no tool that changes anything.")
@asker
def mcp(http: bool, port: int, read_only: bool, scope: Scope | None) -> None:
    """Serve the memory to agents by the Model Context Protocol.

    Needs `pip install holomem[mcp]`. A client starts it; it ends when the client closes the input. With
    --scope it serves one of several who share the file: what belongs to others is neither shown nor changed.
    """
    try:
        from holomem.mcp import serve
    except ImportError as error:
        raise Failure(f"the MCP SDK is not installed ({error}); run `pip install 'holomem[mcp]'`") from error
    chosen = settings()
    serve(chosen.path, model=chosen.model, port=port if http else None, read_only=read_only, scope=scope)
