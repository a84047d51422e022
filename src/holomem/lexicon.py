"""The terms of all facts in memory: what stands where, and how much each term says (idf).

Two of them serve a memory: one of terms, one of their character trigrams. A fact is a row; rows are only appended, a
changed fact gets a new row and its old one is dropped. About 5 bytes for each distinct term of a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from holomem import kernels

__all__ = ["Growing", "Lexicon"]

Hashes = NDArray[np.uint32]
Rows = NDArray[np.int64]
Weights = NDArray[np.float32]

K1: Final = 1.2  # BM25's usual constants
B: Final = 0.75
MAX_SCANS: Final = 8  # so many looks for one term cost what one pass over all rows for all terms costs


class Growing:
    """An array that grows at its end at amortised constant cost."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._array = np.zeros((0,) if width is None else (0, width), dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def array(self) -> NDArray[Any]:
        """What is in it now, as a view: (n,) or (n, width)."""
        return self._array[: self._length]

    def extend(self, values: NDArray[Any]) -> None:
        """Append `values` at the end."""
        needed = self._length + len(values)
        if needed > len(self._array):
            larger = np.zeros((max(needed, len(self._array) * 5 // 4 + 64), *self._array.shape[1:]), self._array.dtype)
            larger[: self._length] = self.array
            self._array = larger
        self._array[self._length : needed] = values
        self._length = needed


class Lexicon:
    """Rows of term hashes with their counts, and the number of facts that hold each term."""

    def __init__(self, hash_texts: Callable[[Sequence[str]], tuple[Rows, Hashes, NDArray[np.uint8]]]) -> None:
        """`hash_texts` is `kernels.term_hashes` or `kernels.trigram_hashes`."""
        self._hash_texts = hash_texts
        self._offsets = Growing(np.int64)
        self._offsets.extend(np.zeros(1, np.int64))
        self._hashes = Growing(np.uint32)
        self._counts = Growing(np.uint8)
        self._lengths = Growing(np.float32)  # terms of a row with repeats
        self._vocabulary: Hashes = np.zeros(0, np.uint32)  # sorted
        self._frequencies: NDArray[np.int64] = np.zeros(0, np.int64)
        self._facts = 0
        self._total_length = 0.0
        self._norms: Weights | None = None  # of `bm25`
        self._masses: Weights | None = None  # of `mass`, NaN where it was not asked for

    def extend(self, texts: Sequence[str]) -> None:
        """Append one row for each text of space-separated terms."""
        offsets, hashes, counts = self._hash_texts(texts)
        lengths = np.add.reduceat(np.append(counts, 0).astype(np.float32), offsets[:-1]) if len(texts) else counts
        lengths = np.where(offsets[1:] > offsets[:-1], lengths, 0).astype(np.float32)  # reduceat repeats at empty rows
        self._offsets.extend(offsets[1:] + len(self._hashes))
        self._hashes.extend(hashes)
        self._counts.extend(counts)
        self._lengths.extend(lengths)
        self._facts += len(texts)
        self._total_length += float(lengths.sum())
        self._forget()
        self._count(*np.unique(hashes, return_counts=True))

    def drop(self, row: int) -> None:
        """Take a row out of the statistics; its place stays."""
        start, end = self._offsets.array[row : row + 2]
        self._facts -= 1
        self._total_length -= float(self._lengths.array[row])
        self._forget()
        self._frequencies[np.searchsorted(self._vocabulary, self._hashes.array[start:end])] -= 1

    def query(self, terms: Sequence[str]) -> tuple[Hashes, Weights]:
        """The distinct hashes (m,) of the terms, sorted, and the idf (m,) of each.

        idf = ln(1 + (N - df + 0.5) / (df + 0.5)), positive in a store of any size; an unknown term has the largest.
        """
        _, hashes, _ = self._hash_texts([" ".join(terms)])
        return hashes, self.idf(hashes)

    def idf(self, hashes: Hashes) -> Weights:
        """The inverse document frequency (n,) of each hash."""
        df = self._frequency(hashes)
        return np.asarray(np.log1p((self._facts - df + 0.5) / (df + 0.5)), np.float32)

    def frequencies(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """How many facts hold each of the terms: (len(terms),)."""
        return self._frequency(self._hash_each(terms))

    def idf_each(self, terms: Sequence[str]) -> Weights:
        """The idf of each of the terms, in their order: (len(terms),)."""
        return self.idf(self._hash_each(terms))

    def bm25(self, hashes: Hashes, weights: Weights, rows: Rows | None = None) -> Weights:
        """Sum over the shared terms of idf x tf / (tf + k1 (1 - b + b length / mean length)), for each row, or `rows`.

        Without BM25's factor k1 + 1, so that it never exceeds the sum of the weights.
        """
        if self._norms is None:
            mean = self._total_length / max(self._facts, 1) or 1.0
            self._norms = (K1 * (1 - B + B * self._lengths.array / mean)).astype(np.float32)
        return kernels.overlap(hashes, weights, *self._csr(), self._norms, rows)

    def shared(self, hashes: Hashes, weights: Weights, rows: Rows | None) -> Weights:
        """The weight (r,) of the terms that each row, or each of `rows`, shares with the query."""
        return kernels.overlap(hashes, weights, *self._csr(), np.zeros(len(self._lengths), np.float32), rows)

    def holding(self, hashes: Hashes, weights: Weights, least: float) -> Rows | None:
        """The rows, sorted, that can share terms of a weight of `least` or more; None when that would save nothing.

        The terms that weigh most decide: without one of those, the rest is too light.
        """
        order = np.argsort(-weights)
        lighter = weights.sum() - np.cumsum(weights[order])
        heavy = hashes[order[: 1 + int((lighter >= least).sum())]]
        heavy = heavy[self._frequency(heavy) > 0]
        if len(heavy) > MAX_SCANS:
            return None
        found = [np.flatnonzero(self._hashes.array == term) for term in heavy]
        places = np.concatenate(found) if found else np.zeros(0, np.int64)
        return np.unique(np.searchsorted(self._offsets.array, places, "right") - 1)

    def mass(self, rows: Rows) -> Weights:
        """The sum (r,) of the idf of each row's own distinct terms."""
        if self._masses is None:
            self._masses = np.full(len(self._lengths), np.nan, np.float32)
        unknown = rows[np.isnan(self._masses[rows])]
        if len(unknown):
            self._masses[unknown] = self._mass(unknown)
        return np.asarray(self._masses[rows])

    def _mass(self, rows: Rows) -> Weights:
        starts, ends = self._offsets.array[rows], self._offsets.array[rows + 1]
        sizes = ends - starts
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        idf = self.idf(self._hashes.array[np.repeat(starts, sizes) + within])
        return np.bincount(np.repeat(np.arange(len(rows)), sizes), weights=idf, minlength=len(rows)).astype(np.float32)

    def distinct(self, rows: Rows) -> Rows:
        """How many distinct terms (r,) each row has."""
        return np.asarray(self._offsets.array[rows + 1] - self._offsets.array[rows])

    def terms_of(self, row: int) -> Hashes:
        """The sorted distinct hashes of one row."""
        start, end = self._offsets.array[row : row + 2]
        return self._hashes.array[start:end]

    def jaccard(self, hashes: Hashes, rows: Rows) -> Weights:
        """The share of distinct terms that each row (r,) has in common with a query, without weights."""
        offsets, row_hashes, _ = self._csr()
        return kernels.jaccard(hashes, offsets, row_hashes, rows)

    def _hash_each(self, terms: Sequence[str]) -> Hashes:
        return self._hash_texts(list(terms))[1]  # one term a text: one hash each, in order

    def _frequency(self, hashes: Hashes) -> NDArray[np.int64]:
        df = np.zeros(len(hashes), np.int64)
        if len(self._vocabulary):
            place = np.minimum(np.searchsorted(self._vocabulary, hashes), len(self._vocabulary) - 1)
            known = self._vocabulary[place] == hashes
            df[known] = self._frequencies[place[known]]
        return df

    def _forget(self) -> None:
        """Let go of what was computed from the statistics: a row comes or goes."""
        self._norms = self._masses = None

    def _csr(self) -> tuple[Rows, Hashes, NDArray[np.uint8]]:
        return self._offsets.array, self._hashes.array, self._counts.array

    def _count(self, hashes: Hashes, facts: NDArray[np.int64]) -> None:
        place = np.searchsorted(self._vocabulary, hashes)
        known = np.zeros(len(hashes), bool)
        inside = place < len(self._vocabulary)
        known[inside] = self._vocabulary[place[inside]] == hashes[inside]
        self._frequencies[place[known]] += facts[known]
        if not known.all():
            self._vocabulary = np.insert(self._vocabulary, place[~known], hashes[~known])
            self._frequencies = np.insert(self._frequencies, place[~known], facts[~known])
