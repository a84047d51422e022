"""Sentence vectors from an ONNX graph: mean of the token vectors, unit length.

Texts are run one by one. In a graph quantised to int8 the scale of each layer's input is taken over the whole batch, so
a text beside others comes out with a cosine as low as .995 to itself alone (padding apart); one by one costs no time on
one thread and makes a vector depend on its text only.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from holomem.embedding.files import ModelFiles, PinnedModel, file_hash, find_files
from holomem.embedding.protocol import Vectors
from holomem.errors import ModelError
from holomem.types import ModelId

__all__ = ["OnnxEmbedder"]

CHARS_PER_TOKEN: Final = 32  # a piece of the vocabulary has at most 16; what lies beyond is cut before tokenising
_FEEDS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})


class _Engine:
    """A tokenizer and a session, loaded. Both may be used by several threads at once."""

    def __init__(self, files: ModelFiles, max_tokens: int, threads: int) -> None:
        self.files = files
        self.max_tokens = max_tokens
        self.tokenizer = _load_tokenizer(files.tokenizer_path, max_tokens)
        self.session = _load_session(files.graph_path, threads)
        inputs = {feed.name: feed.type for feed in self.session.get_inputs()}
        if unknown := sorted(inputs.keys() - _FEEDS):
            raise ModelError(f"{files.graph_path} wants {unknown} too, which holomem cannot give; use another model")
        self.types = {name: np.int32 if kind == "tensor(int32)" else np.int64 for name, kind in inputs.items()}

    def vector(self, text: str) -> Vectors:
        """The unit vector (dim,) of one text; zeros when it has no token but the markers of the tokenizer."""
        encoding = self.tokenizer.encode(text)
        if all(encoding.special_tokens_mask):
            return np.zeros(self.files.dim, np.float32)
        feeds = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
        feeds["token_type_ids"] = encoding.type_ids
        arrays = {name: np.array([feeds[name]], kind) for name, kind in self.types.items()}
        try:
            (tokens,) = self.session.run([self.files.output], arrays)
        except Exception as error:  # onnxruntime's errors have no common base below Exception
            raise ModelError(f"{self.files.graph_path} does not run ({_line(error)}); use another file") from error
        # The mask is all ones for a text alone without padding, so the mean over the mask is the mean over tokens.
        mean = tokens[0].astype(np.float64).mean(axis=0)
        length = float(np.linalg.norm(mean))
        if mean.shape != (self.files.dim,) or not np.isfinite(length) or length == 0.0:
            raise ModelError(
                f"{self.files.graph_path} gave {mean.shape} of length {length}, not {self.files.dim} numbers with a "
                "direction; use another model file"
            )
        unit: Vectors = (mean / length).astype(np.float32)
        return unit


# One engine a file and setting for the whole process; it lives as long as an embedder or a running call holds it.
_engines: WeakValueDictionary[tuple[object, ...], _Engine] = WeakValueDictionary()
_loading = threading.Lock()


class OnnxEmbedder:
    """The model in a folder with an ONNX graph and tokenizer.json, loaded at the first `embed`.

    Embedders of the same files share one session. `threads` are used by one text; more than one rarely pays for
    texts of a sentence. Prefixes and `max_tokens` are taken from the folder's configuration unless given.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        threads: int = 1,
        max_tokens: int | None = None,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        pinned: PinnedModel | None = None,
    ) -> None:
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        if max_tokens is not None and max_tokens < 3:  # two markers and a token
            raise ValueError(f"max_tokens must be at least 3, not {max_tokens}")
        self.folder = Path(folder)
        self._threads = threads
        self._max_tokens = max_tokens
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._pinned = pinned
        self._found: tuple[object, ModelFiles] | None = None
        self._model: ModelId | None = None
        self._engine: _Engine | None = None
        self._failure: tuple[object, str] | None = None  # the files that did not load, and why

    def __repr__(self) -> str:
        return f"OnnxEmbedder({str(self.folder)!r}{', loaded' if self.loaded else ''})"

    @property
    def loaded(self) -> bool:
        """True while this embedder holds a session."""
        return self._engine is not None

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
        rows = np.zeros((len(texts), files.dim), np.float32)
        prefix = self._prefix(files, query=query)
        bound = CHARS_PER_TOKEN * self._window(files)
        for row, text in zip(rows, texts, strict=True):
            # XLM-R's tokenizer makes a token of trailing space, and none takes a lone surrogate: it becomes "?".
            words = text.lstrip()[:bound].rstrip().encode("utf-8", "replace").decode("utf-8")
            if words:
                row[:] = self._load().vector(prefix + words)
        return rows

    def unload(self) -> None:
        """Drop the session and give its memory back to the system, if no other embedder uses it."""
        self._engine = None
        gc.collect()
        _trim()

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

    def _load(self) -> _Engine:
        engine = self._engine
        if engine is not None:
            return engine
        if message := self.problem():
            raise ModelError(message)
        files = self._find()
        stamp = _stamp(files)
        key = (stamp, files, self._window(files), self._threads)
        with _loading:
            engine = _engines.get(key)
            if engine is None:
                try:
                    engine = _Engine(files, self._window(files), self._threads)
                except ModelError as error:
                    self._failure = (stamp, str(error))
                    raise
                _engines[key] = engine
            self._engine = engine
        return engine


def _load_tokenizer(path: Path, max_tokens: int) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ModelError(f"tokenizers cannot be imported ({_line(error)}); reinstall it") from error
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain Exception
        raise ModelError(f"{path} cannot be read ({_line(error)}); replace it") from error
    tokenizer.no_padding()  # published files pad to 128 tokens, which costs time and changes int8 vectors
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _load_session(path: Path, threads: int) -> Any:
    """An inference session that keeps no arena and lets no idle thread spin."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(f"onnxruntime cannot be imported ({_line(error)}); reinstall it") from error
    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = False  # an arena keeps the largest batch for good
    options.enable_mem_pattern = False
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors only; they are raised as well
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base below Exception
        raise ModelError(f"{path} cannot be loaded ({_line(error)}); replace it by an intact model file") from error


def _stamp(files: ModelFiles) -> tuple[object, ...] | None:
    """What tells one content of the files from another without reading them; None when one is gone."""
    try:
        stats = [path.stat() for path in (files.graph_path, files.tokenizer_path)]
    except OSError:
        return None
    return (os.path.realpath(files.graph_path), *((stat.st_size, stat.st_mtime_ns) for stat in stats))


def _line(error: BaseException) -> str:
    """The message of an error in one line of at most 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def _trim() -> None:
    """Return freed heap to the system: glibc keeps it otherwise (416 -> 65 MB with a full-size model)."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only; musl has none
        if trim is not None:
            trim(0)
