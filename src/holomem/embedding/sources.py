"""Where the model for "auto" comes from: the places in their order, and what each says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from holomem.embedding import files, weights_e5
from holomem.embedding.files import E5_MODEL, PinnedModel
from holomem.embedding.hashes import file_hash
from holomem.embedding.onnx import OnnxEmbedder
from holomem.embedding.protocol import Embedder, MissingEmbedder, Vectors
from holomem.embedding.weights_e5 import Build
from holomem.errors import ModelError
from holomem.types import ModelId

__all__ = [
    "Build",
    "CheckedFile",
    "ModelState",
    "PackagedEmbedder",
    "Source",
    "build_model",
    "default_embedder",
    "fetch_if_missing",
    "fetch_model",
    "sources",
    "state",
    "verify_model",
]

MODEL_DIR: Final = "HOLOMEM_MODEL_DIR"
ISOLATED: Final = "HOLOMEM_ISOLATED"
E5_DIM: Final = 384


@dataclass(frozen=True, slots=True)
class Source:
    """A place where a model may be; `embedder` is None when there is none."""

    name: str
    message: str
    embedder: OnnxEmbedder | None = None
    pinned: PinnedModel | None = None


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a source says, and whether its model is the one that is used."""

    name: str
    message: str
    used: bool


@dataclass(frozen=True, slots=True)
class ModelState:
    """The model that is used and where it comes from. `problem` says why there is none, `note` what is still to do."""

    sources: tuple[SourceState, ...]
    problem: str | None
    note: str | None
    folder: str | None
    model: ModelId | None
    licence: str | None
    origin: str | None
    size_bytes: int | None
    build: Build | None


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file of the model and its hash; `expected` is the published one, None where there is none."""

    path: str
    size_bytes: int
    sha256: str
    expected: str | None

    @property
    def intact(self) -> bool:
        """Whether the file is the published one, or nobody says what it should be."""
        return self.expected in (None, self.sha256)


def sources() -> tuple[Source, ...]:
    """All places, the one that is asked first foremost. Reads no model file and imports nothing heavy."""
    return (_named_folder(), _hub_cache(), _weights_package())


def default_embedder(wanted: ModelId | None = None) -> Embedder:
    """The model for "auto": the one that is `wanted`, whose vectors a memory holds, else that of the first source.

    Nothing is fetched, built or raised: what is missing is said by the `problem()` of the embedder.
    """
    looked = sources()
    found = [source.embedder for source in looked if source.embedder is not None]
    if not found:
        pinned = files.DEFAULT_MODEL
        return MissingEmbedder(
            f"no embedding model: {MODEL_DIR} is not set, {pinned.name} is not in the Hugging Face cache and "
            f"{looked[-1].message}, or {pinned.remedy()}"
        )
    if wanted is None:
        return found[0]
    for embedder in found:
        if embedder.problem() is None and embedder.model == wanted:
            return embedder
    if (problem := found[0].problem()) is not None:
        return MissingEmbedder(problem)
    again = next((p.remedy() for p in (files.DEFAULT_MODEL, E5_MODEL) if p.name == wanted.name), "install it again")
    return MissingEmbedder(
        f"the vectors of this memory are of {wanted.name} ({wanted.file_hash[:12]}), which is not here; {again}; or "
        f"run `holomem model use` and `holomem reembed` to go over to {found[0].model.name}"
    )


def fetch_model() -> Path:
    """The folder of the default model in the hub's cache, after getting there what is missing. ModelError."""
    from holomem.embedding.hub import fetch

    return fetch(files.DEFAULT_MODEL)


def fetch_if_missing() -> None:
    """Fetch the default model unless a source has one. ModelError."""
    if _used() is None:
        fetch_model()


def _named_folder() -> Source:
    folder = os.environ.get(MODEL_DIR)
    if not folder:
        return Source(MODEL_DIR, "not set")
    return Source(MODEL_DIR, f"names {folder}", OnnxEmbedder(Path(folder).expanduser(), isolated=_isolated()))


def _hub_cache() -> Source:
    pinned = files.DEFAULT_MODEL
    snapshot = files.cached_folder(pinned)
    if snapshot is None:
        return Source("hub cache", f"{pinned.name} is not in {files._hub_cache()}")
    return Source(
        "hub cache",
        f"{pinned.name} is in {snapshot}",
        OnnxEmbedder(snapshot, pinned=pinned, isolated=_isolated()),
        pinned,
    )


def _weights_package() -> Source:
    name = "weights package"
    weights, folder = weights_e5.installed(), weights_e5.built_folder()
    if weights_e5.is_built(folder):
        return Source(
            name,
            f"{E5_MODEL.name} was built in {folder}",
            PackagedEmbedder(weights, folder, isolated=_isolated()),
            E5_MODEL,
        )
    if weights is None:
        return Source(name, f"{weights_e5.PACKAGE} is not installed; run `{weights_e5.EXTRA}`")
    if (problem := weights_e5.weights_problem(weights)) is not None:
        return Source(name, problem)
    message = f"{weights_e5.version()} is installed; {E5_MODEL.name} is built of it at the first use, in {folder}"
    return Source(name, message, PackagedEmbedder(weights, folder, isolated=_isolated()), E5_MODEL)


def _isolated() -> bool:
    """Whether models are to live in a process of their own."""
    return os.environ.get(ISOLATED, "").strip().lower() not in ("", "0", "false", "no", "off")


def _used() -> Source | None:
    return next((source for source in sources() if source.embedder is not None), None)


def state() -> ModelState:
    """What every source says and all about the model that is used. Hashes the graph, loads and builds nothing."""
    looked = sources()
    used = next((source for source in looked if source.embedder is not None), None)
    said = tuple(SourceState(source.name, source.message, source is used) for source in looked)
    if used is None or used.embedder is None:
        return ModelState(said, default_embedder().problem(), None, None, None, None, None, None, None)
    folder = used.embedder.folder
    problem = used.embedder.problem()
    model = used.embedder.model if problem is None else None
    if used.pinned is E5_MODEL and not weights_e5.is_built(folder):
        note = "not built yet: the first search or `holomem model build` does it"
        return ModelState(said, problem, note, str(folder), model, E5_MODEL.licence, E5_MODEL.origin, None, None)
    size_bytes = pinned = None
    if problem is None:
        found = files.find_files(folder, used.pinned)
        pinned = used.pinned or files.published(found.graph_path)
        size_bytes = found.graph_path.stat().st_size + found.tokenizer_path.stat().st_size
    licence, origin = (pinned.licence, pinned.origin) if pinned else (None, None)
    return ModelState(
        said, problem, None, str(folder), model, licence, origin, size_bytes, weights_e5.last_build(folder)
    )


def verify_model() -> tuple[CheckedFile, ...]:
    """The files of the model that is used, hashed anew. ModelError when there is none."""
    used = _used()
    if used is None or used.embedder is None:
        raise ModelError(default_embedder().problem() or "")
    folder = used.embedder.folder
    if used.pinned is None:
        found = files.find_files(folder)
        return tuple(_checked(path, None) for path in (found.graph_path, found.tokenizer_path))
    pinned = [file for file in (*used.pinned.graphs, used.pinned.tokenizer) if (folder / file.path).is_file()]
    if not pinned:
        raise ModelError(f"{folder} is not there yet; {used.pinned.remedy()}")
    return tuple(_checked(folder / file.path, file.sha256) for file in pinned)


def _checked(path: Path, expected: str | None) -> CheckedFile:
    return CheckedFile(str(path), path.stat().st_size, file_hash(path, anew=True), expected)


def build_model() -> tuple[Path, Build | None]:
    """The folder of the weights package's model, built unless it is there whole. ModelError with the remedy."""
    package = _weights_package()
    if not isinstance(package.embedder, PackagedEmbedder):
        raise ModelError(package.message)
    package.embedder.build()
    return package.embedder.folder, weights_e5.last_build(package.embedder.folder)


class PackagedEmbedder(OnnxEmbedder):
    """The model of the weights package. The first `embed` builds its folder; its identity is known before that."""

    def __init__(self, weights: Path | None, folder: Path, **options: Any) -> None:
        super().__init__(folder, pinned=E5_MODEL, **options)
        self._weights = weights
        self._unbuilt: str | None = None  # why the build failed

    @property
    def model(self) -> ModelId:
        """The identity of the model, whether it is built by now or not."""
        if weights_e5.is_built(self.folder):
            return super().model
        return ModelId(
            name=E5_MODEL.name,
            revision=E5_MODEL.revision,
            file_hash=E5_MODEL.graphs[0].sha256,
            dim=E5_DIM,
            max_tokens=E5_MODEL.max_tokens,
            query_prefix=E5_MODEL.query_prefix,
            passage_prefix=E5_MODEL.passage_prefix,
        )

    def problem(self) -> str | None:
        """None, or what is missing and what to do, in one line. Never builds."""
        if weights_e5.is_built(self.folder):
            return super().problem()
        if self._weights is None:
            return f"{weights_e5.PACKAGE} is not installed; run `{weights_e5.EXTRA}`"
        return self._unbuilt or weights_e5.weights_problem(self._weights)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Unit rows (n, dim), one a text; builds the model at first need."""
        if not weights_e5.is_built(self.folder):
            if len(texts) == 0:
                return np.zeros((0, E5_DIM), np.float32)
            self.build()
        return super().embed(texts, query=query)

    def build(self) -> None:
        """Build the folder now unless it is there whole. ModelError with the remedy; it is not tried again by itself."""
        if self._weights is None or self._unbuilt is not None:
            raise ModelError(self.problem() or "")
        try:
            weights_e5.build(self._weights, self.folder)
        except ModelError as error:
            self._unbuilt = str(error)
            raise
