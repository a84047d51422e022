"""The only place where channels meet: weights, decay and their product. Arrays in, arrays out.

score     = relevance x trust_score x decay
relevance = sum over the channels of weight x channel        each channel in [0, 1], so relevance is too
decay     = 0.5 ^ (age_days / half_life_days), 1 when the half-life is 0
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHANNELS", "HELPFUL", "MIN_TRUST", "TRUST", "UNHELPFUL", "decay", "relevance", "weights"]

Floats = NDArray[np.float64]

CHANNELS: Final = ("fts", "jaccard", "hrr", "semantic")

TRUST: Final = 0.5  # SPEC 1: where a fact starts, and what feedback adds
HELPFUL: Final = 0.05
UNHELPFUL: Final = -0.10
MIN_TRUST: Final = 0.3  # SPEC 2: below it a fact is not recalled

# SPEC 2: one row for each combination of missing channels, in the order of CHANNELS. fts and jaccard come from the
# same terms, so they are never missing; indexed by (hrr missing) + 2 x (semantic missing).
WEIGHTS: Final = np.array(
    [
        [0.30, 0.20, 0.20, 0.30],  # nothing missing
        [0.40, 0.20, 0.00, 0.40],  # HRR
        [0.45, 0.30, 0.25, 0.00],  # semantic
        [0.60, 0.40, 0.00, 0.00],  # both
    ]
)


def weights(channels: Floats) -> Floats:
    """The weight (m, 4) of each channel of each fact, whose rows sum to 1.

    NaN marks an absent channel of one fact: that fact is weighed by the table's row for what it lacks.
    """
    absent = np.isnan(channels)
    return np.asarray(WEIGHTS[absent[:, 2] + 2 * absent[:, 3]])


def relevance(channels: Floats) -> Floats:
    """The weighted sum (m,) of the channels (m, 4), in [0, 1]; an absent one counts as its weight says."""
    return np.asarray((weights(channels) * np.nan_to_num(channels)).sum(axis=1))


def decay(age_days: Floats, half_life_days: float) -> Floats:
    """The factors (m,) in (0, 1] for ages (m,) in days; a fact from the future counts as new."""
    if half_life_days == 0:
        return np.ones_like(age_days)
    return np.asarray(0.5 ** (np.maximum(age_days, 0.0) / half_life_days))
