"""The commands about the embedding model: where it comes from, whether it is whole, getting it, going over to it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from holomem.cli import render
from holomem.cli.console import print_json, print_lines, say, visible
from holomem.cli.program import Command, Failure, json_option, note, opened
from holomem.embedding.sources import build_model, fetch_model, sources, state, verify_model

__all__ = ["model"]


@click.group()
def model() -> None:
    """Show, check, fetch and build the embedding model."""


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
    if as_json:
        print_json({"folder": str(folder), "build": cost})
    else:
        say(visible(f"the model is in {folder}"))
        if cost is not None:
            say(render.build_cost(cost))
    _tell_if_not_used(folder)


@model.command(cls=Command)
@json_option
def fetch(as_json: bool) -> None:
    """Get the default model from the Hugging Face hub (128 MB) into its cache.

    What is there whole is not fetched again. HF_HOME, HF_HUB_OFFLINE and HF_ENDPOINT hold.
    """
    folder = fetch_model()
    print_json({"folder": str(folder)}) if as_json else say(visible(f"the model is in {folder}"))
    _tell_if_not_used(folder)


@model.command(cls=Command)
@json_option
def use(as_json: bool) -> None:
    """Make the first installed model the one of this memory.

    A memory keeps the model that it was filled with, whatever else is installed later; `holomem reembed` then replaces
    its vectors.
    """
    with opened() as memory:
        chosen = memory.use_model()
        stale = memory.status().missing_vectors
    print_json(chosen) if as_json else say(visible(f"this memory uses {chosen.name} ({chosen.file_hash[:12]})"))
    if stale:
        note(f"{stale} facts have no vector of it yet; run `holomem reembed`")


def _tell_if_not_used(folder: Path) -> None:
    used = next((source for source in sources() if source.embedder is not None), None)
    if used is not None and used.embedder is not None and used.embedder.folder != folder:
        note(f"it is not the one that is used: {used.name} {used.message}")
