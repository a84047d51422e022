"""Texts to the numbers of their pieces, cut in windows that the model can read."""

from __future__ import annotations

import importlib.util
import logging
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from holomem.embedding import heap
from holomem.embedding.compact import CompactTokenizer, Unsupported
from holomem.embedding.hashes import file_hash
from holomem.embedding.places import cache_folder
from holomem.errors import ModelError

__all__ = ["Tokenizer", "load"]

LARGE_BYTES: Final = 4_000_000  # the library takes 30 times the size of a file: below this it is not worth the trouble
LIBRARY_SECONDS: Final = 60.0  # how long it stays for texts that the compact form does not read
LOCK_SECONDS: Final = 120.0

_log = logging.getLogger(__name__)


class Tokenizer:
    """The tokenizer of a tokenizer.json. `note` says why it takes more memory than it need; None where it does not."""

    def __init__(self, encoder: _Encoder, note: str | None = None) -> None:
        self.note = note
        self._encoder = encoder

    def windows(self, text: str, max_tokens: int, most: int) -> list[list[int]]:
        """The numbers of the text's pieces in at most `most` windows of `max_tokens`, each between the markers.

        None at all for a text that has no pieces but the markers.
        """
        ids, before, after = self._encoder.encode(text)
        words = ids[before : len(ids) - after]
        size = max_tokens - before - after
        starts = range(0, min(len(words), most * size), size)
        return [ids[:before] + words[start : start + size] + ids[len(ids) - after :] for start in starts]

    def count(self, text: str, max_tokens: int) -> tuple[int, int]:
        """How many pieces the text has, and how many of them one window takes."""
        ids, before, after = self._encoder.encode(text)
        return len(ids) - before - after, max_tokens - before - after


class _Encoder(Protocol):
    def encode(self, text: str) -> tuple[list[int], int, int]:
        """The numbers, and how many of them are markers in front and at the end."""


class _Library:
    """The library `tokenizers`."""

    def __init__(self, path: Path) -> None:
        try:
            from tokenizers import Tokenizer as Library
        except ImportError as error:
            raise ModelError(f"tokenizers cannot be imported ({error}); reinstall it") from error
        try:
            self._library: Any = Library.from_file(str(path))
        except Exception as error:  # tokenizers raises plain Exception
            raise ModelError(f"{path} cannot be read ({' '.join(str(error).split())[:200]}); replace it") from error
        self._library.no_padding()  # published files pad to 128 tokens, which costs time and changes int8 vectors
        self._library.no_truncation()

    def encode(self, text: str) -> tuple[list[int], int, int]:
        encoding = self._library.encode(text)
        mask = encoding.special_tokens_mask
        if 0 not in mask:
            return encoding.ids, len(mask), 0
        return encoding.ids, mask.index(0), mask[::-1].index(0)


class _Compact:
    """The compact form, and the library for a text that it does not read with certainty."""

    def __init__(self, compact: CompactTokenizer, path: Path) -> None:
        self._compact = compact
        self._path = path
        self._lock = threading.Lock()
        self._library: _Library | None = None

    def encode(self, text: str) -> tuple[list[int], int, int]:
        ids = self._compact.encode(text)
        if ids is None:
            return self._load().encode(text)
        return ids, self._compact.before, self._compact.after

    def _load(self) -> _Library:
        with self._lock:
            if self._library is None:
                self._library = _Library(self._path)
                timer = threading.Timer(LIBRARY_SECONDS, self._drop)
                timer.daemon = True
                timer.start()
            return self._library

    def _drop(self) -> None:
        with self._lock:
            self._library = None
        heap.give_back()


def load(path: Path) -> Tokenizer:
    """The tokenizer of a file, in the compact form where the file is large and of a known kind.

    The compact form is made once, in another process, and kept in the cache. ModelError when the file cannot be read.
    """
    if path.stat().st_size < LARGE_BYTES:
        return Tokenizer(_Library(path))
    try:
        return Tokenizer(_Compact(_compact(path), path))
    except (ModelError, OSError) as error:
        return Tokenizer(_Library(path), f"the vocabulary is in memory, which takes 280 MB: {error}")


def _compact(path: Path) -> CompactTokenizer:
    """The compact form of the file, made unless it is there. Unsupported or another ModelError when it cannot be."""
    made = _place(path)
    refused = made.with_suffix(".refused")
    with suppress(FileNotFoundError):
        raise Unsupported(refused.read_text(encoding="utf-8"))
    with suppress(ModelError):
        return CompactTokenizer.open(made)
    try:
        return _make(path, made)
    except Unsupported as error:
        refused.write_text(str(error), encoding="utf-8")
        raise


def _make(path: Path, made: Path) -> CompactTokenizer:
    from filelock import FileLock, Timeout  # 4 MB, and seldom needed

    from holomem.embedding.compact_build import build_apart

    made.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{made}.lock", timeout=LOCK_SECONDS):
            with suppress(ModelError):
                return CompactTokenizer.open(made)  # another process made it meanwhile
            _log.info("making the compact form of %s; this is done once and takes about ten seconds", path)
            build_apart(path, made)
            return CompactTokenizer.open(made)
    except Timeout as error:
        raise ModelError(f"another process has been making {made} for {LOCK_SECONDS:.0f} s; end it") from error


def _place(path: Path) -> Path:
    """Where the compact form is kept: it belongs to one file and to one version of the library."""
    return cache_folder() / "tokenizers" / f"{file_hash(path)[:24]}-{_library_version()}.bin"


def _library_version() -> str:
    """The version of the installed library by the name of the folder beside it; asking importlib.metadata takes 2 MB."""
    spec = importlib.util.find_spec("tokenizers")
    if spec is None or spec.origin is None:
        raise ModelError("tokenizers is not installed; run `pip install tokenizers`")
    found = [folder.stem.rpartition("-")[2] for folder in Path(spec.origin).parents[1].glob("tokenizers-*.dist-info")]
    if len(found) == 1:
        return found[0]
    from importlib.metadata import version

    return version("tokenizers")
