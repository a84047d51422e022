"""Weights, decay and trust: the formulas of SPEC 2, number by number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from holomem import fusion

NAN = np.nan


@pytest.mark.parametrize(
    ("channels", "expected"),
    [
        ([1, 0, 0, 0], 0.30), ([0, 1, 0, 0], 0.20), ([0, 0, 1, 0], 0.20), ([0, 0, 0, 1], 0.30),
        ([1, 0, 0, NAN], 0.45), ([0, 1, 0, NAN], 0.30), ([0, 0, 1, NAN], 0.25),
        ([1, 0, NAN, 0], 0.40), ([0, 1, NAN, 0], 0.20), ([0, 0, NAN, 1], 0.40),
        ([1, 0, NAN, NAN], 0.60), ([0, 1, NAN, NAN], 0.40),
    ],
)  # fmt: skip
def test_each_channel_weighs_what_the_table_of_missing_channels_says(channels, expected):
    assert fusion.relevance(np.array([channels], float))[0] == pytest.approx(expected)


def test_every_row_of_weights_sums_to_one():
    assert np.allclose(fusion.WEIGHTS.sum(axis=1), 1)


@given(nps.arrays(float, (5, 4), elements=st.floats(0, 1)))
def test_relevance_is_a_share(channels):
    relevance = fusion.relevance(channels)
    assert ((relevance >= 0) & (relevance <= 1 + 1e-12)).all()


def test_decay_halves_at_the_half_life_and_is_one_without_it():
    ages = np.array([0.0, 30.0, 60.0, -5.0])
    assert fusion.decay(ages, 30) == pytest.approx([1, 0.5, 0.25, 1])
    assert fusion.decay(ages, 0) == pytest.approx(1)
