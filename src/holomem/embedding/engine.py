"""A model at work in this process: a tokenizer and a session.

Texts are run one by one. In a graph quantised to int8 the scale of each layer's input is taken over the whole batch, so
a text beside others comes out with a cosine as low as .995 to itself alone (padding apart); one by one costs no time on
one thread and makes a vector depend on its text only.

In the small form the session runs a stub whose weights are pages of the model's file (`stub`), and the tokenizer is a
mapped file too (`compact`): 95 MB instead of 460. What does not allow it is said by `note`, and runs as libraries do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from holomem.embedding import heap, tokens
from holomem.embedding.files import ModelFiles
from holomem.embedding.protocol import Vectors
from holomem.embedding.stub import Table, TableFile, Unsupported, split
from holomem.errors import ModelError

__all__ = ["Engine", "LocalEngine", "short"]

WINDOWS: Final = 4  # of a fact that is longer than the model's window so many are averaged
_FEEDS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids"})


class Engine(Protocol):
    """What makes vectors, in this process or beside it. Any thread may ask. Its memory goes with the last reference."""

    files: ModelFiles
    note: str | None
    """None in the small form, else why it is not possible"""

    def vectors(self, texts: Sequence[str], windows: int) -> Vectors:
        """Unit rows (n, dim) of clean texts, of each at most so many windows; zeros for one without pieces."""


class LocalEngine:
    """A loaded model."""

    def __init__(self, files: ModelFiles, max_tokens: int, threads: int) -> None:
        heap.map_large_blocks()
        self.files = files
        self._max_tokens = max_tokens
        self._tokenizer = tokens.load(files.tokenizer_path)
        self._session, self._table, why = _load(files.graph_path, threads)
        notes = [note for note in (why, self._tokenizer.note) if note is not None]
        self.note = "; ".join(notes) or None
        inputs = {feed.name: feed.type for feed in self._session.get_inputs()}
        if unknown := sorted(inputs.keys() - _FEEDS - ({self._table.feed} if self._table else set())):
            raise ModelError(f"{files.graph_path} wants {unknown} too, which holomem cannot give; use another model")
        self._types = {
            name: np.int32 if kind == "tensor(int32)" else np.int64 for name, kind in inputs.items() if name in _FEEDS
        }

    def vectors(self, texts: Sequence[str], windows: int) -> Vectors:
        """Unit rows (n, dim) of clean texts, of each at most so many windows; zeros for one without pieces."""
        rows = np.zeros((len(texts), self.files.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            parts = self._tokenizer.windows(text, self._max_tokens, windows)
            if parts:
                row[:] = self._vector(parts)
        return rows

    def _vector(self, parts: list[list[int]]) -> Vectors:
        """The unit mean (dim,) of the token vectors of all windows."""
        total = np.zeros(self.files.dim, np.float64)
        for ids in parts:
            # No padding, so the mean over the mask is the mean over tokens.
            total = total + self._run(ids).astype(np.float64).sum(axis=0)
        mean = total / sum(map(len, parts))
        length = float(np.linalg.norm(mean))
        if mean.shape != (self.files.dim,) or not np.isfinite(length) or length == 0.0:
            raise ModelError(
                f"{self.files.graph_path} gave {mean.shape} of length {length}, not {self.files.dim} numbers with a "
                "direction; use another model file"
            )
        unit: Vectors = (mean / length).astype(np.float32)
        return unit

    def _run(self, ids: list[int]) -> Vectors:
        """The token vectors (n, dim) of one window."""
        values = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": [0] * len(ids)}
        feeds: dict[str, Any] = {name: np.array([values[name]], kind) for name, kind in self._types.items()}
        try:
            if self._table is not None:
                feeds[self._table.feed] = self._table.rows(ids)[np.newaxis]
            (found,) = self._session.run([self.files.output], feeds)
        except Exception as error:  # onnxruntime's errors have no common base below Exception
            raise ModelError(f"{self.files.graph_path} does not run ({short(error)}); use another file") from error
        vectors: Vectors = found[0]
        return vectors


def _load(path: Path, threads: int) -> tuple[Any, TableFile | None, str | None]:
    """A session of the stub and its table, or one of the whole graph and why."""
    real = path.resolve()  # the runtime refuses weights behind a link, as those in the hub's cache
    try:
        stub, table = split(real)
        return _session(stub, threads, weights=real.parent), _open_table(real, table), None
    except (OSError, ValueError, ModelError) as error:
        lack = error if isinstance(error, Unsupported) else short(error)
        why = f"the whole graph is in memory, which takes about three times as much: {lack}"
    return _session(str(path), threads), None, why


def _open_table(path: Path, table: Table) -> TableFile:
    opened = TableFile(path, table)
    opened.rows([0, table.rows - 1])  # a file that is cut short is found out now
    return opened


def _session(model: str | bytes, threads: int, *, weights: Path | None = None) -> Any:
    """An inference session that keeps no arena and lets no idle thread spin."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(f"onnxruntime cannot be imported ({short(error)}); reinstall it") from error
    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = False  # an arena keeps the largest batch for good
    options.enable_mem_pattern = False
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors only; they are raised as well
    if weights is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(weights))
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base below Exception
        what = model if isinstance(model, str) else "the stub"
        raise ModelError(f"{what} cannot be loaded ({short(error)}); replace it by an intact model file") from error


def short(error: BaseException) -> str:
    """The message of an error in one line of at most 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__
