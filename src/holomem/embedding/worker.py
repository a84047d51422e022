"""The process in which an isolated model lives: requests on stdin, vectors on stdout, gone when it has no work.

A frame is its length (4 bytes, little-endian) and its bytes. A request is JSON, `{"texts": [...], "windows": n}`. An
answer is one letter and what belongs to it: `v` the float32 rows, `e` the message of a ModelError, and as the first of
all `r` (ready) with the engine's note.
"""

from __future__ import annotations

import json
import os
import queue
import struct
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

from holomem.embedding.files import ModelFiles
from holomem.errors import ModelError

__all__ = ["main", "pack", "read_frame", "write_frame"]

PARENT_SECONDS: Final = 2.0  # how often is looked whether the parent lives: a child of its may hold our stdin open
_LENGTH: Final = struct.Struct("<I")


def pack(files: ModelFiles, max_tokens: int, threads: int, idle_seconds: float) -> str:
    """The argument of `main`: all that a worker must know, as JSON."""
    settings = {"max_tokens": max_tokens, "threads": threads, "idle_seconds": idle_seconds}
    return json.dumps({"files": asdict(files), **settings}, default=str)


def write_frame(file: IO[bytes], data: bytes) -> None:
    """Send one frame."""
    file.write(_LENGTH.pack(len(data)) + data)
    file.flush()


def read_frame(file: IO[bytes]) -> bytes:
    """The next frame. EOFError when the other side is gone."""
    (size,) = _LENGTH.unpack(_read(file, _LENGTH.size))
    return _read(file, size)


def _read(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if data is None or len(data) < size:
        raise EOFError("the other side is gone")
    return data


# ---- in the worker --------------------------------------------------------------------------------------------------


def main() -> None:
    """Load the model and answer until stdin closes, the parent dies or nothing has come for `idle_seconds`."""
    parent = os.getppid()
    settings = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    requests: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_receive, args=(requests,), daemon=True).start()
    try:
        engine = _engine(settings)
    except ModelError as error:
        write_frame(answers, b"e" + str(error).encode())
        return
    write_frame(answers, b"r" + (engine.note or "").encode())
    last = time.monotonic()
    while time.monotonic() - last < settings["idle_seconds"] and os.getppid() == parent:
        try:
            request = requests.get(timeout=min(PARENT_SECONDS, settings["idle_seconds"]))
        except queue.Empty:
            continue
        if request is None:
            break
        write_frame(answers, _answer(engine, json.loads(request)))
        last = time.monotonic()
    os._exit(0)  # the receiving thread may wait in a read


def _engine(settings: dict[str, Any]) -> Any:
    from holomem.embedding.engine import LocalEngine

    found = settings["files"]
    paths = {name: Path(found[name]) for name in ("graph_path", "tokenizer_path")}
    return LocalEngine(ModelFiles(**{**found, **paths}), settings["max_tokens"], settings["threads"])


def _answer(engine: Any, request: dict[str, Any]) -> bytes:
    try:
        rows = engine.vectors(request["texts"], request["windows"])
    except ModelError as error:
        return b"e" + str(error).encode()
    return b"v" + bytes(rows.tobytes())


def _receive(requests: queue.Queue[bytes | None]) -> None:
    """Put what comes into the queue, and None when no more can come."""
    try:
        while True:
            requests.put(read_frame(sys.stdin.buffer))
    except (EOFError, OSError):
        requests.put(None)
