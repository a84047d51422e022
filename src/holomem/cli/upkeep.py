"""The commands about the memory as a whole: import and export, vectors, state, copies."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from holomem.cli import render
from holomem.cli.console import JsonLines, print_json, print_lines, say, visible
from holomem.cli.program import IN_MEMORY, Command, Failure, json_option, note, opened, settings
from holomem.memory import Memory
from holomem.types import ImportReport, Status

__all__ = ["backfill", "backup", "doctor", "export_facts", "import_facts", "purge", "reembed", "status"]


@click.command("import", cls=Command)
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--restore", is_flag=True, help="Bring back facts that were removed or edited away here.")
@json_option
@click.pass_context
def import_facts(ctx: click.Context, file: str, dry_run: bool, restore: bool, as_json: bool) -> None:
    """Take over facts that `export` wrote; `-` is stdin.

    FILE holds a JSON object per line, of which only "content" must be there. A fact that is here already is compared
    by its time: the newer one wins. A bad line is reported and passed over; the exit code is 1 then.
    """
    # Read before the file is locked for writing, so that a slow source keeps nobody waiting. A byte that is not UTF-8
    # becomes a lone surrogate, which is reported as a fault of its line.
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    lines = data.decode("utf-8-sig", "surrogateescape").split("\n")
    report = _load(lines, restore=restore, dry_run=dry_run)
    if as_json:
        print_json(report)
    else:
        would = "would be " if dry_run else ""
        say(f"{report.added} {would}added, {report.updated} updated, {report.unchanged} unchanged")
        if report.skipped:
            note(f"{report.skipped} that were removed or edited away here stay away; --restore brings them back")
    for number, fault in report.errors:
        say(f"line {number}: {visible(fault)}", err=True)
    if report.errors:
        ctx.exit(1)


def _load(lines: Sequence[str], *, restore: bool, dry_run: bool) -> ImportReport:
    """Import without the model, then make the vectors with a progress bar."""
    if dry_run and not Path(settings().path).exists():
        with Memory(IN_MEMORY, embedder=None) as nothing:
            return nothing.load(lines, restore=restore, dry_run=True)
    with opened(create=True, model=False) as memory:
        report = memory.load(lines, restore=restore, dry_run=dry_run)
    if report.added and not dry_run and settings().model:
        with opened() as memory:
            off = memory.status().channels["semantic"]
            if off is None:
                with _progress("vectors") as progress:
                    memory.backfill(progress=progress)
            else:
                note(f"semantic search is off: {off}")
    return report


@click.command("export", cls=Command)
@click.argument("file", metavar="[FILE]", default="-", type=click.Path(dir_okay=False, allow_dash=True))
def export_facts(file: str) -> None:
    """Write every fact as a line of JSON.

    To FILE, or to stdout. Everything is there but the vectors, which `import` makes anew.
    """
    with opened(model=False) as memory:
        if file == "-":
            stream = sys.stdout.buffer
            memory.export(JsonLines(stream))
            stream.flush()
        elif Path(file).exists() and not Path(file).is_file():  # a pipe or a device
            with Path(file).open("wb") as stream:
                memory.export(JsonLines(stream))
        else:
            note(f"{_export_whole(memory, Path(file).resolve())} facts are in {file}")


def _export_whole(memory: Memory, file: Path) -> int:
    """Write beside and rename: an older export is replaced by a whole new one or stays. Only the owner can read it."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            count = memory.export(JsonLines(stream))
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return count


@click.command(cls=Command)
@json_option
def backfill(as_json: bool) -> None:
    """Make the vectors that are missing."""
    with _with_model() as memory, _progress("vectors") as progress:
        count = memory.backfill(progress=progress)
    print_json({"written": count}) if as_json else say(f"{count} vectors written")


@click.command(cls=Command)
@json_option
def reembed(as_json: bool) -> None:
    """Replace the vectors of other models."""
    with _with_model() as memory, _progress("vectors") as progress:
        count = memory.reembed(progress=progress)
    print_json({"vectors": count}) if as_json else say(f"{count} facts have a vector of the current model")


@click.command(cls=Command)
@json_option
def status(as_json: bool) -> None:
    """Show what is in the memory and which channels work."""
    with opened() as memory:
        found = memory.status()
    _state(found, as_json)


@click.command(cls=Command)
@click.option("--repair", is_flag=True, help="Mend what can be mended.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, repair: bool, as_json: bool) -> None:
    """Check the file and every channel.

    The exit code is 1 when something is degraded.
    """
    with opened() as memory:
        found = memory.doctor(repair=repair)
    _state(found, as_json)
    if found.problems:
        ctx.exit(1)
    if not as_json:
        say("\nall is well")


@click.command(cls=Command)
@click.option("--history", is_flag=True, help="Erase the history of changes too: nothing can be undone then.")
@json_option
def purge(history: bool, as_json: bool) -> None:
    """Remove the facts whose time is over.

    The text of removed facts stays in the history until that is erased.
    """
    with opened(model=False) as memory:
        count = memory.purge(history=history)
    print_json({"removed": count}) if as_json else say(f"{count} expired facts removed")


@click.command(cls=Command)
@click.argument("destination", type=click.Path())
@json_option
def backup(destination: str, as_json: bool) -> None:
    """Write one complete copy of the file.

    Others may go on writing. To copy the file by hand would miss what is in its write-ahead log.
    """
    with opened(model=False) as memory:
        path, count = memory.backup(destination), len(memory)
    print_json({"path": str(path), "facts": count}) if as_json else say(f"{count} facts are in {visible(str(path))}")


def _state(found: Status, as_json: bool) -> None:
    print_json(found) if as_json else print_lines(render.state(found))


@contextmanager
def _with_model() -> Iterator[Memory]:
    """The memory, if its model is there."""
    if not settings().model:
        raise click.UsageError("this makes vectors, which needs the model; leave --no-model out")
    with opened() as memory:
        if (off := memory.status().channels["semantic"]) is not None:
            raise Failure(off)
        yield memory


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr for callbacks of (done, total); None where nobody would see it."""
    if settings().quiet or not sys.stderr.isatty():
        yield None
        return
    bars: list[Any] = []

    def advance(done: int, total: int) -> None:
        if not bars:
            bars.append(click.progressbar(length=total, label=label, file=sys.stderr, show_pos=True))
        bars[0].update(done - bars[0].pos)

    try:
        yield advance
    finally:
        for bar in bars:
            bar.render_finish()
