"""Does the calibration of a model do what it is for? The cosine as the model gives it, beside the calibrated one.

    python bench/calibration.py                              every task, the model of $HOLOMEM_MODEL_DIR
    python bench/calibration.py --model FOLDER --tasks locomo xquad_en

Meaning alone ranks all facts of a task. The constants are measured on the sentences that the package brings, as for any
model that it does not know. "Elsewhere" are the questions of xquad_mixed whose answer is a fact in another language,
by the language of the question: how often it is among the first ten. "Unrelated" and "right" say where the cosines of
a question with all other facts and with its answer lie (mean and deviation): the range that becomes [0, 1].
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any, Final

import _machine
import numpy as np
from _vectors import CachedEmbedder, default_cache
from eval import MEAN_OF, SHARED, read, sample, table
from numpy.typing import NDArray

from holomem.embedding import OnnxEmbedder, measure

TOP: Final = 10
MIXED: Final = "xquad_mixed"

Floats = NDArray[np.float32]


class Asked:
    """The questions and facts of a task, and which facts answer which question."""

    def __init__(self, folder: Path, embedder: CachedEmbedder, count: int | None) -> None:
        facts, queries = read(folder / "facts.jsonl"), sample(read(folder / "queries.jsonl"), count)
        place = {fact["id"]: at for at, fact in enumerate(facts)}
        self.types = [query["type"] for query in queries]
        self.languages = [query["lang"] for query in queries]
        self.right = [[place[one] for one in query["relevant"]] for query in queries]
        self.queries = embedder.embed([query["text"] for query in queries], query=True)
        self.facts = embedder.embed([fact["text"] for fact in facts])


def judge(cosines: Floats, right: list[list[int]]) -> dict[str, Any]:
    """Per question recall@10 and reciprocal rank (q,), and the moments of unrelated and right cosines."""
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :TOP]
    recall, ranks = [], []
    related = np.zeros(cosines.shape, bool)
    for at, (first, answers) in enumerate(zip(order, right, strict=True)):
        hits = np.isin(first, answers)
        recall.append(hits.sum() / len(answers))
        ranks.append(1 / (1 + int(hits.argmax())) if hits.any() else 0.0)
        related[at, answers] = True
    return {
        "recall": np.array(recall),
        "mrr": np.array(ranks),
        "unrelated": (cosines[~related].mean(), cosines[~related].std()),
        "right": (cosines[related].mean(), cosines[related].std()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model", type=Path, default=os.environ.get("HOLOMEM_MODEL_DIR") or SHARED / "models" / "multilingual-e5-small"
    )
    parser.add_argument("--eval", type=Path, default=SHARED / "eval")
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--tasks", nargs="+", choices=MEAN_OF, default=MEAN_OF, metavar="TASK")
    parser.add_argument("--limit-queries", type=int)
    parser.add_argument("--markdown", action="store_true")
    chosen = parser.parse_args()
    inner = OnnxEmbedder(chosen.model)
    embedder, constants = CachedEmbedder(inner, chosen.cache), measure(inner)
    print(_machine.describe("onnxruntime", "tokenizers"))
    print(f"{inner.model.name}: low {constants.low:.2f}, span {constants.span:.2f}")
    body, elsewhere = [], []
    for task in chosen.tasks:
        asked = Asked(chosen.eval / task / "dev", embedder, chosen.limit_queries)
        calibrated = np.stack([constants.query(query) for query in asked.queries]) @ constants.passages(asked.facts).T
        found = [judge(cosines, asked.right) for cosines in (asked.queries @ asked.facts.T, calibrated)]
        body.append(
            [task]
            + [f"{each['recall'].mean():.3f} / {each['mrr'].mean():.3f}" for each in found]
            + [f"{each[what][0]:.2f} ± {each[what][1]:.2f}" for each in found for what in ("unrelated", "right")]
        )
        if task == MIXED:
            away = np.array([not kind.endswith("same") for kind in asked.types])
            for language in sorted(set(asked.languages)):
                of = away & (np.array(asked.languages) == language)
                shares = [f"{(each['recall'][of] > 0).mean():.1%}" for each in found]
                elsewhere.append([language, str(int(of.sum())), *shares])
    head = ["task", "raw", "calibrated", "raw: unrelated", "right", "calibrated: unrelated", "right"]
    table("recall@10 / MRR@10, cosines", head, body, markdown=chosen.markdown)
    if elsewhere:
        table(
            "answer in another language among the first ten",
            ["question", "questions", "raw", "calibrated"],
            elsewhere,
            markdown=chosen.markdown,
        )


if __name__ == "__main__":
    main()
