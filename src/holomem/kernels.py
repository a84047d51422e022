"""The only door to compute: arrays in, fresh arrays out, by the fastest kernels that this machine can run.

The compiled kernels (`csrc/kernels.h` states formula, shapes and error bound of each) come as one table for each
instruction set; `_reference` has the same in NumPy and runs where the compiled module cannot be loaded. `HOLOMEM_KERNEL`
chooses one by its name. All of them release the GIL around long work.

    n facts or rows   d width of a vector   m hashes of a query   e keys   r chosen rows (all n when `rows` is None)
    CSR: the hashes of row i are `hashes[offsets[i]:offsets[i + 1]]`, sorted and distinct
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holomem import _reference

try:
    import holomem._kernels as _kernels
except ImportError as error:
    _why: str | None = str(error)
    _compiled: tuple[str, ...] = ()
else:
    _why = None
    _compiled = _kernels.available()

__all__ = [
    "Kernels",
    "Rounded",
    "atom",
    "available",
    "bundle",
    "bundle_turns",
    "dot",
    "dot_blobs",
    "hrr_similarity",
    "isa",
    "jaccard",
    "overlap",
    "pairs",
    "rounded",
    "table",
    "term_hashes",
    "top_k",
    "trigram_hashes",
    "why_reference",
]

Floats = NDArray[np.float32]
Phases = NDArray[np.float64]
Turns = NDArray[np.uint16]
Pairs = NDArray[np.int8]
Rows = NDArray[np.int64]
Hashes = NDArray[np.uint32]
Counts = NDArray[np.uint8]
Csr = tuple[Rows, Hashes, Counts]

_VARIABLE: Final = "HOLOMEM_KERNEL"


class Rounded(NamedTuple):
    """Keys of `hrr_similarity` as int16 (e, 2 d), and the factor (e,) of their dot products with pairs."""

    values: NDArray[np.int16]
    scales: Floats


class Kernels:
    """The kernels of one instruction set. A wrong shape is a ValueError, a lossy dtype a TypeError."""

    def __init__(self, isa: str) -> None:
        """`isa` is one of `available()`."""
        if isa not in available():
            raise ValueError(f"no kernels {isa!r} on this machine; there are: {', '.join(available())}")
        self.isa = isa
        self._compiled = isa != "reference"

    def __repr__(self) -> str:
        return f"Kernels({self.isa!r})"

    def dot(self, rows: ArrayLike, query: ArrayLike) -> Floats:
        """Dot product (n,) of each row (n, d) with the query (d,)."""
        rows, query = _array("rows", rows, np.float32, 2), _array("query", query, np.float32, 1)
        _same("the query's width", len(query), "the rows'", rows.shape[1])
        if not self._compiled:
            return _reference.dot(rows, query)
        out = np.empty(len(rows), np.float32)
        _kernels.dot(self.isa, rows, query, out)
        return out

    def dot_blobs(self, blobs: Sequence[bytes | None], query: ArrayLike) -> Floats:
        """Dot product (n,) of each blob of d little-endian float32 with the query (d,).

        NaN for None and for a blob of another length. Reads the bytes where they are, without joining them first.
        """
        blobs, query = tuple(blobs), _array("query", query, np.float32, 1)
        if not self._compiled:
            return _reference.dot_blobs(blobs, query)
        out, places = np.empty(len(blobs), np.float32), np.empty(len(blobs), np.uint64)
        _kernels.dot_blobs(self.isa, blobs, query, places, out)
        return out

    def top_k(self, scores: ArrayLike, k: int) -> Rows:
        """Indexes (min(k, n),) of the largest scores (n,): descending, ties by lower index, NaN last."""
        scores = _array("scores", scores, np.float32, 1)
        if k < 0:
            raise ValueError(f"k is {k}, but must not be negative")
        if not self._compiled:
            return _reference.top_k(scores, k)
        out = np.empty(min(k, len(scores)), np.int64)
        _kernels.top_k(self.isa, scores, out)
        return out

    def jaccard(self, query: ArrayLike, offsets: ArrayLike, hashes: ArrayLike, rows: ArrayLike | None = None) -> Floats:
        """Shared / all distinct hashes (r,) of the query (m,) and each CSR row; 0 when both are empty.

        `query` is sorted and distinct. IndexError when `rows` (r,) names a row that is not there, ValueError when the
        offsets of a row are not ascending within `hashes`.
        """
        query, hashes = _array("query", query, np.uint32, 1), _array("hashes", hashes, np.uint32, 1)
        offsets, rows = _offsets(offsets), _rows(rows)
        if not self._compiled:
            return _reference.jaccard(query, offsets, hashes, rows)
        out = np.empty(len(offsets) - 1 if rows is None else len(rows), np.float32)
        _kernels.jaccard(self.isa, query, offsets, hashes, rows, out)
        return out

    def overlap(
        self,
        query: ArrayLike,
        weights: ArrayLike,
        offsets: ArrayLike,
        hashes: ArrayLike,
        counts: ArrayLike,
        norms: ArrayLike,
        rows: ArrayLike | None = None,
    ) -> Floats:
        """Sum (r,) over the hashes shared with the query of weight * tf / (tf + norm of the row).

        BM25 without its factor k1 + 1; a norm of 0 leaves the shared weight. `query` (m,) is sorted and distinct, with
        `weights` (m,); `counts` has the tf of each hash; `norms` (n,) are not negative. Errors as for `jaccard`.
        """
        query, weights = _array("query", query, np.uint32, 1), _array("weights", weights, np.float32, 1)
        hashes, counts = _array("hashes", hashes, np.uint32, 1), _array("counts", counts, np.uint8, 1)
        offsets, norms, rows = _offsets(offsets), _array("norms", norms, np.float32, 1), _rows(rows)
        _same("the number of weights", len(weights), "that of query hashes", len(query))
        _same("the number of counts", len(counts), "that of hashes", len(hashes))
        _same("the number of norms", len(norms), "that of rows", len(offsets) - 1)
        if not self._compiled:
            return _reference.overlap(query, weights, offsets, hashes, counts, norms, rows)
        out = np.empty(len(norms) if rows is None else len(rows), np.float32)
        _kernels.overlap(self.isa, query, weights, offsets, hashes, counts, norms, rows, out)
        return out

    def term_hashes(self, texts: Sequence[str]) -> Csr:
        """CSR offsets (n + 1,), hashes and counts (up to 255) of the terms of each text, which single spaces separate."""
        joined = _joined(texts)
        if not self._compiled or not len(texts):
            return _reference.term_hashes(joined, len(texts))
        most = joined.count(b" ") + len(texts)
        return _trimmed(_kernels.term_hashes, joined, len(texts), most)

    def trigram_hashes(self, texts: Sequence[str]) -> Csr:
        """As `term_hashes`, of the character trigrams of each term; a term of one or two characters has none."""
        joined = _joined(texts)
        if not self._compiled or not len(texts):
            return _reference.trigram_hashes(joined, len(texts))
        return _trimmed(_kernels.trigram_hashes, joined, len(texts), len(joined) // 3 + sum(map(len, texts)))

    def atom(self, token: str, dim: int = 1024) -> Turns:
        """The turns (dim,) of a token: SHA-256 of `token:0`, `token:1`, ..., 16 little-endian uint16 each.

        A turn t is the phase t * 2 pi / 65536.
        """
        if dim < 0:
            raise ValueError(f"dim is {dim}, but must not be negative")
        data = token.encode("utf-8", "surrogatepass")
        if not self._compiled:
            return _reference.atom(data, dim)
        out = np.empty(dim, np.uint16)
        _kernels.atom(self.isa, data, out)
        return out

    def bundle_turns(self, turns: ArrayLike) -> Phases:
        """Angle (d,) in [0, 2 pi) of the sum of unit phasors of k >= 1 vectors of turns (k, d)."""
        turns = _array("turns", turns, np.uint16, 2)
        _some("turns", turns)
        if not self._compiled:
            return _reference.bundle_turns(turns)
        out = np.empty(turns.shape[1], np.float64)
        _kernels.bundle_turns(self.isa, turns, out)
        return out

    def bundle(self, phases: ArrayLike) -> Phases:
        """Angle (d,) in [0, 2 pi) of the sum of unit phasors of k >= 1 vectors of phases (k, d); NaN where one is not finite."""
        phases = _array("phases", phases, np.float64, 2)
        _some("phases", phases)
        if not self._compiled:
            return _reference.bundle(phases)
        out = np.empty(phases.shape[1], np.float64)
        _kernels.bundle(self.isa, phases, out)
        return out

    def pairs(self, phases: ArrayLike) -> Pairs:
        """127 cos and then 127 sin (n, 2 d) of phases (n, d), rounded.

        A phase is first taken to the nearest turn, which changes a value by at most 0.006 before it is rounded. A row
        with a phase that is not finite (or beyond 1e11) is all zero.
        """
        phases = _array("phases", phases, np.float64, 2)
        if not self._compiled:
            return _reference.pairs(phases)
        out = np.empty((phases.shape[0], 2 * phases.shape[1]), np.int8)
        _kernels.pairs(self.isa, phases, out)
        return out

    def hrr_similarity(self, pairs: ArrayLike, keys: ArrayLike | Rounded, rows: ArrayLike | None = None) -> Floats:
        """Mean cosine (e, r) of the phase difference between each key (e, 2 d) and each row of `pairs` (n, 2 d).

        A key has the cosines and then the sines of its phases, or any weighted sum of such: the result is the dot
        product / (127 d). A row of zeros gives 0, a key that is not finite NaN. Rounding to pairs changes a similarity
        by about 4e-4; keys that are not `rounded` yet are, which changes it by about 1e-6.
        """
        pairs, values, scales, rows = _against(pairs, keys, rows)
        if not self._compiled:
            return _reference.hrr_similarity(pairs, values, scales, rows)
        out = np.empty((len(values), len(pairs) if rows is None else len(rows)), np.float32)
        _kernels.hrr_similarity(self.isa, pairs, values, scales, rows, out)
        return out


def rounded(keys: ArrayLike) -> Rounded:
    """Keys (e, 2 d) for `hrr_similarity`, each in steps of its largest value / 32767. One that is not finite gives NaN."""
    keys = _array("keys", keys, np.float32, 2)
    largest = np.abs(keys).max(axis=1, initial=0).astype(np.float64)
    sound = np.isfinite(largest)
    steps = (32767 / np.where(sound & (largest > 1e-30), largest, np.inf)).astype(np.float32)
    values = np.rint((keys if sound.all() else np.where(sound[:, None], keys, 0)) * steps[:, None]).astype(np.int16)
    scales = np.where(sound, largest, np.nan) / (32767 * 127 * max(keys.shape[1] // 2, 1))
    return Rounded(values, scales.astype(np.float32))


def available() -> tuple[str, ...]:
    """The names of the kernels that this machine can run, the best first and the reference last."""
    return (*_compiled, "reference")


def why_reference() -> str | None:
    """Why the compiled kernels could not be loaded; None when they were."""
    return _why


def table(name: str) -> Kernels:
    """The kernels of one instruction set, one of `available()`."""
    return Kernels(name)


def isa() -> str:
    """The name of the kernels that run: avx2, neon, scalar or reference."""
    return _chosen.isa


def _choose() -> Kernels:
    name = os.environ.get(_VARIABLE) or available()[0]
    if name not in available():
        raise ValueError(f"{_VARIABLE} is {name!r}, but this machine has only: {', '.join(available())}")
    return Kernels(name)


def _array(name: str, value: Any, dtype: Any, ndim: int) -> NDArray[Any]:
    """The value as an aligned C-contiguous array; the value itself when it is one."""
    array = np.asarray(value)
    flags = array.flags
    if array.dtype == dtype and array.ndim == ndim and flags.c_contiguous and flags.aligned:
        return array  # at once: a search makes 50 of these calls, and the rest takes 15 us
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s'[: ndim != 1]}, not {array.ndim}")
    if array.dtype != dtype:
        array = array.astype(dtype, casting="same_kind" if array.size else "unsafe")  # [] is float64
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.require(array, requirements=["C", "A"])


def _rows(rows: Any) -> Rows | None:
    return None if rows is None else _array("rows", rows, np.int64, 1)


def _offsets(offsets: Any) -> Rows:
    array = _array("offsets", offsets, np.int64, 1)
    if not len(array):
        raise ValueError("offsets must have one value more than there are rows, not none")
    return array


def _against(pairs: Any, keys: Any, rows: Any) -> tuple[Pairs, NDArray[np.int16], Floats, Rows | None]:
    pairs = _array("pairs", pairs, np.int8, 2)
    values, scales = keys if isinstance(keys, Rounded) else rounded(keys)
    values, scales = _array("keys", values, np.int16, 2), _array("scales", scales, np.float32, 1)
    _same("the keys' width", values.shape[1], "the pairs'", pairs.shape[1])
    _same("the number of scales", len(scales), "that of keys", len(values))
    if pairs.shape[1] % 2:
        raise ValueError(f"pairs must have a cosine and a sine for each phase, not {pairs.shape[1]} values")
    return pairs, values, scales, _rows(rows)


def _same(what: str, value: int, other_what: str, other: int) -> None:
    if value != other:
        raise ValueError(f"{what} is {value}, but {other_what} is {other}")


def _some(name: str, array: NDArray[Any]) -> None:
    if not len(array):
        raise ValueError(f"{name} must not be empty")


def _joined(texts: Sequence[str]) -> bytes:
    joined = "\n".join(texts).encode("utf-8", "surrogatepass")
    if joined.count(b"\n") != max(len(texts) - 1, 0):
        raise ValueError("a text of terms must not contain a newline")
    return joined


def _trimmed(kernel: Any, joined: bytes, texts: int, most: int) -> Csr:
    offsets, hashes, counts = np.empty(texts + 1, np.int64), np.empty(most, np.uint32), np.empty(most, np.uint8)
    kernel(joined, offsets, hashes, counts)
    used = int(offsets[-1])
    return offsets, hashes[:used].copy(), counts[:used].copy()


_chosen: Final = _choose()
dot = _chosen.dot
dot_blobs = _chosen.dot_blobs
top_k = _chosen.top_k
jaccard = _chosen.jaccard
overlap = _chosen.overlap
term_hashes = _chosen.term_hashes
trigram_hashes = _chosen.trigram_hashes
atom = _chosen.atom
bundle_turns = _chosen.bundle_turns
bundle = _chosen.bundle
pairs = _chosen.pairs
hrr_similarity = _chosen.hrr_similarity
