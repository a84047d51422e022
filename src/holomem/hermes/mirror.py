"""Our copies of the entries of Hermes' own memory, kept in step by exact text.

A copy has a tag for the target it belongs to. Facts without such a tag, which the agent stored itself, are never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from holomem.errors import DuplicateFact, FactNotFound
from holomem.memory import Memory
from holomem.types import Fact

__all__ = ["apply"]

TAGS: Final = {"user": "hermes-user", "memory": "hermes-memory"}
CATEGORIES: Final = {"user": "user_pref", "memory": "general"}


def apply(
    memory: Memory, action: str, target: str, content: str, metadata: Mapping[str, Any], trust_score: float
) -> None:
    """Mirror one write; an entry that has no copy, or that the text does not tell for sure, is left alone."""
    if target not in TAGS:
        return
    if action == "add" and content.strip():
        _add(memory, target, content, trust_score)
    elif action == "replace" and content.strip() and (old := _copy(memory, target, "", metadata)):
        _replace(memory, target, old, content, trust_score)
    elif action == "remove" and (old := _copy(memory, target, content, metadata)):
        _forget(memory, target, old)


def _add(memory: Memory, target: str, content: str, trust_score: float) -> None:
    tag = TAGS[target]
    fact_id = memory.add(content, category=CATEGORIES[target], tags=tag, trust_score=trust_score)
    tags = _tags(memory.get(fact_id))
    if tag not in tags and set(tags) & set(TAGS.values()):  # the other target has the same entry
        memory.update(fact_id, tags=[*tags, tag])


def _replace(memory: Memory, target: str, old: Fact, content: str, trust_score: float) -> None:
    if _owners(old) == {TAGS[target]}:
        with suppress(DuplicateFact):
            memory.update(old.fact_id, content=content)
            return
    _forget(memory, target, old)
    _add(memory, target, content, trust_score)


def _forget(memory: Memory, target: str, fact: Fact) -> None:
    """Remove the copy, or, where the other target has the same entry, only this one's claim on it."""
    with suppress(FactNotFound):
        if _owners(fact) == {TAGS[target]}:
            memory.remove(fact.fact_id)
        else:
            memory.update(fact.fact_id, tags=[tag for tag in _tags(fact) if tag != TAGS[target]])


def _copy(memory: Memory, target: str, content: str, metadata: Mapping[str, Any]) -> Fact | None:
    """The copy of the entry that a write was about.

    The whole entry when the host tells it. Else what the model gave to find it: that exact text, or, as the host does,
    the one entry that holds it.
    """
    copies = memory.facts(tags=[TAGS[target]], limit=None)
    for said in (metadata.get("previous_content"), metadata.get("old_text"), content):
        if isinstance(said, str) and (text := said.strip()):
            same = [fact for fact in copies if fact.content == text]
            holding = same or [fact for fact in copies if text in fact.content]
            return holding[0] if len(holding) == 1 else None
    return None


def _tags(fact: Fact) -> list[str]:
    return [tag.strip() for tag in fact.tags.split(",") if tag.strip()]


def _owners(fact: Fact) -> set[str]:
    return set(_tags(fact)) & set(TAGS.values())
