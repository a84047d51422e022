"""A store of LangGraph over a memory in one SQLite file: items that survive the process, and a search by four channels.

    from holomem.compat.langgraph import HolomemStore
    graph = builder.compile(store=HolomemStore("memory.db"))

An item is a fact: its text is what the indexed fields say, its value is in the fact's metadata, and its namespace and key
make the fact's source, `langgraph/users/ann/<key>`. So an agent's other doors find it too. No embedding function is
configured: the memory has its own model, and finds by words without one.

What differs from `InMemoryStore`: values are kept as JSON; scores are those of holomem; every item that the filter lets
through and the search does not find comes after the hits with score None; times are to the second; an item that another
one says the same as gets its namespace and key appended to its text, since a text is stored once.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Literal, Self
from urllib.parse import quote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from holomem.errors import DuplicateFact
from holomem.memory import Memory
from holomem.types import Fact

__all__ = ["HolomemStore"]

_SOURCE: Final = "langgraph"  # the root of our sources; LangGraph forbids it as the root of a namespace
_MOST: Final = 1000  # hits of one search

Namespace = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """An item as it is stored."""

    fact: Fact
    namespace: Namespace
    key: str
    value: dict[str, Any]
    ttl: float | None  # minutes
    searched: bool

    def item(self) -> Item:
        return Item(
            value=self.value,
            key=self.key,
            namespace=self.namespace,
            created_at=self.fact.created_at,
            updated_at=self.fact.updated_at,
        )

    def hit(self, score: float | None) -> SearchItem:
        return SearchItem(
            namespace=self.namespace,
            key=self.key,
            value=self.value,
            created_at=self.fact.created_at,
            updated_at=self.fact.updated_at,
            score=score,
        )


class HolomemStore(BaseStore):
    """LangGraph's `BaseStore` in a holomem file. Any thread may use it; several processes may open the file."""

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | str | os.PathLike[str],
        *,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
        **options: Any,
    ) -> None:
        """The store in `memory`, an open one or a path, opened with `options`.

        `fields` are the paths of a value that are searched, as in LangGraph's index configuration; all of the value
        unless given. `ttl` is LangGraph's: minutes until an item expires, counted anew when it is read.
        """
        self._own = not isinstance(memory, Memory)
        self._memory = memory if isinstance(memory, Memory) else Memory(memory, **options)
        self._fields = [(path, tokenize_path(path)) for path in fields or ("$",)]
        self.ttl_config = ttl
        self._lock = threading.RLock()  # an item is looked up, then written

    def close(self) -> None:
        """Close the file, unless the memory was given."""
        if self._own:
            self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The results of the operations in order. Reads see the store before the writes of the batch, as LangGraph's do."""
        given = list(ops)
        for op in given:  # all are checked before the first is done
            if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
                raise ValueError(f"Unknown operation type: {type(op)}")
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                json.dumps(op.value, allow_nan=False)
        results: list[Result] = []
        with self._lock:
            for op in given:
                if isinstance(op, GetOp):
                    results.append(self._get(op))
                elif isinstance(op, SearchOp):
                    results.append(self._search(op))
                elif isinstance(op, ListNamespacesOp):
                    results.append(self._namespaces(op))
                else:
                    results.append(None)
            puts = {(op.namespace, op.key): op for op in given if isinstance(op, PutOp)}  # the last one of each counts
            for put in puts.values():
                self._put(put)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same in a worker thread; a batch that has begun is finished there when this is cancelled."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Remove what is expired, also facts of other doors, and return how many there were."""
        return self._memory.purge()

    def _get(self, op: GetOp) -> Item | None:
        entry = self._find(op.namespace, op.key)
        if entry is None or _is_over(entry):
            return None
        if op.refresh_ttl:
            self._refresh([entry])
        return entry.item()

    def _search(self, op: SearchOp) -> list[SearchItem]:
        entries = [
            entry
            for entry in self._below(op.namespace_prefix)
            if not _is_over(entry)
            and all(_compares(entry.value.get(name), wanted) for name, wanted in (op.filter or {}).items())
        ]
        found = self._ranked(op.query, entries, op.offset + op.limit) if op.query else [(e, None) for e in entries]
        found = found[op.offset : op.offset + op.limit]
        if op.refresh_ttl:
            self._refresh([entry for entry, _ in found])
        return [entry.hit(score) for entry, score in found]

    def _ranked(self, query: str, entries: list[_Entry], most: int) -> list[tuple[_Entry, float | None]]:
        """The entries that answer the query, best first, then the others."""
        by_id = {entry.fact.fact_id: entry for entry in entries if entry.searched}
        hits = self._memory.search(query, limit=min(max(most, 1), _MOST), among=by_id.keys(), min_score=0)
        found: list[tuple[_Entry, float | None]] = [(by_id[hit.fact.fact_id], hit.score) for hit in hits]
        seen = {hit.fact.fact_id for hit in hits}
        return found + [(entry, None) for entry in entries if entry.fact.fact_id not in seen]

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        namespaces = {entry.namespace for entry in self._below(()) if not _is_over(entry)}
        kept = [ns for ns in namespaces if all(_matches(condition, ns) for condition in op.match_conditions or ())]
        if op.max_depth is not None:
            kept = list({namespace[: op.max_depth] for namespace in kept})
        return sorted(kept)[op.offset : op.offset + op.limit]

    def _put(self, op: PutOp) -> None:
        entry = self._find(op.namespace, op.key)
        if op.value is None:
            if entry is not None:
                self._memory.remove(entry.fact.fact_id)
            return
        text = self._text(op.value, op.index)
        contents = (text, f"{text} ({'/'.join((*op.namespace, op.key))})")  # the second if another fact says the first
        details: dict[str, Any] = {
            "source": _source(op.namespace, op.key),
            "metadata": {
                "namespace": list(op.namespace),
                "key": op.key,
                "value": dict(op.value),
                "ttl": op.ttl,
                "searched": op.index is not False,
            },
        }
        ends = None if op.ttl is None else _in_minutes(op.ttl)
        if entry is None:
            for content in contents:
                fact = self._memory.get(self._memory.add(content, expires_at=ends, **details))
                if fact.source == details["source"]:
                    return
            raise ValueError(f"item {op.key!r} of {op.namespace} cannot be stored: fact {fact.fact_id} has its text")
        if entry.fact.content in (content.strip() for content in contents):
            self._memory.update(entry.fact.fact_id, expires_at=ends or "never", **details)
            return
        try:
            self._memory.update(entry.fact.fact_id, content=contents[0], expires_at=ends or "never", **details)
        except DuplicateFact:
            self._memory.update(entry.fact.fact_id, content=contents[1], expires_at=ends or "never", **details)

    def _text(self, value: Mapping[str, Any], index: Literal[False] | list[str] | None) -> str:
        """What a fact says of a value: its indexed fields; all of it when they hold no text."""
        paths = [(path, tokenize_path(path)) for path in index] if index else self._fields
        texts: list[str] = []
        for path, tokens in paths:
            texts += _leaves(value) if path == "$" else get_text_at_path(dict(value), tokens)
        said = "\n".join(text.strip() for text in texts if text.strip())
        return said or json.dumps(value, ensure_ascii=False, sort_keys=True)

    def _find(self, namespace: Namespace, key: str) -> _Entry | None:
        entries = map(_entry, self._memory.facts(source=_source(namespace, key), limit=None))
        return next((e for e in entries if e is not None and (e.namespace, e.key) == (namespace, key)), None)

    def _below(self, prefix: Namespace) -> list[_Entry]:
        """The items whose namespaces begin so: namespace by namespace, each oldest first."""
        spaces: dict[Namespace, list[_Entry]] = {}
        for fact in reversed(self._memory.facts(source=_source(prefix), limit=None)):
            entry = _entry(fact)
            if entry is not None and entry.namespace[: len(prefix)] == prefix:
                spaces.setdefault(entry.namespace, []).append(entry)
        return [entry for entries in spaces.values() for entry in entries]

    def _refresh(self, entries: list[_Entry]) -> None:
        """Let items that were read live for their whole time again."""
        for entry in entries:
            if entry.ttl is not None:
                self._memory.update(entry.fact.fact_id, expires_at=_in_minutes(entry.ttl))


def _source(namespace: Namespace, *key: str) -> str:
    return "/".join(quote(part, safe="") for part in (_SOURCE, *namespace, *key))


def _entry(fact: Fact) -> _Entry | None:
    """The item that a fact is; None when its metadata are not ours."""
    held = fact.metadata or {}
    if not isinstance(held.get("value"), dict) or not isinstance(held.get("namespace"), list):
        return None
    return _Entry(
        fact, tuple(held["namespace"]), str(held.get("key")), held["value"], held.get("ttl"), held.get("searched", True)
    )


def _is_over(entry: _Entry) -> bool:
    return entry.fact.expires_at is not None and entry.fact.expires_at <= datetime.now(UTC)


def _in_minutes(minutes: float) -> datetime:
    return datetime.now(UTC) + timedelta(minutes=minutes)


def _leaves(value: Any) -> list[str]:
    """The texts and numbers in a value; a name is said before a number, which says nothing alone."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [
            leaf if isinstance(inner, str | Mapping | list | tuple) else f"{name}: {leaf}"
            for name, inner in value.items()
            for leaf in _leaves(inner)
        ]
    if isinstance(value, list | tuple):
        return [leaf for inner in value for leaf in _leaves(inner)]
    return [] if value is None else [json.dumps(value)]


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    """Whether a namespace begins or ends as the condition says; "*" stands for any one label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _compares(value: Any, wanted: Any) -> bool:
    """Whether a value is as a filter wants it: equal, inside and out, or as its operators say."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_operates(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(_compares(value.get(name), other) for name, other in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(_compares(one, other) for one, other in zip(value, wanted, strict=True))
        )
    return bool(value == wanted)


def _operates(value: Any, operator: str, other: Any) -> bool:
    match operator:
        case "$eq":
            return bool(value == other)
        case "$ne":
            return bool(value != other)
        case "$gt":
            return float(value) > float(other)
        case "$gte":
            return float(value) >= float(other)
        case "$lt":
            return float(value) < float(other)
        case "$lte":
            return float(value) <= float(other)
    raise ValueError(f"Unsupported operator: {operator}")
