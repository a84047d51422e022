"""What a cosine between two vectors of a model is worth, from 0 (unrelated) to 1 (the same).

A model squeezes its vectors into a narrow cone and groups them by language: raw e5 cosines lie between .75 and .85
whatever the texts say, and a fact in the language of the query beats the right fact in another. Both are constant
offsets, so both are taken out, by constants of the model that do not depend on what is stored:

    cos^  = T_q(query) . T_p(fact)            T(v) = unit(P(v - SHRINK mu)),  P removes the directions B
    mu    = mean over languages of the mean vector of a language, one for queries and one for passages
    B     = top right singular vectors of the stacked [language means - mu] of both
    score = clip((cos^ - low) / span, 0, 1) ** 2

Facts stay in the file as the model gave them. T_q(query) = q has no part along B, so that
cos^ = (q . f - q . SHRINK mu_p) / |P(f - SHRINK mu_p)|: a scan over raw vectors, and one stored norm a fact.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holomem.embedding.protocol import Embedder, Vectors
from holomem.types import ModelId

__all__ = ["Calibration", "known", "measure", "sentences"]

SHRINK: Final = 0.8  # weight of mu (measured: .5 .858, .65 .862, .8 .866, 1 .864 mean recall@10)
DIRECTIONS: Final = 9  # language directions taken out (4 .860, 6 .863, 9 .866, 12 .866)
# cos^ of near-identical texts. With e5 translations of one sentence are at .65 with the top twentieth from .81, a text
# as query against itself as passage at .92. Not measured for each model: an English one does not know translations.
NEAR_IDENTICAL: Final = 0.8

_FOLDER: Final = Path(__file__).parent
_FIELDS: Final = ("mean_query", "mean_passage", "directions", "low", "span")


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """The constants of one model: both means, the language directions (orthonormal rows), and the range of cos^."""

    mean_query: Vectors  # (d,)
    mean_passage: Vectors  # (d,)
    directions: Vectors  # (b, d)
    low: float  # cos^ that scores 0
    span: float  # low + span scores 1

    def query(self, vector: Vectors) -> Vectors:
        """T_q of a query vector (d,): unit length, no part along the directions. Zeros stay zeros."""
        if not vector.any():
            return np.zeros_like(vector, np.float32)
        moved = self._project(vector.astype(np.float64) - SHRINK * self.mean_query)
        length = float(np.linalg.norm(moved))
        return (moved / length if length != 0.0 else np.zeros_like(moved)).astype(np.float32)

    def passages(self, rows: Vectors) -> Vectors:
        """T_p of passage vectors (n, d), so that dot products are cos^ between passages; NaN for a row without meaning."""
        moved = self._project(rows.astype(np.float64) - SHRINK * self.mean_passage)
        lengths = np.linalg.norm(moved, axis=1, keepdims=True)
        sound = np.isfinite(lengths) & (lengths > 0) & rows.any(axis=1, keepdims=True)
        return np.where(sound, moved / np.where(sound, lengths, 1.0), np.nan).astype(np.float32)

    def passage_norms(self, rows: Vectors) -> Vectors:
        """|P(f - SHRINK mu_p)| (n,) of the rows f (n, d). Infinite for a row of zeros, so that its cos^ is 0."""
        moved = rows - np.float32(SHRINK) * self.mean_passage
        with np.errstate(invalid="ignore"):  # rows that are not finite
            along = moved @ self.directions.T  # (n, b)
            squares = np.einsum("ij,ij->i", moved, moved) - np.einsum("ij,ij->i", along, along)
        norms = np.sqrt(np.maximum(squares, 0.0))  # maximum keeps NaN
        norms[(norms == 0.0) | ~rows.any(axis=1)] = np.inf
        return np.asarray(norms, np.float32)

    def cosines(self, dots: Vectors, query: Vectors, norms: Vectors) -> Vectors:
        """cos^ (n,) in [-1, 1] from dots = rows @ query, query = self.query(...) and norms = passage_norms(rows).

        NaN where the row or the query is not finite, -1 for a row of zeros: it has no meaning, so it scores 0.
        """
        offset = SHRINK * float(query.astype(np.float64) @ self.mean_passage)
        cosines = np.clip((dots - np.float32(offset)) / norms, -1.0, 1.0)
        return np.asarray(np.where(np.isinf(norms), -1.0, cosines), np.float32)

    def score(self, cosines: Vectors) -> Vectors:
        """What each cos^ is worth, in [0, 1]; NaN stays NaN.

        The square: a fact that is a fifth of the way to the query says almost nothing, one at four fifths nearly all.
        """
        return np.asarray(np.clip((cosines - self.low) / self.span, 0.0, 1.0) ** 2, np.float32)

    def to_bytes(self) -> bytes:
        """The constants as an .npz file, about 17 KB; the same constants give the same bytes."""
        buffer = io.BytesIO()
        np.savez(
            buffer,
            mean_query=self.mean_query,
            mean_passage=self.mean_passage,
            directions=self.directions,
            low=np.float64(self.low),
            span=np.float64(self.span),
        )
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Calibration:
        """The constants that `to_bytes` wrote. ValueError when they are something else."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                mean_query, mean_passage, directions, low, span = (file[name] for name in _FIELDS)
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"not a calibration ({error})") from error
        if mean_query.ndim != 1 or mean_passage.shape != mean_query.shape or directions.shape[1:] != mean_query.shape:
            raise ValueError(f"not a calibration (shapes {mean_query.shape}, {mean_passage.shape}, {directions.shape})")
        return cls(
            np.asarray(mean_query, np.float32),
            np.asarray(mean_passage, np.float32),
            np.asarray(directions, np.float32),
            float(low),
            float(span),
        )

    def _project(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """P: vectors (..., d) without their parts along the directions."""
        return vectors - (vectors @ self.directions.T) @ self.directions


def known(model: ModelId) -> Calibration | None:
    """The constants that the package brings for a model, or None: then `measure` them once and keep them."""
    return _shipped(_FOLDER / "calibrations" / file_name(model))


@lru_cache(maxsize=4)
def _shipped(path: Path) -> Calibration | None:
    return Calibration.from_bytes(path.read_bytes()) if path.is_file() else None


def file_name(model: ModelId) -> str:
    """The name of the file with the constants of a model: they hold for its weights and its prefixes."""
    identity = json.dumps([model.file_hash, model.query_prefix, model.passage_prefix])
    return hashlib.sha256(identity.encode()).hexdigest()[:16] + ".npz"


def sentences() -> dict[str, list[str]]:
    """The sentences to measure with: language -> texts; the n-th of each language says the same."""
    value: dict[str, list[str]] = json.loads((_FOLDER / "sentences.json").read_text(encoding="utf-8"))
    return value


def measure(embedder: Embedder) -> Calibration:
    """The constants of a model, from embedding our own sentences as queries and as passages.

    Takes 10 s with a model of twelve layers, half of that when it makes no difference between the two.
    """
    texts = sentences()
    flat = [text for group in texts.values() for text in group]
    shape = (len(texts), len(flat) // len(texts), -1)  # (languages, sentences, d)
    passages = embedder.embed(flat)
    # Ask the model itself: a prefix is not the only way to treat queries otherwise.
    alike = np.array_equal(embedder.embed(flat[:1], query=True), passages[:1])
    queries = passages if alike else embedder.embed(flat, query=True)
    return fit(queries.reshape(shape), passages.reshape(shape))


def fit(queries: Vectors, passages: Vectors) -> Calibration:
    """The constants from the vectors (languages, sentences, d) of translated texts as queries and as passages."""
    languages, texts, dim = queries.shape
    language_query = queries.mean(axis=1, dtype=np.float64)
    language_passage = passages.mean(axis=1, dtype=np.float64)
    mean_query, mean_passage = language_query.mean(axis=0), language_passage.mean(axis=0)
    deviations = np.vstack([language_query - mean_query, language_passage - mean_passage])
    _, strengths, right = np.linalg.svd(deviations, full_matrices=False)
    # Never more than an eighth of the space, and no direction in which the languages do not differ.
    count = min(DIRECTIONS, languages - 1, dim // 8, int(np.count_nonzero(strengths > 1e-6 * strengths[0])))
    found = Calibration(
        mean_query=mean_query.astype(np.float32),
        mean_passage=mean_passage.astype(np.float32),
        directions=right[:count].astype(np.float32),
        low=0.0,
        span=1.0,
    )
    low = _unrelated(found, queries.reshape(-1, dim), passages.reshape(-1, dim), texts)
    return replace(found, low=low, span=NEAR_IDENTICAL - low)


def _unrelated(calibration: Calibration, queries: Vectors, passages: Vectors, texts: int) -> float:
    """The cos^ that is worth nothing: the mean over pairs of texts that say different things less half their deviation.

    Half, to a twentieth: e5 comes out at .1 (mean .148, deviation .081), where the fusion was best on real tasks. A
    whole one would reach it from the unrelated pairs of real stores, which are nearer to each other than our sentences.
    """
    norms = calibration.passage_norms(passages)
    cosines = np.stack([calibration.cosines(passages @ q, q, norms) for q in map(calibration.query, queries)])
    meaning = np.arange(len(queries)) % texts
    unrelated = cosines[meaning[:, None] != meaning]
    low = float(unrelated.mean(dtype=np.float64) - 0.5 * unrelated.std(dtype=np.float64))
    return min(round(20 * low) / 20, NEAR_IDENTICAL / 2)
