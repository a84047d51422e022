"""Mem0's `Memory` and `MemoryClient` over a memory in one SQLite file: the same calls and result shapes.

    from holomem.compat.mem0 import Memory      # was: from mem0 import Memory

There is no language model here. `infer` is accepted and makes no difference: each message is stored as the statement that
it is, as Mem0 does with `infer=False`; let your agent say what is worth keeping. Other differences: a statement that its
owner has stored already is not stored twice (event "NONE"); scores are those of holomem, so `threshold` is off unless
given; ids are opaque strings that change when a statement is edited that others hold too.

A memory belongs to just the user_id, agent_id and run_id it was added with. Metadata and expiration date are kept for each
of these owners apart, since two who say the same share one fact.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, unquote

from holomem import memory as holomem_memory
from holomem.compat.filters import matches, named_ids
from holomem.errors import FactNotFound
from holomem.paths import default_path
from holomem.types import Change, Fact, Scope

__all__ = ["Memory", "MemoryClient"]

_OURS: Final = "mem0"  # the key of our part of a fact's metadata
_MOST: Final = 1000

Json = dict[str, Any]
Messages = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A memory in Mem0's sense: a fact as one owner has it."""

    fact: Fact
    owner: Scope
    details: Json

    @property
    def memory_id(self) -> str:
        return f"{self.fact.fact_id}:{_key(self.owner)}"

    @property
    def expired(self) -> bool:
        ends = self.details.get("expires")
        return ends is not None and datetime.fromisoformat(ends) <= datetime.now(UTC)

    def shown(self, score: float | None = None) -> Json:
        """The entry in Mem0's shape."""
        shown: Json = {
            "id": self.memory_id,
            "memory": self.fact.content,
            "hash": hashlib.md5(self.fact.content.encode(), usedforsecurity=False).hexdigest(),
            "metadata": self.details.get("metadata"),
            "created_at": self.details.get("added", self.fact.created_at.isoformat()),
            "updated_at": self.fact.updated_at.isoformat(),
        }
        if score is not None:
            shown["score"] = score
        for name in ("user", "agent", "run"):
            if (value := getattr(self.owner, name)) is not None:
                shown[f"{name}_id"] = value
        shown |= {name: self.details[name] for name in ("actor_id", "role") if name in self.details}
        if "expires" in self.details:
            shown["expiration_date"] = self.details["expires"]
        return shown


class Memory:
    """Mem0's `Memory`. Without a path it uses $HOLOMEM_DB, else the file of the command line."""

    def __init__(self, path: str | os.PathLike[str] | None = None, **options: Any) -> None:
        """`options` are those of `holomem.Memory`. Raises StoreError."""
        self._memory = holomem_memory.Memory(path or os.environ.get("HOLOMEM_DB") or default_path(), **options)
        self._lock = threading.RLock()  # metadata are read, changed and written

    @classmethod
    def from_config(cls, config: Mapping[str, Any], **options: Any) -> Self:
        """The memory at config["path"]; what configures models and vector stores has no meaning here."""
        return cls(path=config.get("path"), **options)

    def close(self) -> None:
        """Close the file."""
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: str | date | None = None,
        infer: bool = True,  # noqa: ARG002  there is no model to infer with
    ) -> Json:
        """Store each message as it is, but those of the system: {"results": [{"id", "memory", "event", ...}]}.

        Raises ValueError when no id says whose they are, or for messages that are none.
        """
        owner = _owner(user_id, agent_id, run_id)
        ends = _end(expiration_date)
        results = []
        for message in _statements(messages):
            details: Json = {"added": datetime.now(UTC).isoformat()}
            details |= {name: message[name] for name in ("actor_id", "role") if name in message}
            if metadata:
                details["metadata"] = dict(metadata)
            if ends is not None:
                details["expires"] = ends
            results.append(self._add(message["content"], owner, details))
        return {"results": results}

    def _add(self, content: str, owner: Scope, details: Json) -> Json:
        key = _key(owner)
        with self._lock:
            fact = self._memory.get(
                self._memory.add(
                    content,
                    metadata={_OURS: {key: details}},
                    expires_at=datetime.fromisoformat(details["expires"]) if "expires" in details else None,
                    scope=owner,
                )
            )
            held = _entries(fact)
            known = key in held and held[key] != details
            if key not in held:  # the fact was there already, and not by this owner
                self._write(fact, {**held, key: details})
        shown = {"id": f"{fact.fact_id}:{key}", "memory": fact.content, "event": "NONE" if known else "ADD"}
        return shown | {name: details[name] for name in ("actor_id", "role") if name in details}

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
    ) -> Json:
        """The memories that answer a query, best first: {"results": [{"id", "memory", "score", ...}]}.

        The ids may stand in `filters` too, beside conditions on metadata with Mem0's operators.
        """
        most = _most(top_k if limit is None else limit)
        owner, entries = self._chosen(user_id, agent_id, run_id, filters)
        held: dict[int, list[_Entry]] = {}
        for entry in entries:
            held.setdefault(entry.fact.fact_id, []).append(entry)
        hits = self._memory.search(query, limit=most, among=held.keys(), scope=owner, min_score=0)
        shown = [entry.shown(hit.score) for hit in hits for entry in held[hit.fact.fact_id]]
        return {"results": [entry for entry in shown if threshold is None or entry["score"] >= threshold][:most]}

    def get(self, memory_id: str) -> Json | None:
        """One memory, None when it is not there."""
        entry = self._find(memory_id)
        return None if entry is None else entry.shown()

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        top_k: int = 100,
        show_expired: bool = False,
    ) -> Json:
        """The memories of an owner, newest first: {"results": [...]}."""
        most = _most(top_k if limit is None else limit)
        _, entries = self._chosen(user_id, agent_id, run_id, filters, expired=show_expired)
        return {"results": [entry.shown() for entry in entries[:most]]}

    def update(
        self,
        memory_id: str,
        data: str | None = None,
        *,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: str | date | None = None,
    ) -> Json:
        """Change the statement (`data` or `text`), its metadata or its expiration date.

        Raises FactNotFound, DuplicateFact when its owner has another memory that says the same.
        """
        content = text if data is None else data
        if content is None and metadata is None and expiration_date is None:
            raise ValueError("nothing to update; give data, metadata or expiration_date")
        with self._lock:
            entry = self._found(memory_id)
            details = dict(entry.details)
            if metadata is not None:
                details["metadata"] = dict(metadata)
            if expiration_date is not None:
                details["expires"] = _end(expiration_date)
            fact, key = entry.fact, _key(entry.owner)
            if content is not None and content.strip() != fact.content:
                new = self._memory.update(fact.fact_id, content=content, scope=entry.owner)
                if new.fact_id != fact.fact_id:  # others hold the old one too, or the new one already
                    self._forget(fact.fact_id, key)
                    kept = (
                        {} if new.metadata == fact.metadata else _entries(new)
                    )  # {}: a copy with all that the old one had
                else:
                    kept = _entries(fact)
                fact = self._memory.get(new.fact_id)
            else:
                kept = _entries(fact)
            self._write(fact, {**kept, key: details})
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> Json:
        """Remove one memory. Raises FactNotFound."""
        with self._lock:
            self._delete(self._found(memory_id))
        return {"message": "Memory deleted successfully!"}

    def delete_all(self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None) -> Json:
        """Remove all memories of an owner, also those with further ids. Raises ValueError when no id is given."""
        owner = _owner(user_id, agent_id, run_id)
        with self._lock:
            for entry in self._owned(owner):
                self._delete(entry)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[Json]:
        """What happened to a memory, oldest first: [{"event", "old_memory", "new_memory", ...}]."""
        fact_id, owner = _parsed(memory_id)
        changes = self._memory.history(fact_id, limit=_MOST, scope=owner)
        return [shown for change in reversed(changes) if (shown := _event(change, memory_id, owner)) is not None]

    def reset(self) -> None:
        """Remove all memories that were added here; facts of other doors to the file stay."""
        with self._lock:
            for fact in self._memory.facts(limit=None):
                for entry in list(_of(fact)):
                    self._delete(entry)

    def users(self) -> Json:
        """Who has memories: {"results": [{"type", "name", "total_memories"}]}."""
        totals: dict[tuple[str, str], int] = {}
        for fact in self._memory.facts(limit=None):
            for entry in _of(fact):
                for kind in ("user", "agent", "run"):
                    if (name := getattr(entry.owner, kind)) is not None:
                        totals[kind, name] = totals.get((kind, name), 0) + 1
        return {"results": [{"type": k, "name": n, "total_memories": count} for (k, n), count in totals.items()]}

    def _chosen(
        self,
        user_id: str | None,
        agent_id: str | None,
        run_id: str | None,
        filters: Mapping[str, Any] | None,
        *,
        expired: bool = False,
    ) -> tuple[Scope, list[_Entry]]:
        ids = named_ids(filters or {})
        owner = _owner(user_id or ids.get("user_id"), agent_id or ids.get("agent_id"), run_id or ids.get("run_id"))
        entries = [entry for entry in self._owned(owner) if expired or not entry.expired]
        return owner, [entry for entry in entries if not filters or matches(filters, entry.shown())]

    def _owned(self, owner: Scope) -> list[_Entry]:
        """The entries whose owner has all ids of `owner`, newest first."""
        facts = self._memory.facts(limit=None, scope=owner)
        return [
            entry for fact in facts if fact.superseded_by is None for entry in _of(fact) if _has(entry.owner, owner)
        ]

    def _find(self, memory_id: str) -> _Entry | None:
        fact_id, owner = _parsed(memory_id)
        try:
            fact = self._memory.get(fact_id, scope=owner)
        except FactNotFound:
            return None
        return next((entry for entry in _of(fact) if entry.owner == owner), None)

    def _found(self, memory_id: str) -> _Entry:
        entry = self._find(memory_id)
        if entry is None:
            raise FactNotFound(_parsed(memory_id)[0])
        return entry

    def _delete(self, entry: _Entry) -> None:
        if entry.owner in entry.fact.scopes:
            with suppress(FactNotFound):  # gone with a wider owner's
                self._memory.remove(entry.fact.fact_id, scope=entry.owner)
        self._forget(entry.fact.fact_id, _key(entry.owner))

    def _forget(self, fact_id: int, key: str) -> None:
        """Take an owner's part out of a fact's metadata."""
        try:
            fact = self._memory.get(fact_id)
        except FactNotFound:
            return
        self._write(fact, {k: details for k, details in _entries(fact).items() if k != key})

    def _write(self, fact: Fact, entries: Mapping[str, Json]) -> None:
        """Store what the owners have of a fact; it expires with the last of them."""
        metadata = {**(fact.metadata or {}), _OURS: dict(entries)}
        if not entries:
            del metadata[_OURS]
        ends = [details.get("expires") for details in entries.values()]
        last = max(filter(None, ends)) if ends and None not in ends else None
        self._memory.update(
            fact.fact_id, metadata=metadata, expires_at="never" if last is None else datetime.fromisoformat(last)
        )


class MemoryClient(Memory):
    """Mem0's `MemoryClient`: the same, on a local file; key and host are accepted and not used. Lists come in pages."""

    def __init__(
        self,
        api_key: str | None = None,  # noqa: ARG002
        host: str | None = None,  # noqa: ARG002
        org_id: str | None = None,  # noqa: ARG002
        project_id: str | None = None,  # noqa: ARG002
        *,
        path: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(path, **options)

    def get_all(self, *, page: int = 1, page_size: int = 100, **chosen: Any) -> Json:
        """One page of the memories: {"count", "next", "previous", "results"}; next and previous are numbers of pages."""
        if page < 1:
            raise ValueError(f"page is {page}; use 1 or more")
        size = _most(page_size)
        expired = chosen.pop("show_expired", False)
        ids = [chosen.pop(name, None) for name in ("user_id", "agent_id", "run_id")]
        filters = chosen.pop("filters", None)
        if chosen:
            raise TypeError(f"unknown arguments: {', '.join(sorted(chosen))}")
        _, entries = self._chosen(ids[0], ids[1], ids[2], filters, expired=expired)
        shown = entries[(page - 1) * size : page * size]
        return {
            "count": len(entries),
            "next": page + 1 if page * size < len(entries) else None,
            "previous": page - 1 if page > 1 else None,
            "results": [entry.shown() for entry in shown],
        }


def _statements(messages: Messages) -> Iterator[Json]:
    """The messages as dicts with "content", without those of the system and empty ones."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, Mapping):
        messages = [messages]
    if not isinstance(messages, Iterable):
        raise TypeError(f"messages is {messages!r}; use a string, a message or a list of messages")
    for message in list(messages):
        if not isinstance(message, Mapping) or "content" not in message:
            raise ValueError(f'{message!r} is no message; use {{"role": "user", "content": "..."}}')
        content = message["content"]
        if isinstance(content, list):  # parts of a message; only text can be kept
            content = "\n".join(p["text"] for p in content if isinstance(p, Mapping) and p.get("type") == "text")
        if not isinstance(content, str):
            raise TypeError(f"the content of a message is {content!r}; use a string")
        if message.get("role") != "system" and content.strip():
            named = {"actor_id": message["name"]} if isinstance(message.get("name"), str) else {}
            yield {"role": message.get("role", "user"), "content": content, **named}


def _owner(user_id: str | None, agent_id: str | None, run_id: str | None) -> Scope:
    if not (user_id or agent_id or run_id):
        raise ValueError("At least one of 'user_id', 'agent_id', or 'run_id' must be provided.")
    return Scope(*(None if part in (None, "") else str(part).strip() for part in (user_id, agent_id, run_id)))


def _has(owner: Scope, ids: Scope) -> bool:
    return all(getattr(ids, part) in (None, getattr(owner, part)) for part in ("user", "agent", "run"))


def _key(owner: Scope) -> str:
    return "/".join(quote(part or "", safe="") for part in (owner.user, owner.agent, owner.run))


def _parsed(memory_id: str) -> tuple[int, Scope]:
    number, _, key = str(memory_id).partition(":")
    parts = key.split("/")
    if not number.isdecimal() or len(parts) != 3 or not any(parts):
        raise ValueError(f"memory_id is {memory_id!r}; use an id that add, search or get_all gave")
    return min(int(number), 2**63 - 1), Scope(*(unquote(part) or None for part in parts))


def _entries(fact: Fact) -> dict[str, Json]:
    return dict((fact.metadata or {}).get(_OURS) or {})


def _of(fact: Fact) -> Iterator[_Entry]:
    for key, details in _entries(fact).items():
        yield _Entry(fact, _parsed(f"{fact.fact_id}:{key}")[1], details)


def _event(change: Change, memory_id: str, owner: Scope) -> Json | None:
    """A change in Mem0's shape; None when it is none of the statement as its owner has it."""
    before, after = change.before or {}, change.after or {}
    parts = [owner.user, owner.agent, owner.run]
    came = parts in after.get("scopes", []) and parts not in before.get("scopes", [])
    went = parts in before.get("scopes", []) and parts not in after.get("scopes", [])
    if change.before is None or came:
        event = "ADD"
    elif change.after is None or went:
        event = "DELETE"
    elif "content" in after:
        event = "UPDATE"
    else:
        return None
    moment = change.changed_at.isoformat()
    return {
        "id": str(change.change_id),
        "memory_id": memory_id,
        "old_memory": before.get("content"),
        "new_memory": after.get("content"),
        "event": event,
        "created_at": moment,
        "updated_at": moment,
        "is_deleted": event == "DELETE",
    }


def _end(given: str | date | None) -> str | None:
    """An expiration date as a time: a day lasts until its end."""
    if given is None:
        return None
    try:
        day = given if isinstance(given, date) else datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise ValueError(f"expiration_date is {given!r}; use a day such as 2030-01-31") from None
    whole = not isinstance(day, datetime) or (isinstance(given, str) and len(given.strip()) <= 10)
    if whole:
        return datetime(day.year, day.month, day.day, 23, 59, 59, 999999, tzinfo=UTC).isoformat()
    assert isinstance(day, datetime)
    return (day if day.tzinfo is not None else day.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _most(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"limit is {count!r}; use a whole number from 1")
    return min(count, _MOST)
