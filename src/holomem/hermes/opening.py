"""Memories as a long-running host needs them: one per file in the process, the model loaded in the background.

Hermes has a few seconds for the recall before a turn; loading a model may take longer. `PatientEmbedder` gives a question no
vector instead of waiting for one: the search then ranks by the other channels.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from holomem.embedding import Embedder, default_embedder
from holomem.embedding.protocol import Vectors
from holomem.errors import DegradedWarning, HolomemError
from holomem.memory import Memory
from holomem.types import ModelId

__all__ = ["EMBEDDING_SECONDS", "OpenMemory", "PatientEmbedder", "acquire", "release"]

logger = logging.getLogger(__name__)

EMBEDDING_SECONDS: Final = 1.0  # for the question's vector; an idle machine needs a hundredth of it


class PatientEmbedder:
    """An embedder that gives up on a question after a while, inside of `hurried`; everything else waits as usual."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._hurry = threading.local()
        self.ready = threading.Event()

    @property
    def model(self) -> ModelId:
        """The identity of the model."""
        return self._inner.model

    def is_available(self) -> bool:
        """Whether the model can be expected to work."""
        return self._inner.is_available()

    def problem(self) -> str | None:
        """What is wrong with the model, None when nothing is."""
        return self._inner.problem()

    def unload(self) -> None:
        """Give the memory of the model back."""
        self.ready.clear()
        self._inner.unload()

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Questions of this thread get zeros, which is no vector, unless the model answers in time."""
        self._hurry.on = True
        try:
            yield
        finally:
            self._hurry.on = False

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Unit rows of the texts; zeros when this thread is in a hurry and the model is not there in time."""
        if not (query and getattr(self._hurry, "on", False)):
            return self._inner.embed(texts, query=query)
        if not self.ready.is_set():
            return self._nothing(texts)
        made: queue.SimpleQueue[Vectors | Exception] = queue.SimpleQueue()
        threading.Thread(target=self._embed_into, args=(made, list(texts)), daemon=True).start()
        try:
            result = made.get(timeout=EMBEDDING_SECONDS)
        except queue.Empty:
            return self._nothing(texts)
        if isinstance(result, Exception):
            raise result
        return result

    def _embed_into(self, made: queue.SimpleQueue[Vectors | Exception], texts: list[str]) -> None:
        try:
            made.put(self._inner.embed(texts, query=True))
        except Exception as error:  # raised again in the thread that asked
            made.put(error)

    def _nothing(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), self._inner.model.dim), np.float32)


class OpenMemory:
    """A memory with a thread of its own for what may take long: loading the model, writing on behalf of the host."""

    def __init__(self, path: Path, half_life_days: float) -> None:
        """Open the file; the model is loaded in the background. Raises StoreError."""
        # The host's terminal is no place for them; the log has them. Not `catch_warnings`: that is not for threads.
        warnings.simplefilter("ignore", DegradedWarning)
        path.parent.mkdir(parents=True, exist_ok=True)
        with Memory(path, embedder=None) as memory:
            kept = memory.filled_with
        self.path = path.resolve()
        self.embedder = PatientEmbedder(default_embedder(kept))
        self.memory = Memory(path, embedder=self.embedder, half_life_days=half_life_days)
        self.users = 0
        self._work: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._unwritten = 0
        self._idle = threading.Condition()
        self._closing = False
        self._plain: Memory | None = None
        self._warming = threading.Thread(target=self._warm_up, daemon=True)
        self._writing = threading.Thread(target=self._run, daemon=True)
        self._warming.start()
        self._writing.start()

    def at_once(self) -> Memory:
        """The memory; while its model is loading, the same file without it, and vectors are made up for later.

        To make the tokenizer of a new model takes longer than a tool call may.
        """
        if self.embedder.ready.is_set() or not self._warming.is_alive():
            return self.memory
        with self._idle:
            if self._plain is None:
                self._plain = Memory(self.path, embedder=None)
            return self._plain

    def write_later(self, work: Callable[[], object]) -> None:
        """Do `work` in the background, after what was asked before; its errors are logged."""
        with self._idle:
            self._unwritten += 1
        self._work.put(work)

    def settle_writes(self, seconds: float) -> bool:
        """Wait until everything asked for so far is done; whether it is."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._unwritten, timeout=seconds)

    def close(self, seconds: float) -> None:
        """Finish the work, for `seconds` at most, close the file and unload the model."""
        self.settle_writes(seconds)
        self._work.put(None)
        self._closing = True
        deadline = time.monotonic() + seconds
        for thread in (self._writing, self._warming):
            thread.join(max(0.0, deadline - time.monotonic()))
        self.memory.close()
        if self._plain is not None:
            self._plain.close()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except HolomemError as error:
                logger.warning("holomem: %s", error)
            except Exception:
                logger.exception("holomem failed in the background")
            finally:
                with self._idle:
                    self._unwritten -= 1
                    self._idle.notify_all()

    def _warm_up(self) -> None:
        """Load the model and find its calibration; vectors that are missing are made on the way."""
        started = time.monotonic()
        try:
            if (problem := self.embedder.problem()) is not None:
                logger.info("holomem: search by meaning is off: %s", problem)
                return
            self.embedder.embed(["hello"], query=True)
            self.memory.backfill(progress=self._warm)
        except _Closing:
            return
        except HolomemError as error:
            logger.warning("holomem: search by meaning is off: %s", error)
            return
        self.embedder.ready.set()
        logger.info("holomem: the model is ready after %.1f s", time.monotonic() - started)

    def _warm(self, *_: int) -> None:
        """Called between two batches of vectors, when the calibration is known."""
        if self._closing:
            raise _Closing
        self.embedder.ready.set()


class _Closing(Exception):
    """Ends the making of vectors when the memory is closed; what is missing is made next time."""


_open: dict[Path, OpenMemory] = {}
_lock = threading.Lock()


def acquire(path: Path, half_life_days: float) -> OpenMemory:
    """The memory of this file, shared by all sessions in the process. Raises StoreError."""
    path = path.resolve()
    with _lock:
        if path not in _open:
            _open[path] = OpenMemory(path, half_life_days)
        _open[path].users += 1
        return _open[path]


def release(opened: OpenMemory, seconds: float) -> None:
    """Give a memory back; the last one closes it."""
    with _lock:
        opened.users -= 1
        if opened.users == 0:
            del _open[opened.path]
            opened.close(seconds)
