"""The page: is it quick and small enough over 10,000 facts, without the model, and does it go on beside silent clients?

    python bench/web.py
    python bench/web.py --size 100000 --typed 400

first page   each in a server just started on an open memory; its bytes, with style sheet, htmx and icon
keystroke    every beginning of the questions of the bench, as they are typed
other pages  once each; they have no limit
silent       the first page while as many clients as there are threads send nothing

Times are wall milliseconds over loopback, a new connection each, the client in the same process.
"""

from __future__ import annotations

import argparse
import http.client
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import _facts
import _machine

from holomem import Memory, NewFact
from holomem.web.guard import Guard
from holomem.web.pages import STATIC, Pages
from holomem.web.server import THREADS, Server

FIRST_MS, FIRST_BYTES, KEY_MS = 100, 120_000, 50  # what is asked of the page
STARTS: Final = 10
CATEGORIES: Final = ("project", "user_pref", "tool", "general")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--size", type=int, default=10_000)
    arguments.add_argument("--typed", type=int, default=200, help="keystrokes")
    options = arguments.parse_args()
    print(_machine.describe(), "\n")
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        _facts.make(cache, options.size)
        facts, _ = _facts.stored(cache, options.size)
        questions = _facts.questions(cache, options.size)
        with Memory(cache / "memory.db", embedder=None) as memory:
            memory.add_many(
                [NewFact(text, category=CATEGORIES[place % 4], tags="bench") for place, text in enumerate(facts)]
            )
            measure(memory, questions.texts, questions.names[0], options.typed)


def measure(memory: Memory, texts: Sequence[str], name: str, typed: int) -> None:
    first, size = [], 0
    for _ in range(STARTS):
        with serving(memory) as port:
            took, got = fetch(port, "/")
            first.append(took)
            size = got + sum(fetch(port, f"/static/{file}")[1] for file in STATIC)
    print(f"{'':16}{'median':>9}{'p95':>9}{'max':>9}   ms")
    row("first page", first, f"{size / 1e3:.1f} kB with its files; asked: {FIRST_MS} ms, {FIRST_BYTES / 1e3:.0f} kB")
    with serving(memory) as port:
        fetch(port, "/?q=warm")
        begun = [text[:end] for text in texts for end in range(1, len(text) + 1)][:typed]
        row(
            "keystroke",
            [fetch(port, f"/?{urlencode({'q': q})}", "results")[0] for q in begun],
            f"{len(begun)}; asked: {KEY_MS} ms",
        )
        for path in ("/?order=trust", f"/?page={memory.status().facts // 50}", "/entities", "/contradictions", "/health",
                     f"/entity?{urlencode({'name': name})}", "/export.jsonl"):  # fmt: skip
            row(path.partition("?")[0] if "name=" in path else path, [fetch(port, path)[0]])
        with ExitStack() as silent:
            for _ in range(THREADS):
                silent.enter_context(socket.create_connection(("127.0.0.1", port)))
            row("silent", [fetch(port, "/")[0]], f"{THREADS} clients")


def row(name: str, took: Sequence[float], said: str = "") -> None:
    p95 = sorted(took)[round(0.95 * (len(took) - 1))]
    print(f"{name:16}{statistics.median(took):9.1f}{p95:9.1f}{max(took):9.1f}   {said}")


@contextmanager
def serving(memory: Memory) -> Iterator[int]:
    """The port of a page of this memory."""
    with Server(("127.0.0.1", 0), Pages(memory, Guard(("127.0.0.1",), None))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def fetch(port: int, path: str, target: str = "") -> tuple[float, int]:
    """Milliseconds and bytes of the body; ends the bench unless it is a page."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("GET", path, headers={"HX-Target": target} if target else {})
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    if reply.status != 200:
        raise SystemExit(f"{path}: {reply.status}")
    return (time.perf_counter() - start) * 1e3, len(body)


if __name__ == "__main__":
    main()
