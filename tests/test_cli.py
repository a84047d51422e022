"""The program `holomem`, through click's runner for breadth and as a process for what only a process has."""

import ast
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import holomem.cli
from holomem import Hit, Memory, NewFact
from holomem.cli import main, render
from holomem.cli.console import fold, pad, table, visible, width
from holomem.cli.program import default_path

FACTS = (
    NewFact("Alice deploys nginx through CI", "project", "deploy", ["Alice", "nginx"]),
    NewFact("Бэкапы базы лежат на pve-01", entities=["pve-01"]),
    NewFact("东京的服务器在三楼"),
    NewFact("The user prefers dark mode 🌒", "user_pref"),
)


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch, tmp_path):
    """No test reads or writes the memory of whoever runs it."""
    monkeypatch.delenv("HOLOMEM_DB", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def run(path):
    """Run a command on the memory at `path` without the model."""

    def call(*args, code=0, stdin=None):
        result = CliRunner().invoke(main, ["--db", str(path), "--no-model", *map(str, args)], input=stdin)
        assert result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call


@pytest.fixture
def filled(run, path):
    """The same with the four `FACTS`."""
    with Memory(path, embedder=None) as memory:
        memory.add_many(FACTS)
    return run


def process(*args, stdin=b"", **environment):
    """Run the program as a process of its own."""
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", **environment}
    return subprocess.run([sys.executable, "-m", "holomem", *map(str, args)], input=stdin, capture_output=True, env=env)


def from_json(result):
    return json.loads(result.stdout)


# ---- facts ------------------------------------------------------------------------------------------------------


def test_add_shows_the_facts_with_their_labels(run):
    labels = ["--category", "project", "--tag", "deploy", "--entity", "Alice", "--entity", "nginx"]
    lines = run("add", "Alice deploys nginx through CI", *labels).stdout.splitlines()
    assert lines[0].split() == ["id", "trust", "category", "tags", "content"]
    assert lines[1].split(maxsplit=4) == ["1", "0.50", "project", "deploy", "Alice deploys nginx through CI"]


def test_add_says_when_a_fact_was_said_and_explain_tells_that_it_was_asked_for(run):
    (fact,) = from_json(run("add", "Caroline went to a support group", "--time", "2023-05-08", "--json"))
    assert fact["created_at"].startswith("2023-05-08")
    (hit,) = from_json(run("search", "where did Caroline go in May 2023", "--json"))
    assert hit["timely"] == pytest.approx(1.75)
    assert "x timely" in run("search", "where did Caroline go in May 2023", "--explain").stdout
    run("add", "said at no time", "--time", "neverday", code=2)


def test_add_takes_each_argument_as_a_fact_and_tells_what_was_there_already(run):
    run("add", "the first fact")
    result = run("add", "the first fact", "the second fact", "--json")
    assert [fact["fact_id"] for fact in from_json(result)] == [1, 2]
    result = run("add", "the first fact", "the third fact")
    assert result.stderr == "note: 1 of these was there already and stayed as before\n"


def test_add_reads_one_fact_a_line_from_standard_input(run):
    facts = from_json(run("add", "-", "--json", stdin="\ufeffone fact\r\n\n  \nещё один факт\n".encode()))
    assert [fact["content"] for fact in facts] == ["one fact", "ещё один факт"]


@pytest.mark.parametrize("contents", [["Alice", "deploys", "nginx"], [" "], [""], ["a fact", ""], []])
def test_add_refuses_words_without_quotes_and_nothing_at_all(run, path, contents):
    run("add", *contents, code=2)
    assert not path.exists()


def test_standard_input_that_is_not_utf8_is_one_line_of_error(run, path):
    result = run("add", "-", stdin=b"caf\xe9 fact", code=1)
    assert result.stderr == "error: standard input is not UTF-8 at byte 3; convert it first\n"
    assert not path.exists()


def test_search_has_a_column_for_every_channel(filled):
    lines = filled("search", "nginx", "deploys").stdout.splitlines()
    assert lines[0].split() == ["id", "score", "fts", "jaccard", "hrr", "semantic", "content"]
    fact_id, score, *channels, content = lines[1].split(maxsplit=6)
    assert (fact_id, content) == ("1", "Alice deploys nginx through CI")
    assert float(score) > 0
    assert channels[3] == "-"  # no model


def test_a_score_in_json_can_be_recomputed(filled):
    (hit,) = from_json(filled("search", "Alice deploys nginx", "--json", "--half-life", 30, "--limit", 1))
    relevance = sum(hit["weights"][name] * value for name, value in hit["channels"].items() if value is not None)
    assert hit["relevance"] == pytest.approx(relevance)
    assert hit["score"] == pytest.approx(relevance * hit["fact"]["trust_score"] * hit["decay"])


def test_explain_says_how_the_score_is_made(filled):
    hit = from_json(filled("search", "Alice deploys", "--json", "--limit", 1))[0]
    lines = filled("search", "Alice deploys", "--explain", "--limit", 1).stdout.split("\n\n")[1].splitlines()
    assert lines[0] == "#1  Alice deploys nginx through CI"
    assert [line.split()[0] for line in lines[1:]] == [
        "fts",
        "jaccard",
        "hrr",
        "semantic",
        "names",
        "relevance",
        "x",
        "x",
        "=",
    ]
    fts = hit["channels"]["fts"]
    assert lines[1].split()[1:6] == ["0.45", "x", f"{fts:.3f}", "=", f"{0.45 * fts:.3f}"]
    assert lines[4].split(maxsplit=1)[1] == "absent: switched off by --no-model"
    assert lines[5].split() == ["names", "Alice"]
    assert lines[9].split() == ["=", "score", f"{hit['score']:.3f}"]


def test_shares_of_a_hit_add_up_in_one_line(memory):
    memory.add("Alice deploys nginx")
    hit = memory.search("nginx")[0]
    assert isinstance(hit, Hit)
    assert render.shares(hit).endswith(f"x trust 0.50 = {hit.score:.3f}")


def test_search_filters(filled):
    def found(*options):
        return [
            hit["fact"]["fact_id"] for hit in from_json(filled("search", "Alice dark mode pve-01", *options, "--json"))
        ]

    assert sorted(found()) == [1, 2, 4]
    assert found("--category", "user_pref") == [4]
    assert found("--tag", "deploy", "--tag", "other") == [1]
    assert found("--tag", "deploy", "--tag", "other", "--all-tags") == []
    assert found("--min-trust", "0.6") == []
    assert len(found("--limit", "2")) == 2
    assert found("--until", "2020-01-01") == []
    assert sorted(found("--since", "2020-01-01")) == [1, 2, 4]
    assert found("--cascade") == []
    assert from_json(filled("search", "Alice nginx", "--cascade", "--json"))[0]["fact"]["fact_id"] == 1


def test_a_day_as_upper_bound_lasts_until_its_end(filled):
    created = from_json(filled("show", 1, "--json"))["created_at"]
    assert filled("list", "--until", created[:10]).stdout
    assert filled("list", "--until", created[:10] + "T00:00:00", "--since", created[:10]).stdout == ""
    filled("list", "--since", "yesterday", code=2)


@pytest.mark.parametrize("query", ['"', "NEAR(", "* OR", "-x", "a:b", "🚀", "", "%", "'; DROP TABLE facts"])
def test_any_text_is_a_query(filled, query):
    filled("search", "--", query)
    assert len(from_json(filled("list", "--json"))) == 4


def test_a_query_may_come_from_standard_input(filled):
    assert from_json(filled("search", "-", "--json", stdin="сервер базы\n"))[0]["fact"]["fact_id"] == 2


def test_nothing_found_is_a_note_and_an_empty_list(filled):
    result = filled("search", "zzzqqq")
    assert (result.stdout, result.stderr) == ("", "note: nothing found\n")
    assert filled("search", "zzzqqq", "-q").stderr == ""
    assert from_json(filled("search", "zzzqqq", "--json")) == []


def test_probe_reason_and_related(filled):
    filled("add", "Alice speaks Portuguese", "--entity", "Alice", "--entity", "Portuguese")
    assert {hit["fact"]["fact_id"] for hit in from_json(filled("probe", "alice", "--json"))} == {1, 5}
    assert [hit["fact"]["fact_id"] for hit in from_json(filled("reason", "Alice", "nginx", "--json"))] == [1]
    assert [hit["fact"]["fact_id"] for hit in from_json(filled("related", "nginx", "--json"))] == [5]
    assert filled("probe", "Alice").stdout.splitlines()[0].split() == ["id", "score", "presence", "linked", "content"]
    assert filled("probe", "nobody").stdout == ""


def test_contradictions_show_both_facts_and_the_reason(run):
    run("add", "Alice lives in Berlin", "Alice lives in Lisbon", "--entity", "Alice")
    (pair,) = from_json(run("contradictions", "--json"))
    assert {pair["first"]["content"], pair["second"]["content"]} == {"Alice lives in Berlin", "Alice lives in Lisbon"}
    reason, first, second = run("contradictions").stdout.splitlines()
    assert pair["reason"] in reason
    assert [first.split()[0], second.split()[0]] == ["1", "2"]


def test_a_pair_is_told_to_stay_and_doubted_again(run):
    run("add", "The editor of choice is Vim", "The editor of choice is Emacs")
    assert from_json(run("contradictions", "--keep-both", "2", "1", "--json")) == []
    assert from_json(run("contradictions", "--json")) == []
    assert len(from_json(run("contradictions", "--doubt", "1", "2", "--json"))) == 1


def test_add_notes_what_a_new_fact_contradicts(run):
    run("add", "Alice lives in Berlin", "--entity", "Alice")
    added = run("add", "Alice lives in Lisbon", "--entity", "Alice")
    assert "2 contradicts 1" in added.stderr
    assert "Berlin / Lisbon" in added.stderr
    assert "contradicts" not in run("add", "Alice plays the cello", "--entity", "Alice").stderr


def test_list_pages_filters_and_has_an_alias(filled):
    result = filled("list", "--limit", 3)
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["id", "4", "3", "2"]
    assert result.stderr == "note: there are more; the next ones with --offset 3\n"
    assert filled("facts", "--limit", 3, "--offset", 3).stderr == ""
    assert [fact["fact_id"] for fact in from_json(filled("facts", "--matching", "dark mode", "--json"))] == [4]
    assert [fact["fact_id"] for fact in from_json(filled("list", "--category", "project", "--json"))] == [1]
    assert [fact["fact_id"] for fact in from_json(filled("list", "--tag", "deploy", "--json"))] == [1]


def test_show_has_everything(filled):
    lines = dict(line.split(maxsplit=1) for line in filled("show", 1).stdout.splitlines())
    assert lines["content"] == "Alice deploys nginx through CI"
    assert lines["entities"] == "Alice, nginx"
    assert lines["created"].endswith("Z")
    fact = from_json(filled("show", 1, "--json"))
    assert fact["entities"] == ["Alice", "nginx"]
    assert fact["created_at"].endswith("+00:00")


def test_edit_changes_what_is_given(filled):
    fact = from_json(filled("edit", 1, "--tag", "a", "--tag", "b", "--trust-delta", "-0.2", "--json"))
    assert (fact["tags"], fact["trust_score"], fact["category"]) == ("a,b", pytest.approx(0.3), "project")
    fact = from_json(filled("edit", 1, "--content", "Bob deploys nginx", "--entity", "Bob", "--json"))
    assert (fact["content"], fact["entities"]) == ("Bob deploys nginx", ["Bob"])
    fact = from_json(filled("edit", 1, "--content", "-", "--tag", "", "--json", stdin="two\nlines\n"))
    assert (fact["content"], fact["tags"]) == ("two\nlines", "")
    assert "content    two\n           lines\n" in filled("show", 1).stdout
    filled("edit", 1, code=2)
    result = filled("edit", 1, "--content", "东京的服务器在三楼", code=1)
    assert result.stderr == "error: fact 3 already says exactly this; remove one of the two instead\n"


def test_remove_goes_on_after_an_id_that_is_not_there(filled):
    result = filled("remove", 99, 1, 2, code=1)
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [["removed", "1"], ["removed", "2"]]
    assert result.stderr == "error: no fact 99; it may have been removed\n"
    assert from_json(filled("remove", 3, 3, "--json")) == [3]


def test_feedback_moves_trust(filled):
    assert filled("feedback", 1, "--helpful").stdout == "trust of 1 is 0.55 now\n"
    assert from_json(filled("feedback", 1, "--unhelpful", "--json"))["trust_score"] == pytest.approx(0.45)
    filled("feedback", 1, code=2)


def test_entities_are_listed_with_their_facts(filled):
    filled("add", "nginx writes its log to /var/log", "--entity", "nginx")
    assert filled("entities").stdout.splitlines()[1].split() == ["2", "nginx", "unknown"]
    assert from_json(filled("entities", "--json"))[0]["name"] == "nginx"


@pytest.mark.parametrize("fact_id", ["0", "-1", "x", "1.5", "9223372036854775808", ""])
def test_an_id_that_cannot_be_one_is_a_usage_error(filled, fact_id):
    for command in (["show"], ["remove"], ["edit", "--tag", "x"], ["feedback", "--helpful"]):
        filled(*command, "--", fact_id, code=2)


@pytest.mark.parametrize("command", ["show", "edit --tag x", "feedback --helpful", "remove"])
def test_a_fact_that_is_not_there_is_one_line_of_error(filled, command):
    result = filled(*command.split(), 77, code=1)
    assert result.stderr == "error: no fact 77; it may have been removed\n"


# ---- import and export ------------------------------------------------------------------------------------------


def lines_of(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_export_import_export_gives_the_same_lines_imp_01(filled, tmp_path):
    filled("feedback", 1, "--helpful")
    filled("search", "nginx")
    first = filled("export").stdout_bytes
    (tmp_path / "facts.jsonl").write_bytes(first)
    other = ["--db", tmp_path / "other.db"]
    assert filled(*other, "import", tmp_path / "facts.jsonl").stdout == "4 added, 0 updated, 0 unchanged\n"
    assert filled(*other, "export").stdout_bytes == first
    assert filled(*other, "import", "-", stdin=first).stdout == "0 added, 0 updated, 4 unchanged\n"
    assert filled(*other, "export").stdout_bytes == first


def test_import_keeps_what_was_removed_here_away_unless_it_is_restored_imp_01(filled):
    lines = filled("export").stdout_bytes
    filled("remove", 1)
    result = filled("import", "-", stdin=lines)
    assert result.stdout == "0 added, 0 updated, 3 unchanged\n"
    assert result.stderr == "note: 1 that were removed or edited away here stay away; --restore brings them back\n"
    assert filled("import", "-", "--restore", stdin=lines).stdout == "1 added, 0 updated, 3 unchanged\n"


def test_a_bad_line_is_reported_with_its_number_and_does_not_stop_the_rest(run):
    good = '{"content": "a good fact"}'
    lines = [good, "{broken", "", '{"content": 5}', "[1]", '{"content": "x", "trust_score": 7}', '{"content": "last"}']
    result = run("import", "-", stdin="\r\n".join(lines).encode(), code=1)
    assert result.stdout == "2 added, 0 updated, 0 unchanged\n"
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["line 2", "line 4", "line 5", "line 6"]
    assert [fact["content"] for fact in from_json(run("list", "--json"))] == ["last", "a good fact"]


def test_a_line_that_is_not_utf8_is_a_bad_line(run):
    result = run("import", "-", "--json", stdin=b'{"content": "caf\xe9"}\n{"content": "caf\xc3\xa9"}\n', code=1)
    assert [number for number, _ in from_json(result)["errors"]] == [1]
    assert result.stderr.startswith("line 1: ")
    assert from_json(run("list", "--json"))[0]["content"] == "café"


def test_a_dry_run_changes_nothing_and_makes_no_file(run, path):
    result = run("import", "-", "--dry-run", stdin=b'{"content": "a fact"}\n')
    assert result.stdout == "1 would be added, 0 updated, 0 unchanged\n"
    assert not path.exists()
    run("add", "another fact")
    run("import", "-", "--dry-run", stdin=b'{"content": "a fact"}\n{"content": "another fact"}\n')
    assert len(from_json(run("list", "--json"))) == 1


def test_export_to_a_file_replaces_it_whole_and_is_for_the_owner_only(filled, tmp_path):
    target = tmp_path / "facts.jsonl"
    target.write_text("old")
    result = filled("export", target)
    assert (result.stdout, result.stderr) == ("", f"note: 4 facts are in {target}\n")
    assert target.read_bytes() == filled("export", "-").stdout_bytes
    assert target.stat().st_mode & 0o077 == 0
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
    result = filled("export", tmp_path / "missing" / "facts.jsonl", code=1)
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


# ---- upkeep -----------------------------------------------------------------------------------------------------


def test_status_tells_what_is_there_and_why_a_channel_is_off(filled, path):
    text = filled("status").stdout
    assert str(path) in text
    assert "semantic  off: switched off by --no-model" in text
    state = from_json(filled("status", "--json"))
    assert (state["facts"], state["journal_mode"], state["missing_vectors"]) == (4, "wal", 4)
    assert state["channels"]["fts"] is None
    assert state["sqlite_version"] == sqlite3.sqlite_version


def test_doctor_exits_with_1_when_something_is_degraded(filled, path):
    degraded = bool(from_json(filled("status", "--json"))["problems"])  # the reference kernels, where none are built
    assert ("all is well" in filled("doctor", code=int(degraded)).stdout) == (not degraded)
    result = CliRunner().invoke(main, ["--db", str(path), "doctor"])  # the model is wanted and missing
    assert result.exit_code == 1
    assert "problem   semantic search is off: no embedding model" in result.stdout
    assert "semantic  off, see below" in result.stdout


def test_doctor_repairs_the_full_text_index(filled, path):
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO facts_fts(facts_fts) VALUES ('delete-all')")
    connection.close()
    assert "doctor --repair" in filled("doctor", code=1).stdout
    result = CliRunner().invoke(main, ["--db", str(path), "--no-model", "doctor", "--repair", "--json"])
    assert not [problem for problem in json.loads(result.stdout)["problems"] if "damaged" in problem]
    assert filled("search", "nginx").stdout


@pytest.mark.parametrize("command", ["backfill", "reembed"])
def test_vectors_need_a_model_and_the_error_is_said_once(filled, path, command):
    filled(command, code=2)
    result = CliRunner().invoke(main, ["--db", str(path), command])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: no embedding model")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["backfill", "reembed"])
@pytest.mark.usefixtures("filled")
def test_vectors_are_made_with_a_model(path, command, embedder, monkeypatch):
    monkeypatch.setattr("holomem.semantics.default_embedder", lambda wanted: embedder)
    result = CliRunner().invoke(main, ["--db", str(path), command, "--json"])
    assert list(json.loads(result.stdout).values()) == [4]
    assert result.stderr == ""
    state = json.loads(CliRunner().invoke(main, ["--db", str(path), "status", "--json"]).stdout)
    assert (state["vectors"], state["missing_vectors"]) == (4, 0)


def test_import_makes_vectors_with_a_model(run, path, embedder, monkeypatch):
    monkeypatch.setattr("holomem.semantics.default_embedder", lambda wanted: embedder)
    CliRunner().invoke(main, ["--db", str(path), "import", "-"], input='{"content": "a fact"}')
    assert from_json(run("status", "--json"))["foreign_vectors"] == 1  # of a model that this command does not know


def test_backup_is_a_whole_copy_for_the_owner_only_imp_03(filled, tmp_path):
    target = tmp_path / "copy.db"
    assert filled("backup", target).stdout == f"4 facts are in {target}\n"
    assert target.stat().st_mode & 0o077 == 0
    assert len(from_json(filled("--db", target, "list", "--json"))) == 4
    assert filled("backup", target, code=1).stderr == f"error: {target} exists already; name a new file\n"
    assert from_json(filled("backup", tmp_path / "other.db", "--json"))["facts"] == 4


# ---- the file ---------------------------------------------------------------------------------------------------

READING = [
    "search x", "probe x", "related x", "reason x y", "contradictions", "list", "show 1", "edit 1 --tag x", "remove 1",
    "feedback 1 --helpful", "entities", "export", "backfill", "reembed", "status", "doctor", "backup copy.db",
]  # fmt: skip


@pytest.mark.parametrize("command", READING)
def test_a_memory_that_is_not_there_is_not_made_by_reading(tmp_path, command):
    path = tmp_path / "new.db"
    result = CliRunner().invoke(main, ["--db", str(path), *command.split()])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        f'error: there is no memory yet at {path}; add the first fact with `holomem --db {path} add "..."`\n'
    )
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_db_else_the_environment_else_the_data_folder(tmp_path, monkeypatch):
    def path(*args, env=None):
        result = CliRunner().invoke(main, ["--no-model", *args, "add", "one fact", "-q"], env=env)
        assert result.exit_code == 0, result.output
        status = CliRunner().invoke(main, ["--no-model", *args, "status", "--json"], env=env)
        return Path(json.loads(status.stdout)["path"])

    env = {"HOLOMEM_DB": str(tmp_path / "env.db")}
    assert path() == tmp_path / "data" / "holomem" / "memory.db"
    assert path(env=env) == tmp_path / "env.db"
    assert path("--db", str(tmp_path / "option.db"), env=env) == tmp_path / "option.db"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert path("--db", "~/home.db") == tmp_path / "home.db"


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"XDG_DATA_HOME": "/srv/data"}, "/srv/data/holomem/memory.db"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "/home/me/.local/share/holomem/memory.db"),
        ("linux", {"XDG_DATA_HOME": ""}, "/home/me/.local/share/holomem/memory.db"),
        ("darwin", {}, "/home/me/Library/Application Support/holomem/memory.db"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/holomem/memory.db"),
        ("win32", {"LOCALAPPDATA": ""}, "/home/me/AppData/Local/holomem/memory.db"),
    ],
)
def test_the_data_folder_is_that_of_the_platform(monkeypatch, platform, environment, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_path() == Path(expected)


def test_common_options_may_stand_before_and_after_the_command(path):
    assert CliRunner().invoke(main, ["add", "one fact", "--db", str(path), "--no-model", "-q"]).stderr == ""
    result = CliRunner().invoke(main, ["--db", "elsewhere.db", "--no-model", "list", "--json", "--db", str(path)])
    assert [fact["content"] for fact in json.loads(result.stdout)] == ["one fact"]


@pytest.mark.parametrize("content", [b"no database at all", b"SQLite format 3\0" + bytes(84)])
def test_a_file_of_something_else_is_one_line_of_error_and_left_alone(tmp_path, content):
    path = tmp_path / "other.db"
    path.write_bytes(content)
    result = CliRunner().invoke(main, ["--db", str(path), "--no-model", "list"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert path.read_bytes() == content


def test_a_hermes_file_is_opened_with_a_note_where_the_untouched_copy_lies(shared, tmp_path):
    path = tmp_path / "hermes.db"
    shutil.copy(shared / "compat" / "hermes_memory_store.db", path)
    result = CliRunner().invoke(main, ["--db", str(path), "--no-model", "list", "--json"])
    assert len(json.loads(result.stdout)) == 33
    (copy,) = tmp_path.glob("hermes.db.before-holomem-*")
    assert result.stderr == f"note: {path} was converted for holomem; the untouched copy is {copy}\n"
    assert CliRunner().invoke(main, ["--db", str(path), "--no-model", "list", "--json"]).stderr == ""


# ---- consoles ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("привет", 6),
        ("東京", 4),
        ("e\u0301", 1),
        ("한국", 4),
        ("👍", 2),
        ("ｱ", 1),
        ("Ａ", 2),
        ("นี่", 1),
        ("", 0),
    ],
)
def test_width_counts_terminal_columns(text, columns):
    assert width(text) == columns
    assert width(pad(text, 10)) == 10
    assert pad(text, 10, "right").endswith(text)


def test_fold_keeps_every_character_and_the_width():
    text = (
        "Alice said 東京の本番データベースのパスワードは四半期ごとに変更する, see https://example.org/"
        + "x" * 40
        + " end"
    )
    for columns in (2, 7, 20, 30, 300):
        lines = fold(text, columns)
        assert all(width(line) <= columns for line in lines)
        assert "".join("".join(lines).split()) == "".join(text.split())
    assert fold("to be or not", 6) == ["to be", "or not"]
    assert fold("", 6) == [""]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\rd\x07", "a\\nb\\tc\\rd\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202egnp.exe", "abc\\u202egnp.exe"),
        ("a\u2066b\u200fc", "a\\u2066b\\u200fc"),
        ("hidden\U000e0041", "hidden\\U000e0041"),
        ("half \ud800", "half \\ud800"),
        ("می\u200cخواهم 👩\u200d💻", "می\u200cخواهم 👩\u200d💻"),
    ],
)
def test_what_could_steer_a_terminal_is_shown_as_an_escape(text, shown):
    assert visible(text) == shown


def test_a_table_lines_up_in_every_script():
    rows = [["1", "東京", "a"], ["22", "e\u0301", "b"], ["3", "привет", "c"]]
    lines = list(table([("id", "right"), ("name", "left"), ("x", "left")], rows))
    assert {width(line) for line in lines} == {13}
    assert list(table([("id", "right")], [])) == []


HOSTILE = "\x1b]0;owned\x07 \x1b[2J line one\nline two \u202e evil \x9b1m"


def test_stored_text_cannot_break_the_table_or_the_terminal(run):
    run("add", HOSTILE, "--tag", "\x1b[31m", "--category", "a\nb", "--entity", "\x1b[1mZed")
    run("add", "Zed lives in Berlin", "Zed lives in Rome \x1b[0m", "--entity", "Zed")
    for command in ("list", "search line", "search line --explain", "show 1", "entities", "probe Zed", "remove 1"):
        output = run(*command.split()).stdout
        assert all(char == "\n" or char.isprintable() for char in output), (command, output)
    assert all(char == "\n" or char.isprintable() for char in run("contradictions").stdout)


def test_json_is_unescaped_but_for_what_could_steer_a_terminal(run):
    run("add", HOSTILE)
    run("add", "東京 – привет")
    text = run("list", "--json").stdout
    assert "東京 – привет" in text
    assert all(char == "\n" or char.isprintable() for char in text)
    assert json.loads(text)[1]["content"] == HOSTILE
    assert json.loads(run("export").stdout.splitlines()[0])["content"] == HOSTILE


@pytest.mark.parametrize("encoding", ["ascii", "cp1251"])
@pytest.mark.usefixtures("filled")
def test_any_language_on_any_console(path, encoding):
    result = process("--db", path, "--no-model", "list", PYTHONIOENCODING=encoding)
    assert (result.returncode, result.stderr) == (0, b"")
    lines = result.stdout.decode(encoding).splitlines()
    assert len(lines) == 5
    assert "Alice deploys nginx through CI" in lines[4]
    assert ("Бэкапы" in lines[3]) == (encoding != "ascii")
    assert "\\u4e1c\\u4eac" in lines[2]
    result = process("--db", path, "--no-model", "list", "--json", PYTHONIOENCODING=encoding)
    assert json.loads(result.stdout.decode("utf-8"))[1]["content"] == "东京的服务器在三楼"


@pytest.mark.usefixtures("filled")
def test_notes_and_errors_leave_standard_output_to_the_data(path):
    result = process("--db", path, "search", "nginx", "--json")  # no model: a note
    assert json.loads(result.stdout)[0]["fact"]["fact_id"] == 1
    notes = result.stderr.decode().splitlines()
    assert len(notes) == 1
    assert notes[0].startswith("note: semantic search is off: no embedding model")
    assert CliRunner().invoke(main, ["--db", str(path), "search", "nginx", "-q"]).stderr == ""


def test_an_argument_that_is_not_utf8_is_one_line_of_error(path):
    args = [sys.executable, "-m", "holomem", "--db", str(path), "--no-model", "add", b"caf\xe9 fact"]
    result = subprocess.run(args, capture_output=True, env={**os.environ, "PYTHONUTF8": "1"})
    assert result.returncode == 1
    assert result.stderr.startswith(b"error: content holds the lone surrogate")
    assert len(result.stderr.splitlines()) == 1


def test_a_reader_that_goes_away_ends_the_program_silently(path):
    with Memory(path, embedder=None) as memory:
        memory.add_many([NewFact(f"fact number {i} " + "x" * 1000, entities=()) for i in range(500)])
    for command in (["list", "--limit", "500"], ["export"]):
        args = [sys.executable, "-m", "holomem", "--db", str(path), "--no-model", *command]
        with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            program.stdout.read(10)
            program.stdout.close()
            assert program.stderr.read() == b""


def test_ctrl_c_ends_with_130_and_no_traceback(path):
    args = [sys.executable, "-c", "import holomem.cli, sys; print('up', flush=True); holomem.cli.main()"]
    with subprocess.Popen(
        [*args, "--db", str(path), "add", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout.readline() == b"up\n"
        time.sleep(0.3)  # it waits for its input by now
        program.send_signal(signal.SIGINT)
        out, err = program.communicate()
    assert (program.returncode, out, err.strip()) == (130, b"", b"")


def test_a_terminal_gets_folded_lines_and_a_progress_bar(filled, path):
    import pty  # not on Windows

    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import holomem.semantics, conftest\n"
        "holomem.semantics.default_embedder = lambda wanted: conftest.HashEmbedder()\n"
        "import holomem.cli; holomem.cli.main()"
    )
    filled("add", "a long fact " + "that goes on and on " * 10)
    master, slave = pty.openpty()
    env = {**os.environ, "COLUMNS": "60", "TERM": "dumb"}
    outputs = []
    for command in (["list"], ["backfill"]):
        args = [sys.executable, "-c", code, str(Path(__file__).parent), "--db", str(path), *command]
        subprocess.run(args, stdin=slave, stdout=slave, stderr=slave, env=env, check=True)
        outputs.append(os.read(master, 65536).decode())
    os.close(master)
    os.close(slave)
    assert max(map(len, outputs[0].splitlines())) <= 60
    assert "vectors" in outputs[1]
    assert "5/5" in outputs[1]
    assert "5 vectors written" in outputs[1]


# ---- the program itself -----------------------------------------------------------------------------------------


def test_version_and_help():
    assert CliRunner().invoke(main, ["--version"]).output == f"holomem {holomem.__version__}\n"
    result = CliRunner().invoke(main, ["-h"])
    assert result.exit_code == 0
    for name, command in main.commands.items():
        assert f"  {name} " in result.output
        assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0
        assert command.get_short_help_str(60)[-3:] != "..."


def test_every_command_but_export_has_json():
    commands = {**main.commands, **main.commands["model"].commands}
    for other in ("model", "hermes", "web", "mcp"):  # groups, and servers
        del commands[other]
    assert [name for name, command in commands.items() if "as_json" not in {p.name for p in command.params}] == [
        "export"  # is JSON
    ]


def test_a_mistyped_command_or_option_is_a_usage_error():
    assert CliRunner().invoke(main, ["serach", "x"]).exit_code == 2
    assert CliRunner().invoke(main, ["search", "x", "--limit", "0"]).exit_code == 2


def test_the_command_line_is_light():
    code = "import holomem.cli, sys; print(*(sys.modules.keys() & set(sys.argv[1:])))"
    heavy = ["onnxruntime", "tokenizers", "huggingface_hub", "http.server"]
    result = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""


def test_the_command_line_knows_only_memory_the_other_doors_types_and_errors():
    allowed = {"holomem", "holomem.memory", "holomem.types", "holomem.errors", "holomem.demo", "holomem.paths"}
    allowed.add("holomem.embedding.sources")  # `holomem model` needs no memory
    for file in Path(holomem.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holomem"):
                doors = ("holomem.cli", "holomem.web", "holomem.hermes", "holomem.mcp")
                assert node.module in allowed or node.module.startswith(doors), (file.name, node.module)


# ---- whose, from where, until when; and back -------------------------------------------------------------------------


def test_source_end_successor_and_scope_go_in_and_come_out(run):
    run("add", "Ann Lee lives in Oslo", "--source", "chat 7", "--expires", "30d", "--scope", "user=ann")
    run("add", "Ann Lee lives in Rome", "--supersedes", "1", "--scope", "user=ann", "--scope", "run=7")
    shown = run("show", "1").stdout
    for part in ("chat 7", "user ann", "by fact 2", "expires"):
        assert part in shown
    assert [h["fact"]["fact_id"] for h in from_json(run("search", "Ann Lee", "--scope", "user=ann", "--json"))] == [2]
    assert from_json(run("probe", "Ann Lee", "--scope", "user=bob", "--json")) == []
    assert [f["fact_id"] for f in from_json(run("list", "--current", "--json"))] == [2]
    assert "source" not in run("show", "2").stdout
    run("edit", "1", "--expires", "2020-01-01")
    assert "`holomem purge`" in run("status").stdout
    assert from_json(run("purge", "--json")) == {"removed": 1}


def test_the_history_is_listed_and_a_change_undone(run):
    run("add", "Ann Lee lives in Oslo")
    run("edit", "1", "--tag", "home")
    run("remove", "1")
    lines = run("history").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["3", "2", "1"]
    assert "-> home" in lines[2]
    run("undo", "3")
    assert "home" in run("show", "1").stdout
    assert from_json(run("history", "1", "--json"))[0]["action"] == "undo"
    assert "no change 99" in run("undo", "99", code=1).stderr


@pytest.mark.parametrize(
    "arguments",
    [("--scope", "ann"), ("--scope", "user=a", "--scope", "user=b"), ("--expires", "soon"), ("--supersedes", "0")],
)
def test_a_bad_scope_or_end_is_a_usage_error(run, path, arguments):
    run("add", "one two", *arguments, code=2)
    assert not path.exists()


def test_names_are_mended_and_each_change_is_undone(filled):
    before = from_json(filled("entities", "list", "--json"))
    assert from_json(filled("entities", "--json")) == before
    steps = [
        ("rename nginx Caddy", "rename Caddy nginx"),
        ("alias nginx proxy", "unalias nginx proxy"),
        ("merge Alice pve-01", "split Alice pve-01"),
        ("link 3 Alice", "unlink 3 Alice"),
    ]
    for step, opposite in steps:
        filled("entities", *step.split(), "--json")
        assert from_json(filled("entities", "--json")) != before
        filled("entities", *opposite.split())
        names = [(e["name"], e["aliases"], e["facts"]) for e in from_json(filled("entities", "--json"))]
        assert sorted(names) == sorted((e["name"], e["aliases"], e["facts"]) for e in before)
    assert from_json(filled("entities", "extract", "--json")) == {"changed": 0}
    wrong = filled("entities", "rename", "nobody", "x", code=1)
    assert wrong.stdout == ""
    assert "no entity 'nobody'" in wrong.stderr


def test_related_shows_the_companions(filled, path):
    with Memory(path, embedder=None) as memory:
        memory.add("nginx listens on 443", entities=["nginx"])
    lines = filled("related", "Alice", "--companions").stdout.splitlines()
    assert lines[0].split(maxsplit=1)[1] == "nginx  (1 together)"
    assert lines[1].split(maxsplit=1)[1] == "nginx listens on 443"
    found = from_json(filled("related", "Alice", "--companions", "--json"))
    assert [(c["entity"], c["together"], len(c["facts"])) for c in found] == [("nginx", 1, 1)]


def test_search_has_a_floor_and_a_budget(filled):
    plain = from_json(filled("search", "Alice dark mode pve-01", "--json"))
    assert from_json(filled("search", "what deploys whatever else", "--min-score", 1, "--json")) == []
    assert from_json(filled("search", "Alice dark mode pve-01", "--max-chars", 1, "--json")) == []
    diverse = from_json(filled("search", "Alice dark mode pve-01", "--diversity", 0.5, "--json"))
    assert {hit["fact"]["fact_id"] for hit in diverse} == {hit["fact"]["fact_id"] for hit in plain}


@pytest.mark.skipif(os.name != "posix", reason="rights of files are those of POSIX")
def test_the_page_takes_no_token_that_others_can_read(run, tmp_path):
    token = tmp_path / "token"
    token.write_text("a token that is long enough\n", encoding="utf-8")
    token.chmod(0o640)
    assert "chmod 600" in run("web", "--token-file", str(token), "--port", "0", code=1).stderr
