"""The click group: options that every command takes, opening the memory, and errors as one line with an exit code."""

from __future__ import annotations

import errno
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from holomem.cli.console import say, visible
from holomem.errors import DegradedWarning, HolomemError
from holomem.memory import Memory
from holomem.paths import default_path
from holomem.types import Scope

__all__ = [
    "IN_MEMORY",
    "Command",
    "Failure",
    "Group",
    "Program",
    "asker",
    "json_option",
    "note",
    "opened",
    "same_file",
    "settings",
]

IN_MEMORY: Final = ":memory:"
INTERRUPTED: Final = 130  # 128 + SIGINT, what a shell reports

json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout, and nothing else there.")


@dataclass(slots=True)
class Settings:
    """What the common options said, before or after the command's name."""

    db: str | None = None
    model: bool = True
    quiet: bool = False
    noted: set[str] = field(default_factory=set)

    @property
    def path(self) -> str:
        """The file: --db, else $HOLOMEM_DB, else the platform's data folder."""
        path = self.db or os.environ.get("HOLOMEM_DB") or str(default_path())
        return path if path == IN_MEMORY else str(Path(path).expanduser())


class Failure(click.ClickException):
    """One line on stderr, exit code 1."""

    def show(self, file: Any = None) -> None:
        """Write the line."""
        click.echo(f"error: {visible(self.message)}", file=file, err=file is None)


class Command(click.Command):
    """A command that takes the common options too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _common_options()


class Group(click.Group):
    """A command with commands of its own; it takes the common options too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _common_options()


class Program(click.Group):
    """The group: errors of the library become one line and exit code 1, Ctrl-C 130, never a traceback."""

    aliases: Final = {"facts": "list"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _common_options()

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program and exit."""
        for stream in (sys.stdout, sys.stderr):
            if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
                reconfigure(errors="backslashreplace")
        with _warnings_as_notes(), _logs_as_notes():
            try:
                code = super().main(*args, **{**kwargs, "standalone_mode": False})
            except click.ClickException as error:
                error.show()
                code = error.exit_code
            except click.Abort:
                code = INTERRUPTED
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what the library raises about its arguments and the file becomes a `Failure`."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click ends silently
            raise Failure(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error
        except (HolomemError, ValueError, TypeError, OverflowError) as error:
            raise Failure(str(error)) from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names in the order in which they are written."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name or alias."""
        return super().get_command(ctx, self.aliases.get(cmd_name, cmd_name))


def settings() -> Settings:
    """The settings of the running command."""
    return click.get_current_context().ensure_object(Settings)


def same_file(path: str) -> bool:
    """Whether `path` is the file that the commands use when --db is not given."""
    own = Path(os.environ.get("HOLOMEM_DB") or default_path()).expanduser()
    given = Path(path).expanduser()
    return given.resolve() == own.resolve() or (given.exists() and own.exists() and given.samefile(own))


def note(text: str) -> None:
    """Write a note on stderr, each once, unless --quiet."""
    context = click.get_current_context(silent=True)
    chosen = Settings() if context is None else context.ensure_object(Settings)
    if not chosen.quiet and text not in chosen.noted:
        chosen.noted.add(text)
        say(f"note: {visible(text)}", err=True)


@contextmanager
def opened(*, create: bool = False, model: bool = True, **options: Any) -> Iterator[Memory]:
    """The memory that the options name. Only with `create` is a file made that is not there."""
    chosen = settings()
    path = chosen.path
    if not create and path != IN_MEMORY and not Path(path).exists():
        where = f"--db {chosen.db} " if chosen.db else ""
        raise Failure(f'there is no memory yet at {path}; add the first fact with `holomem {where}add "..."`')
    with Memory(path, embedder="auto" if model and chosen.model else None, **options) as memory:
        if memory.adopted_copy is not None:
            note(f"{path} was converted for holomem; the untouched copy is {memory.adopted_copy}")
        yield memory


def _common_options() -> list[click.Parameter]:
    def store(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def callback(ctx: click.Context, _: click.Parameter, value: Any) -> None:
            if value is not None:
                setattr(ctx.ensure_object(Settings), name, value)

        return callback

    return [
        click.Option(
            ["--db"],
            metavar="PATH",
            expose_value=False,
            callback=store("db"),
            help="The memory's file; else $HOLOMEM_DB, else one in your data folder.",
        ),
        click.Option(
            ["--no-model", "model"],
            flag_value=False,
            default=None,
            expose_value=False,
            callback=store("model"),
            help="Leave the embedding model alone: no search by meaning.",
        ),
        click.Option(
            ["-q", "--quiet"],
            flag_value=True,
            default=None,
            expose_value=False,
            callback=store("quiet"),
            help="No notes and no progress on stderr.",
        ),
    ]


class _Notes(logging.Handler):
    """What the library logs on its way, such as the building of a model, as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


@contextmanager
def _logs_as_notes() -> Iterator[None]:
    logger, handler = logging.getLogger("holomem"), _Notes()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always", DegradedWarning)
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, DegradedWarning):
                note(str(message))
            else:
                others(message, category, *rest, **named)

        warnings.showwarning = show
        yield


def _scope(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> Scope | None:
    """user=NAME, agent=NAME, run=NAME, each at most once."""
    parts: dict[str, str] = {}
    for value in values:
        part, equals, name = value.partition("=")
        if part not in ("user", "agent", "run") or not equals or not name.strip() or part in parts:
            raise click.BadParameter(f"{value!r} is no scope; use user=NAME, agent=NAME or run=NAME, each once")
        parts[part] = name
    return Scope(**parts) if parts else None


asker = click.option(
    "--scope",
    multiple=True,
    callback=_scope,
    metavar="PART=NAME",
    help="Who asks: user=, agent= or run=; may be repeated.",
)
