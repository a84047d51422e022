"""What an embedding model costs: memory while loaded and after, the first query, each further one.

    python bench/footprint.py --models FOLDER_OF_MODEL_FOLDERS [--runs 3]

One fresh process a row, the rows of a model in turn, `--runs` times; the median of each figure is printed. "naive" is
onnxruntime and tokenizers with their defaults. Memory is RSS from /proc (total, of it anonymous, of it pages of files),
in MiB. The first query counts from before onnxruntime is imported to the first vector, with numpy loaded.
CPU is the process's (for an isolated model, its worker's as well).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

SUBJECTS = (
    "the backup of the mail server",
    "резервная копия базы",
    "Annas Termin im Mai",
    "数据库的密码",
    "le port du proxy",
)
QUESTIONS = [f"{subject} number {n}, when did it change last?" for n in range(20) for subject in SUBJECTS]
BATCH = [
    f"passage {n}: {question} It was written down by the one who was on call that night."
    for n, question in enumerate(QUESTIONS[:32])
]
ROWS = ("naive", "holomem", "holomem isolated", "fastembed")


def rss(pid: int | str = "self") -> dict[str, float]:
    """MiB of a process: total, anonymous, file."""
    found = {}
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "RssAnon", "RssFile"):
            found[name] = int(value.split()[0]) / 1024
    return {"total": found["VmRSS"], "anon": found["RssAnon"], "file": found["RssFile"]}


def cpu(pid: int | None) -> float:
    """Seconds of processor time of this process, and of another one."""
    own = time.process_time()
    if pid is None:
        return own
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return own + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Naive:
    """The libraries with their defaults, whole batches padded to the longest."""

    pid = None

    def __init__(self, folder: Path, query: str, passage: str) -> None:
        self._folder, self._prefixes = folder, (passage, query)

    def load(self) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(512)
        self.session = onnxruntime.InferenceSession(
            str(self._folder / "model.onnx"), providers=["CPUExecutionProvider"]
        )
        self.names = [feed.name for feed in self.session.get_inputs()]

    def embed(self, texts: list[str], *, query: bool = False) -> Any:
        if len(texts) > 1:
            self.tokenizer.enable_padding()
        encodings = self.tokenizer.encode_batch([self._prefixes[query] + text for text in texts])
        if len(texts) > 1:
            self.tokenizer.no_padding()
        mask = np.array([e.attention_mask for e in encodings], np.int64)
        values = {"input_ids": np.array([e.ids for e in encodings], np.int64), "attention_mask": mask}
        values["token_type_ids"] = np.zeros_like(mask)
        (tokens, *_) = self.session.run(None, {name: values[name] for name in self.names})
        means = (tokens * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    def unload(self) -> None:
        import gc

        del self.tokenizer, self.session
        gc.collect()


class Ours:
    """holomem's embedder."""

    def __init__(self, folder: Path, *, isolated: bool) -> None:
        self._folder, self._isolated = folder, isolated

    @property
    def pid(self) -> int | None:
        return self.embedder._engine.pid if self._isolated and self.embedder.loaded else None

    def load(self) -> None:
        from holomem.embedding import OnnxEmbedder

        self.embedder = OnnxEmbedder(self._folder, isolated=self._isolated)
        self.embed = self.embedder.embed
        self.unload = self.embedder.unload


class Fastembed:
    """fastembed on the same files."""

    pid = None

    def __init__(self, folder: Path, query: str, passage: str) -> None:
        self._folder, self._prefixes, self._loads = folder, (passage, query), 0

    def load(self) -> None:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType

        self._loads += 1  # a name can be registered once
        name = f"bench/model-{self._loads}"
        TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=name),
            dim=384,
            model_file="model.onnx",
        )
        self._completed = tempfile.TemporaryDirectory()
        self.model = TextEmbedding(name, specific_model_path=complete(self._folder, self._completed.name))

    def embed(self, texts: list[str], *, query: bool = False) -> Any:
        return np.array(list(self.model.embed([self._prefixes[query] + text for text in texts])))

    def unload(self) -> None:
        import gc

        del self.model
        gc.collect()


def complete(folder: Path, copy: str) -> str:
    """A folder of links to the files of another, with the settings that fastembed wants besides."""
    for file in folder.iterdir():
        (Path(copy) / file.name).symlink_to(file.resolve())
    vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    pad = next(token for token in vocabulary["added_tokens"] if token["content"] in ("<pad>", "[PAD]"))
    for name, settings in (
        ("config.json", {"pad_token_id": pad["id"]}),
        ("tokenizer_config.json", {"model_max_length": 512, "pad_token": pad["content"]}),
        ("special_tokens_map.json", {"pad_token": pad["content"]}),
    ):
        (Path(copy) / name).unlink(missing_ok=True)
        (Path(copy) / name).write_text(json.dumps(settings), encoding="utf-8")
    return copy


def measure(row: str, folder: Path) -> dict[str, Any]:
    """The figures of one row, in this process."""
    e5 = "e5" in folder.name
    prefixes = ("query: ", "passage: ") if e5 else ("", "")
    engine: Any
    if row == "naive":
        engine = Naive(folder, *prefixes)
    elif row == "fastembed":
        engine = Fastembed(folder, *prefixes)
    else:
        engine = Ours(folder, isolated="isolated" in row)
    empty = rss()
    start = time.perf_counter()
    engine.load()
    engine.embed(["a first question"], query=True)
    first = time.perf_counter() - start
    for question in QUESTIONS[:10]:
        engine.embed([question], query=True)
    times, used = [], cpu(engine.pid)
    for question in QUESTIONS:
        start = time.perf_counter()
        engine.embed([question], query=True)
        times.append(time.perf_counter() - start)
    used = cpu(engine.pid) - used
    after_queries = rss()
    start = time.perf_counter()
    engine.embed(BATCH)
    batch = time.perf_counter() - start
    found = {
        "before": empty["total"],
        "after 100 queries": after_queries["total"],
        "anonymous": after_queries["anon"],
        "file": after_queries["file"],
        "after a batch of 32": rss()["total"],
        "worker": rss(engine.pid)["total"] if engine.pid else None,
        "first ms": first * 1000,
        "p50 ms": float(np.median(times)) * 1000,
        "CPU ms": used / len(QUESTIONS) * 1000,
        "texts/s": len(BATCH) / batch,
    }
    engine.unload()
    found["after unload"] = rss()["total"]
    engine.load()
    found["min cosine to fp32"] = golden(engine, folder)
    return found


def golden(engine: Any, folder: Path) -> float | None:
    """The least cosine to the stored vectors of the exact model; None where there are none."""
    if not (folder / "golden.npz").is_file():
        return None
    with np.load(folder / "golden.npz") as stored:
        texts, exact = [str(text) for text in stored["texts"]], stored["fp32"][0].astype(np.float64)
    rows = np.concatenate([engine.embed([text], query=True) for text in texts]).astype(np.float64)
    return float((np.einsum("ij,ij->i", rows, exact) / np.linalg.norm(exact, axis=1)).min())


def child(row: str, folder: Path) -> dict[str, Any] | str:
    """`measure` in a fresh process; the last line of its complaint where it fails."""
    import subprocess

    command = [sys.executable, __file__, "--row", row, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no output"])[-1]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(results: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Print the medians, and the ratios to naive."""
    names = list(next(iter(results.values())))
    print("| model | row | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 2) + "|")
    for (model, row), found in results.items():
        cells = ["" if found[n] is None else f"{found[n]:.3f}" if "cosine" in n else f"{found[n]:.1f}" for n in names]
        print(f"| {model} | {row} | " + " | ".join(cells) + " |")
    for (model, row), found in results.items():
        if row != "naive" and (naive := results.get((model, "naive"))):
            parts = [f"{name} {found[name] / naive[name]:.2f}" for name in ("first ms", "p50 ms", "CPU ms")]
            print(f"{model}, {row} / naive: {', '.join(parts)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=Path, help="a folder with a folder for each model")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.row:
        print(json.dumps(measure(chosen.row, chosen.folder)))
        return
    import _machine

    print(_machine.describe("onnxruntime", "tokenizers", "fastembed"), "\n")
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    folders = sorted(path.parent for path in chosen.models.glob("*/model.onnx"))
    for folder in folders:
        child("holomem", folder)  # makes what is made once
    for _ in range(chosen.runs):
        for folder in folders:
            for row in ROWS:
                found = child(row, folder)
                if isinstance(found, str):
                    print(f"{folder.name}, {row}: {found}", file=sys.stderr)
                else:
                    runs.setdefault((folder.name, row), []).append(found)
    table({key: {n: median([run[n] for run in found]) for n in found[0]} for key, found in runs.items()})


def median(values: list[float | None]) -> float | None:
    """The median; None where there is none."""
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


if __name__ == "__main__":
    main()
