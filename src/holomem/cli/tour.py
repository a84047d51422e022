"""`holomem demo`: six questions to a small invented memory, each with what it shows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from holomem import demo
from holomem.cli import render
from holomem.cli.console import print_json, print_lines, say, visible
from holomem.cli.program import IN_MEMORY, Command, Failure, json_option, same_file, settings
from holomem.errors import DegradedWarning, StoreError
from holomem.memory import Memory
from holomem.types import Hit, StructuralHit

__all__ = ["show_demo"]

SHOWN: Final = 3  # hits of each question


@click.command("demo", cls=Command)
@json_option
def show_demo(as_json: bool) -> None:
    """Show six questions to a small memory in six languages. Your own memory is not touched."""
    chosen = settings()
    path = chosen.path if chosen.db else IN_MEMORY
    if chosen.db:
        _refuse_others(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegradedWarning)  # said in the first lines
        with Memory(path, embedder="auto" if chosen.model else None, fetch=chosen.model) as memory:
            memory.add_many(demo.FACTS)
            off = memory.status().channels["semantic"]
            found = [_ask(memory, question) for question in demo.QUESTIONS]
    if as_json:
        print_json([_answer_json(question, hits) for question, hits in zip(demo.QUESTIONS, found, strict=True)])
        return
    where = f"in {visible(path)}" if chosen.db else "in a memory that is gone afterwards"
    say(f"{len(demo.FACTS)} invented facts in English, Russian, Chinese, German, Spanish and Japanese, {where}.")
    if off is not None:
        say(f"The semantic channel is missing: {render.why(off)}")
    for number, (question, hits) in enumerate(zip(demo.QUESTIONS, found, strict=True), 1):
        say(f"\n{number}. {question.title}")
        say(f"   $ holomem {visible(_command(question))}")
        say()
        print_lines(f"   {line}" for line in _answer(hits))
        say()
        say(f"   {question.blind if off is not None and question.blind else question.shows}")
        if hits and isinstance(hits[0], Hit):
            say(f"   first: {render.shares(hits[0])}")
    say("\nNow with facts of your own:")
    say('   holomem add "Alice deploys nginx through CI"')
    say('   holomem search "who deploys nginx?" --explain')
    say("   holomem status")


def _refuse_others(path: str) -> None:
    """Raise unless the file is new or an earlier demo; reading alone never changes it."""
    if same_file(path):
        raise Failure(f"{path} is your own memory; name another file, or leave --db out")
    if Path(path).exists():
        ours = {fact.content for fact in demo.FACTS}
        try:
            with Memory(path, embedder=None, read_only=True) as memory:
                found = {fact.content for fact in memory.facts(limit=None)}
        except StoreError as error:
            raise Failure(f"{path} is no file of holomem; name a new one, or leave --db out") from error
        if not found <= ours:
            raise Failure(f"{path} holds other facts; name a new file, or leave --db out")


def _ask(memory: Memory, question: demo.Question) -> list[Hit] | list[StructuralHit]:
    if question.entities:
        return memory.reason(question.entities, limit=SHOWN)
    return memory.search(question.text, limit=SHOWN)


def _command(question: demo.Question) -> str:
    if question.entities:
        return f"reason {' '.join(question.entities)}"
    quote = "'" if '"' in question.text else '"'
    return f"search {quote}{question.text}{quote}"


def _answer(hits: Sequence[Hit | StructuralHit]) -> Iterable[str]:
    found = [hit for hit in hits if isinstance(hit, Hit)]
    bound = [hit for hit in hits if isinstance(hit, StructuralHit)]
    return [*render.hit_table(found), *render.structural_table(bound)] or ["nothing found"]


def _answer_json(question: demo.Question, hits: Sequence[Hit | StructuralHit]) -> dict[str, Any]:
    return {
        "title": question.title,
        "command": _command(question),
        "hits": hits,
    }
