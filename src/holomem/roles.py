"""Roles beyond "entity", and the question that embeddings cannot answer: who fills one where others are filled so.

    fact += bind(atom(filler), atom(role))          for each role of a fact, beside its text and its entities
    ask   = facts significant for every (filler, role) of the question -> unbind the asked role -> clean up

Each fact is cleaned up on its own: a bundle of facts holds about seven fillers, and one bundle of all facts has no term
"owner x service" at all. Table and algebra share the work as in `structure`: `fact_roles` says who fills what, also where
the bundle is too full for the algebra; the algebra gives the presence, and answers for facts that lost their rows.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holomem import entities, fusion, hrr, kernels, structure, text
from holomem.index import Index, Names
from holomem.store import Store
from holomem.types import Answer, Filter

__all__ = ["ask", "checked", "role_name"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

MAX_ROLE_CHARS: Final = 64
RESERVED: Final = ("content", "entity")  # the roles that every fact has, hrr.CONTENT and hrr.ENTITY
CHUNK: Final = 512  # facts unbound at a time: 4 MB


def role_name(role: str) -> str:
    """The role as it is stored: case folded, white space trimmed. Raises ValueError or TypeError."""
    name = " ".join(unicodedata.normalize("NFKC", text.check(role, "a role")).casefold().split())
    if not name:
        raise ValueError("a role is empty; give a name such as 'owner'")
    if len(name) > MAX_ROLE_CHARS:
        raise ValueError(f"the role {name[:20] + '...'!r} has {len(name)} characters; use at most {MAX_ROLE_CHARS}")
    if "=" in name or not name.isprintable():
        raise ValueError(f"the role {name!r} holds '=' or a control character; use letters, digits and spaces")
    if name in RESERVED:
        raise ValueError(f"the role {name!r} is one that every fact has by itself; use another name")
    return name


def checked(fillers: Mapping[str, str]) -> dict[str, str]:
    """Role -> filler with the roles as they are stored. Raises ValueError or TypeError that says what is wrong."""
    if not isinstance(fillers, Mapping):
        raise TypeError(f"roles must be a mapping of role to name, not {type(fillers).__name__}")
    found: dict[str, str] = {}
    for role, filler in fillers.items():
        name = role_name(role)
        if name in found:
            raise ValueError(f"the role {name!r} is given twice")
        found[name] = text.check(filler, f"the filler of {name!r}").strip()
        if not entities.key(filler):
            raise ValueError(f"the filler of {name!r} is {filler!r}; it must be a name")
    return found


def ask(
    role: str,
    where: Mapping[str, str],
    index: Index,
    names: Names,
    store: Store,
    chosen: Filter,
    *,
    limit: int,
    half_life_days: float,
) -> list[Answer]:
    """Who fills `role` in the facts where the roles of `where` are filled so, surest first. Arguments are checked.

    At most `limit` answers, each with at most as many facts.
    """
    conditions = [(other, names.gazetteer.ids(filler)) for other, filler in where.items()]
    allowed = index.allowed(chosen)
    if not allowed.any() or not all(ids for _, ids in conditions) or not all(map(store.links.has_role, (role, *where))):
        return []
    keys = [structure.keys(_names(ids, names), hrr.role_token(r), index) for r, ids in conditions]
    linked = [index.rows(store.links.filled(r, ids)) for r, ids in conditions]
    found = structure.held(keys, linked, allowed, index.roles.array == 0, index)
    rows, presence = found.rows, found.presence.copy()
    fillers = np.zeros(len(rows), np.int64)
    compared = int(allowed.sum())
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        fillers[part], filled = _filled(role, rows[part], compared, index, store)
        presence[part] = np.minimum(presence[part], filled)
    score = presence * index.trust.array[rows] * fusion.decay(index.age_days(rows), half_life_days)
    return _answers(fillers, index.ids.array[rows], score, presence, names, store, limit)


def _filled(role: str, rows: Rows, compared: int, index: Index, store: Store) -> tuple[Rows, Floats]:
    """The entity that fills the role in each row, 0 where none does, and its presence in the fact: (m,), (m,).

    Each fact is unbound by the role. What is left is compared with the filler that the table names. Where the table
    knows nothing of the fact, it is compared with every known filler: the nearest one, if it stands out from them all.
    """
    ids = index.ids.array[rows]
    stored = store.links.fillers_of(role, ids.tolist())
    fillers = np.array([stored.get(fact_id, 0) for fact_id in ids.tolist()], np.int64)
    unbound = index.phases.unbound(hrr.role_shift(hrr.role_token(role), hrr.ENTITY, index.phases.width), rows, ids)
    similarity = np.zeros(len(rows))
    told = np.flatnonzero(fillers)
    if len(told):
        strength = index.entity_keys.similarity_each(unbound[told], index.entity_keys.rows(fillers[told].tolist()))
        sunk = ~(strength > structure.threshold(compared, index))
        sunk &= np.isnan(strength) | structure.too_full(rows[told], index)
        similarity[told] = np.where(sunk, structure.gain(rows[told], index), strength)
    untold = np.flatnonzero((fillers == 0) & (index.roles.array[rows] == 0) & ~np.isnan(unbound[:, 0]))
    if len(untold):
        known = sorted(store.links.fillers(role))
        near = index.entity_keys.similarity(kernels.rounded(unbound[untold]), index.entity_keys.rows(known))  # (u, K)
        best = near.argmax(axis=1)
        strength = near[np.arange(len(untold)), best]
        clear = strength > structure.threshold(len(known) * len(untold), index)
        fillers[untold[clear]] = np.array(known, np.int64)[best[clear]]
        similarity[untold[clear]] = strength[clear]
    return fillers, np.clip(similarity / structure.gain(rows, index), 0, 1)


def _answers(
    fillers: Rows, fact_ids: Rows, score: Floats, presence: Floats, names: Names, store: Store, limit: int
) -> list[Answer]:
    """The fillers with the facts that say so, both surest first."""
    order = np.lexsort((fact_ids, -score))
    order = order[fillers[order] > 0]
    shares: dict[int, list[int]] = {}
    for at in order.tolist():
        shares.setdefault(int(fillers[at]), []).append(at)
    sure = {filler: 1 - float(np.prod(1 - score[at])) for filler, at in shares.items()}
    best = sorted(shares, key=lambda filler: (-sure[filler], filler))[:limit]
    facts = store.fetch([int(fact_ids[at]) for filler in best for at in shares[filler][:limit]])
    return [
        Answer(
            names.name(filler) or "",
            sure[filler],
            float(presence[shares[filler]].max()),
            tuple(facts[int(fact_ids[at])] for at in shares[filler][:limit]),
        )
        for filler in best
    ]


def _names(entity_ids: Sequence[int], names: Names) -> list[str]:
    """What the atoms of these entities are made of."""
    return list(dict.fromkeys(name.lower() for name in map(names.name, entity_ids) if name is not None))
