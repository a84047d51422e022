"""`holomem web`: the page to look at a memory and mend it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from holomem.cli.console import say, visible
from holomem.cli.program import Command, Failure, opened

__all__ = ["web"]


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
    """The token in the file, made with owner-only rights unless it is there."""
    try:
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(24) + "\n", encoding="utf-8")
        open_to = path.stat().st_mode & 0o077 if os.name == "posix" else 0
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise Failure(f"{path} cannot be used: {error}") from error
    if open_to:
        raise Failure(f"others can read the token in {path}; run `chmod 600 {path}`, and change it if they did")
    if len(token) < 16:
        raise Failure(f"the token in {path} has {len(token)} characters; use at least 16")
    return token
