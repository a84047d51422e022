"""What holomem asks of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from holomem.errors import ModelError
from holomem.types import ModelId

__all__ = ["Embedder", "MissingEmbedder", "Vectors"]

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors. Any thread may call any method."""

    @property
    def model(self) -> ModelId:
        """The identity of the model. May read its files once, never loads it. ModelError if there is no model."""

    def is_available(self) -> bool:
        """True when `embed` can be expected to work. Never loads the model."""

    def problem(self) -> str | None:
        """None when available, else one line: what is missing, ending in the remedy. Never loads the model."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Unit rows (n, dim), one a text; a text without tokens gives zeros. Loads the model at first need.

        A row depends on its text and on `query` (a model may see questions and facts differently) and on nothing
        else, so that it does not matter with which others a text was embedded. ModelError if the model does not work.
        """

    def unload(self) -> None:
        """Give the memory of the model back; the next `embed` loads it again."""


@dataclass(frozen=True)
class MissingEmbedder:
    """The embedder that stands in when no model was found; `reason` says so in one line and ends in the remedy."""

    reason: str

    @property
    def model(self) -> NoReturn:
        """ModelError: there is none."""
        raise ModelError(self.reason)

    def is_available(self) -> bool:
        """False."""
        return False

    def problem(self) -> str:
        """The reason."""
        return self.reason

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NoReturn:  # noqa: ARG002
        """ModelError: there is no model."""
        raise ModelError(self.reason)

    def unload(self) -> None:
        """Nothing to do."""
