"""The demo: what it claims is what happens, and it leaves the memory of its user alone."""

import json
import re

import pytest
from click.testing import CliRunner

from holomem import Memory, demo, text
from holomem.cli import main


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLOMEM_DB", str(tmp_path / "own.db"))


def run(*args, code=0):
    result = CliRunner().invoke(main, [*map(str, args)])
    assert result.exit_code == code, result.output
    return result


def best(result):
    return [answer["hits"][0]["fact"]["content"] if answer["hits"] else None for answer in json.loads(result.stdout)]


ANSWERS = [demo.FACTS[question.answer].content for question in demo.QUESTIONS]


def test_the_data_are_facts_in_six_languages_and_six_questions():
    assert len(demo.FACTS) == len({fact.content for fact in demo.FACTS}) == 25
    scripts = {text.script(fact.content) for fact in demo.FACTS}
    assert {"latin", "cyrillic", "han", "kana"} <= scripts
    assert len(demo.QUESTIONS) == 6
    assert demo.QUESTIONS[0].text == "как выкатить nginx на прод"


def test_without_a_model_it_says_in_one_line_what_is_missing_and_answers_by_the_other_channels():
    result = run("demo")
    lines = result.stdout.splitlines()
    assert lines[1].startswith("The semantic channel is missing: no embedding model")
    assert result.stderr == ""
    assert re.findall(r"(?m)^\d\. .*", result.stdout) == [
        f"{n}. {question.title}" for n, question in enumerate(demo.QUESTIONS, 1)
    ]
    assert "demo" not in lines[-1]
    assert lines[-1].strip() == "holomem status"
    assert "switched off by --no-model" in run("demo", "--no-model").stdout


def test_without_a_model_all_are_answered_but_the_paraphrase():
    found = best(run("demo", "--no-model", "--json"))
    assert found == [ANSWERS[0], None, *ANSWERS[2:]]


def test_it_never_writes_into_the_memory_of_its_user(tmp_path):
    run("demo", "--no-model")
    assert list(tmp_path.iterdir()) == []
    assert "is your own memory" in run("demo", "--no-model", "--db", tmp_path / "own.db", code=1).stderr
    assert list(tmp_path.iterdir()) == []
    with Memory(tmp_path / "other.db", embedder=None) as memory:
        memory.add("a fact that matters")
    assert "holds other facts" in run("demo", "--no-model", "--db", tmp_path / "other.db", code=1).stderr
    with Memory(tmp_path / "other.db", embedder=None) as memory:
        assert len(memory) == 1


def test_with_a_file_of_its_own_it_can_be_looked_at_afterwards_and_run_again(tmp_path):
    for _ in range(2):
        run("demo", "--no-model", "--db", tmp_path / "demo.db")
    assert len(json.loads(run("--db", tmp_path / "demo.db", "list", "--json").stdout)) == 25


def test_a_file_of_another_program_is_not_converted_for_it(shared, tmp_path):
    path = tmp_path / "hermes.db"
    content = (shared / "compat" / "hermes_memory_store.db").read_bytes()
    path.write_bytes(content)
    assert "is no file of holomem" in run("demo", "--no-model", "--db", path, code=1).stderr
    assert path.read_bytes() == content


@pytest.mark.model
def test_with_a_model_every_question_is_answered_first_of_all_the_russian_one(shared, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLOMEM_MODEL_DIR", str(shared / "models" / "multilingual-e5-small"))
    result = run("demo", "--db", tmp_path / "demo.db", "--json")
    assert best(result) == ANSWERS
    result = run("--db", tmp_path / "demo.db", "search", "как выкатить nginx на прод", "--explain")
    assert result.stdout.splitlines()[1].endswith("To roll out nginx to production, run `make release`")
    assert re.search(r"semantic  0\.30 x 0\.[1-9]", result.stdout)
    assert result.stderr == ""
