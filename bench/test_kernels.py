"""Every kernel on every instruction set beside its reference and plain NumPy, at the size of 10,000 facts.

python -m pytest bench/test_kernels.py --benchmark-only --benchmark-group-by=group --benchmark-columns=min,median
"""

from itertools import pairwise

import numpy as np
import pytest

from holomem import kernels

FACTS, DIM, WIDTH = 10_000, 384, 1024
RNG = np.random.default_rng(7)
ROWS = RNG.standard_normal((FACTS, DIM)).astype(np.float32)
BLOBS = [row.tobytes() for row in ROWS]
QUERY = RNG.standard_normal(DIM).astype(np.float32)
SCORES = RNG.standard_normal(FACTS).astype(np.float32)
PAIRS = RNG.integers(-127, 128, (FACTS, 2 * WIDTH)).astype(np.int8)
KEYS = RNG.standard_normal((3, 2 * WIDTH)).astype(np.float32)
TEXTS = [" ".join(f"word{i}" for i in RNG.zipf(1.3, 15) % 20_000) for _ in range(FACTS)]
OFFSETS, HASHES, COUNTS = kernels.term_hashes(TEXTS)
ASKED = np.unique(HASHES[RNG.integers(0, len(HASHES), 8)])
WEIGHTS, NORMS = np.ones(len(ASKED), np.float32), np.ones(FACTS, np.float32)
TURNS = RNG.integers(0, 65536, (12, WIDTH)).astype(np.uint16)
PHASES = RNG.uniform(0, 6.28, (1000, WIDTH))
SETS = [set(HASHES[a:b].tolist()) for a, b in pairwise(OFFSETS)]

CALLS = {
    "dot": lambda k: k.dot(ROWS, QUERY),
    "dot_blobs": lambda k: k.dot_blobs(BLOBS, QUERY),
    "top_k": lambda k: k.top_k(SCORES, 50),
    "jaccard": lambda k: k.jaccard(ASKED, OFFSETS, HASHES),
    "overlap": lambda k: k.overlap(ASKED, WEIGHTS, OFFSETS, HASHES, COUNTS, NORMS),
    "term_hashes": lambda k: k.term_hashes(TEXTS[:1000]),
    "trigram_hashes": lambda k: k.trigram_hashes(TEXTS[:1000]),
    "atom": lambda k: k.atom("nginx", WIDTH),
    "bundle of 12": lambda k: k.bundle_turns(TURNS),
    "pairs of 1000": lambda k: k.pairs(PHASES),
    "hrr, 1 key": lambda k: k.hrr_similarity(PAIRS, KEYS[:1]),
    "hrr, 3 keys": lambda k: k.hrr_similarity(PAIRS, KEYS),
}
ASKED_SET = set(ASKED.tolist())
PLAIN = {  # what one would write without kernels
    "dot": lambda: ROWS @ QUERY,
    "dot_blobs": lambda: np.frombuffer(b"".join(BLOBS), np.float32).reshape(-1, DIM) @ QUERY,
    "top_k": lambda: np.argpartition(-SCORES, 50)[:50],
    "jaccard": lambda: [len(ASKED_SET & s) / len(ASKED_SET | s) for s in SETS],
    "pairs of 1000": lambda: np.rint(127 * np.hstack([np.cos(PHASES), np.sin(PHASES)])).astype(np.int8),
    "hrr, 1 key": lambda: PAIRS.astype(np.float32) @ KEYS[0],
    "hrr, 3 keys": lambda: PAIRS.astype(np.float32) @ KEYS.T,
}


@pytest.mark.parametrize("isa", kernels.available())
@pytest.mark.parametrize("name", CALLS)
def test_kernel(benchmark, name, isa):
    table = kernels.table(isa)
    benchmark.group = name
    benchmark(CALLS[name], table)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_numpy(benchmark, name):
    benchmark.group = name
    benchmark(PLAIN[name])
