"""The algebra: its laws, its measured limits, and the bytes it writes."""

import hashlib
import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holomem import hrr, kernels

token = st.text(min_size=1, max_size=20).filter(lambda t: not any(0xD800 <= ord(c) < 0xE000 for c in t))


def test_an_atom_is_the_sha256_counter_stream_of_its_token():
    turns = np.frombuffer(hashlib.sha256(b"nginx:0").digest(), "<u2").astype(float)
    assert np.allclose(hrr.atom("nginx")[:16], turns * 2 * np.pi / 65536)


def test_atoms_are_those_of_files_of_the_hermes_plugin():
    assert hrr.atom("alice johnson")[:3] == pytest.approx(
        np.frombuffer(hashlib.sha256(b"alice johnson:0").digest(), "<u2")[:3].astype(float) * 2 * np.pi / 65536
    )


@given(token, token)
def test_unbind_inverts_bind(a, b):
    x, y = hrr.atom(a), hrr.atom(b)
    back = hrr.unbind(hrr.bind(x, y), y)
    assert hrr.similarity(back, x) == pytest.approx(1, abs=1e-9)


@given(token)
def test_similarity_with_itself_is_one(a):
    assert hrr.similarity(hrr.atom(a), hrr.atom(a)) == pytest.approx(1)


@given(st.lists(token, min_size=1, max_size=8), st.lists(token, min_size=1, max_size=8))
def test_similarity_is_symmetric_and_bounded(first, second):
    a, b = (hrr.bundle([hrr.atom(t) for t in tokens]) for tokens in (first, second))
    assert hrr.similarity(a, b) == hrr.similarity(b, a)
    assert -1 - 1e-12 <= hrr.similarity(a, b) <= 1 + 1e-12


@given(st.lists(token, min_size=1, max_size=8, unique=True), st.randoms(use_true_random=False))
def test_a_bundle_does_not_depend_on_the_order_of_its_parts(tokens, random):
    shuffled = random.sample(tokens, len(tokens))
    a, b = (hrr.bundle([hrr.atom(t) for t in order]) for order in (tokens, shuffled))
    assert hrr.similarity(a, b) == pytest.approx(1, abs=1e-9)


@given(token, token, token)
def test_bind_commutes_and_keeps_similarities(a, b, role):
    x, y, r = hrr.atom(a), hrr.atom(b), hrr.atom(role)
    assert hrr.similarity(hrr.bind(x, r), hrr.bind(r, x)) == pytest.approx(1, abs=1e-9)
    assert hrr.similarity(hrr.bind(x, r), hrr.bind(y, r)) == pytest.approx(hrr.similarity(x, y), abs=1e-9)


@pytest.mark.parametrize("fixture", ["hermes_memory_store", "hermes_memory_store_hrr1"])
def test_every_vector_that_the_hermes_plugin_wrote_is_the_bundle_of_our_atoms(shared, fixture):
    file = sqlite3.connect(f"file:{shared / 'compat' / fixture}.db?mode=ro&immutable=1", uri=True)
    facts = file.execute("SELECT fact_id, content, hrr_vector FROM facts").fetchall()
    links = file.execute("SELECT fact_id, name FROM fact_entities JOIN entities USING (entity_id)").fetchall()
    file.close()
    content, entity = hrr.atom(hrr.CONTENT), hrr.atom(hrr.ENTITY)
    assert len(facts) == 33
    for fact_id, text, blob in facts:
        tokens = [word.strip(".,!?;:\"'()[]{}") for word in text.lower().split()]
        parts = [hrr.bind(hrr.bundle([hrr.atom(t) for t in tokens if t] or [hrr.atom("__hrr_empty__")]), content)]
        parts += [hrr.bind(hrr.atom(name.lower()), entity) for other, name in links if other == fact_id]
        assert hrr.similarity(hrr.bundle(parts), hrr.decode(blob)) == pytest.approx(1, abs=1e-6), text


def test_strangers_are_similar_by_the_known_noise_only():
    atoms = np.stack([hrr.atom(f"t{i}") for i in range(200)])
    values = [hrr.similarity(atoms[i], atoms[j]) for i in range(100) for j in range(100, 200, 10)]
    assert np.std(values) == pytest.approx(hrr.noise(), rel=0.1)
    assert np.mean(values) == pytest.approx(0, abs=0.003)


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 6, 8, 12, 16, 24])
def test_one_of_n_parts_has_the_gain_that_the_table_says(parts):
    found = []
    for trial in range(30):
        atoms = np.stack([hrr.atom(f"{trial} {i}") for i in range(parts)])
        found.append(hrr.similarity(hrr.bundle(atoms), atoms[0]))
    assert np.mean(found) == pytest.approx(float(hrr.gain(np.array(parts))), abs=0.012)


def test_probing_separates_bound_from_unbound_facts_completely():
    """AUC 1.0 on 300 facts, where unbinding and comparing with the content gives chance (SPEC 3)."""
    rng = np.random.default_rng(7)
    names = [f"entity {i}" for i in range(60)]
    held = [set(rng.choice(60, size=rng.integers(1, 5), replace=False).tolist()) for _ in range(300)]
    facts = np.stack(
        [hrr.encode_fact([f"w{j}" for j in rng.integers(0, 500, 12)], [names[e] for e in sorted(h)]) for h in held]
    )
    keys = np.stack([hrr.key(name, hrr.ENTITY) for name in names])
    similarity = kernels.hrr_similarity(kernels.pairs(facts), keys)
    present = np.array([[e in h for h in held] for e in range(60)])
    assert similarity[present].min() > similarity[~present].max()
    assert similarity[~present].std() == pytest.approx(hrr.noise(), rel=0.1)
    assert (similarity[present] > hrr.significance(300) * hrr.noise()).all()


def test_a_key_compares_like_the_phases_it_stands_for():
    fact = hrr.encode_fact(["deploy", "nginx"], ["Alice"])
    expected = hrr.similarity(fact, hrr.bind(hrr.atom("alice"), hrr.atom(hrr.ENTITY)))
    found = kernels.hrr_similarity(kernels.pairs(fact[None]), hrr.key("alice", hrr.ENTITY)[None])[0, 0]
    assert found == pytest.approx(expected, abs=5e-4)


def test_a_repeated_term_counts_once_and_an_empty_fact_is_an_atom_of_its_own():
    assert np.array_equal(hrr.encode_fact(["a", "a", "b"], []), hrr.encode_fact(["a", "b"], []))
    empty = hrr.bind(hrr.atom("__hrr_empty__"), hrr.atom(hrr.CONTENT))
    assert hrr.similarity(hrr.encode_fact([], []), empty) == pytest.approx(1, abs=1e-9)


def test_cleanup_names_the_nearest_and_rejects_noise():
    names = [f"name {i}" for i in range(500)]
    noisy = hrr.bundle([hrr.atom("name 42"), hrr.atom("x"), hrr.atom("y"), hrr.atom("z")])
    assert hrr.cleanup(noisy, names)[0] == "name 42"
    assert hrr.cleanup(hrr.atom("a stranger"), names) is None
    assert hrr.cleanup(noisy, []) is None


@pytest.mark.parametrize(("facts", "deviations"), [(1_000, 4.26), (10_000, 4.75), (100_000, 5.20)])
def test_significance_is_the_normal_quantile_of_one_false_fact_in_100_queries(facts, deviations):
    assert hrr.significance(facts) == pytest.approx(deviations, abs=0.06)


@pytest.mark.parametrize("width", [256, 1024])
def test_every_format_of_the_file_is_read(width):
    phases = hrr.encode_fact(["a", "b"], ["c"], width)
    assert np.array_equal(hrr.decode(hrr.encode(phases), width), phases)
    float32 = b"HRR1" + phases.astype("<f4").tobytes()
    assert np.abs(hrr.decode(float32, width) - phases).max() < 1e-6
    compact = hrr.decode(hrr.encode(phases, compact=True), width)
    assert hrr.similarity(compact, phases) == pytest.approx(1, abs=1e-8)
    assert len(hrr.encode(phases, compact=True)) == 2 * width


@pytest.mark.parametrize("blob", [None, b"", b"short", "text", b"\0" * 4096, np.full(1024, np.nan).tobytes()])
def test_what_is_no_vector_decodes_to_none(blob):
    assert hrr.decode(blob) is None
