"""How well does search find? Recall and ranking on every task of shared/eval, through the public API.

    python bench/eval.py --jobs 2
    python bench/eval.py --tasks locomo tldr --limit-queries 200 --variants holomem cascade

The first run embeds 33,000 texts, ten minutes on one core; their vectors are kept (`--cache`) for the next one.

Each task is one store in a temporary file: facts go in by `add_many`, as text only, questions by `search` with its
defaults. Tasks whose facts come with lists of entities report a second row, "+lists", where those are given.

    holomem      all channels, candidates of every channel: what a user gets
    fts ... semantic   one channel alone
    cascade      Memory(candidates="cascade")
    no-semantic  Memory(embedder=None);  no-hrr;  neither

One channel alone and a missing HRR channel have no switch in the library, on purpose. Here `holomem.fusion.WEIGHTS`
is replaced by rows that hold that channel only, and `holomem.search._structure` by one that gives NaN, for the time of
the run: the same pipeline with the same candidates ranks by what is left.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import _machine
import numpy as np
from _vectors import CachedEmbedder, default_cache

from holomem import Memory, NewFact, fusion
from holomem import search as recall
from holomem.embedding import OnnxEmbedder

SHARED: Final = Path(__file__).resolve().parents[2] / "shared"
METRICS: Final = ("recall@10", "mrr@10", "recall@5", "ndcg@10")
MEAN_OF: Final = (  # the 13 retrieval tasks
    "locomo", "prefeval", "xquad_en", "xquad_ru", "xquad_zh", "xquad_mixed", "tatoeba", "tldr", "nl2bash",
    "entities_en", "entities_ru", "entities_zh", "entities_ja",
)  # fmt: skip
TASKS: Final = (*MEAN_OF, "agentmem", "contradictions")
WITH_LISTS: Final = ("entities_en", "entities_ru", "entities_zh", "entities_ja", "agentmem")
ENTITY_QUERIES: Final = "queries_entity.jsonl"
ABSENT: Final = ("queries_absent.jsonl", "queries_adversarial.jsonl")
FLOORS: Final = (0.05, 0.08)  # of relevance
ADDED: Final = 500  # facts in one add_many

Json = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """One way to search: the candidates, and which channels there are; `alone` ranks by one of them."""

    name: str
    candidates: str = "union"
    semantic: bool = True
    hrr: bool = True
    alone: str | None = None


VARIANTS: Final = {
    variant.name: variant
    for variant in (
        Variant("holomem"),
        *(Variant(channel, alone=channel) for channel in fusion.CHANNELS),
        Variant("cascade", candidates="cascade"),
        Variant("no-semantic", semantic=False),
        Variant("no-hrr", hrr=False),
        Variant("neither", semantic=False, hrr=False),
    )
}


@dataclass(frozen=True)
class Options:
    """What a worker needs to know."""

    evaluation: Path
    model: Path
    cache: Path
    variants: tuple[str, ...]
    limit: int
    limit_queries: int | None
    lists: bool
    absent: bool


# ---- one task ------------------------------------------------------------------------------------------------------


def run_task(task: str, options: Options) -> list[Json]:
    """The rows of one task: {"row", "variant", "ms", "groups": what score.py returns, "absent"?: ...}."""
    folder = options.evaluation / task / "dev"
    facts = read(folder / "facts.jsonl")
    score = scorer(options.evaluation)
    embedder = CachedEmbedder(OnnxEmbedder(options.model), options.cache)
    rows = []
    for given in (False, True):
        if given and not ((task in WITH_LISTS or options.lists) and any(f.get("entities") for f in facts)):
            continue
        with tempfile.TemporaryDirectory(prefix="holomem-eval-") as temporary:
            path = Path(temporary) / "memory.db"
            owners = build(path, facts, embedder, given=given)
            for name in options.variants:
                for file in ("queries.jsonl", ENTITY_QUERIES):
                    if not (folder / file).exists():
                        continue
                    label = task + (" entity" if file == ENTITY_QUERIES else "") + (" +lists" if given else "")
                    queries = sample(read(folder / file), options.limit_queries)
                    started = time.process_time()
                    found = answer(path, queries, VARIANTS[name], embedder, owners, options.limit)
                    spent = 1000 * (time.process_time() - started) / len(queries)
                    row: Json = {"row": label, "variant": name, "ms": spent}
                    row["groups"] = score.score(queries, {i: ranked for i, (ranked, _) in found.items()})
                    if options.absent and name == "holomem" and file == "queries.jsonl":
                        tops = [top for _, top in found.values()]
                        row["absent"] = absent(folder, path, tops, embedder, owners, options, score)
                    rows.append(row)
            print(f"  {task}{' +lists' if given else ''}: done", file=sys.stderr, flush=True)
    return rows


def build(path: Path, facts: Sequence[Json], embedder: CachedEmbedder, *, given: bool) -> dict[int, list[str]]:
    """Store the facts; which facts of the task each stored one stands for (texts may repeat)."""
    owners: dict[int, list[str]] = {}
    with Memory(path, embedder=embedder) as memory:
        for start in range(0, len(facts), ADDED):
            part = facts[start : start + ADDED]
            new = [NewFact(fact["text"], entities=fact.get("entities") if given else None) for fact in part]
            for fact_id, fact in zip(memory.add_many(new), part, strict=True):
                owners.setdefault(fact_id, []).append(fact["id"])
    return owners


def answer(
    path: Path,
    queries: Sequence[Json],
    variant: Variant,
    embedder: CachedEmbedder,
    owners: dict[int, list[str]],
    limit: int,
) -> dict[str, tuple[list[str], float]]:
    """Query id -> (ids of the facts found, best first; the top relevance, 0 when nothing was found)."""
    found = {}
    with (
        patched(variant),
        Memory(path, embedder=embedder if variant.semantic else None, candidates=variant.candidates) as memory,
    ):
        for query in queries:
            hits = memory.search(query["text"], limit=limit)
            ranked = [owner for hit in hits for owner in owners[hit.fact.fact_id]]
            found[query["id"]] = (ranked, max((hit.relevance for hit in hits), default=0.0))
    return found


@contextmanager
def patched(variant: Variant) -> Iterator[None]:
    """Search as the variant wants it, where the library has no switch for it; see the module's docstring."""
    weights, structure = fusion.WEIGHTS, recall._structure
    if variant.alone is not None:
        fusion.WEIGHTS = np.tile([float(channel == variant.alone) for channel in fusion.CHANNELS], (len(weights), 1))
    if not variant.hrr:
        recall._structure = lambda _query, _index, rows: np.full(len(rows), np.nan)
    try:
        yield
    finally:
        fusion.WEIGHTS, recall._structure = weights, structure


def absent(
    folder: Path,
    path: Path,
    own: Sequence[float],
    embedder: CachedEmbedder,
    owners: dict[int, list[str]],
    options: Options,
    score: ModuleType,
) -> list[Json]:
    """For questions that nothing answers: how relevant the first hit is, beside the task's own questions."""
    rows = []
    for file in ABSENT:
        if not (folder / file).exists():
            continue
        queries = sample(read(folder / file), options.limit_queries)
        found = answer(path, queries, VARIANTS["holomem"], embedder, owners, options.limit)
        tops = [top for _, top in found.values()]
        row: Json = {"file": file, "n": len(tops), "answered": share(tops, 0.0), "auc": score.auc(list(own), tops)}
        row["median"], row["own_median"] = float(np.median(tops)), float(np.median(own))
        for floor in FLOORS:
            row[f"answered@{floor}"], row[f"kept@{floor}"] = share(tops, floor), share(own, floor)
        rows.append(row)
    return rows


def share(tops: Sequence[float], floor: float) -> float:
    return sum(top > 0 and top >= floor for top in tops) / max(len(tops), 1)


def read(path: Path) -> list[Json]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def sample(queries: list[Json], count: int | None) -> list[Json]:
    """A part of the queries that is the same on every machine, in their order."""
    if count is None or len(queries) <= count:
        return queries
    chosen = {q["id"] for q in sorted(queries, key=lambda q: hashlib.sha256(q["id"].encode()).digest())[:count]}
    return [query for query in queries if query["id"] in chosen]


def scorer(folder: Path) -> ModuleType:
    """The evaluation's own score.py."""
    spec = importlib.util.spec_from_file_location("score", folder / "score.py")
    if spec is None or spec.loader is None:
        sys.exit(f"no score.py in {folder}; name the folder by --eval")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- the report ----------------------------------------------------------------------------------------------------


def table(title: str, head: Sequence[str], body: Sequence[Sequence[str]], *, markdown: bool) -> None:
    """Print one table; the first column is text, the others are figures."""
    print()
    if markdown:
        print(f"**{title}**\n\n| {' | '.join(head)} |\n|---|{'---:|' * (len(head) - 1)}")
        print("\n".join(f"| {' | '.join(row)} |" for row in body))
        return
    widths = [max(len(row[i]) for row in (head, *body)) for i in range(len(head))]
    print(title)
    for row in (head, *body):
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))))


def report(results: Sequence[Json], options: Options, arguments: argparse.Namespace) -> None:
    """Every table that was asked for."""
    labels = list(dict.fromkeys(result["row"] for result in results))
    values = {(r["row"], r["variant"]): r["groups"]["ALL"] for r in results}
    averaged = [label for label in labels if label in MEAN_OF]
    listed = [f"{label} +lists" if f"{label} +lists" in labels else label for label in averaged]
    for metric in METRICS:
        body = []
        for label in labels:
            body.append([label, *line([values[label, v][metric] for v in options.variants], options.variants)])
        means = [("mean of the 13" if len(averaged) == len(MEAN_OF) else f"mean of {len(averaged)} tasks", averaged)]
        if listed != averaged:
            means.append(("  with the lists", listed))
        for name, chosen in means if averaged else []:
            columns = [float(np.mean([values[label, v][metric] for label in chosen])) for v in options.variants]
            body.append([name, *line(columns, options.variants)])
        head = ["task", *options.variants]
        head += ["best single", "diff"] if compares(options.variants) else []
        table(metric, head, body, markdown=arguments.markdown)
    spent = {v: float(np.mean([r["ms"] for r in results if r["variant"] == v])) for v in options.variants}
    print("\nCPU ms a question: " + ", ".join(f"{v} {ms:.1f}" for v, ms in spent.items()))
    if arguments.by_type:
        by_type(results, markdown=arguments.markdown)
    if arguments.absent:
        report_absent(results, markdown=arguments.markdown)


def compares(variants: Sequence[str]) -> bool:
    return {"holomem", *fusion.CHANNELS} <= set(variants)


def line(values: Sequence[float], variants: Sequence[str]) -> list[str]:
    """The cells of a row; at its end the best channel alone, and what all of them together have more, in points."""
    cells = [f"{value:.3f}" for value in values]
    if compares(variants):
        by_name = dict(zip(variants, values, strict=True))
        best = max(fusion.CHANNELS, key=lambda channel: by_name[channel])
        cells += [best, f"{100 * (by_name['holomem'] - by_name[best]):+.1f}"]
    return cells


def by_type(results: Sequence[Json], *, markdown: bool) -> None:
    body = []
    for result in results:
        if result["variant"] == "holomem":
            for group, values in result["groups"].items():
                if group not in ("ALL", "(no relevant fact)"):
                    figures = [f"{values[m]:.3f}" for m in ("hit@1", *METRICS, "rprec")]
                    body.append([f"{result['row']}: {group}", str(values["n"]), *figures])
    table("holomem by type of question", ["task: type", "n", "hit@1", *METRICS, "rprec"], body, markdown=markdown)


def report_absent(results: Sequence[Json], *, markdown: bool) -> None:
    names = ["answered", *(f"{kind}@{floor}" for floor in FLOORS for kind in ("answered", "kept"))]
    names += ["median", "own_median", "auc"]
    body = []
    for result in results:
        for row in result.get("absent", ()):
            label = f"{result['row']}: {row['file'].removeprefix('queries_').removesuffix('.jsonl')}"
            body.append([label, str(row["n"]), *(f"{row[name]:.3f}" for name in names)])
    title = "questions that nothing answers: share answered, and above a floor of relevance (kept: of the task's own)"
    table(title, ["task", "n", *names], body, markdown=markdown)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=Path, default=SHARED / "eval", help="folder of the tasks and score.py")
    parser.add_argument("--model", type=Path, help="model folder; else $HOLOMEM_MODEL_DIR, else that of shared/")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder that keeps embedded texts")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS, metavar="TASK")
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), metavar="VARIANT")
    parser.add_argument("--limit", type=int, default=10, help="facts a search returns (50 for recall@50 and rprec)")
    parser.add_argument("--limit-queries", type=int, metavar="N", help="a fixed sample of N questions a task")
    parser.add_argument("--entities", action="store_true", help="+lists rows for every task that has lists")
    parser.add_argument("--by-type", action="store_true")
    parser.add_argument("--absent", action="store_true", help="questions that nothing answers")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time; CPU ms are only fair with free cores")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--markdown", action="store_true")
    output.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    options = Options(
        evaluation=arguments.eval.resolve(),
        model=arguments.model
        or Path(os.environ.get("HOLOMEM_MODEL_DIR") or SHARED / "models" / "multilingual-e5-small"),
        cache=arguments.cache,
        variants=tuple(name for name in VARIANTS if name in arguments.variants),
        limit=arguments.limit,
        limit_queries=arguments.limit_queries,
        lists=arguments.entities,
        absent=arguments.absent,
    )
    identity = OnnxEmbedder(options.model).model
    machine = f"{_machine.describe('onnxruntime', 'tokenizers')}; model {identity.name} {identity.file_hash[:12]}"
    print(machine, file=sys.stderr if arguments.json else sys.stdout, flush=True)
    if arguments.jobs == 1:
        results = [row for task in arguments.tasks for row in run_task(task, options)]
    else:
        with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
            running = [pool.submit(run_task, task, options) for task in arguments.tasks]
            results = [row for future in running for row in future.result()]
    if arguments.json:
        print(json.dumps({"machine": machine, "results": results}, indent=1))
    else:
        report(results, options, arguments)


if __name__ == "__main__":
    main()
