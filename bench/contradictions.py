"""How well statements that cannot both hold are told from others: `python bench/contradictions.py`.

AUC and best F1 for each source of pairs: with the model's vectors, without a model, and without the list of words that
say that several values may hold (what rests on that list alone). Then the share of conflicts found by
`Memory.contradictions` among pairs put into one store, and its time over many facts. `--read TASK` prints the surest
pairs of a task's facts instead, for a person to read.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from _machine import describe
from _vectors import CachedEmbedder, default_cache
from eval import SHARED

from holomem import Memory, NewFact, claims
from holomem import _claimwords as words
from holomem.embedding import Calibration, OnnxEmbedder, known

Json = dict[str, Any]
OWN = Path(__file__).parent / "data"
STORED = ("entities_en", "locomo", "tldr", "nl2bash", "xquad_en", "xquad_ru", "prefeval", "agentmem", "entities_ru")
ADDED = 500  # facts in one call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=Path, default=SHARED / "eval", help="folder of the tasks and score.py")
    parser.add_argument("--model", type=Path, help="model folder; else $HOLOMEM_MODEL_DIR, else that of shared/")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder for vectors of texts")
    parser.add_argument("--facts", type=int, default=10_000, help="facts in the store whose time is taken")
    parser.add_argument("--read", metavar="TASK", help="print the surest pairs of this task's facts")
    parser.add_argument("--top", type=int, default=50)
    options = parser.parse_args()
    embedder = CachedEmbedder(
        OnnxEmbedder(
            options.model or os.environ.get("HOLOMEM_MODEL_DIR") or SHARED / "models" / "multilingual-e5-small"
        ),
        options.cache,
    )
    if options.read:
        read_out(options.eval, options.read, embedder, options.top)
        return
    print(describe("onnxruntime"))
    judge_pairs(options.eval, embedder)
    take_time(options.eval, embedder, options.facts)


# ---- pairs ---------------------------------------------------------------------------------------------------------


def judge_pairs(evaluation: Path, embedder: CachedEmbedder) -> None:
    """Print AUC and best F1 for each source of pairs."""
    pairs = lines(evaluation / "contradictions" / "dev" / "pairs.jsonl")
    for file in sorted(OWN.glob("contradiction_pairs*.jsonl")):
        own = lines(file)
        pairs += own + [p | {"id": f"{p['id']} by language", "source": f"{p['source']} {p['lang']}"} for p in own]
    near = cosines(pairs, embedder)
    score = scorer(evaluation)
    columns: dict[str, Json] = {}
    columns["with the model"] = judged(pairs, near, score)
    columns["without a model"] = judged(pairs, None, score)
    with without_list():
        columns["without the list"] = judged(pairs, near, score)
    print(f"\n{'AUC (best F1)':22}{'conflicts':>10}{'others':>8}" + "".join(f"{name:>20}" for name in columns))
    first = columns["with the model"]
    for source in first:
        row = "".join(f"{c[source]['auc']:>12.3f} ({c[source]['best_f1']:.3f})" for c in columns.values())
        print(f"{source:22}{first[source]['n_pos']:>10}{first[source]['n_neg']:>8}{row}")


def judged(pairs: Sequence[Json], near: dict[str, float] | None, score: ModuleType) -> Json:
    scores = {}
    for pair in pairs:
        closeness = None if near is None else near[pair["id"]]
        scores[pair["id"]] = claims.judge(claims.parse(pair["a"]), claims.parse(pair["b"]), closeness).score
    found: Json = score.pair_score(pairs, scores)
    return found


def cosines(pairs: Sequence[Json], embedder: CachedEmbedder) -> dict[str, float]:
    """Pair id -> calibrated cosine of both statements."""
    texts = sorted({pair[side] for pair in pairs for side in "ab"})
    place = {text: i for i, text in enumerate(texts)}
    units = calibration(embedder).passages(embedder.embed(texts))
    return {p["id"]: float(units[place[p["a"]]] @ units[place[p["b"]]]) for p in pairs}


def calibration(embedder: CachedEmbedder) -> Calibration:
    found = known(embedder.model)
    if found is None:
        raise SystemExit("the package brings no calibration of this model")
    return found


@contextmanager
def without_list() -> Iterator[None]:
    """Judge without the words that say that several values may hold."""
    kept = words.SEVERAL
    words.SEVERAL = frozenset()  # type: ignore[misc]
    try:
        yield
    finally:
        words.SEVERAL = kept  # type: ignore[misc]


# ---- stores --------------------------------------------------------------------------------------------------------


def take_time(evaluation: Path, embedder: CachedEmbedder, count: int) -> None:
    """Print what `contradictions` and `contradicted_by` cost over so many facts, with and without vectors."""
    texts: dict[str, None] = {}
    for task in STORED:
        texts.update(dict.fromkeys(fact["text"] for fact in lines(evaluation / task / "dev" / "facts.jsonl")))
    stored = list(texts)[:count]
    print(f"\n{'':24}{'facts':>8}{'first':>10}{'its CPU':>10}{'again':>10}{'pairs':>8}{'one new fact':>16}")
    for name, used in (("with the model", embedder), ("without a model", None)):
        with (
            tempfile.TemporaryDirectory(prefix="holomem-bench-") as folder,
            store(Path(folder), stored, used) as memory,
        ):
            memory.search("a question")  # reads the file into the caches
            walls, cpus = [], []
            for _ in range(2):
                wall, cpu = time.perf_counter(), time.process_time()
                found = memory.contradictions(limit=1000)
                walls.append(time.perf_counter() - wall)
                cpus.append(time.process_time() - cpu)
            news = stored[:: max(1, len(stored) // 100)]
            each = []
            for text in news:
                started = time.perf_counter()
                memory.contradicted_by(text)
                each.append(1000 * (time.perf_counter() - started))
            print(
                f"{name:24}{len(memory):>8}{walls[0]:>8.2f} s{cpus[0]:>8.2f} s{walls[1]:>8.3f} s{len(found):>8}"
                f"{np.median(each):>13.1f} ms"
            )


def read_out(evaluation: Path, task: str, embedder: CachedEmbedder, top: int) -> None:
    """Print the surest pairs among the facts of a task."""
    facts = [fact["text"] for fact in lines(evaluation / task / "dev" / "facts.jsonl")]
    with tempfile.TemporaryDirectory(prefix="holomem-bench-") as folder, store(Path(folder), facts, embedder) as memory:
        for place, pair in enumerate(memory.contradictions(limit=top, min_score=0.0), 1):
            print(f"{place:3} {pair.score:.2f}  {pair.reason}\n      {pair.first.content}\n      {pair.second.content}")


@contextmanager
def store(folder: Path, texts: Sequence[str], embedder: CachedEmbedder | None) -> Iterator[Memory]:
    with Memory(folder / "memory.db", embedder=embedder) as memory:
        for start in range(0, len(texts), ADDED):
            memory.add_many([NewFact(text) for text in texts[start : start + ADDED]])
        yield memory


def lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def scorer(evaluation: Path) -> ModuleType:
    """The script that scores, which comes with the data."""
    spec = importlib.util.spec_from_file_location("score", evaluation / "score.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"no score.py in {evaluation}; name the folder by --eval")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
