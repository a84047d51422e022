"""What goes into a memory and what comes out: frozen values without behaviour of their own.

Field names are the column names of the file. `None` means absent; zero means zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

__all__ = [
    "Answer",
    "Change",
    "Companion",
    "Conflict",
    "Contradiction",
    "Entity",
    "Fact",
    "Filter",
    "Hit",
    "ImportReport",
    "MapPoint",
    "ModelId",
    "NewFact",
    "Order",
    "Reading",
    "Scope",
    "Scores",
    "Status",
    "StructuralHit",
]


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom a fact belongs to, or who asks: a user, an agent, a run, or several of them together.

    A fact without a scope belongs to all. One with scopes is seen by a scope that shares a part with one of them and
    differs from it in none: user "ann" sees what belongs to (ann) and to (ann, run 7), but not what belongs to (bob)
    or to (agent "coder") alone.
    """

    user: str | None = None
    agent: str | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact to be added. `tags` is a comma-separated string or a sequence of strings.

    `entities` None means: extract them from the content; a sequence (also an empty one) is taken as given. `roles` says
    which entity has which part in the fact: {"owner": "Alice", "service": "nginx"}. `source` is free text: where the fact
    is from, best as a path ("chat/42"). `metadata` is the application's: anything that JSON can hold, kept as it is. From
    `expires_at` on (UTC unless it has a zone) it is no longer recalled. `supersedes` is the id of a fact that this one
    replaces: the old one stays, but is no longer recalled. `time` is when it was said, now unless given, and becomes
    `created_at`: questions that name a time prefer facts of it.
    """

    content: str
    category: str = "general"
    tags: str | Sequence[str] = ""
    entities: Sequence[str] | None = None
    trust_score: float = 0.5
    roles: Mapping[str, str] | None = None
    source: str | None = None
    metadata: Mapping[str, Any] | None = None
    expires_at: datetime | None = None
    supersedes: int | None = None
    scope: Scope | None = None
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A stored fact. `tags` is comma separated; times are UTC; `roles` is role -> entity.

    `superseded_by` is the id of the fact that replaced it, 0 when that one is not in this file. `scopes` are those it
    belongs to, as far as the asker sees them; none means all.
    """

    fact_id: int
    content: str
    category: str
    tags: str
    trust_score: float
    retrieval_count: int
    helpful_count: int
    entities: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    roles: dict[str, str] = field(default_factory=dict, hash=False)
    source: str | None = None
    metadata: dict[str, Any] | None = field(default=None, hash=False)
    expires_at: datetime | None = None
    superseded_by: int | None = None
    scopes: tuple[Scope, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history: what a write did to a fact.

    A new fact has neither `before` nor `after`; a removed one is whole in `before`, and `after` is None; otherwise the
    two hold the fields that changed. `with_change` is the change of the same write that this one is undone with.
    """

    change_id: int
    fact_id: int
    action: str
    changed_at: datetime
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    with_change: int | None


@dataclass(frozen=True, slots=True)
class Entity:
    """A name that facts are bound to, its other spellings, and how many facts hold it."""

    entity_id: int
    name: str
    entity_type: str
    aliases: tuple[str, ...]
    facts: int


Order = Literal["newest", "oldest", "trusted", "doubtful", "retrieved"]
"""In which order facts are listed."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which facts a recall may return at all; applied before any top is taken.

    `tags` are whole tags, compared without case; `match_tags` says whether one or all of them must be there.
    `since` and `until` bound `created_at`, both inclusive. `scope` leaves out what it does not see, `current` what is
    expired or superseded. `source` keeps what is from there or, as a path, from below it; `among` keeps these facts.
    """

    category: str | None = None
    tags: tuple[str, ...] = ()
    match_tags: Literal["any", "all"] = "any"
    min_trust: float = 0.0
    since: datetime | None = None
    until: datetime | None = None
    scope: Scope | None = None
    current: bool = False
    source: str | None = None
    among: Set[int] | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """One number for each channel of a hit, in [0, 1]; None where the channel is absent."""

    fts: float | None
    jaccard: float | None
    hrr: float | None
    semantic: float | None


@dataclass(frozen=True, slots=True)
class Hit:
    """A fact found by search.

    score = relevance x fact.trust_score x decay x timely; relevance = sum of weight x channel over the channels that are
    there. `timely` is above 1 where the question names a time, or asks for how things are now, and the fact is of it.
    `cosine` is the calibrated one, in [-1, 1], that the semantic channel is made of; `named` are the entities of the fact
    that the question names.
    """

    fact: Fact
    score: float
    relevance: float
    decay: float
    channels: Scores
    weights: Scores
    timely: float = 1.0
    cosine: float | None = None
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StructuralHit:
    """A fact found by the algebra: score = presence x fact.trust_score x decay.

    `similarity` is the raw similarity, in [-1, 1]; `presence` is that divided by what a bundle of as many parts
    can give, in [0, 1]. `linked` is True when the file also links the fact to the entity.
    """

    fact: Fact
    score: float
    presence: float
    similarity: float
    decay: float
    linked: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """An entity that fills the role that was asked for, and the facts that say so, surest first.

    A fact's share is presence x trust_score x decay; `score` = 1 - product of (1 - share), so several facts make it
    surer. `presence` is the largest of theirs. Both are in [0, 1].
    """

    filler: str
    score: float
    presence: float
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A fact that a new statement contradicts, how sure that is (in [0, 1]), and why."""

    fact: Fact
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Companion:
    """An entity that stands in facts together with the one that was asked for.

    `strength` is what the algebra finds of it in the sum of those facts, about their number; `together` counts the
    links. `facts` are those of the companion alone, newest first: what is to be found one step further.
    """

    entity: str
    strength: float
    together: int
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two facts that cannot both hold, how sure that is (in [0, 1]), and why."""

    first: Fact
    second: Fact
    score: float
    reason: str
    shared_entities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A fact in a plane where near points mean similar things; `x` and `y` are in [0, 1]."""

    fact_id: int
    x: float
    y: float
    category: str
    content: str


@dataclass(frozen=True, slots=True)
class ModelId:
    """Everything that decides what a vector of a model looks like. Vectors of different ids are never compared."""

    name: str
    revision: str
    file_hash: str
    dim: int
    pooling: str = "mean"
    normalised: bool = True
    max_tokens: int = 0
    query_prefix: str = ""
    passage_prefix: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """How much of a text a vector is made of: `read` of its `tokens`, in so many windows of the model."""

    tokens: int
    read: int
    windows: int


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a memory: what is in it, what works, and what does not and why."""

    path: str
    facts: int
    entities: int
    file_bytes: int
    rss_bytes: int | None
    journal_mode: str
    sqlite_version: str
    kernel: str
    channels: dict[str, str | None] = field(default_factory=dict)
    """channel -> None when it works, else the reason and the remedy"""
    model: ModelId | None = None
    vectors: int = 0
    missing_vectors: int = 0
    foreign_vectors: int = 0
    unanalysed: int = 0
    problems: tuple[str, ...] = ()
    """what is degraded, each with its remedy"""
    notes: tuple[str, ...] = ()
    """what is worth knowing, but no fault of this memory"""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or would do. `errors` holds (line number, what is wrong with it)."""

    added: int
    updated: int
    unchanged: int
    skipped: int
    """facts that were removed or edited away here"""
    errors: tuple[tuple[int, str], ...]
