"""Every kernel of every instruction set of this machine equals the NumPy reference; the reference equals plain arithmetic."""

import hashlib
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holomem import kernels

REFERENCE = kernels.table("reference")
COMPILED = [name for name in kernels.available() if name != "reference"]
WIDTHS = [0, 1, 7, 8, 15, 16, 17, 31, 33, 384, 1024]
COUNTS = [0, 1, 3, 50]
ODD = [0.0, -0.0, 1e-42, -1e-42, np.nan, np.inf, -np.inf, 1.0]  # zeros, denormals, what is not finite

pytestmark = pytest.mark.skipif(not COMPILED, reason="no compiled kernels in this installation")


@pytest.fixture(params=COMPILED)
def table(request):
    return kernels.table(request.param)


def floats(seed, *shape, odd=False, dtype=np.float32):
    """Random numbers that start one element after an alignment boundary."""
    rng = np.random.default_rng(seed)
    whole = np.empty(int(np.prod(shape)) + 1, dtype)
    array = whole[1:].reshape(shape)
    array[...] = rng.standard_normal(shape)
    if odd and array.size:
        places = rng.integers(0, array.size, max(1, array.size // 20))
        array.reshape(-1)[places] = rng.choice(ODD, len(places))
    return array


def csr(seed, n, vocabulary=60, length=12):
    rng = np.random.default_rng(seed)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, vocabulary, rng.integers(0, length))) for _ in range(n)]
    return kernels.term_hashes(texts)


# ---- the reference -----------------------------------------------------------------------------------------------


def test_the_reference_computes_what_it_says_on_hand_made_cases():
    assert REFERENCE.dot([[1, 2], [3, 4]], [10, 1]).tolist() == [12, 34]
    assert REFERENCE.top_k([1, np.nan, 3, 3, 0], 4).tolist() == [2, 3, 0, 4]
    query, hashes, counts = np.array([1, 2, 3], np.uint32), np.array([2, 9], np.uint32), np.array([3, 1], np.uint8)
    assert REFERENCE.jaccard(query, [0, 2, 2], hashes).tolist() == [0.25, 0]
    bm25 = REFERENCE.overlap(query[:2], [0.5, 2.0], [0, 2], hashes, counts, [1.5])
    assert bm25.tolist() == pytest.approx([2.0 * 3 / 4.5])
    assert REFERENCE.bundle([[0.0, 1.0], [np.pi / 2, 1.0]]) == pytest.approx([np.pi / 4, 1.0])
    assert REFERENCE.pairs([[0.0, np.pi / 2]]).tolist() == [[127, 0, 0, 127]]
    assert REFERENCE.hrr_similarity(np.array([[127, 0, 0, 127]], np.int8), [[1, 0, 0, 1]]).tolist() == [[1.0]]


@pytest.mark.parametrize("token", ["", "nginx", "ключ", "x" * 55, "x" * 56, "x" * 63, "x" * 64, "x" * 200])
def test_atoms_are_sha256_in_counter_mode_on_every_instruction_set(token):
    expected = b"".join(hashlib.sha256(f"{token}:{i}".encode()).digest() for i in range(64))
    for name in kernels.available():
        assert kernels.table(name).atom(token).tobytes() == expected
        assert kernels.table(name).atom(token, 19).tobytes() == expected[:38]


# ---- compiled kernels against it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("d", WIDTHS)
def test_dot_equals_the_reference(table, n, d, odd):
    rows, query = floats(1, n, d, odd=odd), floats(2, d)
    found, expected = table.dot(rows, query), REFERENCE.dot(rows, query)
    finite = np.isfinite(expected)
    bound = 1e-6 * np.abs(rows[finite]) @ np.abs(query) + 1e-38
    assert (np.abs(found[finite] - expected[finite]) <= bound).all()
    assert np.array_equal(found[~finite], expected[~finite], equal_nan=True)
    blobs = [b"x" + row.tobytes() for row in rows]
    views = [blob[1:] for blob in blobs]
    from_blobs = table.dot_blobs([*views, None, b"short", b""], query)
    assert np.array_equal(from_blobs[:n], found, equal_nan=True)
    assert np.isnan(from_blobs[n : n + 2]).all()
    assert np.isnan(from_blobs[-1]) == (d > 0)


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0, np.nan, np.inf, -np.inf, 1e-42]), max_size=200), st.integers(0, 210)
)
@settings(max_examples=200, deadline=None)
def test_top_k_is_stable_with_nan_last(scores, k):
    scores = np.array(scores, np.float32)
    for name in COMPILED:
        assert np.array_equal(kernels.table(name).top_k(scores, k), REFERENCE.top_k(scores, k))


@pytest.mark.parametrize("n", [0, 1, 3, 400])
@pytest.mark.parametrize("m", [0, 1, 5, 40])
def test_jaccard_and_overlap_equal_the_reference(table, n, m):
    offsets, hashes, counts = csr(n, n)
    query = kernels.term_hashes([" ".join(f"w{i}" for i in range(m))])[1]
    weights, norms = np.abs(floats(4, len(query))), np.abs(floats(5, n))
    chosen = np.random.default_rng(6).integers(0, n, 30) if n else np.zeros(0, np.int64)
    for rows in (None, chosen):
        assert np.array_equal(
            table.jaccard(query, offsets, hashes, rows), REFERENCE.jaccard(query, offsets, hashes, rows)
        )
        arguments = (query, weights, offsets, hashes, counts, norms, rows)
        assert np.allclose(table.overlap(*arguments), REFERENCE.overlap(*arguments), rtol=1e-6)


term = st.text(st.characters(exclude_characters=" \n", exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(st.lists(st.lists(term, max_size=20).map(" ".join), max_size=8))
@settings(max_examples=200, deadline=None)
def test_hashes_of_terms_and_trigrams_equal_the_reference(texts):
    for name in COMPILED:
        table = kernels.table(name)
        for found, expected in (
            (table.term_hashes(texts), REFERENCE.term_hashes(texts)),
            (table.trigram_hashes(texts), REFERENCE.trigram_hashes(texts)),
        ):
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_counts_saturate_and_rows_are_sorted_and_distinct(table):
    offsets, hashes, counts = table.term_hashes(["a " * 299 + "a b", ""])
    assert offsets.tolist() == [0, 2, 2]
    assert sorted(counts.tolist()) == [1, 255]
    assert (np.diff(hashes[:2].astype(np.int64)) > 0).all()


@pytest.mark.parametrize("k", [1, 2, 5, 13])
@pytest.mark.parametrize("d", [width for width in WIDTHS if width])
def test_bundles_equal_the_reference(table, k, d):
    turns = np.random.default_rng(k * d).integers(0, 65536, (k, d)).astype(np.uint16)
    phases = floats(7, k, d, dtype=np.float64) * 10
    for found, expected, vectors in (
        (table.bundle_turns(turns), REFERENCE.bundle_turns(turns), turns * (2 * np.pi / 65536)),
        (table.bundle(phases), REFERENCE.bundle(phases), phases),
    ):
        assert ((found >= 0) & (found < 2 * np.pi)).all()
        sure = np.abs(np.exp(1j * vectors).sum(axis=0)) > 1e-3  # a sum of nothing has any angle
        error = np.abs(np.angle(np.exp(1j * (found - expected))))
        assert error[sure].max(initial=0) < 1e-9


def test_a_bundle_of_what_is_not_finite_is_nan_there_only(table):
    found = table.bundle([[0.0, np.nan, np.inf, 1.0]])
    assert np.isnan(found).tolist() == [False, True, True, False]


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("d", WIDTHS)
def test_pairs_and_similarities_equal_the_reference(table, n, d):
    phases = floats(8, n, d, dtype=np.float64) * 100
    if n and d:
        phases[0, -1] = np.nan
    pairs = table.pairs(phases)
    assert np.array_equal(pairs, REFERENCE.pairs(phases))
    chosen = np.random.default_rng(9).integers(0, n, 7) if n else np.zeros(0, np.int64)
    for keys in (1, 2, 3, 4, 5, 9):
        key = floats(keys, keys, 2 * d)
        for rows in (None, chosen):
            found, expected = table.hrr_similarity(pairs, key, rows), REFERENCE.hrr_similarity(pairs, key, rows)
            assert np.abs(found - expected).max(initial=0) < 2e-5 + 3.1e-5 * np.abs(key).max(initial=0)


def test_a_row_without_a_vector_is_similar_to_nothing(table):
    pairs = table.pairs([[np.nan, 1.0]])
    assert not pairs.any()
    assert table.hrr_similarity(pairs, [[1, 1, 1, 1]])[0, 0] == 0


# ---- what cannot be computed is refused -----------------------------------------------------------------------------


def test_wrong_arguments_are_refused(table):
    offsets, hashes, _ = csr(1, 4)
    query = hashes[:1]
    with pytest.raises(ValueError, match="width"):
        table.dot(np.zeros((2, 3), np.float32), np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="dimension"):
        table.dot(np.zeros(3, np.float32), np.zeros(3, np.float32))
    with pytest.raises(TypeError):
        table.jaccard(query.astype(float), offsets, hashes)
    for row in (-1, 4, 2**62):
        with pytest.raises(IndexError):
            table.jaccard(query, offsets, hashes, np.array([row]))
        with pytest.raises(IndexError):
            table.hrr_similarity(np.zeros((4, 4), np.int8), np.zeros((1, 4), np.float32), np.array([row]))
    for bad in ([0, 10**9], [5, 3], [-1, 2]):
        with pytest.raises(ValueError):
            table.jaccard(query, np.array(bad), hashes)
    with pytest.raises(ValueError):
        table.bundle(np.zeros((0, 4)))
    with pytest.raises(ValueError):
        table.term_hashes(["a\nb"])
    with pytest.raises(ValueError):
        kernels.table("mmx")


def test_the_compiled_module_checks_its_buffers_itself():
    from holomem import _kernels

    isa = COMPILED[0]
    rows, query, out = np.zeros((3, 4), np.float32), np.zeros(4, np.float32), np.zeros(3, np.float32)
    frozen = np.zeros(3, np.float32)
    frozen.setflags(write=False)
    for bad in (
        (rows, query, np.zeros(2, np.float32)),
        (rows, query, np.zeros(3)),
        (rows, query, frozen),
        (rows[:, ::2], query[:2], out),
        (rows, query[:3], out),
        (rows, None, out),
        (rows, query),
        (),
    ):
        with pytest.raises((TypeError, ValueError, BufferError)):
            _kernels.dot(isa, *bad)
    with pytest.raises((TypeError, ValueError)):
        _kernels.dot("mmx", rows, query, out)
    with pytest.raises((TypeError, ValueError)):
        _kernels.dot_blobs(isa, ["text"], query, np.zeros(1, np.uint64), np.zeros(1, np.float32))


def test_a_scan_lets_other_threads_run(table):
    """The GIL is released: a thread makes progress while one long scan runs."""
    rows, query = np.zeros((200_000, 384), np.float32), np.zeros(384, np.float32)
    ticks, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        before = ticks[0]
        for _ in range(3):
            table.dot(rows, query)
        assert ticks[0] > before
    finally:
        stop.set()
        thread.join()


def test_the_environment_chooses_and_a_wrong_choice_is_named():
    import subprocess
    import sys

    code = "from holomem import kernels; print(kernels.isa())"
    for name in kernels.available():
        run = subprocess.run([sys.executable, "-c", code], env={"HOLOMEM_KERNEL": name}, capture_output=True, text=True)
        assert run.stdout.strip() == name, run.stderr
    run = subprocess.run([sys.executable, "-c", code], env={"HOLOMEM_KERNEL": "mmx"}, capture_output=True, text=True)
    assert "mmx" in run.stderr
    assert COMPILED[0] in run.stderr
