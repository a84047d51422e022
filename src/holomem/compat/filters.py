"""Mem0's filters on a memory: {"user_id": ..., "AND": [...], "price": {"gte": 3}}; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["matches", "named_ids"]

_IDS: Final = ("user_id", "agent_id", "run_id")
_LOGIC: Final[dict[str, Callable[[Any], bool]]] = {"AND": all, "OR": any, "NOT": lambda results: not any(results)}


def named_ids(filters: Mapping[str, Any]) -> dict[str, str]:
    """The ids that a memory must have to pass: those at the top and inside AND."""
    found = {name: value for name, value in filters.items() if name in _IDS and isinstance(value, str) and value != "*"}
    for part in filters.get("AND", ()):
        found |= named_ids(part)
    return found


def matches(filters: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
    """Whether a memory in Mem0's shape passes. A name is looked for in its fields, then in its metadata.

    Raises ValueError for an unknown operator.
    """
    for name, wanted in filters.items():
        if name in _LOGIC:
            if not isinstance(wanted, list):
                raise ValueError(f"{name} of a filter is {wanted!r}; use a list of filters")
            if not _LOGIC[name]([matches(part, shown) for part in wanted]):
                return False
            continue
        metadata = shown.get("metadata") or {}
        value = metadata if name == "metadata" else shown[name] if name in shown else metadata.get(name)
        if not _passes(value, wanted):
            return False
    return True


def _passes(value: Any, wanted: Any) -> bool:
    if wanted == "*":
        return value is not None
    if isinstance(wanted, list):
        return value in wanted
    if isinstance(wanted, Mapping):
        return all(_compares(value, operator, other) for operator, other in wanted.items())
    return bool(value == wanted)


def _compares(value: Any, operator: str, other: Any) -> bool:
    match operator:
        case "eq":
            return bool(value == other)
        case "ne":
            return bool(value != other)
        case "in":
            return value in other
        case "nin":
            return value not in other
        case "contains":
            return value is not None and other in value
        case "icontains":
            return isinstance(value, str) and str(other).casefold() in value.casefold()
        case "gt" | "gte" | "lt" | "lte":
            try:
                return bool(
                    {"gt": value > other, "gte": value >= other, "lt": value < other, "lte": value <= other}[operator]
                )
            except TypeError:  # of different kinds, or not there
                return False
    raise ValueError(f"operator {operator!r} of a filter is unknown; use eq, ne, in, nin, gt, gte, lt, lte, contains")
