"""Sentence vectors from an ONNX graph, mean of the token vectors, unit length; and when the model is in memory."""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from holomem.embedding import heap, tokens
from holomem.embedding.engine import WINDOWS, Engine, LocalEngine
from holomem.embedding.files import ModelFiles, PinnedModel, find_files
from holomem.embedding.hashes import file_hash
from holomem.embedding.protocol import Vectors
from holomem.errors import ModelError
from holomem.types import ModelId, Reading

__all__ = ["OnnxEmbedder"]

CHARS_PER_TOKEN: Final = 32  # a piece of the vocabulary has at most 16; what lies beyond is cut before tokenising
IDLE_SECONDS: Final = 300.0  # how long an isolated model waits for work

# One engine a file and setting for the whole process; it lives as long as an embedder or a running call holds it.
_engines: WeakValueDictionary[tuple[object, ...], Engine] = WeakValueDictionary()
_loading = threading.Lock()


class OnnxEmbedder:
    """The model in a folder with an ONNX graph and tokenizer.json, loaded at the first `embed`.

    Embedders of the same files share one session. `threads` are used by one text; more than one rarely pays for
    texts of a sentence. Prefixes and `max_tokens` are taken from the folder's configuration unless given.

    `isolated` keeps the model in a process of its own, which costs this one nothing: it is started at need, ends when
    nothing came for `idle_seconds` (300 unless given) and never outlives its parent. In this process `idle_seconds`
    unloads the model likewise; None (the default here) keeps it until `unload`.

    A question is read up to the model's window; of a longer fact the vectors of up to four windows are averaged.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        threads: int = 1,
        max_tokens: int | None = None,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        isolated: bool = False,
        idle_seconds: float | None = None,
        pinned: PinnedModel | None = None,
    ) -> None:
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        if max_tokens is not None and max_tokens < 3:  # two markers and a token
            raise ValueError(f"max_tokens must be at least 3, not {max_tokens}")
        if idle_seconds is not None and not idle_seconds > 0:
            raise ValueError(f"idle_seconds must be positive, not {idle_seconds}")
        self.folder = Path(folder)
        self._threads = threads
        self._max_tokens = max_tokens
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._isolated = isolated
        self._idle_seconds = idle_seconds
        self._pinned = pinned
        self._found: tuple[object, ModelFiles] | None = None
        self._model: ModelId | None = None
        self._engine: Engine | None = None
        self._used = 0.0  # when the last call ended
        self._timer: threading.Timer | None = None
        self._failure: tuple[object, str] | None = None  # the files that did not load, and why

    def __repr__(self) -> str:
        return f"OnnxEmbedder({str(self.folder)!r}{', loaded' if self.loaded else ''})"

    @property
    def loaded(self) -> bool:
        """True while this embedder holds a session, or the process that it lives in."""
        return self._engine is not None

    @property
    def form(self) -> str | None:
        """None while the loaded model takes as little memory as it can (or none is loaded), else what forbids it."""
        engine = self._engine
        return None if engine is None else engine.note

    @property
    def model(self) -> ModelId:
        """The identity of the model: hashes the graph once (.1 s for 118 MB), never loads it."""
        files = self._find()
        model = self._model
        if model is None:
            model = self._model = ModelId(
                name=files.name,
                revision=files.revision,
                file_hash=file_hash(files.graph_path),
                dim=files.dim,
                max_tokens=self._window(files),
                query_prefix=self._prefix(files, query=True),
                passage_prefix=self._prefix(files, query=False),
            )
        return model

    def is_available(self) -> bool:
        """True when the files and libraries are there. Never loads."""
        return self.problem() is None

    def problem(self) -> str | None:
        """None, or what is missing and what to do, in one line. Never loads."""
        for library in ("onnxruntime", "tokenizers"):
            if importlib.util.find_spec(library) is None:
                return f"{library} is not installed; run `pip install {library}`"
        try:
            files = self._find()
        except ModelError as error:
            return str(error)
        if self._failure and self._failure[0] == _stamp(files):
            return self._failure[1]
        return None

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Unit rows (n, dim), one a text; a text without tokens gives zeros."""
        if isinstance(texts, str):
            raise TypeError("texts must be a sequence of strings, not one string")
        files = self._find()
        windows = 1 if query else WINDOWS
        bound = CHARS_PER_TOKEN * self._window(files) * windows
        # XLM-R's tokenizer makes a token of trailing space, and none takes a lone surrogate: it becomes "?".
        words = [text.lstrip()[:bound].rstrip().encode("utf-8", "replace").decode("utf-8") for text in texts]
        prefix = self._prefix(files, query=query)
        asked = [number for number, text in enumerate(words) if text]
        rows = np.zeros((len(texts), files.dim), np.float32)
        if asked:
            rows[asked] = self._load().vectors([prefix + words[number] for number in asked], windows)
            self._wait_idle()
        return rows

    def reading(self, text: str) -> Reading:
        """How much of a fact its vector is made of; loads the tokenizer and not the model."""
        files = self._find()
        tokenizer = tokens.load(files.tokenizer_path)
        clean = self._prefix(files, query=False) + text.strip().encode("utf-8", "replace").decode("utf-8")
        pieces, size = tokenizer.count(clean, self._window(files))
        windows = min(-(-pieces // size), WINDOWS)
        return Reading(pieces, min(pieces, windows * size), windows)

    def unload(self) -> None:
        """Drop the session and give its memory back to the system, if no other embedder uses it."""
        self._engine = None
        heap.give_back()
        heap.give_back_code("onnxruntime")

    def _wait_idle(self) -> None:
        """Unload when nothing has come for `idle_seconds`; a worker process minds its own time."""
        self._used = time.monotonic()
        if self._idle_seconds is not None and not self._isolated and self._timer is None:
            self._start_timer(self._idle_seconds)

    def _start_timer(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._if_idle)
        self._timer.daemon = True
        self._timer.start()

    def _if_idle(self) -> None:
        rest = self._used + (self._idle_seconds or 0.0) - time.monotonic()
        self._timer = None
        if rest <= 0:
            self.unload()
        elif self.loaded:
            self._start_timer(rest)

    def _find(self) -> ModelFiles:
        """The files that are loaded, else those in the folder now: they may come, go and change while not loaded."""
        engine = self._engine
        if engine is not None:
            return engine.files
        found = self._found
        if found is None or found[0] != _stamp(found[1]):
            files = find_files(self.folder, self._pinned)
            found = (_stamp(files), files)
            self._found, self._model = found, None
        return found[1]

    def _prefix(self, files: ModelFiles, *, query: bool) -> str:
        given, own = (self._query_prefix, files.query_prefix) if query else (self._passage_prefix, files.passage_prefix)
        return own if given is None else given

    def _window(self, files: ModelFiles) -> int:
        return files.max_tokens if self._max_tokens is None else self._max_tokens

    def _load(self) -> Engine:
        engine = self._engine
        if engine is not None:
            return engine
        if message := self.problem():
            raise ModelError(message)
        files = self._find()
        stamp = _stamp(files)
        idle_seconds = (self._idle_seconds or IDLE_SECONDS) if self._isolated else None
        key = (stamp, files, self._window(files), self._threads, idle_seconds)
        with _loading:
            engine = _engines.get(key)
            if engine is None:
                try:
                    engine = _start(files, self._window(files), self._threads, idle_seconds)
                except ModelError as error:
                    self._failure = (stamp, str(error))
                    raise
                _engines[key] = engine
            self._engine = engine
        return engine


def _start(files: ModelFiles, max_tokens: int, threads: int, idle_seconds: float | None) -> Engine:
    if idle_seconds is None:
        return LocalEngine(files, max_tokens, threads)
    from holomem.embedding.isolated import IsolatedEngine

    return IsolatedEngine(files, max_tokens, threads, idle_seconds)


def _new_lock() -> None:
    """In a forked child: the lock may be held by a thread that is not here."""
    global _loading
    _loading = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def _stamp(files: ModelFiles) -> tuple[object, ...] | None:
    """What tells one content of the files from another without reading them; None when one is gone."""
    try:
        stats = [path.stat() for path in (files.graph_path, files.tokenizer_path)]
    except OSError:
        return None
    return (os.path.realpath(files.graph_path), *((stat.st_size, stat.st_mtime_ns) for stat in stats))
