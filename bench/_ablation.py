"""Search without one of its calibrations, and figures of plain baselines, for `quality.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np

from holomem import lexicon, semantics
from holomem import search as recall
from holomem.embedding import Calibration
from holomem.types import ModelId

RAW_LOW: Final = 0.72  # raw e5 cosines of unrelated and of near-identical texts
RAW_SPAN: Final = 0.22


@contextmanager
def raw_cosine() -> Iterator[None]:
    """The cosine as the model gives it, stretched over its own range."""

    def known(model: ModelId) -> Calibration:
        zeros = np.zeros(model.dim, np.float32)
        return Calibration(zeros, zeros, np.zeros((1, model.dim), np.float32), RAW_LOW, RAW_SPAN)

    with mock.patch.object(semantics, "known", known):
        yield


def no_idf() -> Any:
    return mock.patch.object(lexicon.Lexicon, "idf", lambda _self, hashes: np.ones(len(hashes), np.float32))


def constant(name: str) -> Callable[[], Any]:
    return lambda: mock.patch.object(recall, name, 0.0)


CALIBRATIONS: Final[dict[str, tuple[Callable[[], AbstractContextManager[Any]], str]]] = {
    "raw cosine": (raw_cosine, "union"),
    "every term weighs the same (no idf)": (no_idf, "union"),
    "no trigrams": (constant("TRIGRAMS"), "union"),
    "no rule for other scripts": (constant("FOREIGN"), "union"),
    "cascade instead of union": (mock.MagicMock, "cascade"),
}
"""What is off, and by which candidates the search goes then."""


def baselines(folder: Path) -> dict[str, dict[str, tuple[float, float]]]:
    """Task -> column -> (recall@10, MRR@10), as the table of BASELINES.md in the folder of the tasks gives them."""
    lines = (folder / "BASELINES.md").read_text(encoding="utf-8").splitlines()
    head: list[str] = []
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[:1] == ["task"]:
            head = cells
        pairs = {
            name: (float(match[1]), float(match[2]))
            for name, cell in zip(head, cells, strict=False)
            if (match := re.fullmatch(r"(\d?\.\d+)/(\d?\.\d+)", cell))
        }
        if pairs:
            found[cells[0]] = pairs
    return found
