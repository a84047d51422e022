"""The memory as tools of an agent: JSON schemas, and `call`, which takes what a model sent and answers with plain JSON.

The tools `fact_store` and `fact_feedback` have the arguments and results of the Hermes plugin, whose users and prompts
know them; `ask`, `entities`, `why` and the argument `roles` are ours. What a model sends is often nearly right: null
means not given, "5" is 5, a list of tags is a string of tags. The rest is an error that names the argument.
"""

from __future__ import annotations

import heapq
import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from holomem import fusion, text
from holomem.errors import FactNotFound, HolomemError
from holomem.memory import Memory
from holomem.types import Contradiction, Fact, Hit, StructuralHit

__all__ = ["FACT_FEEDBACK", "FACT_STORE", "MAX_LIMIT", "SCHEMAS", "call", "fact_row"]

logger = logging.getLogger(__name__)

LIMIT: Final = 10  # results when no limit is given, as in the plugin
MAX_LIMIT: Final = 100  # what a model is given at most: a longer list is cut, its `count` says so
SHOWN: Final = 80  # characters of a bad value that an error repeats

Result = dict[str, Any]


def _schema() -> Result:
    """The schema of `fact_store`."""

    def typed(kind: str, description: str) -> Result:
        return {"type": kind, "description": description}

    return {
        "name": "fact_store",
        "description": (
            "Lasting memory of facts, found by their words, their meaning and the people and things they name. Keep "
            "short always-on notes in the memory tool and everything else here.\n\n"
            "ACTIONS:\n"
            "- add: store one fact as a sentence that is clear on its own.\n"
            "- search: facts that answer a question, in any language.\n"
            "- probe: everything about one person or thing.\n"
            "- related: facts that stand beside an entity, through what it stands together with.\n"
            "- reason: facts that several entities have in common.\n"
            "- ask: who or what fills a role where other roles are filled so.\n"
            "- contradict: pairs of facts that cannot both hold.\n"
            "- entities: the names that are known. why: search, with what each score is made of.\n"
            "- update, remove, list: by fact_id; list gives the most trusted facts.\n\n"
            "Before you answer a question about the user or their work, search or probe first."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": list(_ACTIONS)},
                "content": typed("string", "The fact, for 'add'; its new text, for 'update'."),
                "query": typed("string", "The question, for 'search' and 'why'."),
                "entity": typed("string", "A name, for 'probe' and 'related'."),
                "entities": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Names, for 'reason'.",
                },
                "fact_id": typed("integer", "The fact, for 'update' and 'remove'."),
                "category": {"type": "string", "enum": ["user_pref", "project", "tool", "general"]},
                "tags": typed("string", "Tags, separated by commas."),
                "trust_delta": typed("number", "Change of trust, for 'update', from -1 to 1."),
                "min_trust": typed("number", "Leave out facts of less trust (default 0.3; 'list' 0)."),
                "limit": typed("integer", f"Results at most (default {LIMIT}, never more than {MAX_LIMIT})."),
                "role": typed("string", "The role to be filled, for 'ask', such as 'owner'."),
                "roles": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "Role to name: for 'add' and 'update' what the fact says, for 'ask' what is known.",
                },
            },
            "required": ["action"],
        },
    }


def call(
    memory: Memory,
    name: str,
    arguments: Mapping[str, Any] | str | None,
    *,
    min_trust: float = fusion.MIN_TRUST,
    trust_score: float = fusion.TRUST,
) -> Result:
    """The result of the tool `name`, JSON-ready; of a call that cannot be done, {"error": what is wrong with it}.

    Never raises. `min_trust` is the floor where the call gives none, `trust_score` what a new fact starts with.
    """
    try:
        given = _Arguments(_mapping(arguments), min_trust, trust_score)
        if name == "fact_store":
            return _fact_store(memory, given)
        if name == "fact_feedback":
            return _fact_feedback(memory, given)
        return {"error": f"Unknown tool: {_shown(name)}"}
    except (HolomemError, ValueError, TypeError, OverflowError) as error:
        return {"error": str(error)}
    except Exception as error:  # the edge towards a model: an agent's turn must not end on our fault
        logger.exception("the tool %s failed", name)
        return {"error": f"the memory failed ({type(error).__name__}); this call may work later"}


def fact_row(fact: Fact) -> Result:
    """A fact as the tools give it: the columns of the plugin, times as UTC text."""
    return {
        "fact_id": fact.fact_id,
        "content": fact.content,
        "category": fact.category,
        "tags": fact.tags,
        "trust_score": fact.trust_score,
        "retrieval_count": fact.retrieval_count,
        "helpful_count": fact.helpful_count,
        "created_at": f"{fact.created_at:%Y-%m-%d %H:%M:%S}",
        "updated_at": f"{fact.updated_at:%Y-%m-%d %H:%M:%S}",
    }


# ---- arguments ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Arguments:
    """What a model sent, read with care. Every reader raises ValueError with the argument's name in it."""

    values: Mapping[str, Any]
    least_trust: float
    trust_score: float

    def given(self, name: str) -> Any:
        """The value, None when it is absent or null."""
        return self.values.get(name)

    def required(self, name: str) -> Any:
        """The value of an argument that must be there."""
        value = self.given(name)
        if value is None:
            unknown = [key for key in self.values if key not in _KNOWN]
            hint = f" (not known here: {', '.join(_shown(key) for key in unknown[:5])})" if unknown else ""
            raise ValueError(f"Missing required argument: {name!r}{hint}")
        return value

    def text(self, name: str) -> str:
        """A text that must be there and say something."""
        value = _text(name, self.required(name))
        if not value.strip():
            raise ValueError(f"{name} must not be empty")
        return value

    def optional_text(self, name: str) -> str | None:
        """A text, None when it is not given or empty."""
        value = self.given(name)
        return None if value is None else _text(name, value).strip() or None

    def tags(self) -> str | None:
        """Comma-separated tags, also from a list of them."""
        value = self.given("tags")
        if isinstance(value, list | tuple):
            return ",".join(_text("tags", tag) for tag in value)
        return None if value is None else _text("tags", value)

    def names(self) -> list[str]:
        """The entities of `reason`: a list, or one string with commas or of JSON."""
        value = self.given("entities")
        if isinstance(value, str):
            value = _json_list(value) or value.split(",")
        if value is None or value == [] or value == [""]:
            raise ValueError("reason requires 'entities' list")
        if not isinstance(value, list | tuple):
            raise ValueError(f"entities is {_shown(value)}; give a list of names")
        return [_text("entities", name) for name in value]

    def roles(self) -> dict[str, str] | None:
        """Role -> name, None when not given or empty."""
        value = self.given("roles")
        if isinstance(value, str):
            value = _parsed(value) if value.strip() else None
        if value is not None and not isinstance(value, Mapping):
            shown = _shown(self.given("roles"))
            raise ValueError(f'roles is {shown}; give an object such as {{"owner": "Alice"}}')
        return {str(role): _text("roles", name) for role, name in value.items()} if value else None

    def fact_id(self) -> int:
        """The id of a fact."""
        return _whole("fact_id", self.required("fact_id"))

    def limit(self) -> int:
        """How many results at most; more than MAX_LIMIT is MAX_LIMIT."""
        value = self.given("limit")
        limit = LIMIT if value is None else _whole("limit", value)
        if limit < 1:
            raise ValueError(f"limit is {limit}; use a whole number from 1 to {MAX_LIMIT}")
        return min(limit, MAX_LIMIT)

    def trust(self, name: str, default: float, lowest: float) -> float:
        """A number from `lowest` to 1."""
        value = self.given(name)
        number = default if value is None else _number(name, value)
        if not lowest <= number <= 1:
            raise ValueError(f"{name} is {_shown(value)}; use a number from {lowest:g} to 1")
        return number

    def floor(self, default: float | None = None) -> float:
        """The least trust of a result."""
        return self.trust("min_trust", self.least_trust if default is None else default, 0.0)


def _mapping(arguments: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    given = _parsed(arguments) if isinstance(arguments, str) and arguments.strip() else arguments or {}
    if not isinstance(given, Mapping):
        raise ValueError(f'the arguments are {_shown(given)}; give an object such as {{"action": "list"}}')
    return given


def _parsed(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _json_list(value: str) -> list[Any] | None:
    parsed = _parsed(value) if value.lstrip().startswith("[") else None
    return parsed if isinstance(parsed, list) else None


def _shown(value: object) -> str:
    """A value in an error, short, whatever it is."""
    shown = repr(value)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{name} is {_shown(value)}; give text")


def _number(name: str, value: object) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise ValueError(f"{name} is {_shown(value)}; give a number")


def _whole(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        number = _number(name, value)
    except ValueError:
        number = 0.5
    if not number.is_integer():
        raise ValueError(f"{name} is {_shown(value)}; give a whole number")
    # by way of float, ids above 2**53 would become their neighbours
    return int(value) if isinstance(value, str) and value.strip().isdecimal() else int(number)


# ---- actions --------------------------------------------------------------------------------------------------------


def _fact_store(memory: Memory, given: _Arguments) -> Result:
    action = _text("action", given.required("action"))
    act = _ACTIONS.get(action.strip().lower())
    if act is None:
        return {"error": f"Unknown action: {action[:SHOWN]}; use one of {', '.join(_ACTIONS)}"}
    return act(memory, given)


def _fact_feedback(memory: Memory, given: _Arguments) -> Result:
    """Any word but "helpful" lowers the trust, as in the plugin."""
    fact_id = given.fact_id()
    helpful = _text("action", given.required("action")).strip().lower() == "helpful"
    old = memory.get(fact_id)
    new = memory.feedback(fact_id, helpful=helpful)
    return {
        "fact_id": fact_id,
        "old_trust": old.trust_score,
        "new_trust": new.trust_score,
        "helpful_count": new.helpful_count,
    }


def _add(memory: Memory, given: _Arguments) -> Result:
    fact_id = memory.add(
        given.text("content"),
        category=given.optional_text("category") or "general",
        tags=given.tags() or "",
        trust_score=given.trust_score,
        roles=given.roles(),
    )
    return {"fact_id": fact_id, "status": "added"}


def _search(memory: Memory, given: _Arguments) -> Result:
    return _results([_hit_row(hit) for hit in _hits(memory, given)])


def _why(memory: Memory, given: _Arguments) -> Result:
    return _results([{**_hit_row(hit), "why": _reasons(hit)} for hit in _hits(memory, given)])


def _hits(memory: Memory, given: _Arguments) -> list[Hit]:
    category = given.optional_text("category")
    return memory.search(
        _text("query", given.required("query")), category=category, min_trust=given.floor(), limit=given.limit()
    )


def _probe(memory: Memory, given: _Arguments) -> Result:
    return _structural(memory.probe, given.text("entity"), given)


def _related(memory: Memory, given: _Arguments) -> Result:
    return _structural(memory.related, given.text("entity"), given)


def _reason(memory: Memory, given: _Arguments) -> Result:
    return _structural(memory.reason, given.names(), given)


def _structural(find: Callable[..., list[StructuralHit]], subject: str | Sequence[str], given: _Arguments) -> Result:
    """Without a floor of its own: the plugin applies the threshold to `search` only."""
    hits = find(subject, category=given.optional_text("category"), limit=given.limit(), min_trust=given.floor(0.0))
    return _results([{**fact_row(hit.fact), "score": hit.score} for hit in hits])


def _ask(memory: Memory, given: _Arguments) -> Result:
    role, known = given.text("role"), given.roles()
    if known is None:
        raise ValueError("Missing required argument: 'roles'")
    answers = memory.ask(
        role, known, category=given.optional_text("category"), limit=given.limit(), min_trust=given.floor(0.0)
    )
    return _results(
        [{"filler": a.filler, "score": a.score, "facts": [fact_row(fact) for fact in a.facts]} for a in answers]
    )


def _contradict(memory: Memory, given: _Arguments) -> Result:
    pairs = memory.contradictions(
        category=given.optional_text("category"), limit=given.limit(), min_trust=given.floor(0.0)
    )
    return _results([_pair_row(pair) for pair in pairs])


def _update(memory: Memory, given: _Arguments) -> Result:
    fact_id = given.fact_id()
    try:
        memory.update(
            fact_id,
            content=None if given.given("content") is None else given.text("content"),
            category=given.optional_text("category"),
            tags=given.tags(),
            trust_delta=given.trust("trust_delta", 0.0, -1.0),
            roles=given.roles(),
        )
    except FactNotFound:
        return {"updated": False}
    return {"updated": True}


def _remove(memory: Memory, given: _Arguments) -> Result:
    try:
        memory.remove(given.fact_id())
    except FactNotFound:
        return {"removed": False}
    return {"removed": True}


def _list(memory: Memory, given: _Arguments) -> Result:
    """The most trusted first, as in the plugin."""
    facts = memory.facts(category=given.optional_text("category"), min_trust=given.floor(0.0), limit=None)
    first = heapq.nsmallest(given.limit(), facts, key=lambda fact: (-fact.trust_score, fact.fact_id))
    return {"facts": [fact_row(fact) for fact in first], "count": len(first)}


def _entities(memory: Memory, given: _Arguments) -> Result:
    """The known names, those of most facts first; `total` counts those that are left out too."""
    known = memory.entities()
    shown = [
        {"name": e.name, "entity_type": e.entity_type, "aliases": list(e.aliases), "facts": e.facts}
        for e in known[: given.limit()]
    ]
    return {"entities": shown, "count": len(shown), "total": len(known)}


# ---- results --------------------------------------------------------------------------------------------------------


def _results(rows: list[Result]) -> Result:
    return {"results": rows, "count": len(rows)}


def _hit_row(hit: Hit) -> Result:
    return {**fact_row(hit.fact), "fts_rank": hit.channels.fts or 0.0, "score": hit.score}


def _reasons(hit: Hit) -> Result:
    """What the score of a hit is made of: score = relevance x trust x decay x timely."""
    weights = asdict(hit.weights)
    channels = {
        name: None if value is None else {"value": value, "weight": weights[name] or 0.0}
        for name, value in asdict(hit.channels).items()
    }
    factors = {"relevance": hit.relevance, "trust": hit.fact.trust_score, "decay": hit.decay, "timely": hit.timely}
    return {**factors, "channels": channels, "cosine": hit.cosine, "names": list(hit.named)}


def _pair_row(pair: Contradiction) -> Result:
    """A contradiction: `content_similarity` and `entity_overlap` are what of both is common (Jaccard)."""
    sides = [fact_row(fact) for fact in (pair.first, pair.second)]
    for side in sides:
        del side["retrieval_count"], side["helpful_count"]
    names = [{name.casefold() for name in fact.entities} for fact in (pair.first, pair.second)]
    terms = [set(text.analyze(fact.content)) for fact in (pair.first, pair.second)]
    return {
        "fact_a": sides[0],
        "fact_b": sides[1],
        "entity_overlap": round(_jaccard(*names), 3),
        "content_similarity": round(_jaccard(*terms), 3),
        "contradiction_score": round(pair.score, 3),
        "shared_entities": [name.casefold() for name in pair.shared_entities],
        "reason": pair.reason,
    }


def _jaccard(first: set[str], second: set[str]) -> float:
    return len(first & second) / len(first | second) if first or second else 0.0


_ACTIONS: Final[dict[str, Callable[[Memory, _Arguments], Result]]] = {
    "add": _add,
    "search": _search,
    "probe": _probe,
    "related": _related,
    "reason": _reason,
    "contradict": _contradict,
    "update": _update,
    "remove": _remove,
    "list": _list,
    "ask": _ask,
    "entities": _entities,
    "why": _why,
}

FACT_STORE: Final = _schema()
FACT_FEEDBACK: Final[Result] = {
    "name": "fact_feedback",
    "description": (
        "Rate a fact after you used it: 'helpful' when it was right, 'unhelpful' when it was wrong or outdated. "
        "Facts that help are found sooner, others later."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["helpful", "unhelpful"]},
            "fact_id": {"type": "integer", "description": "The fact to rate; recalled lines begin with it."},
        },
        "required": ["action", "fact_id"],
    },
}
SCHEMAS: Final = (FACT_STORE, FACT_FEEDBACK)
_KNOWN: Final = frozenset(FACT_STORE["parameters"]["properties"])
