"""Holographic reduced representations: facts as bundles of bound phase vectors (FHRR).

    fact = bundle(bind(text, CONTENT), bind(atom(entity 1), ENTITY), ...)        text = bundle(term atoms)

A vector is `WIDTH` angles in [0, 2 pi). `similarity(fact, bind(key, role))` is the primitive of every query: about
`gain(n)` when the key is one of the n parts of the fact, and 0 with standard deviation `noise(WIDTH)` when it is not.
Unbinding a fact and comparing the rest with a bundle does not work: a bundle keeps only the angles of its sum, so it
does not distribute over the difference (SPEC 3).

`bundle` takes all parts at once; it is not associative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holomem import kernels

__all__ = [
    "CAPACITY",
    "CONTENT",
    "ENTITY",
    "MAX_TERMS",
    "WIDTH",
    "atom",
    "bind",
    "bundle",
    "cleanup",
    "decode",
    "decode_many",
    "encode",
    "encode_fact",
    "fresh_key",
    "gain",
    "key",
    "noise",
    "role_shift",
    "role_token",
    "significance",
    "similarity",
    "unbind",
]

Phases = NDArray[np.float64]
Turns = NDArray[np.uint16]

WIDTH: Final = 1024  # SPEC 1
CONTENT: Final = "__hrr_role_content__"  # SPEC 3; the Hermes plugin's names
ENTITY: Final = "__hrr_role_entity__"
EMPTY: Final = "__hrr_empty__"  # what the Hermes plugin encodes for a text without tokens
TURN: Final = 2 * math.pi / 65536  # one uint16 step in radians
MAX_TERMS: Final = 256  # of one fact: beyond, a term's similarity (0.886 / 16 of the text's) drowns in the noise
CAPACITY: Final = 24  # parts a fact can hold before one is missed (measured: 3 in 10,000 at 24, 8 in 1,000 at 32)

# E|sum of n random unit phasors| / n for n = 1..8; from there on sqrt(pi / 4) / sqrt(n) = 0.886 / sqrt(n) is as good.
_GAIN: Final = (1.0, 0.6366, 0.5249, 0.4507, 0.4000, 0.3640, 0.3390, 0.3160)
_MAGIC: Final = b"HRR1"  # float32 phases, written by the Hermes plugin from 0.20 on


@lru_cache(maxsize=4096)  # 2 KB each at WIDTH
def _turns(token: str, width: int) -> Turns:
    turns = kernels.atom(token, width)
    turns.setflags(write=False)
    return turns


def atom(token: str, width: int = WIDTH) -> Phases:
    """The phases (width,) of one token, from SHA-256 of `"{token}:{i}"`: the same on every machine (SPEC 3)."""
    return np.asarray(_turns(token, width) * np.float64(TURN))


def bind(a: Phases, b: Phases) -> Phases:
    """The sum of two phase vectors, modulo 2 pi."""
    return np.mod(a + b, 2 * math.pi)


def unbind(a: Phases, b: Phases) -> Phases:
    """The difference of two phase vectors, modulo 2 pi: `unbind(bind(a, b), b)` is `a`."""
    return np.mod(a - b, 2 * math.pi)


def bundle(parts: Sequence[Phases] | Phases) -> Phases:
    """The angles of the sum of unit phasors of all `parts`, (k, width) with k >= 1."""
    return kernels.bundle(np.ascontiguousarray(parts, dtype=np.float64))


def similarity(a: Phases, b: Phases) -> float:
    """The mean cosine of the phase difference, in [-1, 1]; strangers give 0 with deviation `noise(width)`."""
    return float(np.cos(a - b).mean())


def cleanup(noisy: Phases, names: Sequence[str]) -> tuple[str, float] | None:
    """The name whose atom is most similar to `noisy`, and the similarity; None when it is within the noise.

    The threshold over K names is (sqrt(2 ln K) + 1) noise deviations: the largest of K strangers stays below it.
    """
    if not names:
        return None
    atoms = np.stack([atom(name, len(noisy)) for name in names])
    similarities = np.cos(atoms - noisy).mean(axis=1)
    best = int(similarities.argmax())
    threshold = (math.sqrt(2 * math.log(len(names))) + 1) * noise(len(noisy))
    return (names[best], float(similarities[best])) if similarities[best] > threshold else None


def role_token(role: str) -> str:
    """The token whose atom binds the fillers of a role, as the plugin names those of its own two."""
    return f"__hrr_role_{role}__"


def encode_fact(
    terms: Sequence[str], entities: Sequence[str], width: int = WIDTH, *, roles: Sequence[tuple[str, str]] = ()
) -> Phases:
    """The phases (width,) of a fact with these analysed terms, canonical entity names and (role, filler) pairs.

    A term counts once however often it stands in the fact, so that its share of the bundle is known. The atom of an
    entity is that of its lower-case name, never of a folded or stemmed form: that is what files of the plugin hold.
    """
    distinct = list(dict.fromkeys(terms))[:MAX_TERMS] or [EMPTY]
    text = kernels.bundle_turns(np.stack([_turns(term, width) for term in distinct]))
    parts = [bind(text, atom(CONTENT, width))]
    bound = [(name, ENTITY) for name in dict.fromkeys(entities)]
    bound += [(name, role_token(role)) for role, name in roles]
    parts += [(_turns(name.lower(), width) + _turns(role, width)) * np.float64(TURN) for name, role in bound]
    return kernels.bundle(np.stack(parts)) if len(parts) > 1 else parts[0]


@lru_cache(maxsize=512)  # 8 KB each at WIDTH
def key(token: str, role: str, width: int = WIDTH) -> NDArray[np.float32]:
    """The unit phasors of `bind(atom(token), atom(role))` as (2 width,) float32: cosines, then sines.

    This is the layout of the keys of `kernels.hrr_similarity`; a weighted sum of keys is a key too.
    """
    phasors = fresh_key(token, role, width)
    phasors.setflags(write=False)
    return phasors


def fresh_key(token: str, role: str, width: int = WIDTH) -> NDArray[np.float32]:
    """`key` for a caller that keeps it: neither it nor the atom of the token stays in memory here."""
    return _phasors(kernels.atom(token, width) + _turns(role, width))


def role_shift(role: str, other: str, width: int = WIDTH) -> NDArray[np.float32]:
    """The unit phasors (2 width,) that a part bound to `role` is to be unbound by, to be one bound to `other`."""
    return _phasors(_turns(role, width) - _turns(other, width))


def _phasors(turns: Turns) -> NDArray[np.float32]:
    return np.concatenate([table[turns] for table in _circle()])


@lru_cache(maxsize=1)
def _circle() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The cosine and the sine of every uint16 turn: looking them up takes a fifth of the time of computing them."""
    phases = np.arange(65536) * TURN
    return np.cos(phases).astype(np.float32), np.sin(phases).astype(np.float32)


def gain(parts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The similarity that one of n parts has with their bundle: 1, .64, .52, ..., then 0.886 / sqrt(n)."""
    n = np.maximum(np.asarray(parts), 1)
    table = np.asarray(_GAIN)
    return np.asarray(np.where(n <= len(table), table[np.minimum(n, len(table)) - 1], 0.886 / np.sqrt(n)))


def noise(width: int = WIDTH) -> float:
    """The standard deviation of the similarity of unrelated vectors: 1 / sqrt(2 width), 0.022 at 1024."""
    return 1 / math.sqrt(2 * width)


def significance(facts: int) -> float:
    """How many noise deviations a similarity must exceed among this many facts: one false fact in 100 queries.

    The normal quantile at 1 - 0.01 / facts (4.3 at 1,000 facts, 4.75 at 10,000, 5.2 at 100,000), by the tail's
    asymptotic expansion z = sqrt(2 L - ln(4 pi L)) with L = ln(facts / 0.01), which is within 0.05 from 10 facts on.
    """
    tail = math.log(max(facts, 10) / 0.01)
    return math.sqrt(2 * tail - math.log(4 * math.pi * tail))


def encode(phases: Phases, *, compact: bool = False) -> bytes:
    """The bytes of a vector for the file: float64, or uint16 turns when `compact` (a quarter of it, error 3e-6)."""
    if compact:
        return (np.rint(phases / TURN).astype(np.int64) & 0xFFFF).astype("<u2").tobytes()
    return phases.astype("<f8").tobytes()


def decode_many(blobs: Sequence[bytes | None], width: int = WIDTH) -> Phases:
    """The phases (n, width) of BLOBs, a row of NaN where `decode` gives None; float64 of one width is the quick case."""
    if blobs and all(isinstance(blob, bytes) and len(blob) == 8 * width for blob in blobs):
        phases = np.frombuffer(b"".join(blob for blob in blobs if blob is not None), "<f8").reshape(-1, width)
        sound = np.isfinite(phases).all(axis=1, keepdims=True)
        return np.asarray(phases if sound.all() else np.where(sound, phases, np.nan), np.float64)
    absent = np.full(width, np.nan)
    decoded = (decode(blob, width) for blob in blobs)
    return np.array([absent if phases is None else phases for phases in decoded]).reshape(-1, width)


def decode(blob: bytes | None, width: int = WIDTH) -> Phases | None:
    """The phases (width,) of a BLOB in any format ever written; None when it is absent, of another width or not finite.

    float64 (8 x width bytes), `HRR1` + float32 (4 + 4 x width), uint16 turns (2 x width).
    """
    if not isinstance(blob, bytes):
        return None
    if len(blob) == 8 * width:
        phases = np.frombuffer(blob, dtype="<f8").astype(np.float64)
    elif len(blob) == 4 + 4 * width and blob.startswith(_MAGIC):
        phases = np.frombuffer(blob, dtype="<f4", offset=4).astype(np.float64)
    elif len(blob) == 2 * width:
        return np.frombuffer(blob, dtype="<u2").astype(np.float64) * TURN
    else:
        return None
    return phases if np.isfinite(phases).all() else None
