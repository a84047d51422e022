"""The meaning channel of one memory: its embedder, the calibration of its cosines, and whether it works at all.

The embedder runs outside of transactions and outside of the memory's lock. When it fails, the channel is off, the
reason is kept for `status` and warned about once; the other channels go on.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from holomem.embedding import Calibration, Embedder, default_embedder, known, measure
from holomem.errors import DegradedWarning, ModelError
from holomem.store import Store
from holomem.types import ModelId, Reading

__all__ = ["Semantics"]

Floats = NDArray[np.float32]


class Semantics:
    """An embedder as a store uses it. Without an embedder the channel is off, and that is no fault.

    "auto" is the installed model whose vectors the store holds, and is looked for at the first need.
    """

    def __init__(self, store: Store, embedder: Embedder | Literal["auto"] | None) -> None:
        self._store = store
        self._chosen = embedder
        self._lock = threading.Lock()
        self._failure: str | None = None
        self._warned = False
        self._sound = False  # it has embedded, so that `problem`, which looks at files, need not be asked each time
        self._calibration: Calibration | None = None
        self._model_id: int | None = None

    @property
    def _embedder(self) -> Embedder | None:
        if self._chosen == "auto":
            self._chosen = default_embedder(self._store.models.kept())
        return self._chosen

    def problem(self) -> str | None:
        """None when the channel works, else the reason and the remedy; never loads the model."""
        if self._embedder is None:
            return "switched off (embedder=None)"
        return self._failure or self._embedder.problem()

    def works(self) -> bool:
        """Whether the channel works; warns once when it should and does not."""
        problem = self.problem()
        if problem is not None and self._embedder is not None and not self._warned:
            self._warned = True
            warnings.warn(f"semantic search is off: {problem}", DegradedWarning, stacklevel=4)
        return problem is None

    @property
    def wanted(self) -> bool:
        """Whether this memory is meant to have the channel."""
        return self._chosen is not None

    @property
    def form(self) -> str | None:
        """What keeps the loaded model from taking as little memory as it can; None where nothing does."""
        return getattr(self._embedder, "form", None)

    @property
    def model(self) -> ModelId | None:
        """The identity of the embedder's model; None when the channel is off."""
        return None if self._embedder is None or self.problem() is not None else self._embedder.model

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Floats | None:
        """Unit vectors (n, dim) of the texts; None when the channel is off or the model fails."""
        if self._embedder is None or not (self._sound or self.works()):
            return None
        try:
            vectors = self._embedder.embed(texts, query=query)
        except ModelError as error:
            self._sound = False
            self._failure = str(error)
            self.works()
            return None
        self._sound = True
        return vectors

    def embed_query(self, text: str) -> Floats | None:
        """The calibrated vector (dim,) of a question, to be compared by `Meanings.cosines`; None when it has none."""
        vectors = self.embed([text], query=True)
        if vectors is None or not np.isfinite(vectors).all() or not vectors.any():
            return None
        calibration = self.calibration()
        return None if calibration is None else calibration.query(vectors[0])

    def calibration(self) -> Calibration | None:
        """How this model's cosines become scores: shipped, stored in the file, or else measured once now.

        Measuring embeds several hundred sentences, which takes seconds; never called inside a transaction.
        """
        with self._lock:
            if self.calibration_if_ready() is None and self._embedder is not None and self.model is not None:
                try:
                    self._calibration = measure(self._embedder)
                except ModelError as error:
                    self._failure = str(error)
                    return None
                if not self._store.database.read_only:
                    self._store.models.add(self._embedder.model, self._calibration.to_bytes())
            return self._calibration

    def calibration_if_ready(self) -> Calibration | None:
        """The calibration if it is known by now; never loads the model."""
        if self._calibration is None and self.model is not None:
            self._calibration = known(self.model) or self._stored()
        return self._calibration

    def model_id(self) -> int | None:
        """The number of the model in the file, None while the file holds no vector of it."""
        if self._model_id is None and self.model is not None:
            self._model_id = self._store.models.find(self.model)
        return self._model_id

    def register(self) -> int:
        """The number of the model in the file, which is given one if it has none; needs a working channel."""
        model = self.model
        assert model is not None
        if self.model_id() is None:
            self._model_id = self._store.models.add(model)
        if self._store.models.kept() is None:
            self._store.models.keep(self._model_id or 0)
        return self._model_id or 0

    def reading(self, text: str) -> Reading | None:
        """How much of a text its vector is made of; None where the embedder does not tell."""
        tell = getattr(self._embedder, "reading", None)
        if tell is None or self.problem() is not None:
            return None
        try:
            found: Reading = tell(text)
        except ModelError:
            return None
        return found

    def use(self, embedder: Embedder) -> ModelId:
        """Make this the embedder of the store, and return its identity. ModelError when there is none."""
        model = embedder.model
        self._store.models.keep(self._store.models.add(model))
        self._chosen = embedder
        self._failure = self._calibration = self._model_id = None
        self._sound = self._warned = False
        return model

    def forget(self) -> None:
        """Look the model's number up anew: the transaction that gave it was rolled back."""
        self._model_id = None

    def unload(self) -> None:
        """Give the model's memory back; the next embedding loads it again."""
        self._sound = False
        if isinstance(self._chosen, str) or self._chosen is None:
            return
        self._chosen.unload()

    def _stored(self) -> Calibration | None:
        model = self.model
        blob = None if model is None else self._store.models.calibration(model)
        return None if blob is None else Calibration.from_bytes(blob)
