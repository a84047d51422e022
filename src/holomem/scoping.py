"""Who sees what: the rule of `types.Scope`, on values. `records.condition` and `visibility` say the same in SQL and arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from holomem import text
from holomem.types import Fact, Scope

__all__ = ["check", "own", "sees", "within"]

_PARTS = ("user", "agent", "run")


def check(scope: Scope | None) -> Scope | None:
    """The scope with its white space trimmed; None when it names nothing. Raises ValueError or TypeError."""
    if scope is None:
        return None
    if not isinstance(scope, Scope):
        raise TypeError(f"scope is {scope!r}; use Scope(user=..., agent=..., run=...)")
    parts = {}
    for part in _PARTS:
        value = getattr(scope, part)
        if value is not None:
            parts[part] = text.check(value, f"the {part} of a scope").strip()
            if not parts[part]:
                raise ValueError(f"the {part} of a scope is empty; give a name, or leave it out")
    return Scope(**parts) if parts else None


def within(outer: Scope | None, inner: Scope | None) -> Scope | None:
    """The scope of a call on a memory that has one itself: both together. Raises ValueError where they differ."""
    inner = check(inner)
    if outer is None or inner is None:
        return inner or outer
    for part in _PARTS:
        held, given = getattr(outer, part), getattr(inner, part)
        if None not in (held, given) and held != given:
            raise ValueError(f"scope names {part} {given!r}, but this memory is that of {part} {held!r}")
    return Scope(*(getattr(inner, part) or getattr(outer, part) for part in _PARTS))


def sees(asker: Scope | None, scopes: Iterable[Scope]) -> bool:
    """Whether an asker sees a fact that belongs to these scopes."""
    scopes = tuple(scopes)
    return asker is None or not scopes or any(_shares(asker, scope) for scope in scopes)


def own(fact: Fact, asker: Scope | None) -> Fact:
    """The fact as the asker may see it: without the scopes of others."""
    if asker is None or not fact.scopes:
        return fact
    return replace(fact, scopes=tuple(scope for scope in fact.scopes if _shares(asker, scope)))


def _shares(asker: Scope, scope: Scope) -> bool:
    named = [(a, b) for part in _PARTS if None not in (a := getattr(asker, part), b := getattr(scope, part))]
    return bool(named) and all(a == b for a, b in named)
