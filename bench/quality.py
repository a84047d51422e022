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
from dataclasses import dataclass, replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import eval as bench
import floor
import numpy as np
from _ablation import CALIBRATIONS, baselines
from _personal import TIMED, lines, measure
from _quality_text import BASELINES, SMALL, TEXT, TIMES
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
FLOORS: Final = (0.03, 0.04, 0.05, selection.MIN_SCORE, 0.06, 0.07, 0.08, selection.UNASKED_MIN_SCORE, 0.10, 0.15)
SAMPLE: Final = 60  # questions of each task that are asked without a calibration
TOLERATED: Final = 0.003  # what a figure may be below a baseline


@dataclass(frozen=True)
class Asked:
    """One question: the channels (m, 4) of its candidates, which of them are right (m,), how many right ones exist.

    `shown` (m,): what the default floor lets through. `reaches` is the highest floor at which there is an answer, in a
    store of `selection.MANY` facts and more; `certain` whether a fact is shown whatever the floor.
    """

    channels: Floats
    right: NDArray[np.bool_]
    relevant: int
    shown: NDArray[np.bool_]
    reaches: float
    certain: bool


@dataclass(frozen=True)
class Task:
    """One task's own questions, and those that its store cannot answer.

    `keywords` are its own without a model; `without` a sample of its own, as it is ("") and without a calibration.
    """

    name: str
    own: list[Asked]
    foreign: list[Asked]
    absent: list[Asked]
    keywords: list[Asked]
    without: dict[str, list[Asked]]


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
    score, answering = recall._score, selection.answering

    def watched(query: recall.Query, index: Any, rows: NDArray[np.int64]) -> Floats:
        channels = score(query, index, rows)
        captured.update(ids=index.ids.array[rows].tolist(), channels=channels)
        return channels

    def watched_floor(relevance: Floats, certain: NDArray[np.bool_], floor: float | None, **given: Any) -> Any:
        shown = answering(relevance, certain, floor, **given)
        top = float(relevance.max(initial=0.0)) - given["named"]
        captured.update(shown=shown, reaches=top / selection.sinking(given["among"]), certain=bool(certain.any()))
        return shown

    def asked(memory: Memory, queries: list[bench.Json]) -> list[Asked]:
        found = []
        for query in queries:
            memory.search(query["text"])
            wanted = set(query.get("relevant", ()))
            right = np.array([not wanted.isdisjoint(owners[i]) for i in captured["ids"]], bool)
            floors = captured["shown"], captured["reaches"], captured["certain"]
            found.append(Asked(captured["channels"], right, len(wanted), *floors))
        return found

    family = name.split("_")[0]
    others = [task for task in TASKS if task.split("_")[0] != family]
    foreign = [q for t in others for q in bench.sample(questions(options, t), FOREIGN)]
    absent = [q for file in bench.ABSENT[:1] if (folder / file).exists() for q in bench.read(folder / file)]
    recall._score, selection.answering = watched, watched_floor
    try:
        with tempfile.TemporaryDirectory(prefix="holomem-quality-") as temporary:
            owners = bench.build(Path(temporary) / "memory.db", facts, embedder, given=False)
            path, mine = Path(temporary) / "memory.db", bench.sample(questions(options, name), options.limit_queries)
            few = bench.sample(mine, SAMPLE)
            without = {}
            for label, (off, candidates) in CALIBRATIONS.items():
                with off(), Memory(path, embedder=embedder, candidates=candidates) as memory:
                    without[label] = asked(memory, few)
            with Memory(path, embedder=None) as memory:
                keywords = asked(memory, mine)
            with Memory(path, embedder=embedder) as memory:
                without[""] = asked(memory, few)
                own, lost = asked(memory, mine), asked(memory, absent[: options.limit_queries])
                result = Task(name, own, asked(memory, foreign), lost, keywords, without)
    finally:
        recall._score, selection.answering = score, answering
    print(f"  {name}: {len(own)} questions", flush=True)
    return result


def questions(options: bench.Options, task: str) -> list[bench.Json]:
    return bench.read(options.evaluation / task / "dev" / "queries.jsonl")


def ranked(asked: Asked, ranking: Callable[[Floats], Floats]) -> NDArray[np.bool_]:
    """Whether the candidates with any evidence are right, best first."""
    relevance = ranking(asked.channels)
    order = np.argsort(-relevance, kind="stable")
    return asked.right[order[relevance[order] > 0]]


def figures(
    questions: list[Asked], ranking: Callable[[Floats], Floats] = fusion.relevance, k: int = 10
) -> tuple[float, float]:
    """Recall and reciprocal rank at k, means over the questions that something answers."""
    recalls, ranks = [], []
    for asked in questions:
        if asked.relevant:
            right = ranked(asked, ranking)[:k]
            recalls.append(min(1.0, right.sum() / asked.relevant))
            ranks.append(1 / (1 + int(right.argmax())) if right.any() else 0.0)
    return float(np.mean(recalls)), float(np.mean(ranks))


def floored(questions: list[Asked]) -> list[Asked]:
    """The same with the default floor: what it hides has no evidence."""
    return [replace(asked, channels=np.where(asked.shown[:, None], asked.channels, 0.0)) for asked in questions]


def reaching(questions: list[Asked], floor: float) -> NDArray[np.bool_]:
    """Which questions (n,) are answered at a floor, in a store of many facts or one where it sinks as it does."""
    return np.array(
        [len(asked.channels) > 0 and (asked.certain or asked.reaches >= floor) for asked in questions], bool
    )


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
        axes.plot(KS, [np.mean([figures(task.own, RANKINGS[name], k)[0] for task in mean]) for k in KS], label=name)
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


@dataclass(frozen=True)
class Extra:
    """What is measured apart from the channels."""

    folder: Path
    timed: list[str]
    small: dict[tuple[str, int], tuple[float, list[bool], list[bool]]]


def markdown(tasks: list[Task], limit: int | None, extra: Extra) -> str:
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
    values = {(task.name, name): figures(task.own, ranking) for task in tasks for name, ranking in RANKINGS.items()}
    for task in tasks:
        lines += row([task.name, *(pair(values[task.name, name]) for name in columns)])
    means = {name: np.mean([values[task.name, name] for task in mean], axis=0) for name in RANKINGS}
    lines += row([f"**mean of {len(mean)}**", *(pair(means[name]) for name in columns)])
    lines += row(["mean with the default floor", pair(np.mean([figures(floored(t.own)) for t in mean], axis=0))])
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
    lines += ["", f"Without a calibration, on a sample of {SAMPLE} questions a task:", "", *without_calibrations(tasks)]
    lines += ["", "![channels](quality-channels.svg)", "", "## Against plain baselines", "", BASELINES, ""]
    lines += [*against_baselines(tasks, extra.folder), "", "## Times and names", "", TIMES, "", *extra.timed]
    lines += ["", "## Small stores", "", SMALL, "", *small_stores(extra.small)]
    lines += ["", "## The floor (`min_score`)", ""]
    lines += [
        f"The best hit must be as relevant as the floor ({selection.MIN_SCORE} unless given); those behind it as "
        f"{selection.TAIL} of it. A fact with every term of the question, or an identifier of it, is always shown. "
        f"`selection.UNASKED_MIN_SCORE` ({selection.UNASKED_MIN_SCORE}) is for what nobody asked for. Foreign: "
        "questions of unrelated tasks; absent: questions about names that the store does not hold. Without meaning "
        "there is no default floor: shares of words alone do not separate well enough.", "",
    ]  # fmt: skip
    lines += row(["floor", "right first hits kept", "foreign answered", "agentmem kept", "agentmem absent answered",
                  "entities absent answered"])  # fmt: skip
    lines += row(["---:"] * 6)
    personal = [task for task in tasks if task.name == "agentmem"]
    named = [task for task in tasks if task.name.startswith("entities")]
    for floor_ in FLOORS:
        cells = [share(first_right(group), floor_) for group in (tasks, personal)]
        foreign, lost, lost_names = (
            share([asked for task in group for asked in getattr(task, kind)], floor_)
            for group, kind in ((tasks, "foreign"), (personal, "absent"), (named, "absent"))
        )
        lines += row([str(floor_), cells[0], foreign, cells[1], lost, lost_names])
    lines += ["", "![reliability](quality-reliability.svg)", ""]
    lines += row(["relevance of the first hit (mean)", "right", "questions"]) + row(["---:"] * 3)
    for relevance, right, count in reliability(tasks):
        lines += row([f"{relevance:.2f}", f"{right:.1%}", str(count)])
    return "\n".join([*lines, "", TEXT])


def row(cells: list[str]) -> list[str]:
    return [f"| {' | '.join(cells)} |"]


def pair(values: Any) -> str:
    return f"{values[0]:.3f} / {values[1]:.3f}"


def share(questions: list[Asked], floor: float) -> str:
    return f"{reaching(questions, floor).mean():.1%}" if questions else ""


def first_right(tasks: list[Task]) -> list[Asked]:
    """The questions whose first hit is right."""
    return [asked for task in tasks for asked, top in zip(task.own, tops(task.own), strict=True) if top[1] > 0]


def against_baselines(tasks: list[Task], folder: Path) -> list[str]:
    """Each task beside the best plain baseline, and without a model beside FTS5 with OR and porter stems."""
    plain = baselines(folder)
    told = row(["task", "all four", "best baseline of each figure", "", "no model", "FTS5 porter", ""])
    told += row(["---", *("---:" for _ in range(6))])
    for task in tasks:
        columns = plain.get(task.name, {})
        if not columns:
            continue
        best = np.max(list(columns.values()), axis=0)
        mine, keywords = np.array(figures(task.own)), np.array(figures(task.keywords))
        porter = columns.get("porter")
        last = ["", ""] if porter is None else [pair(porter), verdict(keywords, porter)]
        told += row([task.name, pair(mine), pair(best), verdict(mine, best), pair(keywords), *last])
    mean = [task for task in tasks if task.name in bench.MEAN_OF]
    means = [
        np.mean([figures(kind) for kind in group], axis=0)
        for group in zip(*((t.own, t.keywords) for t in mean), strict=True)
    ]
    return told + row([f"**mean of {len(mean)}**", pair(means[0]), "", "", pair(means[1]), "", ""])


def verdict(figures: Any, wanted: Any) -> str:
    """ "" where neither figure is below what is wanted by more than is tolerated, else by how many points."""
    below = [100 * (a - b) for a, b in zip(figures, wanted, strict=True)]
    return "" if min(below) >= -100 * TOLERATED else f"**below: {below[0]:+.1f} / {below[1]:+.1f}**"


def without_calibrations(tasks: list[Task]) -> list[str]:
    """What each calibration is worth, on a sample of the questions."""
    mean = [task for task in tasks if task.name in bench.MEAN_OF]
    told = row(["change", "recall@10", "MRR@10", "most"]) + row(["---", "---:", "---:", "---"])
    for label in CALIBRATIONS:
        moves = {t.name: 100 * (np.array(figures(t.without[label])) - figures(t.without[""])) for t in tasks}
        recalls, ranks = np.mean([moves[task.name] for task in mean], axis=0)
        most = sorted(moves.items(), key=lambda item: -abs(item[1][1]))[:3]
        told += row([label, f"{recalls:+.2f}", f"{ranks:+.2f}", ", ".join(f"{n} {m[1]:+.1f}" for n, m in most)])
    return told


def small_stores(pairs: dict[tuple[str, int], tuple[float, list[bool], list[bool]]]) -> list[str]:
    """MRR in stores of few facts, and what the default floor does there."""
    sizes = sorted({size for _, size in pairs})
    told = row(["", *(f"{size} facts" for size in sizes)]) + row(["---", *("---:" for _ in sizes)])
    of = {size: [value for (_, n), value in pairs.items() if n == size] for size in sizes}
    told += row(["MRR without a floor", *(f"{np.nanmean([v[0] for v in of[n]]):.3f}" for n in sizes)])
    for at, label in ((1, "right first hits kept"), (2, "foreign answered")):
        told += row([label, *(f"{np.mean([x for v in of[n] for x in v[at]]):.1%}" for n in sizes)])
    return told


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
        timed = [pool.submit(measure, task, options) for task in TIMED if task in given.tasks]
        few = argparse.Namespace(model=model, cache=given.cache, eval=options.evaluation, own=200)
        small = {(t, n): pool.submit(floor.small, t, n, few) for t in given.tasks for n in floor.SIZES}
        tasks = list(pool.map(record, given.tasks, [options] * len(given.tasks)))
        stores = {pair: future.result() for pair, future in small.items()}
        extra = Extra(options.evaluation, lines([future.result() for future in timed]), stores)
    plots(tasks)
    (DOCS / "quality.md").write_text(markdown(tasks, given.limit_queries, extra), encoding="utf-8")


if __name__ == "__main__":
    main()
