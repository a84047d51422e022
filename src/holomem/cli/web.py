"""`holomem web`: the page to look at a memory and mend it."""

from __future__ import annotations

import os
import secrets
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from holomem.cli.console import say, visible
from holomem.cli.program import Command, Failure, opened

__all__ = ["web"]

TOKEN_BYTES: Final = 4096  # read of a token file


@click.command("web", cls=Command)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=8420, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--name", "names", multiple=True, help="A further name that the page goes by, as behind a proxy.")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Ask visitors for the token in this file, which is made if it is not there; a must for other addresses.",
)
@click.option("--read-only", is_flag=True, help="Show, and change nothing.")
def web(host: str, port: int, names: tuple[str, ...], token_file: Path | None, read_only: bool) -> None:
    """Serve a page to see the memory and mend it.

    It shows why a fact is found, too. It listens on loopback. From elsewhere use a tunnel: ssh -L 8420:127.0.0.1:8420 server
    """
    from holomem.web.guard import Guard, is_loopback
    from holomem.web.pages import Pages
    from holomem.web.server import Server

    if not is_loopback(host) and token_file is None:
        raise Failure(f"{host} is reached from elsewhere; add --token-file FILE, or use an SSH tunnel to 127.0.0.1")
    own = ("127.0.0.1", "localhost", "::1") if is_loopback(host) else (host,)
    guard = Guard((*own, *names), None if token_file is None else _token(token_file))
    with opened(create=not read_only, read_only=read_only) as memory:
        try:
            server = Server((host.strip("[]"), port), Pages(memory, guard, read_only=read_only))
        except OSError as error:
            raise Failure(f"{host}:{port} cannot be listened at: {error.strerror}; choose another --port") from error
        with server:
            say(f"http://{host}:{server.server_address[1]}/ shows {visible(memory.path)}; Ctrl+C ends it")
            if token_file is not None:
                say(f"the token is in {visible(str(token_file))}")
            server.serve_forever()


def _token(path: Path) -> str:
    """The token in the file, made with owner-only rights unless it is there; one that others may read is refused."""
    try:
        with suppress(FileExistsError):
            path.touch(mode=0o600, exist_ok=False)
            path.write_text(secrets.token_urlsafe(24) + "\n", encoding="utf-8")
        with path.open(encoding="utf-8") as opened:
            others = os.fstat(opened.fileno()).st_mode & 0o077 if os.name == "posix" else 0
            token = opened.read(TOKEN_BYTES).strip()
    except (OSError, ValueError) as error:
        raise Failure(f"{path} cannot be used: {error}") from error
    if others:
        raise Failure(
            f"{path} can be read or written by others; run: chmod 600 {shlex.quote(str(path))}, or name another file"
        )
    if len(token) < 16:
        raise Failure(f"the token in {path} has {len(token)} characters; use at least 16")
    return token
