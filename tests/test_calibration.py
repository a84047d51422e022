import hashlib
import os
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holomem.embedding import Calibration, OnnxEmbedder, calibration, known, measure
from holomem.types import ModelId

E5 = Path(
    os.environ.get("HOLOMEM_TEST_MODELS", Path(__file__).parents[2] / "shared" / "models"), "multilingual-e5-small"
)
DIM = 384
LANGUAGES = ["ar", "de", "en", "es", "fr", "hi", "it", "ja", "ko", "pt", "ru", "th", "tr", "zh"]


@cache
def normal(*key):
    """A fixed random direction for each key."""
    seed = int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(DIM)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


class Cone:
    """An embedder with the faults of a real one: all vectors in a cone, a lump for each language, queries shifted.

    The n-th sentence of each language means the same: a direction of its own.
    """

    model = ModelId("cone", "1", "0" * 64, DIM)

    def __init__(self, shift=0.3):
        self.shift = shift
        self.embedded = 0
        self.place = {}
        for language, texts in calibration.sentences().items():
            self.place |= {text: (language, number) for number, text in enumerate(texts)}

    def embed(self, texts, *, query=False):
        self.embedded += len(texts)
        return np.stack([self.vector(*self.place[text], query=query) for text in texts])

    def vector(self, language, meaning, *, query=False):
        cone = 3 * normal("cone") + query * self.shift * normal("query")
        own = 0.3 * normal("own", language, meaning)
        return unit(cone + normal("language", language) + normal("meaning", meaning) + own)


@pytest.fixture(scope="module")
def cone():
    return Cone()


@pytest.fixture(scope="module")
def found(cone):
    return measure(cone)


def cosines(found, query, rows):
    turned = found.query(query)
    return found.cosines(rows @ turned, turned, found.passage_norms(rows))


def test_the_sentences_are_fifty_in_each_of_fourteen_languages():
    texts = calibration.sentences()
    assert sorted(texts) == LANGUAGES
    assert {len(group) for group in texts.values()} == {50}
    every = [text for group in texts.values() for text in group]
    assert not [text for text, count in Counter(every).items() if count > 1]
    assert all(text == text.strip() and len(text) < 100 for text in every)


def test_the_constants_that_are_shipped_were_made_from_these_sentences():
    # When this changes, run bench/make_calibration.py on every model again, then state the new hash here.
    text = (Path(calibration.__file__).parent / "sentences.json").read_bytes().replace(b"\r\n", b"\n")
    assert hashlib.sha256(text).hexdigest()[:16] == "f5d4b565eb17d78c"


def test_a_query_is_turned_to_unit_length_without_a_part_along_the_directions(found, cone):
    for language in LANGUAGES:
        turned = found.query(cone.vector(language, 3, query=True))
        assert turned.dtype == np.float32
        assert abs(float(np.linalg.norm(turned)) - 1) < 1e-6
        assert np.abs(found.directions @ turned).max() < 1e-6


def test_the_directions_are_orthonormal_and_nine(found):
    assert found.directions.shape == (9, DIM)
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(9), atol=1e-6)


def test_the_cosine_from_a_dot_product_is_that_of_the_transformed_vectors(found, cone):
    query = cone.vector("ru", 7, query=True)
    rows = np.stack([cone.vector(language, 7 + i) for i, language in enumerate(LANGUAGES)])
    moved = rows - calibration.SHRINK * found.mean_passage.astype(np.float64)
    moved -= (moved @ found.directions.T) @ found.directions
    expected = (moved / np.linalg.norm(moved, axis=1, keepdims=True)) @ found.query(query)
    result = cosines(found, query, rows)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, atol=2e-6)


def test_the_right_text_in_another_language_beats_a_stranger_in_the_same(found, cone):
    query = cone.vector("zh", 4, query=True)
    rows = np.stack([cone.vector("en", 4), *(cone.vector("zh", other) for other in range(5, 25))])
    assert (rows @ query).argmax() != 0
    result = cosines(found, query, rows)
    assert result.argmax() == 0
    assert found.score(result)[0] > 10 * found.score(result)[1:].max()


def test_unrelated_texts_score_next_to_nothing_and_equal_ones_nearly_all(found, cone):
    query = cone.vector("en", 4, query=True)
    strangers = np.stack([cone.vector(language, 30) for language in LANGUAGES])
    assert found.score(cosines(found, query, strangers)).max() < 0.1
    assert found.score(cosines(found, query, cone.vector("en", 4)[None]))[0] > 0.8


def test_a_row_of_zeros_scores_zero_and_one_that_is_not_finite_nan(found, cone):
    rows = np.stack([cone.vector("en", 1)] * 4)
    rows[1], rows[2, 5], rows[3, 5] = 0.0, np.nan, np.inf
    norms = found.passage_norms(rows)
    turned = found.query(cone.vector("en", 1, query=True))
    with np.errstate(invalid="ignore"):
        dots = rows @ turned
    scores = found.score(found.cosines(dots, turned, norms))
    assert scores[0] > 0.5
    assert scores[1] == 0.0
    assert np.isnan(scores[2:]).all()


def test_a_query_of_zeros_stays_zeros_and_finds_nothing(found, cone):
    turned = found.query(np.zeros(DIM, np.float32))
    assert not turned.any()
    rows = np.stack([cone.vector("en", 1)])
    assert found.score(found.cosines(rows @ turned, turned, found.passage_norms(rows)))[0] == 0.0


def test_no_rows_give_no_scores(found):
    rows = np.zeros((0, DIM), np.float32)
    turned = np.zeros(DIM, np.float32)
    assert found.score(found.cosines(rows @ turned, turned, found.passage_norms(rows))).shape == (0,)


def test_the_score_is_the_square_of_the_place_in_the_range():
    flat = np.zeros(DIM, np.float32)
    one = Calibration(flat, flat, np.zeros((0, DIM), np.float32), 0.1, 0.7)
    values = np.array([-1.0, 0.1, 0.45, 0.8, 1.0, np.nan], np.float32)
    np.testing.assert_allclose(one.score(values), [0, 0, 0.25, 1, 1, np.nan], atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.floats(1e-3, 1e3))
def test_cosines_and_scores_stay_in_their_ranges(found, seed, rows, scale):
    random = np.random.default_rng(seed)
    vectors = (scale * random.standard_normal((rows, DIM))).astype(np.float32)
    result = cosines(found, vectors[0], vectors)
    assert ((result >= -1) & (result <= 1)).all()
    scores = found.score(result)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_bytes_hold_the_constants_and_are_the_same_each_time(found):
    data = found.to_bytes()
    assert len(data) < 20_000
    assert found.to_bytes() == data
    again = Calibration.from_bytes(data)
    for name in ("mean_query", "mean_passage", "directions"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
        assert getattr(again, name).dtype == np.float32
    assert (again.low, again.span) == (found.low, found.span)


def damaged(data):
    yield b""
    yield b"holomem"
    yield data[:-30]
    yield data[: len(data) // 2]
    yield data.replace(b"mean_query", b"nean_query")


def test_bytes_of_something_else_are_refused(found):
    for data in damaged(found.to_bytes()):
        with pytest.raises(ValueError, match="not a calibration"):
            Calibration.from_bytes(data)


def test_bytes_with_pickled_objects_are_refused(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(
        path, **{name: np.array([{}], object) for name in ("mean_query", "mean_passage", "directions", "low", "span")}
    )
    with pytest.raises(ValueError, match="not a calibration"):
        Calibration.from_bytes(path.read_bytes())


def test_bytes_with_arrays_that_do_not_fit_are_refused(found):
    with pytest.raises(ValueError, match="not a calibration"):
        Calibration.from_bytes(replace(found, mean_query=found.mean_query[:-1]).to_bytes())


def test_a_model_that_treats_queries_like_passages_is_asked_once():
    same, other = Cone(shift=0.0), Cone()
    found = measure(same)
    assert same.embedded == 701
    np.testing.assert_array_equal(found.mean_query, found.mean_passage)
    measure(other)
    assert other.embedded == 1401


def test_languages_that_do_not_differ_leave_no_direction():
    rows = np.broadcast_to(unit(np.random.default_rng(1).standard_normal((6, DIM))), (4, 6, DIM))
    found = calibration.fit(rows, rows)
    assert found.directions.shape == (0, DIM)
    assert np.isfinite(found.query(rows[0, 0])).all()


def test_a_narrow_model_keeps_most_of_its_space():
    random = np.random.default_rng(2)
    rows = unit(random.standard_normal((14, 5, 16)))
    assert calibration.fit(rows, rows).directions.shape == (2, 16)


def test_a_model_nobody_measured_is_not_known(cone):
    assert known(cone.model) is None


def test_constants_belong_to_weights_and_prefixes():
    model = ModelId("m", "1", "a" * 64, 384)
    name = calibration.file_name(model)
    assert calibration.file_name(replace(model, name="n", revision="2", max_tokens=5)) == name
    for change in ({"file_hash": "b" * 64}, {"query_prefix": "query: "}, {"passage_prefix": "query: "}):
        assert calibration.file_name(replace(model, **change)) != name


@pytest.fixture(scope="module")
def e5():
    if not E5.is_dir():
        pytest.skip(f"no test model: {E5} does not exist; set HOLOMEM_TEST_MODELS")
    embedder = OnnxEmbedder(E5)
    yield embedder
    embedder.unload()


@pytest.mark.model
def test_the_shipped_constants_of_e5_are_what_measuring_gives(e5, monkeypatch):
    shipped = known(e5.model)
    assert shipped is not None
    assert (round(shipped.low, 6), round(shipped.span, 6)) == (0.1, 0.7)
    # Ten sentences a language instead of fifty, a fifth of the time: .994 of the means and .91 of the directions.
    few = {language: texts[::5] for language, texts in calibration.sentences().items()}
    monkeypatch.setattr(calibration, "sentences", lambda: few)
    measured = measure(e5)
    for name in ("mean_query", "mean_passage"):
        assert unit(getattr(measured, name)) @ unit(getattr(shipped, name)) > 0.99
    shared = np.linalg.svd(measured.directions @ shipped.directions.T)[1]
    assert (shared**2).mean() > 0.85
    assert abs(measured.low - shipped.low) < 0.06


@pytest.mark.model
def test_e5_finds_the_translation_before_a_stranger_in_the_language_of_the_query(e5):
    found = known(e5.model)
    query = e5.embed(["Какой пароль у роутера?"], query=True)[0]
    facts = e5.embed(["The router's password is on a note under it", "Я завтракаю в восемь утра", "Роутер"])
    scores = found.score(cosines(found, query, facts[:2]))
    assert scores[0] > 0.1
    assert scores[1] < 0.05
