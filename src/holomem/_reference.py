"""The kernels in NumPy: the oracle of the tests, and what runs where no compiled kernel can be loaded.

`kernels` states what each function means, checks and casts the arguments; this module is the shortest code that does it.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "atom",
    "bundle",
    "bundle_turns",
    "dot",
    "dot_blobs",
    "hrr_similarity",
    "jaccard",
    "overlap",
    "pairs",
    "term_hashes",
    "top_k",
    "trigram_hashes",
]

Floats = NDArray[np.float32]
Phases = NDArray[np.float64]
Turns = NDArray[np.uint16]
Pairs = NDArray[np.int8]
Rows = NDArray[np.int64]
Hashes = NDArray[np.uint32]
Counts = NDArray[np.uint8]

TURN: Final = 2 * np.pi / 65536  # one uint16 step in radians
PHASE_LIMIT: Final = 1e11  # radians; the kernels round a phase to turns by adding 1.5 * 2**52, good to 2**51 turns
_CHUNK: Final = 1024  # rows converted at a time, so that a scan needs a few MB and not eight times its input
_SPACE, _NEWLINE = b" \n"


def dot(rows: Floats, query: Floats) -> Floats:
    """Dot product of each row with the query, summed in float64."""
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is NaN, as in C, which does not warn
        sums = np.einsum("nd,d->n", rows, query, dtype=np.float64, casting="same_kind")
        return np.asarray(sums, np.float32)


def dot_blobs(blobs: tuple[bytes | None, ...], query: Floats) -> Floats:
    """Dot product of the float32 values of each blob with the query; NaN for None and for another length."""
    size = query.nbytes
    places = [i for i, blob in enumerate(blobs) if blob is not None and len(blob) == size]
    joined = b"".join(blob for blob in blobs if blob is not None and len(blob) == size)
    out = np.full(len(blobs), np.nan, np.float32)
    out[places] = dot(np.frombuffer(joined, "<f4").reshape(len(places), len(query)), query)
    return out


def top_k(scores: Floats, k: int) -> Rows:
    """Indexes of the k largest scores; a stable sort keeps ties in order and puts NaN last."""
    return np.argsort(-scores, kind="stable")[:k].astype(np.int64)


def jaccard(query: Hashes, offsets: Rows, hashes: Hashes, rows: Rows | None) -> Floats:
    """Shared hashes / all distinct hashes of the query and each row; 0 when both are empty."""
    starts, sizes = _bounds(offsets, len(hashes), rows)
    owner, entry = _entries(starts, sizes)
    shared = np.bincount(owner[_places(query, hashes[entry])[1]], minlength=len(starts))
    union = len(query) + sizes - shared
    return np.asarray(shared / np.maximum(union, 1), np.float32)


def overlap(
    query: Hashes, weights: Floats, offsets: Rows, hashes: Hashes, counts: Counts, norms: Floats, rows: Rows | None
) -> Floats:
    """Sum over the shared hashes of weight * tf / (tf + norm of the row)."""
    starts, sizes = _bounds(offsets, len(hashes), rows)
    owner, entry = _entries(starts, sizes)
    place, shared = _places(query, hashes[entry])
    place, owner, tf = place[shared], owner[shared], counts[entry[shared]].astype(np.float64)
    norm = (norms if rows is None else norms[rows])[owner]
    return np.bincount(owner, weights[place] * (tf / (tf + norm)), minlength=len(starts)).astype(np.float32)


def term_hashes(joined: bytes, texts: int) -> tuple[Rows, Hashes, Counts]:
    """Hashes of the terms of each line, sorted, with the number of times that each stands there."""
    data = np.frombuffer(joined, np.uint8)
    gaps = np.flatnonzero((data == _SPACE) | (data == _NEWLINE))
    starts, ends = np.append(0, gaps + 1), np.append(gaps, len(data))
    return _csr(data, starts[starts < ends], ends[starts < ends], texts)


def trigram_hashes(joined: bytes, texts: int) -> tuple[Rows, Hashes, Counts]:
    """Hashes of the character trigrams of each line's terms, sorted, with the number of times that each stands there."""
    data = np.frombuffer(joined, np.uint8)
    starts = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))  # of the code points, in UTF-8
    gap = np.append((data == _SPACE) | (data == _NEWLINE), True)[starts]
    inside = ~(gap[:-3] | gap[1:-2] | gap[2:-1])
    return _csr(data, starts[:-3][inside], starts[3:][inside], texts)


def atom(token: bytes, dim: int) -> Turns:
    """SHA-256 of `token:0`, `token:1`, ..., 16 little-endian uint16 each."""
    digests = (hashlib.sha256(b"%s:%d" % (token, i)).digest() for i in range(-(-dim // 16)))
    return np.frombuffer(b"".join(digests), "<u2")[:dim].astype(np.uint16)


def bundle_turns(turns: Turns) -> Phases:
    """Angle of the sum of unit phasors over the first axis."""
    return bundle(np.asarray(turns * np.float64(TURN)))


def bundle(phases: Phases) -> Phases:
    """Angle of the sum of unit phasors over the first axis; NaN where a phase is not finite."""
    with np.errstate(invalid="ignore"):
        angles = np.arctan2(np.sin(phases).sum(axis=0), np.cos(phases).sum(axis=0)) % (2 * np.pi)
    return np.asarray(np.where(angles < 2 * np.pi, angles, angles * 0))  # -1e-17 % 2 pi is 2 pi; NaN stays NaN


def pairs(phases: Phases) -> Pairs:
    """Rounded 127 cos and 127 sin of each phase, taken to its nearest turn; a row with a phase that is not finite is 0."""
    n, d = phases.shape
    out = np.zeros((n, 2 * d), np.int8)
    for start in range(0, n, _CHUNK):
        chunk = phases[start : start + _CHUNK]
        sound = np.asarray((np.abs(chunk) <= PHASE_LIMIT).all(axis=1))
        angles = np.rint(np.where(sound[:, None], chunk, 0) * (1 / TURN)) * TURN
        out[start : start + _CHUNK, :d] = np.where(sound[:, None], np.rint(127 * np.cos(angles)), 0)
        out[start : start + _CHUNK, d:] = np.where(sound[:, None], np.rint(127 * np.sin(angles)), 0)
    return out


def hrr_similarity(pairs: Pairs, keys: NDArray[np.int16], scales: Floats, rows: Rows | None) -> Floats:
    """Dot product of each row with each key, times the key's scale; (e, r)."""
    rows = np.arange(len(pairs)) if rows is None else _checked(rows, len(pairs))
    out = np.zeros((len(keys), len(rows)), np.float32)
    for start in range(0, len(rows), _CHUNK):
        sums = keys.astype(np.float64) @ pairs[rows[start : start + _CHUNK]].T.astype(np.float64)  # whole numbers
        out[:, start : start + _CHUNK] = sums.astype(np.float32) * scales[:, None]
    return out


def _checked(rows: Rows, n: int) -> Rows:
    wrong = rows[(rows < 0) | (rows >= n)]
    if len(wrong):
        raise IndexError(f"row {wrong[0]} is not among the {n} rows")
    return rows


def _bounds(offsets: Rows, entries: int, rows: Rows | None) -> tuple[Rows, Rows]:
    """Where each chosen row starts, and its number of entries."""
    rows = np.arange(len(offsets) - 1) if rows is None else _checked(rows, len(offsets) - 1)
    starts, ends = offsets[rows], offsets[rows + 1]
    wrong = rows[(starts < 0) | (starts > ends) | (ends > entries)]
    if len(wrong):
        raise ValueError(f"the offsets of row {wrong[0]} are not ascending within {entries} entries")
    return starts, ends - starts


def _entries(starts: Rows, sizes: Rows) -> tuple[Rows, Rows]:
    """For each entry of the chosen rows: which of them it belongs to, and where it stands."""
    owner = np.repeat(np.arange(len(starts)), sizes)
    return owner, np.arange(len(owner)) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)


def _places(query: Hashes, hashes: Hashes) -> tuple[Rows, NDArray[np.bool_]]:
    """Where each hash would stand in the query, and whether it does."""
    if not len(query):
        return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.bool_)
    place = np.minimum(np.searchsorted(query, hashes), len(query) - 1)
    return place, query[place] == hashes


def _csr(data: Counts, starts: Rows, ends: Rows, texts: int) -> tuple[Rows, Hashes, Counts]:
    row = np.cumsum(data == _NEWLINE)[starts] if len(starts) else starts  # a piece never starts at a newline
    keys, counts = np.unique(row.astype(np.uint64) << 32 | _hash(data, starts, ends), return_counts=True)
    offsets = np.searchsorted(keys, np.arange(texts + 1, dtype=np.uint64) << 32)
    return offsets.astype(np.int64), keys.astype(np.uint32), np.minimum(counts, 255).astype(np.uint8)


def _hash(data: Counts, starts: Rows, ends: Rows) -> Hashes:
    """FNV-1a of each piece of the data, then the finalizer of MurmurHash3, since FNV's high bits are poor."""
    hashes: Hashes = np.full(len(starts), 0x811C9DC5, np.uint32)
    sizes, live, i = ends - starts, np.arange(len(starts)), 0
    while len(live := live[sizes[live] > i]):
        hashes[live] = (hashes[live] ^ data[starts[live] + i]) * np.uint32(0x01000193)
        i += 1
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        hashes = np.asarray((hashes ^ (hashes >> shift)) * np.uint32(factor), np.uint32)
    return hashes
