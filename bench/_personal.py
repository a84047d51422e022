"""agentmem and locomo as a user would store them, with the time and the names of each fact, for `quality.py`."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import eval as bench
import numpy as np
from _vectors import CachedEmbedder

from holomem import Memory, NewFact
from holomem.embedding import OnnxEmbedder

TIMED: Final = ("agentmem", "locomo")


@dataclass
class Timed:
    """One task: type of question -> (recall@10, MRR@10) of each, without times and with them; and what floors do."""

    task: str
    plain: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    timed: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    kept: list[bool] = field(default_factory=list)  # right first hits, at the default floor
    absent: list[bool] = field(default_factory=list)  # questions that nothing answers, whether anything is shown
    entities: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # R-precision of `reason`
    texts: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # the same by `search`


def measure(task: str, options: bench.Options) -> Timed:
    """Ask the task's questions of a store of texts, and of one whose facts carry their times and lists of names."""
    folder = options.evaluation / task / "dev"
    embedder = CachedEmbedder(OnnxEmbedder(options.model), options.cache)
    facts = bench.read(folder / "facts.jsonl")
    queries = bench.sample(bench.read(folder / "queries.jsonl"), options.limit_queries)
    found = Timed(task)
    for given, into in ((False, found.plain), (True, found.timed)):
        with (
            tempfile.TemporaryDirectory(prefix="holomem-timed-") as temporary,
            Memory(Path(temporary) / "memory.db", embedder=embedder) as memory,
        ):
            new = [
                NewFact(f["text"], entities=f.get("entities"), time=datetime.fromisoformat(f["time"]))
                if given
                else NewFact(f["text"])
                for f in facts
            ]
            owners: dict[int, set[str]] = {}
            for fact_id, fact in zip(memory.add_many(new), facts, strict=True):
                owners.setdefault(fact_id, set()).add(fact["id"])
            for query in queries:
                wanted = set(query["relevant"])
                hits = memory.search(query["text"], min_score=0)
                right = [bool(wanted & owners[hit.fact.fact_id]) for hit in hits]
                pair = (min(1.0, sum(right) / len(wanted)), 1 / (1 + right.index(True)) if True in right else 0.0)
                into[query["type"]].append(pair)
                into["all"].append(pair)
                if given and right[:1] == [True]:
                    shown = {hit.fact.fact_id for hit in memory.search(query["text"])}
                    found.kept.append(hits[0].fact.fact_id in shown)
            if given and (folder / "queries_absent.jsonl").exists():
                found.absent = [bool(memory.search(q["text"])) for q in bench.read(folder / "queries_absent.jsonl")]
            if given and (folder / bench.ENTITY_QUERIES).exists():
                for query in bench.read(folder / bench.ENTITY_QUERIES):
                    wanted = set(query["relevant"])
                    for into_, ids in (
                        (found.entities, [h.fact.fact_id for h in memory.reason(query["entities"], limit=100)]),
                        (found.texts, [h.fact.fact_id for h in memory.search(query["text"], limit=100, min_score=0)]),
                    ):
                        first = {owner for fact_id in ids[: len(wanted)] for owner in owners[fact_id]}
                        share = len(first & wanted) / len(wanted)
                        into_[query["type"]].append(share)
                        into_["all"].append(share)
    return found


def lines(tasks: list[Timed]) -> list[str]:
    """The section of docs/quality.md."""
    told = ["| task: type | questions | text only | with times |", "|---|---:|---:|---:|"]
    for task in tasks:
        for kind in sorted(task.plain, key=lambda kind: (kind != "all", kind)):
            cells = ["{:.3f} / {:.3f}".format(*np.mean(values[kind], axis=0)) for values in (task.plain, task.timed)]
            told.append(f"| {task.task}: {kind} | {len(task.plain[kind])} | {cells[0]} | {cells[1]} |")
    for task in tasks:
        if task.absent:
            told += [
                "",
                f"{task.task} at the default floor, as `search` answers: {np.mean(task.kept):.1%} of the right first hits "
                f"are kept, {np.mean(task.absent):.0%} of the questions that nothing answers find something.",
            ]
        if task.entities:
            told += ["", f"R-precision of {task.task}'s questions about names, facts with their lists:", ""]
            told += ["| type | `reason` with the names | `search` with the sentence |", "|---|---:|---:|"]
            for kind in sorted(task.entities, key=lambda kind: (kind != "all", kind)):
                told.append(f"| {kind} | {np.mean(task.entities[kind]):.3f} | {np.mean(task.texts[kind]):.3f} |")
    return told
