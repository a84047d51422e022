"""What our writes did to facts, and how it is taken back.

A change that made a fact has its content in `after`; one that removed a fact has all of it in `before`; any other has the
fields that it changed in both. Undoing is a write like any other: it is written down, and can be undone.

What was changed again since is a conflict and nothing is done, except for what adds up: of trust and votes the difference
is taken back, of scopes those that came or went.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, Final

from holomem import ingest, scoping, text
from holomem.errors import ChangeNotFound, UndoConflict
from holomem.index import Names
from holomem.records import PLAIN, Extras
from holomem.store import Store, split_list
from holomem.types import Change, Scope

__all__ = ["Journal", "changes", "contents", "undo"]

_LABELS: Final = ("category", "tags")
_EXTRAS: Final = Extras._fields
_SUMS: Final = ("trust_score", "helpful_count")

State = dict[str, Any]


class Journal:
    """Writes down the changes of one write, inside the caller's `database.write()`; they are undone together."""

    def __init__(self, store: Store, action: str) -> None:
        self._store = store
        self._action = action
        self._first: int | None = None

    def made(self, fact_id: int, content: str, scopes: tuple[Scope, ...] = ()) -> None:
        """A fact was stored."""
        self._log(fact_id, None, {"content": content} | ({"scopes": _parts(scopes)} if scopes else {}))

    @contextmanager
    def changing(self, fact_id: int) -> Iterator[None]:
        """Whatever happens to this fact inside, also its removal or return."""
        before = _state(self._store, fact_id)
        yield
        after = _state(self._store, fact_id)
        if before is None and after is not None:
            self.made(fact_id, after["content"], _scopes(after))
        elif before is not None and after is None:
            self._log(fact_id, before, None)
        elif before is not None and after is not None:
            differing = [f for f in before if before[f] != after[f] and f not in ("retrieval_count", "created_at")]
            if set(differing) - {"updated_at"}:
                self._log(fact_id, {f: before[f] for f in differing}, {f: after[f] for f in differing})

    def _log(self, fact_id: int, before: State | None, after: State | None) -> None:
        change_id = self._store.records.log(fact_id, self._action, before, after, self._first)
        self._first = self._first or change_id


def changes(store: Store, asker: Scope | None, *, fact_id: int | None, limit: int) -> list[Change]:
    """The newest changes that the asker may see, newest first, without the scopes of others."""
    found: list[Change] = []
    scopes: dict[int, tuple[Scope, ...] | None] = {}  # of each fact as it last was; None: not known
    for change in store.records.changes(fact_id):
        shown = _seen(store, change, asker, scopes)
        if shown is not None:
            found.append(shown)
            if len(found) == limit:
                break
    return found


def contents(store: Store, change_id: int) -> list[str]:
    """What facts may say after the undoing of a change, and do not say now."""
    return [
        change.before["content"]
        for change in store.records.write_of(change_id)
        if change.before is not None and "content" in change.before
    ]


def undo(store: Store, names: Names, change_id: int, asker: Scope | None) -> list[tuple[int, str]]:
    """Take back a change, with those of the same write; (fact_id, content) of the facts whose content came back.

    Inside the caller's `database.write()`. Raises ChangeNotFound, UndoConflict.
    """
    write = store.records.write_of(change_id)
    scopes: dict[int, tuple[Scope, ...] | None] = {}
    if not write or any(_seen(store, change, asker, scopes) is None for change in write):
        raise ChangeNotFound(change_id)
    journal = Journal(store, "undo")
    for change in write:
        with journal.changing(change.fact_id):
            if change.before is None:
                _unmake(store, change)
            elif change.after is None:
                _restore(store, names, change)
            else:
                _revert(store, names, change)
    return [(c.fact_id, c.before["content"]) for c in write if c.before is not None and "content" in c.before]


def _seen(
    store: Store, change: Change, asker: Scope | None, scopes: dict[int, tuple[Scope, ...] | None]
) -> Change | None:
    """The change as the asker may see it; None when it is about a fact, or about scopes, of others."""
    if asker is None:
        return change
    fact_id, before, after = change.fact_id, change.before, change.after
    if fact_id not in scopes:
        last = _scopes(before) if before is not None and after is None else store.records.scopes([fact_id]).get(fact_id)
        scopes[fact_id] = last if last is not None else (() if store.fetch([fact_id]) else None)
    held = scopes[fact_id]
    if held is None or not scoping.sees(asker, held):
        return None
    given, taken = set(_scopes(after)), set(_scopes(before))
    if not all(scoping.sees(asker, [scope]) for scope in given ^ taken):
        return None
    return replace(change, before=_trimmed(before, asker), after=_trimmed(after, asker))


def _trimmed(state: State | None, asker: Scope) -> State | None:
    if state is None or "scopes" not in state:
        return state
    return state | {"scopes": _parts(scope for scope in _scopes(state) if scoping.sees(asker, [scope]))}


def _unmake(store: Store, change: Change) -> None:
    now, made = _state(store, change.fact_id), change.after or {}
    if now is None:
        raise UndoConflict(change.change_id, f"fact {change.fact_id} is gone already")
    if now["content"] != made["content"] or set(_scopes(now)) != set(_scopes(made)):
        raise UndoConflict(change.change_id, f"fact {change.fact_id} was changed since; undo that first, or remove it")
    store.remove(change.fact_id)


def _restore(store: Store, names: Names, change: Change) -> None:
    before = change.before or {}
    if store.fetch([change.fact_id]):
        raise UndoConflict(change.change_id, f"fact {change.fact_id} is there again")
    _refuse_twin(store, change, before["content"])
    ingest.insert(store, names, _statement(before), fact_id=change.fact_id)
    _set(store, names, change.fact_id, before)


def _revert(store: Store, names: Names, change: Change) -> None:
    fact_id, before, after = change.fact_id, change.before or {}, change.after or {}
    now = _state(store, fact_id)
    if now is None:
        raise UndoConflict(change.change_id, f"fact {fact_id} is gone; undo its removal first")
    again = [name for name in ("content", *_LABELS, *_EXTRAS) if name in after and now[name] != after[name]]
    if again:
        raise UndoConflict(change.change_id, f"{', '.join(again)} of fact {fact_id} changed again since")
    target = now | {name: value for name, value in before.items() if name not in ("scopes", "updated_at", *_SUMS)}
    for name in _SUMS:
        if name in after:
            same = now[name] == after[name]
            target[name] = before[name] if same else max(0, round(now[name] - (after[name] - before[name]), 6))
    target["trust_score"] = min(1.0, target["trust_score"])
    if "scopes" in after:
        target["scopes"] = _parts(_taken_back(change, set(_scopes(now))))
    if now["updated_at"] == after.get("updated_at", now["updated_at"]):
        target["updated_at"] = before.get("updated_at", now["updated_at"])
    if target["content"] != now["content"]:
        _refuse_twin(store, change, target["content"])
        ingest.replace(store, names, fact_id, _statement(target))
    elif (target["entities"], target["roles"]) != (now["entities"], now["roles"]):
        ingest.relink(store, names, fact_id, [name for name, _, _ in target["entities"]], target["roles"])
    _set(store, names, fact_id, target)


def _taken_back(change: Change, now: set[Scope]) -> set[Scope]:
    """The scopes without what the change added and with what it took."""
    before, after = set(_scopes(change.before)), set(_scopes(change.after))
    target = (now - (after - before)) | (before - after)
    if bool(now) != bool(after) or bool(target) != bool(before):  # it would become everybody's, or cease to be
        raise UndoConflict(change.change_id, f"whom fact {change.fact_id} belongs to changed again since")
    return target


def _refuse_twin(store: Store, change: Change, content: str) -> None:
    twin = store.find(content)
    if twin not in (None, change.fact_id):
        raise UndoConflict(change.change_id, f"fact {twin} says the same by now; remove it first")


def _set(store: Store, names: Names, fact_id: int, state: State) -> None:
    """Everything of a fact but its content and its links."""
    for name, kind, aliases in state["entities"]:
        ingest.describe(store, names, name, kind, split_list(aliases))
    columns = (*_LABELS, *_SUMS, "retrieval_count", "created_at", "updated_at")
    store.links.set_unlinked([fact_id], store.links.unlinked(fact_id), unlinked=False)
    store.links.set_unlinked([fact_id], state["unlinked"], unlinked=True)
    store.set_record(fact_id, **{name: state[name] for name in columns})
    store.records.set_extras(fact_id, Extras(*(state[name] for name in _EXTRAS)))
    store.records.set_scopes(fact_id, _scopes(state))


def _state(store: Store, fact_id: int) -> State | None:
    """All that can be undone of a fact, as JSON can hold it; None when it is not there."""
    fact = store.fetch([fact_id]).get(fact_id)
    if fact is None:
        return None
    state = asdict(fact)
    del state["fact_id"]
    for name in ("created_at", "updated_at"):
        state[name] = state[name].replace(tzinfo=None).isoformat(sep=" ")
    state["unlinked"] = sorted(store.links.unlinked(fact_id))
    state |= store.records.extras([fact_id]).get(fact_id, PLAIN)._asdict()
    state["entities"] = [list(entity) for entity in store.records.entities(fact_id)]
    state["scopes"] = _parts(fact.scopes)
    return state


def _statement(state: State) -> ingest.Statement:
    """The content as it was, to the last blank: another program may have written it."""
    content = state["content"]
    terms = tuple(text.analyze(text.clean(content)))
    names = tuple(name for name, _, _ in state["entities"])
    return ingest.Statement(
        content, state["category"], state["tags"], state["trust_score"], terms, names, state["roles"]
    )


def _scopes(state: State | None) -> tuple[Scope, ...]:
    return tuple(_scope(parts) for parts in (state or {}).get("scopes", ()))


def _scope(parts: list[str | None]) -> Scope:
    return Scope(*parts)


def _parts(scopes: Any) -> list[list[str | None]]:
    return sorted(([s.user, s.agent, s.run] for s in scopes), key=lambda parts: [part or "" for part in parts])
