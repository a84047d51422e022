"""Texts to the numbers of their pieces, cut in windows that the model can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holomem.errors import ModelError

__all__ = ["Tokenizer", "load"]


class Tokenizer:
    """The tokenizer of a tokenizer.json, by the library `tokenizers`."""

    def __init__(self, path: Path, note: str | None = None) -> None:
        self.note = note
        self._library = _load_library(path)

    def windows(self, text: str, max_tokens: int, most: int) -> list[list[int]]:
        """The numbers of the text's pieces in at most `most` windows of `max_tokens`, each between the markers.

        None at all for a text that has no pieces but the markers.
        """
        ids, before, after = self._encode(text)
        words = ids[before : len(ids) - after]
        size = max_tokens - before - after
        starts = range(0, min(len(words), most * size), size)
        return [ids[:before] + words[start : start + size] + ids[len(ids) - after :] for start in starts]

    def _encode(self, text: str) -> tuple[list[int], int, int]:
        """The numbers, and how many markers stand before and behind."""
        encoding = self._library.encode(text)
        mask = encoding.special_tokens_mask
        before = mask.index(0) if 0 in mask else len(mask)
        after = mask[::-1].index(0) if 0 in mask else 0
        return encoding.ids, before, after


def load(path: Path) -> Tokenizer:
    """The tokenizer of a file. ModelError when it cannot be read."""
    return Tokenizer(path)


def _load_library(path: Path) -> Any:
    try:
        from tokenizers import Tokenizer as Library
    except ImportError as error:
        raise ModelError(f"tokenizers cannot be imported ({error}); reinstall it") from error
    try:
        library = Library.from_file(str(path))
    except Exception as error:  # tokenizers raises plain Exception
        raise ModelError(f"{path} cannot be read ({' '.join(str(error).split())[:200]}); replace it") from error
    library.no_padding()  # published files pad to 128 tokens, which costs time and changes int8 vectors
    library.no_truncation()
    return library
