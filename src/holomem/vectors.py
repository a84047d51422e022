"""The vectors of the file as arrays, one row a fact, filled when they are needed.

`Phases` holds HRR vectors as int8 (cos, sin) pairs, 2 KB a fact; `EntityKeys` does so for names. `Meanings` holds semantic
vectors as float32, 1.5 KB a fact, and rounded to int8 beside them for the scan over all facts, which reads a quarter of
the memory so; where they would not fit the memory that the caller allows, each scan reads them from the file instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holomem import hrr, kernels
from holomem.embedding import Calibration
from holomem.lexicon import Growing
from holomem.store import Store

__all__ = ["EntityKeys", "Keys", "Meanings", "Phases"]

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

_CHUNK = 2048  # vectors read from the file at a time: 3 MB
_KEPT_KEYS = 4096  # of entities: 8 MB


class Keys(NamedTuple):
    """Keys of HRR vectors, made by `Phases.keys`: whole, and what compares with the first half of the phases and the rest."""

    whole: kernels.Rounded
    lead: kernels.Rounded
    rest: kernels.Rounded

    def first(self, count: int = 1) -> Keys:
        """The first of them alone."""
        return Keys(*(kernels.Rounded(values[:count], scales[:count]) for values, scales in self))


class Phases:
    """The HRR vectors of the index's rows, in two halves: the first alone tells most rows that they are strangers."""

    def __init__(self, store: Store, width: int) -> None:
        self.width = width
        self._store = store
        self._lead = width // 2  # phases of the first half
        self._halves = Growing(np.int8, 2 * self._lead), Growing(np.int8, 2 * (width - self._lead))
        self._state = Growing(np.int8)  # 0 not read yet, 1 there, -1 absent or of another shape
        self._unread = 0

    def extend(self, rows: int) -> None:
        """Append rows; their vectors are read when they are asked for."""
        for half in self._halves:
            half.extend(np.zeros((rows, half.array.shape[1]), np.int8))
        self._state.extend(np.zeros(rows, np.int8))
        self._unread += rows

    def keys(self, keys: Floats) -> Keys:
        """Keys (e, 2 width) as `similarity` and `above` take them."""
        whole = kernels.rounded(keys)
        phases = whole.values.reshape(len(whole.values), 2, self.width)
        halves = phases[:, :, : self._lead], phases[:, :, self._lead :]
        # The factor of a sum is 1 / (127 x its width); of a half's, that of the whole, so that halves add up.
        return Keys(whole, *(kernels.Rounded(half.reshape(len(phases), -1), whole.scales) for half in halves))

    def similarity(self, keys: Keys, rows: Rows, ids: Rows) -> Floats:
        """Mean cosine of the phase difference between each key and each row: (e, r), NaN where absent."""
        self._read(rows, ids)
        found = self._similarity(keys, rows)
        found[:, self._state.array[rows] != 1] = np.nan
        return found

    def above(self, parts: Sequence[Keys], rows: Rows, ids: Rows, bar: float) -> Rows:
        """Those of the rows whose similarity with the one key of every part exceeds `bar`.

        The first half of a vector estimates its similarity s to s +- the deviation below. Rows whose estimate is more
        than three of them below the bar are not looked at further: of a thousand rows at the bar itself one is lost,
        of a million rows with `hrr.CAPACITY` parts, that are four deviations above it, none.
        """
        self._read(rows, ids)
        deviation = hrr.noise(self.width) * math.sqrt((self.width - self._lead) / max(self._lead, 1))
        least = (bar - 3 * deviation) * self._lead / self.width
        for key in parts:
            lead = kernels.hrr_similarity(self._halves[0].array, key.lead, rows)[0]
            rows = rows[lead > least]
        for key in parts:
            rows = rows[self._similarity(key, rows)[0] > bar]
        return rows

    def unbound(self, role: Floats, rows: Rows, ids: Rows) -> Floats:
        """Unit phasors (r, 2 width) of each row unbound by other phasors (2 width,); NaN where absent.

        Unbound by a role, what is left is like the role's filler, with the similarity that the fact has with the two.
        """
        self._read(rows, ids)
        parts = [np.split(half.array[rows].astype(np.float32) / 127, 2, axis=1) for half in self._halves]
        cos, sin = (np.concatenate(both, axis=1) for both in zip(*parts, strict=True))
        role_cos, role_sin = np.split(role, 2)
        rest = np.concatenate([cos * role_cos + sin * role_sin, sin * role_cos - cos * role_sin], axis=1)
        rest[self._state.array[rows] != 1] = np.nan
        return rest

    def unusable(self, rows: Rows, ids: Rows) -> NDArray[np.bool_]:
        """Which of the rows have no HRR vector of this width."""
        self._read(rows, ids)
        return np.asarray(self._state.array[rows] != 1)

    def _similarity(self, keys: Keys, rows: Rows) -> Floats:
        lead, rest = (half.array for half in self._halves)
        return kernels.hrr_similarity(lead, keys.lead, rows) + kernels.hrr_similarity(rest, keys.rest, rows)

    def _read(self, rows: Rows, ids: Rows) -> None:
        unread = np.flatnonzero(self._state.array[rows] == 0) if self._unread else ()
        for start in range(0, len(unread), _CHUNK):
            part = unread[start : start + _CHUNK]
            wanted = ids[part].tolist()
            blobs = self._store.phases(wanted)
            phases = hrr.decode_many([blobs.get(fact_id) for fact_id in wanted], self.width)
            for half, columns in zip(self._halves, (slice(None, self._lead), slice(self._lead, None)), strict=True):
                half.array[rows[part]] = kernels.pairs(phases[:, columns])
            self._state.array[rows[part]] = np.where(np.isnan(phases[:, 0]), -1, 1)
            self._unread -= len(part)


class EntityKeys:
    """The keys of entities, bound to `hrr.ENTITY`, as int8 pairs of 2 KB; the cleanup memory of roles too."""

    def __init__(self, store: Store, width: int) -> None:
        self._store = store
        self._width = width
        self._row_of: dict[int, int] = {}
        self._pairs = Growing(np.int8, 2 * width)

    def rows(self, entity_ids: Sequence[int]) -> Rows:
        """Where the keys of these entities stand, until the next call; those not seen yet are made of their names."""
        if len(self._row_of) > _KEPT_KEYS:
            self._row_of, self._pairs = {}, Growing(np.int8, 2 * self._width)
        new = [entity_id for entity_id in dict.fromkeys(entity_ids) if entity_id not in self._row_of]
        if new:
            names = {entity_id: name for entity_id, name, _ in self._store.links.names(new)}
            units = np.zeros((len(new), 2 * self._width), np.float32)
            for row, entity_id in enumerate(new):
                if entity_id in names:  # a link to an entity that is not there is like nothing
                    units[row] = hrr.fresh_key(names[entity_id].lower(), hrr.ENTITY, self._width)
            self._row_of.update(zip(new, range(len(self._pairs), len(self._pairs) + len(new)), strict=True))
            self._pairs.extend(np.rint(units * 127).astype(np.int8))
        return np.array([self._row_of[entity_id] for entity_id in entity_ids], np.int64)

    def forget(self, entity_ids: Sequence[int]) -> None:
        """Make the keys of these entities anew when they are asked for: they may be called otherwise now."""
        for entity_id in entity_ids:
            self._row_of.pop(entity_id, None)

    def similarity(self, keys: kernels.Rounded, rows: Rows) -> Floats:
        """Mean cosine (k, r) of the phase difference between each of the keys (k, 2 width) and each entity's."""
        return kernels.hrr_similarity(self._pairs.array, keys, rows)

    def similarity_each(self, keys: Floats, rows: Rows) -> NDArray[np.float64]:
        """Mean cosine (k,) between each of the keys (k, 2 width) and the entity's at the same place of `rows` (k,)."""
        dots = np.einsum("ij,ij->i", keys, self._pairs.array[rows].astype(np.float32))
        return np.asarray(dots / (127 * self._width), np.float64)


class Meanings:
    """The semantic vectors of one model, and the calibrated cosine of a query with them."""

    def __init__(self, store: Store, model_id: int, calibration: Calibration, cache_bytes: int) -> None:
        self._store = store
        self._model_id = model_id
        self.calibration = calibration
        self._dim = dim = len(calibration.mean_passage)
        self._cache_bytes = cache_bytes
        self._vectors = Growing(np.float32, dim)
        self._norms = Growing(np.float32)  # Calibration.passage_norms; NaN where there is no vector
        self._coarse = Growing(np.int8, dim)  # each row's vector in steps of its largest part / 127
        self._largest = Growing(np.float32)
        self._pending: list[int] = []  # fact ids of rows appended since, at the rows from len(self._norms) on

    def extend(self, fact_ids: list[int]) -> None:
        """Append rows for these facts; their vectors are read at the next question."""
        self._pending += fact_ids

    def cosines(self, query: Floats, row_of: Mapping[int, int], rows: Rows | None = None) -> Floats:
        """Calibrated cosine with all rows, or with `rows`; NaN where a fact has no vector of this model.

        `query` (dim,) is `calibration.query` of the embedded text.
        """
        self._read()
        if not self._in_memory:
            every = self._scan_file(query, row_of)
            return every if rows is None else every[rows]
        if rows is None:
            dots, norms = kernels.dot(self._vectors.array, query), self._norms.array
        else:
            dots, norms = kernels.dot(self._vectors.array[rows], query), self._norms.array[rows]
        return self.calibration.cosines(dots, query, norms)

    def nearly(self, query: Floats, row_of: Mapping[int, int]) -> Floats:
        """`cosines` with all rows, to 0.005: enough to choose candidates, which `cosines` then tells exactly.

        Each part of a vector is rounded by at most half a step; over 384 parts the errors of a dot product add up to
        0.002 where they are worst (measured), and the calibration stretches them by at most 1 / norm.
        """
        self._read()
        if not self._in_memory or self._dim % 2:
            return self.cosines(query, row_of)
        # The similarity kernel of HRR pairs is an int8 x float32 dot product / (127 x half the width).
        shares = kernels.hrr_similarity(self._coarse.array, query[None])[0]
        dots = shares * self._largest.array * np.float32(self._dim // 2)
        return self.calibration.cosines(dots, query, self._norms.array)

    def units(self, rows: Rows, ids: Rows) -> Floats:
        """`Calibration.passages` of the facts (r, dim) at these rows, NaN where a fact has no vector of this model."""
        self._read()
        if self._in_memory:
            vectors = self._vectors.array[rows]
        else:
            vectors = np.full((len(ids), self._dim), np.nan, np.float32)
            place = {int(fact_id): i for i, fact_id in enumerate(ids)}
            for found, blobs in _chunks(self._store.models.vectors(self._model_id, ids.tolist()), self._dim):
                vectors[[place[i] for i in found]] = np.frombuffer(b"".join(blobs), np.float32).reshape(-1, self._dim)
        units = self.calibration.passages(vectors)
        units[np.isnan(self._norms.array[rows])] = np.nan
        return units

    def missing(self) -> NDArray[np.bool_]:
        """Which rows (n,) have no usable vector of this model."""
        self._read()
        return np.asarray(np.isnan(self._norms.array))

    @property
    def _in_memory(self) -> bool:
        return (len(self._norms) + len(self._pending)) * self._dim * 4 <= self._cache_bytes

    def _read(self) -> None:
        """Read what the rows appended since the last question hold."""
        if not self._pending:
            return
        first, pending, self._pending = len(self._norms), self._pending, []
        norms = np.full(len(pending), np.nan, np.float32)
        in_memory = (first + len(pending)) * self._dim * 4 <= self._cache_bytes
        rows = np.zeros((len(pending) if in_memory else 0, self._dim), np.float32)
        place = {fact_id: i for i, fact_id in enumerate(pending)}
        wanted = None if first == 0 else pending
        for ids, blobs in _chunks(self._store.models.vectors(self._model_id, wanted), self._dim):
            places = [place[i] for i in ids if i in place]
            vectors = np.frombuffer(b"".join(b for i, b in zip(ids, blobs, strict=True) if i in place), np.float32)
            vectors = vectors.reshape(-1, self._dim)
            sound = np.asarray(np.isfinite(vectors).all(axis=1))
            vectors = np.where(sound[:, None], vectors, 0)
            norms[places] = np.where(sound, self.calibration.passage_norms(vectors), np.nan)
            if in_memory:
                rows[places] = vectors
        self._norms.extend(norms)
        if in_memory:
            self._vectors.extend(rows)
            largest = np.abs(rows).max(axis=1)
            self._largest.extend(largest)
            self._coarse.extend(np.rint(rows * (127 / np.where(largest > 0, largest, 1))[:, None]).astype(np.int8))
        else:
            self._vectors, self._coarse = Growing(np.float32, self._dim), Growing(np.int8, self._dim)
            self._largest = Growing(np.float32)

    def _scan_file(self, query: Floats, row_of: Mapping[int, int]) -> Floats:
        dots = np.full(len(self._norms), np.nan, np.float32)
        for ids, blobs in _chunks(self._store.models.vectors(self._model_id), self._dim):
            found = kernels.dot_blobs(blobs, query)
            for fact_id, value in zip(ids, found.tolist(), strict=True):
                row = row_of.get(fact_id)
                if row is not None:
                    dots[row] = value
        return self.calibration.cosines(dots, query, self._norms.array)


def _chunks(vectors: Iterator[tuple[int, bytes]], dim: int) -> Iterator[tuple[list[int], list[bytes]]]:
    """(ids, blobs) a few thousand at a time; a BLOB of another size is left out, as if the fact had none."""
    while chunk := list(islice(vectors, _CHUNK)):
        sound = [(i, b) for i, b in chunk if isinstance(b, bytes) and len(b) == 4 * dim]
        yield [i for i, _ in sound], [b for _, b in sound]
