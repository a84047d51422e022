"""The facts of a memory as points in a plane: the two directions in which their meanings differ most (PCA)."""

from __future__ import annotations

from typing import Final

import numpy as np

from holomem.index import Index
from holomem.store import Store
from holomem.types import Filter, MapPoint

__all__ = ["MAX_POINTS", "project"]

MAX_POINTS: Final = 2000  # of a larger memory the newest are drawn: more dots tell no more
EDGE: Final = 2.0  # percent of the points at each side that stand at the border


def project(index: Index, store: Store, chosen: Filter) -> list[MapPoint]:
    """The newest chosen facts that have a vector, with coordinates in [0, 1]; none where there is no model.

    The same facts give the same picture: the sign of each axis is set by its largest part.
    """
    if index.meanings is None:
        return []
    rows = np.flatnonzero(index.allowed(chosen))[-MAX_POINTS:]
    units = index.meanings.units(rows, index.ids.array[rows]).astype(np.float64)
    sound = ~np.isnan(units).any(axis=1)
    rows, units = rows[sound], units[sound]
    if len(rows) < 2:
        return []
    _, _, axes = np.linalg.svd(units - units.mean(axis=0), full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2][np.arange(len(axes[:2])), np.abs(axes[:2]).argmax(axis=1)])[:, None]
    places = units @ axes.T
    if places.shape[1] < 2:
        places = np.pad(places, ((0, 0), (0, 1)))
    low, high = np.percentile(places, (EDGE, 100 - EDGE), axis=0)
    places = np.clip((places - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
    ids = index.ids.array[rows].tolist()
    facts = store.fetch(ids)
    return [
        MapPoint(fact_id, float(x), float(y), facts[fact_id].category, facts[fact_id].content)
        for fact_id, (x, y) in zip(ids, places, strict=True)
        if fact_id in facts
    ]
