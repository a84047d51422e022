"""Write docs/quality.md and its plots: what each channel adds, where the floor stands, how far the score can be trusted.

    python bench/quality.py --jobs 2                    # every question
    python bench/quality.py --jobs 2 --limit-queries 100

One store a task, facts as text only. Every question is searched once, through the public API with its defaults; the
channels of its candidates are recorded on the way, so that one pass gives every ablation: a channel that is off is one
whose weight goes to the others by the table of `holomem.fusion`, and one channel alone ranks the same candidates.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import eval as bench
import numpy as np
from _vectors import CachedEmbedder, default_cache
from numpy.typing import NDArray

from holomem import Memory, fusion, selection
from holomem import search as recall
from holomem.embedding import OnnxEmbedder

Floats = NDArray[np.float64]
DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
TASKS: Final = (*bench.MEAN_OF, "agentmem")
FOREIGN: Final = 12  # questions of each other task put to a store
KS: Final = (1, 2, 3, 5, 10, 20, 30, 50)
FLOORS: Final = (0.03, 0.04, 0.05, 0.06, 0.08, 0.10, 0.15)


@dataclass(frozen=True)
class Asked:
    """One question: the channels (m, 4) of its candidates, which of them are right (m,), how many right ones exist."""

    channels: Floats
    right: NDArray[np.bool_]
    relevant: int


@dataclass(frozen=True)
class Task:
    """One task's own questions, and those that its store cannot answer."""

    name: str
    own: list[Asked]
    foreign: list[Asked]
    absent: list[Asked]


def only(row: tuple[float, ...]) -> Callable[[Floats], Floats]:
    return lambda channels: np.nan_to_num(channels) @ np.array(row)


def without(channel: int) -> Callable[[Floats], Floats]:
    """Relevance when a channel is off; HRR and meaning by the table, the others by sharing their weight out."""

    def relevance(channels: Floats) -> Floats:
        if channel >= 2:
            channels = channels.copy()
            channels[:, channel] = np.nan
            return fusion.relevance(channels)
        weights = fusion.WEIGHTS[0].copy()
        weights[channel] = 0
        return np.nan_to_num(channels) @ (weights / weights.sum())

    return relevance


RANKINGS: Final = {
    "all four": fusion.relevance,
    **{f"{name} alone": only(tuple(float(i == at) for i in range(4))) for at, name in enumerate(fusion.CHANNELS)},
    **{f"no {name}": without(at) for at, name in enumerate(fusion.CHANNELS)},
    "no squares": lambda channels: fusion.relevance(np.sqrt(channels)),
}


def record(name: str, options: bench.Options) -> Task:
    """Ask a task's questions of its store."""
    folder = options.evaluation / name / "dev"
    facts = bench.read(folder / "facts.jsonl")
    embedder = CachedEmbedder(OnnxEmbedder(options.model), options.cache)
    captured: dict[str, Any] = {}
    score = recall._score

    def watched(query: recall.Query, index: Any, rows: NDArray[np.int64]) -> Floats:
        channels = score(query, index, rows)
        captured.update(ids=index.ids.array[rows].tolist(), channels=channels)
        return channels

    def asked(memory: Memory, queries: list[bench.Json]) -> list[Asked]:
        found = []
        for query in queries:
            memory.search(query["text"])
            wanted = set(query.get("relevant", ()))
            right = np.array([not wanted.isdisjoint(owners[i]) for i in captured["ids"]], bool)
            found.append(Asked(captured["channels"], right, len(wanted)))
        return found

    family = name.split("_")[0]
    others = [task for task in TASKS if task.split("_")[0] != family]
    foreign = [q for t in others for q in bench.sample(questions(options, t), FOREIGN)]
    absent = [q for file in bench.ABSENT[:1] if (folder / file).exists() for q in bench.read(folder / file)]
    recall._score = watched
    try:
        with tempfile.TemporaryDirectory(prefix="holomem-quality-") as temporary:
            owners = bench.build(Path(temporary) / "memory.db", facts, embedder, given=False)
            with Memory(Path(temporary) / "memory.db", embedder=embedder) as memory:
                own = asked(memory, bench.sample(questions(options, name), options.limit_queries))
                result = Task(name, own, asked(memory, foreign), asked(memory, absent[: options.limit_queries]))
    finally:
        recall._score = score
    print(f"  {name}: {len(own)} questions", flush=True)
    return result


def questions(options: bench.Options, task: str) -> list[bench.Json]:
    return bench.read(options.evaluation / task / "dev" / "queries.jsonl")


def ranked(asked: Asked, ranking: Callable[[Floats], Floats]) -> NDArray[np.bool_]:
    """Whether the candidates with any evidence are right, best first."""
    relevance = ranking(asked.channels)
    order = np.argsort(-relevance, kind="stable")
    return asked.right[order[relevance[order] > 0]]


def figures(task: Task, ranking: Callable[[Floats], Floats], k: int = 10) -> tuple[float, float]:
    """Recall and reciprocal rank at k, means over the questions that something answers."""
    recalls, ranks = [], []
    for asked in task.own:
        if asked.relevant:
            right = ranked(asked, ranking)[:k]
            recalls.append(min(1.0, right.sum() / asked.relevant))
            ranks.append(1 / (1 + int(right.argmax())) if right.any() else 0.0)
    return float(np.mean(recalls)), float(np.mean(ranks))


def tops(asked: list[Asked]) -> Floats:
    """The top relevance (n, 0) of each question, and whether that candidate is right (n, 1)."""
    rows = [(0.0, 0.0)] * len(asked)
    for at, one in enumerate(asked):
        if len(one.channels):
            relevance = fusion.relevance(one.channels)
            best = int(relevance.argmax())
            rows[at] = (float(relevance[best]), float(one.right[best]))
    return np.array(rows).reshape(-1, 2)


def reliability(tasks: list[Task]) -> list[tuple[float, float, int]]:
    """(mean top relevance, share of right first hits, questions) in steps of the relevance."""
    pairs = np.concatenate([tops(task.own) for task in tasks])
    edges = [0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.001]
    found = []
    for low, high in pairwise(edges):
        within = pairs[(pairs[:, 0] >= low) & (pairs[:, 0] < high)]
        if len(within):
            found.append((*map(float, within.mean(axis=0)), len(within)))
    return found


def plots(tasks: list[Task]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "holomem"
    from matplotlib import pyplot

    mean = [task for task in tasks if task.name in bench.MEAN_OF]
    shown = ("all four", "semantic alone", "fts alone", "hrr alone", "no semantic")
    draw, axes = pyplot.subplots(figsize=(6, 4))
    for name in shown:
        axes.plot(KS, [np.mean([figures(task, RANKINGS[name], k)[0] for task in mean]) for k in KS], label=name)
    axes.set(xscale="log", xlabel="k", ylabel="recall@k", title="Recall, mean of the retrieval tasks")
    axes.set_xticks(KS, [str(k) for k in KS])
    axes.legend()
    save(draw, "quality-recall.svg")

    draw, axes = pyplot.subplots(figsize=(6, 4))
    left = np.zeros(len(tasks))
    parts = np.array([contribution(task) for task in tasks])
    for at, name in enumerate(fusion.CHANNELS):
        axes.barh([task.name for task in tasks], parts[:, at], left=left, label=name)
        left += parts[:, at]
    axes.set(xlabel="mean share of the relevance of right first hits", title="What the channels contribute")
    axes.legend(fontsize=8)
    save(draw, "quality-channels.svg")

    draw, axes = pyplot.subplots(figsize=(6, 4))
    steps = reliability(tasks)
    axes.plot([s[0] for s in steps], [s[1] for s in steps], "o-")
    axes.set(xlabel="relevance of the first hit", ylabel="share that is right", title="Reliability", ylim=(0, 1))
    save(draw, "quality-reliability.svg")


def contribution(task: Task) -> Floats:
    """The mean share (4,) that each channel has in the relevance of right first hits."""
    shares = []
    for asked in task.own:
        if len(asked.channels):
            weighed = fusion.weights(asked.channels) * np.nan_to_num(asked.channels)
            best = int(weighed.sum(axis=1).argmax())
            if asked.right[best] and weighed[best].sum() > 0:
                shares.append(weighed[best] / weighed[best].sum())
    return np.mean(shares, axis=0) if shares else np.zeros(4)


def save(draw: Any, name: str) -> None:
    draw.tight_layout()
    draw.savefig(DOCS / name, metadata={"Date": None})


def markdown(tasks: list[Task], limit: int | None) -> str:
    mean = [task for task in tasks if task.name in bench.MEAN_OF]
    asked = f"a fixed sample of at most {limit} questions a task" if limit else "every question"
    lines = [
        "# Quality", "",
        f"Made by `python bench/quality.py{f' --limit-queries {limit}' if limit else ''}`: {asked}, "
        f"{sum(len(task.own) for task in tasks)} in all; one store a task, facts as text only, the defaults of "
        "`Memory.search`, multilingual-e5-small (int8). Cells are recall@10 / MRR@10. The floor is not applied in the "
        "first two tables. A channel alone, or one that is off, ranks the candidates that all four proposed, so the columns "
        "without meaning are higher than a memory without a model reaches (`bench/eval.py` has that).", "", "## By task", "",
    ]  # fmt: skip
    columns = ("all four", *(f"{name} alone" for name in fusion.CHANNELS), "no semantic")
    lines += row(["task", *columns]) + row(["---", *("---:" for _ in columns)])
    values = {(task.name, name): figures(task, ranking) for task in tasks for name, ranking in RANKINGS.items()}
    for task in tasks:
        lines += row([task.name, *(pair(values[task.name, name]) for name in columns)])
    means = {name: np.mean([values[task.name, name] for task in mean], axis=0) for name in RANKINGS}
    lines += row([f"**mean of {len(mean)}**", *(pair(means[name]) for name in columns)])
    lines += ["", "![recall against k](quality-recall.svg)", "", "## What each part is worth", ""]
    lines += [f"Change of the mean of {len(mean)} tasks, in points, and the tasks that move most (MRR@10).", ""]
    lines += row(["change", "recall@10", "MRR@10", "most"]) + row(["---", "---:", "---:", "---"])
    for name in RANKINGS:
        if name.startswith("no "):
            recalls, ranks = 100 * (means[name] - means["all four"])
            moves = {t.name: 100 * (values[t.name, name][1] - values[t.name, "all four"][1]) for t in tasks}
            most = sorted(moves.items(), key=lambda item: -abs(item[1]))[:3]
            told = ", ".join(f"{task} {points:+.1f}" for task, points in most)
            lines += row([name, f"{recalls:+.2f}", f"{ranks:+.2f}", told])
    lines += ["", "![channels](quality-channels.svg)", "", "## The floor (`min_score`)", ""]
    lines += [
        f"The best hit must be as relevant as the floor ({selection.MIN_SCORE} unless given); those behind it as "
        f"{selection.TAIL} of it. A fact with every term of the question, or an identifier of it, is always shown. "
        f"`selection.UNASKED_MIN_SCORE` ({selection.UNASKED_MIN_SCORE}) is for what nobody asked for. Foreign: "
        "questions of unrelated tasks; absent: questions about names that the store does not hold. Without meaning "
        "there is no default floor: shares of words alone do not separate well enough.", "",
    ]  # fmt: skip
    own, foreign = (np.concatenate([tops(getattr(task, kind)) for task in tasks]) for kind in ("own", "foreign"))
    personal = [task for task in tasks if task.name == "agentmem"]
    lines += row(
        ["top relevance >=", "right first hits kept", "foreign answered", "agentmem kept", "agentmem absent answered"]
    )
    lines += row(["---:"] * 5)
    for floor in FLOORS:
        cells = [share(own[own[:, 1] > 0], floor), share(foreign, floor)]
        for task in personal:
            mine = tops(task.own)
            cells += [share(mine[mine[:, 1] > 0], floor), share(tops(task.absent), floor)]
        lines += row([str(floor), *cells])
    lines += ["", "![reliability](quality-reliability.svg)", ""]
    lines += row(["relevance of the first hit (mean)", "right", "questions"]) + row(["---:"] * 3)
    for relevance, right, count in reliability(tasks):
        lines += row([f"{relevance:.2f}", f"{right:.1%}", str(count)])
    return "\n".join([*lines, "", TEXT])


def row(cells: list[str]) -> list[str]:
    return [f"| {' | '.join(cells)} |"]


def pair(values: Any) -> str:
    return f"{values[0]:.3f} / {values[1]:.3f}"


def share(found: Floats, floor: float) -> str:
    return f"{np.mean(found[:, 0] >= floor):.1%}" if len(found) else ""


TEXT: Final = """## What each channel is good for

* `semantic` finds what is said in other words or in another language; it carries nearly everything but names and commands.
* `fts` keeps exact words, commands and identifiers in front.
* `jaccard` prefers short facts that say little else; it matters little.
* `hrr` is a share of the question that does not punish long facts, and knows entities: names, conversations.

A fact in another script than the question cannot share its words. Its channels of words count as a tenth of its meaning
at least; that is what moves xquad_mixed.

## Limits

* No similarity tells a question with a wrong premise from a right one; nor a question about something that is missing in a
  store full of the same subject: see the column of absent questions.
* Relevance grows with the store: below 500 facts the floor sinks (`selection.MANY`; `bench/floor.py`); it is mild for 3000.
* Indirect preferences (prefeval) are the weakest task: hardly a word in common, and others may apply as well.
* Times in questions are not read.
* Samples differ from all questions by a point or two on a single task.

## Data

The data only measure; nothing of them, or made from them, is in the package. NC: not for commercial use.

| task | source | licence |
|---|---|---|
| locomo | LoCoMo (Maharana et al., ACL 2024) | CC BY-NC 4.0 (NC) |
| prefeval | PrefEval (Zhao et al., ICLR 2025) | CC BY-NC 4.0 (NC) |
| xquad_* | XQuAD (Artetxe et al., 2020) | CC BY-SA 4.0 |
| tatoeba | Tatoeba test set of LASER | CC BY 2.0 FR |
| tldr | tldr-pages | CC BY 4.0 |
| nl2bash | NL2Bash (Lin et al., LREC 2018) | MIT |
| entities_en, entities_ru | WebNLG 3.0 / WebNLG+ 2020 | CC BY-NC-SA 4.0 (NC) |
| entities_zh, entities_ja | labels of Wikidata | CC0 1.0 |
| agentmem | written for this project | CC0 1.0 |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=Path, default=bench.SHARED / "eval", help="folder of the tasks")
    parser.add_argument("--model", type=Path, help="model folder; else $HOLOMEM_MODEL_DIR, else that of shared/")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder that keeps embedded texts")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS, metavar="TASK")
    parser.add_argument("--limit-queries", type=int, metavar="N", help="a fixed sample of N questions a task")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if not set(given.tasks) & set(bench.MEAN_OF):
        parser.error("name at least one retrieval task; agentmem alone has no mean")
    model = given.model or Path(os.environ.get("HOLOMEM_MODEL_DIR") or bench.SHARED / "models/multilingual-e5-small")
    options = bench.Options(given.eval.resolve(), model, given.cache, (), 10, given.limit_queries, False, False)
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        tasks = list(pool.map(record, given.tasks, [options] * len(given.tasks)))
    plots(tasks)
    (DOCS / "quality.md").write_text(markdown(tasks, given.limit_queries), encoding="utf-8")


if __name__ == "__main__":
    main()
