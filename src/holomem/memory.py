"""`Memory`: every public method, each a call of the part that does it. No SQL and no arithmetic here.

Long because it is the whole interface with its docstrings; what a method stands on is in `opened`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

from holomem import (
    arguments,
    fusion,
    history,
    ingest,
    naming,
    portable,
    revise,
    scoping,
    selection,
    structure,
    text,
    upkeep,
)
from holomem import contradictions as conflicts
from holomem import roles as parts
from holomem import search as recall
from holomem.arguments import Match
from holomem.embedding import Embedder
from holomem.embedding.sources import default_embedder
from holomem.opened import CACHE_MB, H, Opened
from holomem.projection import project
from holomem.types import (
    Answer,
    Change,
    Companion,
    Conflict,
    Contradiction,
    Entity,
    Fact,
    Filter,
    Hit,
    ImportReport,
    MapPoint,
    ModelId,
    NewFact,
    Order,
    Reading,
    Scope,
    Status,
    StructuralHit,
)

__all__ = ["Memory"]


class Memory(Opened):
    """Long-term memory in one SQLite file. Any thread may use it; several processes may open the same file.

    >>> with Memory(":memory:", embedder=None) as memory:
    ...     fact_id = memory.add("Alice deploys nginx through CI", tags="deploy")
    ...     [hit.fact.content for hit in memory.search("who deploys nginx?")]
    ['Alice deploys nginx through CI']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        embedder: Embedder | Literal["auto"] | None = "auto",
        candidates: recall.Candidates = "union",
        half_life_days: float = 0.0,
        cache_mb: float = CACHE_MB,
        compact: bool = False,
        read_only: bool = False,
        fetch: bool = False,
        scope: Scope | None = None,
    ) -> None:
        """Open or make the file at `path`; ":memory:" stays in memory. A file of the Hermes plugin is adopted.

        `embedder` "auto" takes the installed model that the file was filled with, in a new file the first there is;
        None switches the semantic channel off. `fetch` gets the default model from the hub when none is installed; no
        network is used otherwise, and never later. `candidates`
        "cascade" is the reference behaviour of the specification. `half_life_days` 0 means no decay. `cache_mb` bounds
        the semantic vectors kept in memory. `compact` makes a *new* file store HRR vectors in a quarter of the space,
        which the Hermes plugin cannot read. `scope` is who asks here: what is stored belongs to it, what belongs to others
        is not seen; each call may narrow it. Only `status`, `doctor` and `backup` are about the whole file.

        Raises StoreError when the file cannot be used, ValueError for a bad argument.
        """
        if candidates not in ("union", "cascade"):
            raise ValueError(f"candidates is {candidates!r}; use 'union' or 'cascade'")
        if not half_life_days >= 0:
            raise ValueError(f"half_life_days is {half_life_days!r}; use 0 (no decay) or a positive number of days")
        self._scope = scoping.check(scope)
        self._candidates = candidates
        self._half_life_days = half_life_days
        self._judged = conflicts.Judged()
        super().__init__(path, embedder=embedder, cache_mb=cache_mb, compact=compact, read_only=read_only, fetch=fetch)

    # ---- life ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write what is pending, give the model's memory back and close the file. Closing twice is harmless."""
        with self._lock:
            if not self._database.closed:
                self._flush()
            self._semantics.unload()
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        with self._lock:
            return self._store.count() if self._scope is None else len(self._store.ids(Filter(scope=self._scope)))

    @property
    def path(self) -> str:
        """The absolute path of the file, or ":memory:"."""
        return self._database.path

    @property
    def adopted_copy(self) -> str | None:
        """Where the untouched copy lies, when opening turned a file of another program into ours."""
        return self._database.adopted_copy

    @property
    def scope(self) -> Scope | None:
        """Who asks here; None sees all."""
        return self._scope

    @property
    def filled_with(self) -> ModelId | None:
        """The model whose vectors the file holds; None when it holds none."""
        with self._lock:
            return self._store.models.kept()

    # ---- facts ------------------------------------------------------------------------------------------------

    def add(
        self,
        content: str,
        *,
        category: str = "general",
        tags: str | Sequence[str] = "",
        entities: Sequence[str] | None = None,
        trust_score: float = fusion.TRUST,
        roles: Mapping[str, str] | None = None,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expires_at: datetime | None = None,
        supersedes: int | None = None,
        scope: Scope | None = None,
        time: datetime | None = None,
    ) -> int:
        """Store a fact and return its id; a content that is there already gives the existing id, unchanged.

        `entities` None extracts them from the content; a sequence is taken as given. `roles`, such as
        {"owner": "Alice", "service": "nginx"}, says who has which part in it, for `ask`; `NewFact` says what the other
        arguments mean. An existing fact belongs to `scope` too from then on, and counts again if it was over. When this
        returns, the fact survives a crash and a power loss.
        Raises ValueError or TypeError for a bad argument, FactNotFound, StoreError.
        """
        beside = source, metadata, expires_at, supersedes, scope, time
        return self.add_many([NewFact(content, category, tags, entities, trust_score, roles, *beside)])[0]

    def add_many(self, facts: Iterable[NewFact]) -> list[int]:
        """Store facts in one transaction, all or none, and return their ids in order.

        Raises what `add` raises, for the first of them that is bad.
        """
        given = list(facts)
        if wrong := [new for new in given if not isinstance(new, NewFact)]:
            raise TypeError(f"{wrong[0]!r} is no NewFact; give NewFact(content), or use `add` for one fact")
        statements = [ingest.statement(replace(new, scope=self._asker(new.scope))) for new in given]
        with self._lock:
            new = {s.content for s in statements if self._store.find(s.content) is None}
        vectors = self._embed(sorted(new))
        with self._write():
            ids = [revise.add(self._store, self._names, s) for s in statements]
            by_content = {s.content: i for s, i in zip(statements, ids, strict=True)}
            self._set_vectors([(by_content[content], content, vector) for content, vector in vectors.items()])
        return ids

    def get(self, fact_id: int, *, scope: Scope | None = None) -> Fact:
        """One fact. Raises FactNotFound, also for one that belongs to others."""
        asker = self._asker(scope)
        with self._lock:
            self._flush()
            return revise.get(self._store, fact_id, asker)

    def facts(
        self,
        *,
        matching: str = "",
        category: str | None = None,
        tags: str | Sequence[str] = (),
        match_tags: Match = "any",
        min_trust: float = 0.0,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = 50,
        order: Order = "newest",
        offset: int = 0,
        current: bool = False,
        source: str | None = None,
        scope: Scope | None = None,
    ) -> list[Fact]:
        """Facts in an order, also those below the trust floor; counts nothing as retrieved.

        `matching` keeps those that hold every word of it. `limit` None gives all. `current` leaves out what is expired or
        superseded. `source` keeps what is from there or, as a path, from below it.
        """
        asker = self._asker(scope)
        chosen = arguments.chosen(category, tags, match_tags, min_trust, since, until)
        chosen = replace(chosen, scope=asker, current=current, source=source)
        if limit is not None and limit < 1:
            raise ValueError(f"limit is {limit}; use at least 1, or None for all")
        if offset < 0:
            raise ValueError(f"offset is {offset}; use 0 or more")
        if order not in get_args(Order):
            raise ValueError(f"order is {order!r}; use one of {', '.join(get_args(Order))}")
        match = None
        if text.check(matching, "matching").strip():
            match = text.match_all(text.query_terms(matching))
            if not match:
                return []
        with self._lock:
            self._flush()
            facts = self._store.facts(chosen, match=match, order=order, limit=limit, offset=offset)
        return [scoping.own(fact, asker) for fact in facts]

    def categories(self, *, scope: Scope | None = None) -> dict[str, int]:
        """The categories that are in use, and how many facts each has, by name."""
        with self._lock:
            return self._store.categories(Filter(scope=self._asker(scope)))

    def update(
        self,
        fact_id: int,
        *,
        content: str | None = None,
        category: str | None = None,
        tags: str | Sequence[str] | None = None,
        entities: Sequence[str] | None = None,
        trust_delta: float = 0.0,
        roles: Mapping[str, str] | None = None,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expires_at: datetime | Literal["never"] | None = None,
        scope: Scope | None = None,
    ) -> Fact:
        """Change what is given and return the fact; another content gets its own entities and vectors.

        `roles` replace all that the fact has; they stay otherwise, and so do their fillers among its entities. It is
        another fact that comes back when the old content belongs to others too: for them it stays. `source` "", `metadata`
        {} and `expires_at` "never" take away what was there.
        Raises FactNotFound, DuplicateFact when another fact says `content`, ValueError.
        """
        old = self.get(fact_id, scope=scope)
        asker = self._asker(scope)
        new = ingest.statement(
            NewFact(
                old.content if content is None else content, category or "general", tags or "", entities, roles=roles
            )
        )
        if not -1 <= trust_delta <= 1:
            raise ValueError(f"trust_delta is {trust_delta!r}; use a number from -1 to 1")
        edit = revise.Edit(
            new,
            None if category is None else new.category,
            None if tags is None else new.tags,
            trust_delta,
            None if source is None else ingest.source(source),
            None if expires_at is None else "" if expires_at == "never" else ingest.moment(expires_at),
            None if metadata is None else ingest.metadata(metadata),
        )
        vectors = self._embed([new.content]) if new.content != old.content else {}
        with self._write():
            fact_id = revise.update(self._store, self._names, fact_id, edit, asker)
            self._set_vectors([(fact_id, content, vector) for content, vector in vectors.items()])
        return self.get(fact_id, scope=asker)

    def remove(self, fact_id: int, *, scope: Scope | None = None) -> None:
        """Remove a fact; entities that no other fact holds disappear with it. Raises FactNotFound.

        A fact that belongs to others too stays theirs.
        """
        asker = self._asker(scope)
        with self._write(flush=True):
            revise.remove(self._store, fact_id, asker)

    def purge(self, *, history: bool = False) -> int:
        """Remove the facts whose time is over, and return how many; with `history` the history of changes is erased too.

        The text of a removed fact is in the history until then, so that it can be undone.
        """
        with self._write(flush=True):
            purged = revise.purge(self._store, self._scope)
            if history:
                self._store.records.forget_changes()
        return purged

    def history(self, fact_id: int | None = None, *, limit: int = 50, scope: Scope | None = None) -> list[Change]:
        """What was done to a fact, or to all, newest first. The newest 10,000 changes by holomem are kept."""
        arguments.check_limit(limit)
        asker = self._asker(scope)
        with self._lock, self._database.read():
            return history.changes(self._store, asker, fact_id=fact_id, limit=limit)

    def undo(self, change_id: int, *, scope: Scope | None = None) -> None:
        """Take back what a change did to its fact, which is itself a change.

        A removed fact comes back with its id, times and counters. Raises ChangeNotFound, UndoConflict when what the
        change did was changed again since.
        """
        asker = self._asker(scope)
        with self._lock:
            vectors = self._embed(history.contents(self._store, change_id))
        with self._write(flush=True):
            back = history.undo(self._store, self._names, change_id, asker)
            self._set_vectors([(i, content, vectors[content]) for i, content in back if content in vectors])

    def feedback(self, fact_id: int, *, helpful: bool, scope: Scope | None = None) -> Fact:
        """Rate a fact: trust + 0.05 when it helped, - 0.10 when not, within [0, 1]. Raises FactNotFound."""
        asker = self._asker(scope)
        delta = fusion.HELPFUL if helpful else fusion.UNHELPFUL
        with self._write(flush=True):
            revise.feedback(self._store, fact_id, asker, delta, helpful=helpful)
        return self.get(fact_id, scope=asker)

    # ---- entities ---------------------------------------------------------------------------------------------

    def entities(self, *, scope: Scope | None = None) -> list[Entity]:
        """The known entities with their aliases, those of most facts first."""
        asker = self._asker(scope)
        with self._lock, self._database.read():
            return revise.entities(self._store, asker)

    def rename_entity(self, entity: str, name: str, *, keep_alias: bool = False) -> Entity:
        """Give an entity another name; its facts are encoded anew. An alias changes places with the name.

        The old name is forgotten, also where texts say it, unless `keep_alias`. Renaming back restores all.
        Raises EntityNotFound, DuplicateEntity when another entity has the name, ValueError.
        """
        self._check_unscoped()
        with self._write():
            return naming.rename(self._store, self._names, entity, name, keep_alias=keep_alias)

    def merge_entities(self, into: str, *others: str) -> Entity:
        """Make several entities one: names and aliases of the others become aliases of `into`, facts become its own.

        Raises EntityNotFound, ValueError.
        """
        self._check_unscoped()
        with self._write():
            return naming.merge(self._store, self._names, into, others)

    def split_entity(
        self, entity: str, name: str, *, fact_ids: Sequence[int] | None = None, aliases: Sequence[str] = ()
    ) -> Entity:
        """Make the alias `name`, with other `aliases`, an entity of its own, bound to these facts of the old one.

        `fact_ids` None takes the facts whose texts say it. A fact whose text names both keeps both. The opposite of
        `merge_entities`. Raises EntityNotFound, FactNotFound, ValueError.
        """
        self._check_unscoped()
        with self._write():
            return naming.split(self._store, self._names, entity, name, fact_ids, aliases)

    def add_alias(self, entity: str, alias: str) -> Entity:
        """Let an entity be found by another name too. Raises EntityNotFound, DuplicateEntity, ValueError."""
        self._check_unscoped()
        with self._write():
            return naming.add_alias(self._store, self._names, entity, alias)

    def remove_alias(self, entity: str, alias: str) -> Entity:
        """Take another name away from an entity. Raises EntityNotFound, ValueError when it is no alias of it."""
        self._check_unscoped()
        with self._write():
            return naming.remove_alias(self._store, self._names, entity, alias)

    def link(self, fact_id: int, entity: str) -> Fact:
        """Bind a fact to an entity, a new one if there is none of this name. Raises FactNotFound, ValueError."""
        self.get(fact_id)  # of this memory's scope
        with self._write():
            naming.link(self._store, self._names, fact_id, entity)
        return self.get(fact_id)

    def unlink(self, fact_id: int, entity: str) -> Fact:
        """Say that a fact is not about an entity: its name in this text is not taken for it any more.

        An entity without facts disappears. Raises FactNotFound, EntityNotFound, ValueError.
        """
        self.get(fact_id)  # of this memory's scope
        with self._write():
            naming.unlink(self._store, self._names, fact_id, entity)
        return self.get(fact_id)

    def extract_entities(self, fact_ids: Sequence[int] | None = None, *, replace: bool = False) -> int:
        """Look for names in the texts of these facts, or of all, again, and return how many facts got other links.

        Links that are there stay, unless `replace`; a name that was unlinked stays away. Raises FactNotFound.
        """
        self._check_unscoped()
        changed = 0
        for batch in naming.batches(self._store, fact_ids):
            with self._write():
                changed += ingest.reextract(self._store, self._names, batch, replace=replace)
        return changed

    # ---- recall -----------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        category: str | None = None,
        tags: str | Sequence[str] = (),
        match_tags: Match = "any",
        min_trust: float = fusion.MIN_TRUST,
        since: datetime | None = None,
        until: datetime | None = None,
        among: Set[int] | None = None,
        scope: Scope | None = None,
        count: bool = True,
        min_score: float | None = None,
        diversity: float = 0.0,
        max_chars: int | None = None,
    ) -> list[Hit]:
        """The facts that answer a question, best first, each with what its score is made of. Any text is a query.

        With `among` only the facts of these ids may answer. What is returned counts as retrieved, once each, unless
        `count` is False.
        When no fact is as relevant as `min_score`, not counting what the names in the question explain by themselves,
        only those that hold all words of the question or an identifier of it are shown. None is `selection.MIN_SCORE`
        where meaning works and 0 elsewhere; 0 shows all. `diversity` (0 to 1) puts facts that repeat a better one behind
        others; `max_chars` bounds the contents together. A time that the question names prefers facts of it (`times`).
        Raises ValueError or TypeError for a bad argument.
        """
        question = text.check(query, "query")
        selection.check(min_score, diversity, max_chars)
        chosen = self._recalled(arguments.chosen(category, tags, match_tags, min_trust, since, until), scope)
        chosen = replace(chosen, among=among)
        vector = self._semantics.embed_query(question[: text.MAX_QUERY_CHARS])
        if vector is not None:
            self._heal()
        return self._recall(
            limit,
            chosen.scope,
            lambda: recall.search(
                recall.parse(question, self._names, vector),
                self._index,
                self._store,
                chosen,
                limit=limit,
                half_life_days=self._half_life_days,
                candidates=self._candidates,
                min_score=min_score,
                diversity=diversity,
                max_chars=max_chars,
            ),
            count=count,
        )

    def probe(
        self,
        entity: str,
        *,
        limit: int = 10,
        category: str | None = None,
        min_trust: float = fusion.MIN_TRUST,
        scope: Scope | None = None,
    ) -> list[StructuralHit]:
        """The facts bound to an entity, by any spelling that is known; empty when it is nowhere."""
        return self.reason([entity], limit=limit, category=category, min_trust=min_trust, scope=scope)

    def reason(
        self,
        entities: Sequence[str],
        *,
        limit: int = 10,
        category: str | None = None,
        min_trust: float = fusion.MIN_TRUST,
        scope: Scope | None = None,
    ) -> list[StructuralHit]:
        """The facts that several entities have in common, strongest first."""
        if isinstance(entities, str):
            raise TypeError(f"entities is the string {entities!r}; give a sequence of names")
        given = list(dict.fromkeys(arguments.name(entity) for entity in entities))
        if not given:
            raise ValueError("entities is empty; name at least one")
        return self._structure(structure.reason, given, limit, category, min_trust, scope)

    def related(
        self,
        entity: str,
        *,
        limit: int = 10,
        category: str | None = None,
        min_trust: float = fusion.MIN_TRUST,
        scope: Scope | None = None,
    ) -> list[StructuralHit]:
        """Facts that stand beside an entity: not its own, but those of what it stands together with."""
        return self._structure(structure.related, arguments.name(entity), limit, category, min_trust, scope)

    def companions(
        self,
        entity: str,
        *,
        limit: int = 10,
        category: str | None = None,
        min_trust: float = fusion.MIN_TRUST,
        scope: Scope | None = None,
    ) -> list[Companion]:
        """The entities that stand in facts together with this one, strongest first, each with at most `limit` others."""
        return self._structure(structure.companions, arguments.name(entity), limit, category, min_trust, scope)

    def ask(
        self,
        role: str,
        where: Mapping[str, str],
        *,
        limit: int = 10,
        category: str | None = None,
        min_trust: float = fusion.MIN_TRUST,
        scope: Scope | None = None,
    ) -> list[Answer]:
        """Who fills a role in the facts in which others are filled so, surest first, each with at most `limit` facts.

        `memory.ask("owner", {"service": "nginx"})` answers with the owners of nginx; a role or a filler that no fact
        has, with nothing. Raises ValueError or TypeError for a bad argument.
        """
        asked, conditions = parts.role_name(role), parts.checked(where)
        if not conditions:
            raise ValueError("where is empty; give at least one role and its filler")
        return self._structure(partial(parts.ask, asked), conditions, limit, category, min_trust, scope)

    def contradictions(
        self,
        *,
        limit: int = 10,
        category: str | None = None,
        min_trust: float = fusion.MIN_TRUST,
        min_score: float = conflicts.MIN_SCORE,
        scope: Scope | None = None,
    ) -> list[Contradiction]:
        """Pairs of facts that cannot both hold, surest first, with the reason; counts nothing as retrieved."""
        arguments.check_limit(limit)
        arguments.check_score(min_score)
        chosen = self._recalled(arguments.chosen(category, (), "any", min_trust, None, None), scope)
        self._mend()
        with self._lock, self._database.read():
            self._refresh()
            found = conflicts.contradictions(
                self._judged, self._index, self._names, self._store, chosen, limit=limit, min_score=min_score
            )
        own = [(scoping.own(c.first, chosen.scope), scoping.own(c.second, chosen.scope)) for c in found]
        return [replace(c, first=first, second=second) for c, (first, second) in zip(found, own, strict=True)]

    def contradicted_by(
        self,
        content: str,
        *,
        limit: int = 10,
        min_score: float = conflicts.MIN_SCORE,
        scope: Scope | None = None,
    ) -> list[Conflict]:
        """The facts that this statement, stored or not, contradicts, surest first, with the reason; changes nothing."""
        arguments.check_limit(limit)
        arguments.check_score(min_score)
        chosen = self._recalled(Filter(), scope)
        content = ingest.statement(NewFact(content)).content
        self._mend()
        with self._lock:
            known = self._store.find(content)
        vectors = self._semantics.embed([content]) if known is None else None
        with self._lock, self._database.read():
            self._refresh()
            vector = None if vectors is None else vectors[0]
            found = conflicts.conflicts(
                self._index, self._names, self._store, chosen, content, vector, limit=limit, min_score=min_score
            )
        return [replace(conflict, fact=scoping.own(conflict.fact, chosen.scope)) for conflict in found]

    def keep_both(self, fact_id: int, other_id: int, *, keep: bool = True, scope: Scope | None = None) -> None:
        """Say that two facts do hold together: they are no contradiction until one of them changes.

        `keep` False takes it back. Raises FactNotFound, ValueError for one fact twice.
        """
        if fact_id == other_id:
            raise ValueError(f"both facts are {fact_id}; name two")
        self.get(fact_id, scope=scope), self.get(other_id, scope=scope)
        with self._write():
            self._store.records.set_both_hold(fact_id, other_id, hold=keep)

    def map(self, *, scope: Scope | None = None) -> list[MapPoint]:
        """The newest 2000 facts as points in a plane, near ones meaning similar things; empty without a model."""
        chosen = self._recalled(arguments.chosen(None, (), "any", 0.0, None, None), scope)
        self._mend()
        with self._lock, self._database.read():
            self._refresh()
            return project(self._index, self._store, chosen)

    # ---- upkeep -----------------------------------------------------------------------------------------------

    def status(self) -> Status:
        """What is in the memory, which channels work, and what is wrong; never loads the model."""
        with self._lock:
            self._flush()
            with self._database.read():
                return upkeep.status(self._store, self._index, self._names, self._semantics)

    def doctor(self, *, repair: bool = False) -> Status:
        """`status` after reading the whole file with the checks of SQLite and FTS5; `repair` mends what can be."""
        self._mend()
        with self._lock:
            self._refresh_now()
            return upkeep.doctor(self._store, self._index, self._names, self._semantics, repair=repair)

    def backfill(self, *, progress: upkeep.Progress | None = None) -> int:
        """Write the vectors that are missing, and return how many. Raises ModelError when there is no model."""
        self._mend()
        return upkeep.embed_facts(self._store, self._semantics, self._without_vector(), progress)

    def reembed(self, *, progress: upkeep.Progress | None = None) -> int:
        """Replace vectors of other models by those of the current one, and return how many facts have one now.

        The old ones go last: an interruption loses nothing. Raises ModelError when there is no model.
        """
        self.backfill(progress=progress)
        with self._write():
            model_id = self._semantics.register()
            self._store.models.drop_vectors(except_model=model_id)
            self._store.models.keep(model_id)
            return self._store.models.vector_counts(model_id)[0]

    def use_model(self, embedder: Embedder | None = None) -> ModelId:
        """Make `embedder`, else the first model that is installed, the one of this file, and return its identity.

        The vectors that are there stay until `reembed` and are not compared with those of another model.
        Raises ModelError when there is no model.
        """
        with self._write():
            model = self._semantics.use(default_embedder() if embedder is None else embedder)
        self._healed = -1
        return model

    def backup(self, destination: str | os.PathLike[str]) -> Path:
        """Write one complete, consistent copy with owner-only rights, and return its path. Raises StoreError."""
        with self._lock:
            self._flush()
            return self._database.backup(destination)

    def export(self, lines: portable.Writable, *, fact_ids: Collection[int] | None = None) -> int:
        """Write every fact, or those of these ids, as one line of JSON, and return how many."""
        with self._lock:
            self._flush()
            with self._database.read():
                return portable.export(self._store, lines, self._scope, fact_ids)

    def load(self, lines: Iterable[str], *, restore: bool = False, dry_run: bool = False) -> ImportReport:
        """Take over exported facts, and say what that did, or with `dry_run` would do.

        A fact whose content is here already is compared by `updated_at`: the newer one wins. One that was removed or
        edited away here stays away, unless `restore`. A bad line is reported and does not stop the rest.
        """
        records = portable.read(lines)
        with self._lock, self._database.read() if dry_run else self._write():
            report = portable.load(self._store, self._names, records, self._scope, restore=restore, dry_run=dry_run)
        if not dry_run and self._semantics.works():
            self.backfill()
        return report

    def reading(self, fact_id: int) -> Reading | None:
        """How much of a fact its vector is made of; None without a model. Raises FactNotFound."""
        return self._semantics.reading(self.get(fact_id).content)

    def unload(self) -> None:
        """Give the memory of the embedding model back; the next search loads it again."""
        self._semantics.unload()

    # ---- helpers ----------------------------------------------------------------------------------------------

    def _structure(
        self,
        question: Callable[..., list[H]],
        subject: str | list[str] | dict[str, str],
        limit: int,
        category: str | None,
        min_trust: float,
        scope: Scope | None,
    ) -> list[H]:
        chosen = self._recalled(arguments.chosen(category, (), "any", min_trust, None, None), scope)
        return self._recall(
            limit,
            chosen.scope,
            lambda: question(
                subject,
                self._index,
                self._names,
                self._store,
                chosen,
                limit=limit,
                half_life_days=self._half_life_days,
            ),
        )

    def _check_unscoped(self) -> None:
        if self._scope is not None:
            raise ValueError("names are those of the whole file; open the memory without a scope to mend them")

    def _asker(self, scope: Scope | None) -> Scope | None:
        return scoping.within(self._scope, scope)

    def _recalled(self, chosen: Filter, scope: Scope | None) -> Filter:
        """The filter of a recall: what the asker sees of what still holds."""
        return replace(chosen, scope=self._asker(scope), current=True)
