"""Names asked for: what probe and reason find on the sets of human sentences, and what they invent.

    python bench/entities.py                         all four languages
    python bench/entities.py --languages ru --modes text sentence
    python bench/entities.py --sample locomo tldr    names found in 100 facts, to be read and judged by hand

    lists      the facts come with their lists of entities, the question is a list of names
    algebra    the same with the links of the file switched off: membership by the phases alone
    text       the facts come as text only, the question is a list of names
    words      the facts come as text only, the question is the names in a row: "Alex Tyus Žan Tabak"
    sentence   the facts come as text only, the question is a sentence: "What do we know about Alex Tyus and Žan Tabak?"

R is R-precision, the share of the R relevant facts among the first R. An absent question has no relevant fact; "truly"
counts those whose names no text says word for word: where one does, an answer from the text is right.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import _machine
import numpy as np

from holomem import Memory, NewFact, structure

SHARED: Final = Path(__file__).resolve().parents[2] / "shared"
LANGUAGES: Final = ("en", "ru", "zh", "ja")
WITH_LISTS: Final = ("lists", "algebra")
MODES: Final = (*WITH_LISTS, "text", "words", "sentence")
TYPES: Final = ("probe", "probe_hub", "reason2", "reason3")
SENTENCES: Final = {  # first names, joined by the middle, in the frame
    "en": ("What do we know about {}?", " and ", ", "),
    "ru": ("Что мы знаем про {}?", " и ", ", "),
    "zh": ("关于{}我们知道什么？", "和", "、"),
    "ja": ("{}について何を知っていますか。", "と", "、"),
}
LIMIT: Final = 100

Json = dict[str, Any]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--shared", type=Path, default=SHARED)
    arguments.add_argument("--languages", nargs="+", choices=LANGUAGES, default=LANGUAGES)
    arguments.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    arguments.add_argument("--misses", type=int, default=0, help="questions with too few facts, or too many, to print")
    arguments.add_argument("--sample", nargs="+", metavar="TASK", help="print names found in facts of these tasks")
    options = arguments.parse_args()
    if options.sample:
        for task in options.sample:
            sample(options.shared / "eval" / task / "dev")
        return
    print(_machine.describe())
    print(
        f"{'':14}{'R':>7}" + "".join(f"{kind:>11}" for kind in TYPES) + f"{'R@10':>7}{'absent':>8}{'truly':>7}{'ms':>6}"
    )
    for language in options.languages:
        folder = options.shared / "eval" / f"entities_{language}" / "dev"
        facts = lines(folder / "facts.jsonl")
        for given in (True, False):
            modes = [mode for mode in options.modes if (mode in WITH_LISTS) == given]
            with tempfile.TemporaryDirectory() as place, Memory(Path(place) / "memory.db", embedder=None) as memory:
                if modes:
                    new = [NewFact(f["text"], entities=f["entities"] if given else None) for f in facts]
                    names = dict(zip(memory.add_many(new), (f["id"] for f in facts), strict=True))
                for mode in modes:
                    report(memory, names, language, mode, folder, options.misses)


def report(memory: Memory, names: dict[int, str], language: str, mode: str, folder: Path, misses: int) -> None:
    facts, queries = lines(folder / "facts.jsonl"), lines(folder / "queries.jsonl")
    absent = lines(folder / "queries_absent.jsonl")
    with without_links() if mode == "algebra" else nothing():
        memory.probe("warm up")
        started = time.perf_counter()
        found = {q["id"]: [names[i] for i in ask(memory, mode, language, q)] for q in queries}
        answered = {q["id"]: ask(memory, mode, language, q) for q in absent}
        spent = (time.perf_counter() - started) / (len(queries) + len(absent))
    texts = [plain(f["text"]) for f in facts]
    truly = [q for q in absent if not any(all(plain(name) in text for name in q["entities"]) for text in texts)]
    scores = {q["id"]: precision(found[q["id"]], q["relevant"]) for q in queries}
    row = [mean([scores[q["id"]] for q in queries])]
    row += [mean([scores[q["id"]] for q in queries if q["type"] == kind]) for kind in TYPES]
    row += [mean([recall(found[q["id"]], q["relevant"]) for q in queries])]
    row += [mean([not answered[q["id"]] for q in chosen]) for chosen in (absent, truly)]
    widths = (7, 11, 11, 11, 11, 7, 8, 7)
    cells = "".join(
        f"{value:>{width}.3f}" if value == value else f"{'-':>{width}}"
        for value, width in zip(row, widths, strict=True)
    )
    print(f"{language} {mode:<11}{cells}{1000 * spent:>6.1f}", flush=True)
    texts = {f["id"]: f["text"] for f in facts}
    show(
        [q for q in queries if scores[q["id"]] < 1][:misses], [q for q in truly if answered[q["id"]]][:misses],
        found, {i: [names[f] for f in fact_ids] for i, fact_ids in answered.items()}, texts,
    )  # fmt: skip


def show(missed: list[Json], invented: list[Json], found: Json, answered: Json, texts: dict[str, str]) -> None:
    """Print questions that were answered wrongly: what is missing (-) and what came in its place (+)."""
    for q in missed:
        first = found[q["id"]][: len(q["relevant"])]
        print(f"   {q['type']}: {' | '.join(q['entities'])}")
        for fact in [i for i in q["relevant"] if i not in first][:2]:
            print(f"     - {texts[fact]}")
        for fact in [i for i in first if i not in q["relevant"]][:2]:
            print(f"     + {texts[fact]}")
    for q in invented:
        print(f"   absent: {' | '.join(q['entities'])}\n     + {texts[answered[q['id']][0]]}")


def ask(memory: Memory, mode: str, language: str, query: Json) -> list[int]:
    entities = list(query["entities"])
    if mode == "words":
        entities = [query["text"]]
    elif mode == "sentence":
        frame, last, other = SENTENCES[language]
        *first, final = entities
        entities = [frame.format(last.join([other.join(first), final]) if first else final)]
    return [hit.fact.fact_id for hit in memory.reason(entities, limit=LIMIT)]


def sample(folder: Path, count: int = 100) -> None:
    """Print the names found in some facts, once each, and how many names there are per 100 facts."""
    facts = lines(folder / "facts.jsonl")
    with tempfile.TemporaryDirectory() as place, Memory(Path(place) / "memory.db", embedder=None) as memory:
        memory.add_many([NewFact(f["text"]) for f in facts])
        stored = memory.facts(limit=None)
        distinct = len(memory.entities())
        links = sum(len(fact.entities) for fact in stored)
    print(
        f"{folder.parent.name}: {len(stored)} facts, {distinct} names, {100 * links / len(stored):.0f} links per 100 facts"
    )
    for fact in random.Random(1).sample(stored, count):
        print(f"  {' | '.join(fact.entities) or '-'}\n      {fact.content[:160]}")


def precision(found: list[str], relevant: list[str]) -> float:
    return sum(i in relevant for i in found[: len(relevant)]) / len(relevant)


def recall(found: list[str], relevant: list[str]) -> float:
    return sum(i in relevant for i in found[:10]) / len(relevant)


def mean(values: list[Any]) -> float:
    return float(np.mean(values)) if values else float("nan")


def plain(text: str) -> str:
    """Folded, without what a label says in brackets, so that a name can be looked for."""
    text = re.sub(r"\s*[(（].*?[)）]", "", text)
    return unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")


def lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@contextmanager
def without_links() -> Iterator[None]:
    """Let `probe` and `reason` see no link of the file."""
    original = structure._linked, structure._unlinked
    structure._linked = lambda *_: np.zeros(0, np.int64)
    structure._unlinked = lambda index: np.ones(len(index.ids), bool)
    try:
        yield
    finally:
        structure._linked, structure._unlinked = original


@contextmanager
def nothing() -> Iterator[None]:
    yield


if __name__ == "__main__":
    main()
