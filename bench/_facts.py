"""Invented facts in any number, the same on every machine: a number, 12 words of which 1 or 2 are "First Last" names,
and a random unit vector.

Words follow Zipf's law over 20,000. A question is four rarer words of a stored fact, with a vector near that of the
fact (cosine about .71). Random vectors carry no meaning: this is for time and size, `eval.py` is for quality.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DIM = 384
WORDS = 20_000
COMMON = 50  # words of lower rank stay out of questions
EXTRA = 400  # facts beyond the stored ones, to be added one by one
QUESTIONS = 400
_CONSONANTS, _VOWELS = "bdfghklmnprstvz", "aeiou"


@dataclass(frozen=True)
class Questions:
    """What a measurement asks: four words and a vector (float32 bytes) each; names; facts to add with their vectors."""

    texts: list[str]
    vectors: list[bytes]
    names: list[str]
    added: list[str]
    added_vectors: list[bytes]


def folder_of(cache: Path, size: int) -> Path:
    return cache / f"facts-{size}"


def make(cache: Path, size: int) -> None:
    """Write the facts and questions of one size, once."""
    import numpy as np

    folder = folder_of(cache, size)
    if (folder / "questions.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(size)
    vocabulary = _vocabulary(random)
    chances = 1 / np.arange(1, WORDS + 1)
    ranks = random.choice(WORDS, (size + EXTRA, 12), p=chances / chances.sum())
    names = [f"{a} {b}".title() for a, b in _pairs(random, vocabulary, max(50, size // 5))]
    facts, held = [], []
    for row in ranks:
        words = [vocabulary[rank] for rank in row]
        for place in (random.integers(1, 5), random.integers(7, 12))[: random.integers(1, 3)]:  # never side by side
            words[place] = names[random.integers(len(names))]
            held.append(words[place])
        facts.append(f"{len(facts)} {' '.join(words)}")  # the number makes each one different
    vectors = random.standard_normal((size + EXTRA, DIM), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = random.integers(0, size, QUESTIONS)
    texts = [_question(random, facts[i], ranks[i], vocabulary) for i in asked]
    near = random.standard_normal((QUESTIONS, DIM), np.float32)
    near = vectors[asked] + near / np.linalg.norm(near, axis=1, keepdims=True)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    np.save(folder / "vectors.npy", vectors[:size])
    (folder / "facts.txt").write_text("\n".join(facts[:size]), encoding="utf-8")
    (folder / "questions.f32").write_bytes(np.vstack([near, vectors[size:]]).astype("<f4").tobytes())
    questions = {"texts": texts, "names": list(dict.fromkeys(held[:size]))[:QUESTIONS], "added": facts[size:]}
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")


def questions(cache: Path, size: int) -> Questions:
    """The questions of one size; needs no NumPy, so that a cold start of a system without it is measured as it is."""
    folder = folder_of(cache, size)
    read = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    data, width = (folder / "questions.f32").read_bytes(), 4 * DIM
    vectors = [data[start : start + width] for start in range(0, len(data), width)]
    count = len(read["texts"])
    return Questions(read["texts"], vectors[:count], read["names"], read["added"], vectors[count:])


def stored(cache: Path, size: int) -> tuple[list[str], Any]:
    """The facts of one size and their vectors (n, DIM), mapped from the file."""
    import numpy as np

    folder = folder_of(cache, size)
    facts = (folder / "facts.txt").read_text(encoding="utf-8").split("\n")
    return facts, np.load(folder / "vectors.npy", mmap_mode="r")


def _vocabulary(random: Any) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < WORDS:
        letters = [random.choice(list(kind)) for _ in range(random.integers(2, 5)) for kind in (_CONSONANTS, _VOWELS)]
        words["".join(letters)] = None
    return list(words)


def _pairs(random: Any, vocabulary: list[str], count: int) -> list[tuple[str, str]]:
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < count:
        first, last = random.integers(0, 2000), random.integers(2000, WORDS)
        pairs[vocabulary[first], vocabulary[last]] = None
    return list(pairs)


def _question(random: Any, fact: str, ranks: Any, vocabulary: list[str]) -> str:
    words = [vocabulary[rank] for rank in ranks if rank >= COMMON and vocabulary[rank] in fact.split()]
    words = list(dict.fromkeys(words)) or fact.split()
    return " ".join(random.permutation(words)[:4])
