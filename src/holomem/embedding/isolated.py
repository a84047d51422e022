"""A model that lives in a process of its own, so that all its memory goes with it and this process never had it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from holomem.embedding import child, worker
from holomem.embedding.files import ModelFiles
from holomem.embedding.protocol import Vectors
from holomem.errors import ModelError

__all__ = ["IsolatedEngine"]

BATCH: Final = 64  # texts in one request: the pipe is not held for longer than seconds, and an error costs no more


class IsolatedEngine:
    """The worker process of one model. It is started when there is work, ends by itself when idle, and comes back."""

    def __init__(self, files: ModelFiles, max_tokens: int, threads: int, idle_seconds: float) -> None:
        self.files = files
        self.note: str | None = None
        self._settings = worker.pack(files, max_tokens, threads, idle_seconds)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._finalize: weakref.finalize[[subprocess.Popen[bytes]], IsolatedEngine] | None = None
        _engines.add(self)

    @property
    def pid(self) -> int | None:
        """The process id of the worker; None while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def vectors(self, texts: Sequence[str], windows: int) -> Vectors:
        """Unit rows (n, dim) of clean texts, of each at most so many windows; zeros for one without tokens."""
        parts = [self._ask(list(texts[start : start + BATCH]), windows) for start in range(0, len(texts), BATCH)]
        return np.concatenate(parts) if parts else np.zeros((0, self.files.dim), np.float32)

    def _ask(self, texts: list[str], windows: int) -> Vectors:
        request = json.dumps({"texts": texts, "windows": windows}).encode()
        with self._lock:
            answer = self._exchange(request)
        if answer[:1] == b"e":
            raise ModelError(answer[1:].decode())
        return np.frombuffer(answer, np.float32, offset=1).reshape(len(texts), self.files.dim).copy()

    def _exchange(self, request: bytes) -> bytes:
        """The worker's answer. One that went away meanwhile (idle, or killed) is replaced once."""
        for attempt in (1, 2):
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                worker.write_frame(process.stdin, request)
                return worker.read_frame(process.stdout)
            except (EOFError, OSError):
                code = self._end()
                if attempt == 2:
                    raise ModelError(f"the process of the model {child.ending(code)}; {child.AGAIN}") from None
            except BaseException:  # interrupted in the middle of an answer: the next must not read its rest
                self._end()
                raise
        raise AssertionError

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = child.start("holomem.embedding.worker.main", self._settings, **pipes)
        self._process = process
        self._finalize = weakref.finalize(self, _end, process)
        assert process.stdout is not None
        try:
            first = worker.read_frame(process.stdout)
        except EOFError:
            raise ModelError(f"the process of the model {child.ending(self._end())}; {child.AGAIN}") from None
        except BaseException:
            self._end()
            raise
        if first[:1] != b"r":
            self._end()
            raise ModelError(first[1:].decode())
        self.note = first[1:].decode() or None
        # Reaps the process as soon as it ends, so that an idle one leaves nothing behind.
        threading.Thread(target=process.wait, name="holomem-worker", daemon=True).start()
        return process

    def _end(self) -> int:
        """End the process if there is one, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        if self._finalize is not None:
            self._finalize.detach()
        return _end(process)

    def _forget(self) -> None:
        """In a forked child: the worker is the parent's, and the lock may be held by a thread that is not here."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            if self._finalize is not None:
                self._finalize.detach()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        os.close(pipe.fileno())  # not pipe.close(), which takes a lock of its own
            _inherited.append(process)


def _end(process: subprocess.Popen[bytes]) -> int:
    """Close the worker's stdin, which ends it; one that does not listen is killed."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    with suppress(OSError):
        process.kill()
    return process.wait()


_engines: weakref.WeakSet[IsolatedEngine] = weakref.WeakSet()
_inherited: list[subprocess.Popen[bytes]] = []  # never let go: their end would wait for a process that is not a child


def _after_fork() -> None:
    for engine in list(_engines):
        engine._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
