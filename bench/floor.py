"""Where does an answer end? Floors of relevance on every task of shared/eval, and search in very small stores.

    python bench/floor.py
    python bench/floor.py --tasks agentmem tldr --variants holomem --sizes

Each task is one store. It is asked a sample of its own questions, and of those of every task of another family, which
it cannot answer: foreign ones. For a row of floors (`min_score`):

    kept      share of the first hits that are right which stay
    foreign   share of the foreign questions that are answered with anything at all
    absent    the same for the task's own questions that no fact answers (agentmem: near misses on purpose)

Small stores: each holds one right fact for each of n questions of a task, all of which are asked; MRR.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
from _vectors import CachedEmbedder, default_cache
from eval import ADDED, MEAN_OF, SHARED, build, read, sample, table

from holomem import Memory, NewFact
from holomem.embedding import OnnxEmbedder
from holomem.selection import MIN_SCORE, UNASKED_MIN_SCORE

TASKS: Final = (*MEAN_OF, "agentmem")
FLOORS: Final = (0.03, 0.04, 0.05, MIN_SCORE, 0.08, UNASKED_MIN_SCORE, 0.15)
SIZES: Final = (5, 20, 50)
VARIANTS: Final = ("holomem", "no-semantic")
ABSENT: Final = "queries_absent.jsonl"

Json = dict[str, Any]


def family(task: str) -> str:
    """Tasks of one family may answer each other's questions."""
    if task in ("tldr", "nl2bash"):
        return "shell"
    return task.partition("_")[0]


@dataclass(frozen=True)
class Asked:
    """One question to a store: whether the first hit is right, and whether it stays at each of `FLOORS`.

    Where it is not right: whether any hit does.
    """

    right: bool
    stays: tuple[bool, ...]


def ask(memory: Memory, query: Json, owners: dict[int, list[str]]) -> Asked:
    hits = memory.search(query["text"], min_score=0)
    right = bool(hits) and bool(set(query["relevant"]) & set(owners[hits[0].fact.fact_id]))
    stays: list[bool] = []
    for floor in FLOORS:  # upwards: what is gone stays gone
        found = memory.search(query["text"], min_score=floor) if all(stays) else []
        stays.append(any(hit.fact.fact_id == hits[0].fact.fact_id for hit in found) if right else bool(found))
    return Asked(right, tuple(stays))


def run_task(task: str, arguments: argparse.Namespace) -> list[Json]:
    """One row for each variant: {"task", "variant", "kept", "foreign", "absent"}, each a list of `Asked`."""
    embedder = CachedEmbedder(OnnxEmbedder(arguments.model), arguments.cache)
    folder = arguments.eval / task / "dev"
    own = sample(read(folder / "queries.jsonl"), arguments.own)
    absent = read(folder / ABSENT) if (folder / ABSENT).exists() else []
    foreign = [
        {**query, "relevant": []}
        for other in TASKS
        if family(other) != family(task)
        for query in sample(read(arguments.eval / other / "dev" / "queries.jsonl"), arguments.foreign)
    ]
    rows = []
    with tempfile.TemporaryDirectory(prefix="holomem-floor-") as temporary:
        path = Path(temporary) / "memory.db"
        owners = build(path, read(folder / "facts.jsonl"), embedder, given=False)
        for variant in arguments.variants:
            with Memory(path, embedder=embedder if variant == "holomem" else None) as memory:
                row: Json = {"task": task, "variant": variant}
                row["kept"] = [asked for query in own if (asked := ask(memory, query, owners)).right]
                row["foreign"] = [ask(memory, query, owners) for query in foreign]
                row["absent"] = [ask(memory, query, owners) for query in sample(absent, arguments.own)]
                rows.append(row)
    print(f"  {task}: done", file=sys.stderr, flush=True)
    return rows


def small(task: str, size: int, arguments: argparse.Namespace) -> tuple[float, list[bool], list[bool]]:
    """The task's questions, each asked to a store of `size` facts with one right fact of each of its questions.

    Returns their MRR without a floor, which right first hits stay at the default one, and which foreign questions are
    answered: as many of them, of a task of another family.
    """
    embedder = CachedEmbedder(OnnxEmbedder(arguments.model), arguments.cache)
    folder = arguments.eval / task / "dev"
    texts = {fact["id"]: fact["text"] for fact in read(folder / "facts.jsonl")}
    queries = sample(read(folder / "queries.jsonl"), arguments.own)
    random.Random(size).shuffle(queries)
    other = next(t for t in random.Random(task).sample(TASKS, len(TASKS)) if family(t) != family(task))
    foreign = sample(read(arguments.eval / other / "dev" / "queries.jsonl"), arguments.own)
    ranks, kept, answered = [], [], []
    for start in range(0, len(queries) - size + 1, size):
        asked = queries[start : start + size]
        with Memory(":memory:", embedder=embedder) as memory:
            owners: dict[int, set[str]] = {}
            chosen = list(dict.fromkeys(query["relevant"][0] for query in asked))
            for begin in range(0, len(chosen), ADDED):
                ids = chosen[begin : begin + ADDED]
                for fact_id, name in zip(memory.add_many([NewFact(texts[i]) for i in ids]), ids, strict=True):
                    owners.setdefault(fact_id, set()).add(name)
            for query in asked:
                hits = memory.search(query["text"], min_score=0)
                right = [bool(owners[hit.fact.fact_id] & set(query["relevant"])) for hit in hits]
                ranks.append(1 / (1 + right.index(True)) if True in right else 0.0)
                if right[:1] == [True]:
                    kept.append(hits[0].fact.fact_id in {hit.fact.fact_id for hit in memory.search(query["text"])})
            answered += [bool(memory.search(query["text"])) for query in foreign[start : start + size]]
    return float(np.mean(ranks)) if ranks else float("nan"), kept, answered


def report(rows: Sequence[Json], variant: str, *, markdown: bool) -> None:
    """The table of one variant: for each task what stays at each floor, in percent, and over all questions."""
    chosen = [row for row in rows if row["variant"] == variant]
    body = []
    for kind in ("kept", "foreign", "absent"):
        sets = [(row["task"], row[kind]) for row in chosen if row[kind]]
        if kind != "absent":
            sets.append(("all", [asked for _, group in sets for asked in group]))
        for task, group in sets:
            shares = 100 * np.mean([asked.stays for asked in group], axis=0)
            body.append([f"{kind} {task}", str(len(group)), *(f"{share:.1f}" for share in shares)])
    head = ["% that stay", "n", *(f"{floor:.3f}" for floor in FLOORS)]
    table(f"floors of relevance, {variant}", head, body, markdown=markdown)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=Path, default=SHARED / "eval", help="folder of the tasks")
    parser.add_argument("--model", type=Path, help="model folder; else $HOLOMEM_MODEL_DIR, else that of shared/")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder that keeps embedded texts")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS, metavar="TASK")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=VARIANTS, metavar="VARIANT")
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, metavar="N", help="facts of the small stores")
    parser.add_argument("--own", type=int, default=200, metavar="N", help="questions of the task itself")
    parser.add_argument("--foreign", type=int, default=15, metavar="N", help="questions of each task of another family")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at a time")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    arguments.model = arguments.model or Path(
        os.environ.get("HOLOMEM_MODEL_DIR") or SHARED / "models" / "multilingual-e5-small"
    )
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(run_task, task, arguments) for task in arguments.tasks if arguments.variants]
        pairs = [(task, size) for task in arguments.tasks for size in arguments.sizes]
        waiting = [pool.submit(small, task, size, arguments) for task, size in pairs]
        rows = [row for future in running for row in future.result()]
        ranks = {pair: future.result() for pair, future in zip(pairs, waiting, strict=True)}
    for variant in arguments.variants:
        report(rows, variant, markdown=arguments.markdown)
    if arguments.sizes:
        found = {task: [ranks[task, size][0] for size in arguments.sizes] for task in arguments.tasks}
        body = [[task, *(f"{value:.3f}" for value in values)] for task, values in found.items()]
        body.append(["mean", *(f"{value:.3f}" for value in np.mean(list(found.values()), axis=0))])
        kept = [[stays for task in arguments.tasks for stays in ranks[task, n][1]] for n in arguments.sizes]
        answered = [[some for task in arguments.tasks for some in ranks[task, n][2]] for n in arguments.sizes]
        for label, sets in (("% of right first hits kept", kept), ("% of foreign answered", answered)):
            body.append([label, *(f"{100 * np.mean(values):.1f}" for values in sets)])
        table(
            "MRR in stores of n facts; default floor",
            ["task", *map(str, arguments.sizes)],
            body,
            markdown=arguments.markdown,
        )


if __name__ == "__main__":
    main()
