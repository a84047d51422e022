"""What a command shows of facts, hits and the state of a memory: lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

from holomem.cli.console import Column, pad, table, time, visible
from holomem.embedding.sources import Build, CheckedFile, ModelState
from holomem.types import (
    Answer,
    Change,
    Companion,
    Contradiction,
    Entity,
    Fact,
    Hit,
    ModelId,
    Reading,
    Scope,
    Status,
    StructuralHit,
)

__all__ = [
    "answer_lines",
    "change_table",
    "companion_lines",
    "conflicts",
    "entity_table",
    "explanation",
    "fact_lines",
    "fact_table",
    "hit_table",
    "shares",
    "state",
    "structural_table",
    "why",
]

_CHANNELS: Final = {
    "fts": "words and word forms of the question, rare ones count more",
    "jaccard": "how much of both texts is the same words",
    "hrr": "words and names in the fact's structure",
    "semantic": "nearness in meaning, in any language",
}
_NO_VECTOR: Final = {
    "hrr": "this fact has no usable HRR vector; run `holomem doctor --repair`",
    "semantic": "this fact has no vector of the model; run `holomem backfill`",
}


def hit_table(hits: Sequence[Hit]) -> Iterator[str]:
    """A line per hit with its channels."""
    columns: list[Column] = [("id", "right"), ("score", "right")]
    columns += [(name, "right") for name in _CHANNELS]
    columns += [("content", "left")]
    rows = [
        [str(hit.fact.fact_id), f"{hit.score:.3f}", *map(_channel, asdict(hit.channels).values()), hit.fact.content]
        for hit in hits
    ]
    return table(columns, rows)


def explanation(hit: Hit, half_life_days: float, off: dict[str, str | None]) -> Iterator[str]:
    """A line per factor of one hit's score. `off` says why a channel is off altogether."""
    yield f"#{hit.fact.fact_id}  {visible(hit.fact.content)}"
    weight, channel = asdict(hit.weights), asdict(hit.channels)
    for name, meaning in _CHANNELS.items():
        if channel[name] is None:
            yield f"    {name:<10}absent: {why(off.get(name) or _NO_VECTOR[name])}"
        else:
            share = weight[name] * channel[name]
            cosine = f"; cosine {hit.cosine:.2f}" if name == "semantic" and hit.cosine is not None else ""
            yield f"    {name:<10}{weight[name]:.2f} x {channel[name]:.3f} = {share:.3f}   {meaning}{cosine}"
    if hit.named:
        yield f"    {'names':<10}{', '.join(map(visible, hit.named))}"
    aged = f"0.5 ^ (age / {half_life_days:g} days)" if half_life_days else "facts do not age: no half-life was given"
    yield f"    {'relevance':<25}{hit.relevance:.3f}   the sum"
    yield f"    {'x trust':<25}{hit.fact.trust_score:.3f}   `holomem feedback` moves it"
    yield f"    {'x decay':<25}{hit.decay:.3f}   {aged}"
    if hit.timely != 1:
        yield f"    {'x timely':<25}{hit.timely:.3f}   of the time that was asked for"
    yield f"    {'= score':<25}{hit.score:.3f}"


def shares(hit: Hit) -> str:
    """The score of one hit as a sum, in one line."""
    weight, channel = asdict(hit.weights), asdict(hit.channels)
    parts = [f"{name} {weight[name] * value:.3f}" for name, value in channel.items() if value is not None]
    decay = f" x decay {hit.decay:.2f}" if hit.decay != 1 else ""
    timely = f" x timely {hit.timely:.2f}" if hit.timely != 1 else ""
    return f"({' + '.join(parts)}) x trust {hit.fact.trust_score:.2f}{decay}{timely} = {hit.score:.3f}"


def structural_table(hits: Sequence[StructuralHit]) -> Iterator[str]:
    """A line per hit of the algebra."""
    columns: list[Column] = [("id", "right"), ("score", "right"), ("presence", "right"), ("linked", "left")]
    columns += [("content", "left")]
    return table(
        columns,
        [
            [
                str(hit.fact.fact_id),
                f"{hit.score:.3f}",
                f"{hit.presence:.2f}",
                "yes" if hit.linked else "no",
                hit.fact.content,
            ]
            for hit in hits
        ],
    )


def companion_lines(companions: Sequence[Companion]) -> Iterator[str]:
    """A line per companion with how strong it is and in how many facts, and one per fact of it alone."""
    for companion in companions:
        yield f"{companion.strength:6.2f}  {visible(companion.entity)}  ({companion.together} together)"
        yield from (f"        {fact.fact_id:>5}  {visible(fact.content)}" for fact in companion.facts)


def answer_lines(answers: Sequence[Answer]) -> Iterator[str]:
    """A line per answer, and one for each fact that says so."""
    digits = max((len(str(fact.fact_id)) for answer in answers for fact in answer.facts), default=0)
    for answer in answers:
        yield f"{answer.score:.3f}  {visible(answer.filler)}"
        for fact in answer.facts:
            yield f"       {fact.fact_id:>{digits}}  {visible(fact.content)}"


def fact_table(facts: Sequence[Fact]) -> Iterator[str]:
    """A line per fact."""
    columns: list[Column] = [("id", "right"), ("trust", "right"), ("category", "left"), ("tags", "left")]
    columns += [("content", "left")]
    return table(columns, [[str(f.fact_id), f"{f.trust_score:.2f}", f.category, f.tags, f.content] for f in facts])


def fact_lines(fact: Fact, reading: Reading | None = None) -> Iterator[str]:
    """Everything about one fact, and how much of it the model reads where that is not all in one window."""
    first, *rest = [visible(line) for line in fact.content.split("\n")]
    beside = [("source", visible(fact.source or "")), ("belongs to", visible("; ".join(map(_scope, fact.scopes))))]
    if fact.expires_at is not None:
        beside.append(("expires", time(fact.expires_at)))
    if fact.superseded_by is not None:
        beside.append(
            ("replaced", f"by fact {fact.superseded_by}" if fact.superseded_by else "by one that is not here")
        )
    yield from _pairs(
        ("fact", str(fact.fact_id)),
        ("content", "\n".join([first, *rest])),
        ("category", visible(fact.category)),
        ("tags", visible(fact.tags)),
        ("entities", visible(", ".join(fact.entities))),
        *([("roles", visible(", ".join(map("=".join, fact.roles.items()))))] if fact.roles else []),
        ("trust", f"{fact.trust_score:.2f}"),
        ("retrieved", f"{fact.retrieval_count} times, rated helpful {fact.helpful_count} times"),
        ("created", time(fact.created_at)),
        ("updated", time(fact.updated_at)),
        *([("vector", _read(reading))] if reading is not None and reading.windows > 1 else []),
        *(pair for pair in beside if pair[1]),
    )


def change_table(changes: Sequence[Change]) -> Iterator[str]:
    """A line per change."""
    columns: list[Column] = [
        ("change", "right"),
        ("time", "left"),
        ("fact", "right"),
        ("what", "left"),
        ("how", "left"),
    ]
    rows = [[str(c.change_id), time(c.changed_at), str(c.fact_id), c.action, _how(c)] for c in changes]
    return table(columns, rows)


def _how(change: Change) -> str:
    """What a change did, in one line: the content of a fact that came or went, else each field."""
    before, after = change.before or {}, change.after or {}
    if change.before is None or change.after is None:
        return str((before or after).get("content", ""))
    return ", ".join(
        f"{name}: {_value(before[name])} -> {_value(after[name])}" for name in after if name != "updated_at"
    )


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _scope(scope: Scope) -> str:
    return ", ".join(f"{part} {name}" for part, name in asdict(scope).items() if name is not None)


def _read(reading: Reading) -> str:
    part = "all" if reading.read == reading.tokens else f"the first {reading.read:,}"
    return f"the mean over {reading.windows} windows, {part} of {reading.tokens:,} tokens"


def entity_table(entities: Sequence[Entity]) -> Iterator[str]:
    """A line per entity."""
    columns: list[Column] = [("facts", "right"), ("name", "left"), ("type", "left"), ("aliases", "left")]
    return table(columns, [[str(e.facts), e.name, e.entity_type, ", ".join(e.aliases)] for e in entities])


def conflicts(found: Sequence[Contradiction]) -> Iterator[str]:
    """Three lines per pair: how sure and why, then the two facts."""
    digits = max((len(str(fact.fact_id)) for pair in found for fact in (pair.first, pair.second)), default=0)
    for place, pair in enumerate(found):
        if place:
            yield ""
        yield f"{pair.score:.2f}  {visible(pair.reason)}"
        for fact in (pair.first, pair.second):
            yield f"      {fact.fact_id:>{digits}}  {visible(fact.content)}"


def state(status: Status) -> Iterator[str]:
    """The state of a memory, a line per item; problems and notes last."""
    pairs = [
        ("file", f"{visible(status.path)} ({_size(status.file_bytes)}, journal {status.journal_mode})"),
        ("facts", str(status.facts)),
        ("entities", str(status.entities)),
        ("channels", "\n".join(_channel_states(status))),
        ("model", "none" if status.model is None else visible(_model(status.model))),
        ("vectors", f"{status.vectors}, missing {status.missing_vectors}, of another model {status.foreign_vectors}"),
        ("kernel", status.kernel),
        ("SQLite", status.sqlite_version),
        ("RSS", "unknown" if status.rss_bytes is None else _size(status.rss_bytes)),
    ]
    pairs += [("problem", visible(problem)) for problem in status.problems]
    pairs += [("note", visible(text)) for text in status.notes]
    return _pairs(*pairs)


def model_state(found: ModelState) -> Iterator[str]:
    """Which model is used and where it comes from, a line per item."""
    looked = [f"{'->' if source.used else '  '} {source.name}: {source.message}" for source in found.sources]
    pairs = [("sources", "\n".join(visible(line) for line in looked))]
    if found.problem is not None:
        pairs.append(("problem", visible(found.problem)))
    if found.folder is not None:
        pairs.append(("folder", visible(found.folder)))
    if found.model is not None:
        prefixes = f"{found.model.query_prefix!r} before a query, {found.model.passage_prefix!r} before a fact"
        pairs += [
            ("model", visible(_model(found.model))),
            ("SHA-256", found.model.file_hash),
            ("prefixes", visible(prefixes) if found.model.query_prefix or found.model.passage_prefix else "none"),
            ("licence", found.licence or "not known: the folder is your own"),
            ("origin", found.origin or "not known: the folder is your own"),
        ]
    if found.size_bytes is not None:
        pairs.append(("size", _size(found.size_bytes)))
    if found.build is not None:
        pairs.append(("build", build_cost(found.build)))
    if found.note is not None:
        pairs.append(("note", found.note))
    return _pairs(*pairs)


def build_cost(build: Build) -> str:
    """What it took to build the model."""
    peak = "" if build.peak_rss_bytes is None else f", at most {_size(build.peak_rss_bytes)} of memory"
    return visible(f"of {build.source} in {build.seconds:.1f} s{peak}")


def checked_files(checked: Sequence[CheckedFile]) -> Iterator[str]:
    """A line per file of the model."""
    columns: list[Column] = [("state", "left"), ("SHA-256", "left"), ("size", "right"), ("file", "left")]
    return table(columns, [[_file_state(file), file.sha256, _size(file.size_bytes), file.path] for file in checked])


def _file_state(file: CheckedFile) -> str:
    if not file.intact:
        return "changed"
    return "as published" if file.expected else "nothing to compare with"


def _channel_states(status: Status) -> Iterator[str]:
    for name in _CHANNELS:
        reason = status.channels.get(name)
        said = reason is not None and any(reason in problem for problem in status.problems)
        yield f"{name:<10}{'on' if reason is None else 'off, see below' if said else f'off: {why(reason)}'}"


def why(reason: str) -> str:
    """The reason in the words of the command line."""
    return visible(reason.replace("(embedder=None)", "by --no-model"))


def _model(model: ModelId) -> str:
    revision = f" {model.revision[:12]}" if model.revision else ""
    return f"{model.name}{revision}, {model.dim} dimensions, {model.pooling} pooling, {model.max_tokens} tokens"


def _channel(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"


def _pairs(*pairs: tuple[str, str]) -> Iterator[str]:
    """Name and value in two columns; a value of several lines stays in its column."""
    size = max(len(name) for name, _ in pairs) + 2
    for name, value in pairs:
        for place, line in enumerate(value.split("\n")):
            yield (pad(name if place == 0 else "", size) + line).rstrip()
