"""The commands about the embedding model: where it comes from, whether it is whole, building it."""

from __future__ import annotations

from dataclasses import asdict

import click

from holomem.cli import render
from holomem.cli.console import print_json, print_lines, say, visible
from holomem.cli.program import Command, Failure, json_option, note
from holomem.embedding.sources import build_model, sources, state, verify_model

__all__ = ["model"]


@click.group()
def model() -> None:
    """Show, check and build the embedding model."""


@model.command(cls=Command)
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Show which model is used and where it comes from.

    The places are asked in the order in which they stand; the first that has a model is used. Nothing is loaded or
    built. The exit code is 1 when there is no model.
    """
    found = state()
    print_json(found) if as_json else print_lines(render.model_state(found))
    if found.problem is not None:
        ctx.exit(1)


@model.command(cls=Command)
@json_option
def path(as_json: bool) -> None:
    """Print the folder of the model that is used."""
    found = state()
    if found.problem is not None or found.folder is None:
        raise Failure(found.problem or "there is no model")
    if found.note is not None:
        note(found.note)
    print_json({"folder": found.folder}) if as_json else say(visible(found.folder))


@model.command(cls=Command)
@json_option
@click.pass_context
def verify(ctx: click.Context, as_json: bool) -> None:
    """Hash the files of the model again.

    The exit code is 1 when one is not the published one.
    """
    checked = verify_model()
    if as_json:
        print_json([{**asdict(file), "intact": file.intact} for file in checked])
    else:
        print_lines(render.checked_files(checked))
    if not all(file.intact for file in checked):
        ctx.exit(1)


@model.command(cls=Command)
@json_option
def build(as_json: bool) -> None:
    """Build the model of the installed weights package now.

    Else the first search does it. A whole one stays as it is, a damaged one is replaced.
    """
    folder, cost = build_model()
    used = next(source for source in sources() if source.embedder is not None)  # this one at least
    if as_json:
        print_json({"folder": str(folder), "build": cost})
    else:
        say(visible(f"the model is in {folder}"))
        if cost is not None:
            say(render.build_cost(cost))
    if used.embedder is not None and used.embedder.folder != folder:
        note(f"it is not the one that is used: {used.name} {used.message}")
