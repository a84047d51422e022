"""Files of the Hermes plugin: adopted without a loss, still the plugin's afterwards, mended after it wrote."""

import json
import shutil
import sqlite3
import subprocess
import sys
from importlib.util import find_spec

import pytest

from holomem import Memory, NewFact, StoreError

FIXTURES = ["hermes_memory_store", "hermes_memory_store_hrr1"]
COLUMNS = "fact_id, content, category, tags, trust_score, retrieval_count, helpful_count, created_at, updated_at"


def rows(path, statement):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def change(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def assert_sound(path):
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    change(path, "INSERT INTO facts_fts(facts_fts, rank) VALUES ('integrity-check', 1)")


@pytest.fixture(params=FIXTURES)
def plugin_file(request, shared, tmp_path):
    path = tmp_path / "memory_store.db"
    shutil.copyfile(shared / "compat" / f"{request.param}.db", path)
    return path


def test_a_plugin_file_opens_with_every_fact_entity_and_counter(plugin_file):
    facts = rows(plugin_file, f"SELECT {COLUMNS} FROM facts ORDER BY fact_id")
    links = rows(plugin_file, "SELECT fact_id, name FROM fact_entities JOIN entities USING (entity_id)")
    mode = rows(plugin_file, "PRAGMA journal_mode")
    original = plugin_file.read_bytes()
    with Memory(plugin_file, embedder=None) as memory:
        assert len(memory) == len(facts) == 33
        aside = memory.adopted_copy
        held = {(f.fact_id, name) for f in memory.facts(limit=None) for name in f.entities}
        assert set(links) <= held
        assert memory.doctor().problems == ()
    assert rows(plugin_file, f"SELECT {COLUMNS} FROM facts ORDER BY fact_id") == facts
    assert rows(plugin_file, "PRAGMA journal_mode") == mode
    assert rows(aside, f"SELECT {COLUMNS} FROM facts ORDER BY fact_id") == facts
    assert rows(aside, "SELECT count(*) FROM sqlite_master WHERE name = 'meta'") == [(0,)]
    assert len(original) > 0
    assert_sound(plugin_file)


def test_what_the_plugin_could_not_find_is_found(plugin_file):
    with Memory(plugin_file, embedder=None) as memory:
        assert {h.fact.content for h in memory.probe("alice johnson", limit=3)} <= {
            f.content for f in memory.facts(limit=None) if "Alice Johnson" in f.content
        }
        assert memory.search("晚上写代码")[0].fact.content == "用户喜欢在晚上写代码"
        assert memory.search("живёт в Лиссабоне")[0].fact.content == "Пользователь живёт в Лиссабоне"
        found = {c.first.content for c in memory.contradictions()}
        assert "Project Apollo deploys to Kubernetes every Tuesday" in found


def test_opening_again_changes_nothing_and_makes_no_second_copy(plugin_file, tmp_path):
    Memory(plugin_file, embedder=None).close()
    before = rows(plugin_file, "SELECT fact_id, hrr_vector, terms FROM facts ORDER BY 1")
    with Memory(plugin_file, embedder=None) as memory:
        assert memory.adopted_copy is None
    assert rows(plugin_file, "SELECT fact_id, hrr_vector, terms FROM facts ORDER BY 1") == before
    assert len(list(tmp_path.glob("*.before-holomem-*"))) == 1


PLUGIN = """
import json, os, sys
from plugins.memory import load_memory_provider
from agent.memory_manager import MemoryManager
manager = MemoryManager()
manager.add_provider(load_memory_provider("holographic"))
manager.initialize_all(session_id="s1", platform="cli", agent_context="primary", agent_identity="default")
for line in sys.stdin:
    tool, arguments = json.loads(line)
    print(manager.handle_tool_call(tool, arguments).replace("\\n", " "), flush=True)
manager.shutdown_all()
"""


@pytest.fixture
def plugin(tmp_path):
    """Calls a tool of the real plugin of hermes-agent in a process of its own, on the file memory_store.db."""
    if find_spec("plugins") is None or find_spec("plugins.memory") is None:
        pytest.skip("hermes-agent is not installed")
    (tmp_path / "config.yaml").write_text("memory:\n  provider: holographic\n")
    process = subprocess.Popen(
        [sys.executable, "-c", PLUGIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8", env={"HERMES_HOME": str(tmp_path), "HOME": str(tmp_path), "PYTHONUTF8": "1"},
    )  # fmt: skip

    def call(tool, **arguments):
        process.stdin.write(json.dumps([tool, arguments]) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise AssertionError(process.stderr.read())

    yield call
    process.communicate()


@pytest.fixture
def adopted(shared, tmp_path):
    path = tmp_path / "memory_store.db"
    shutil.copyfile(shared / "compat" / "hermes_memory_store.db", path)
    Memory(path, embedder=None).close()
    return path


def test_the_plugin_goes_on_using_an_adopted_file_and_its_writing_is_mended(adopted, plugin):
    assert plugin("fact_store", action="list", limit=50)["count"] > 20
    assert plugin("fact_store", action="search", query="Project Apollo")["count"] > 0
    assert plugin("fact_store", action="probe", entity="Alice Johnson")["count"] > 0
    added = plugin("fact_store", action="add", content="Dave Miller maintains the pve-07 cluster", category="project")
    assert added["status"] == "added"
    moved = "Alice Johnson lives in Porto and works remotely"
    assert plugin("fact_store", action="update", fact_id=2, content=moved) == {"updated": True}
    assert plugin("fact_store", action="remove", fact_id=12) == {"removed": True}
    assert plugin("fact_feedback", action="helpful", fact_id=added["fact_id"])["new_trust"] == 0.55
    assert rows(adopted, "SELECT count(*) FROM facts WHERE terms IS NULL") == [(2,)]
    with Memory(adopted, embedder=None) as memory:
        assert memory.status().unanalysed == 0
        assert memory.search("pve-07")[0].fact.fact_id == added["fact_id"]
        assert memory.search("Porto")[0].fact.content == moved
        assert moved not in {h.fact.content for h in memory.search("Lisbon")}
        # and while we have it open
        plugin("fact_store", action="add", content="Erin Gray likes Zürich and kangaroos")
        assert [h.fact.content for h in memory.search("kangaroo")] == ["Erin Gray likes Zürich and kangaroos"]
        assert [h.fact.content for h in memory.probe("Erin Gray")] == ["Erin Gray likes Zürich and kangaroos"]
        assert plugin("fact_store", action="search", query="kangaroos")["count"] == 1
        memory.add("Frank Stone breeds alpacas")
        assert plugin("fact_store", action="search", query="alpacas")["count"] == 1
    assert_sound(adopted)


def test_an_edit_by_plain_sql_is_noticed_and_its_vectors_are_dropped_mig_05(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add_many([NewFact("nginx runs on pve-01"), NewFact("caddy runs on pve-02")])
        change(path, "UPDATE facts SET content = 'traefik runs on pve-03' WHERE fact_id = 1",
               "INSERT INTO facts (content) VALUES ('haproxy runs on pve-04')",
               "DELETE FROM facts WHERE fact_id = 2")  # fmt: skip
        assert rows(path, "SELECT count(*) FROM fact_vectors") == [(0,)]
        assert [h.fact.content for h in memory.search("traefik", limit=1)] == ["traefik runs on pve-03"]
        assert [h.fact.content for h in memory.search("haproxy", limit=1)] == ["haproxy runs on pve-04"]
        assert "caddy runs on pve-02" not in {h.fact.content for h in memory.search("caddy")}
        assert memory.status().missing_vectors == 0
    assert_sound(path)


def old_file(path, *, hrr_column=True, extra=""):
    vector = ", hrr_vector BLOB" if hrr_column else ""
    change(
        path,
        "CREATE TABLE facts (fact_id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL UNIQUE,"
        " category TEXT DEFAULT 'general', tags TEXT DEFAULT '', trust_score REAL DEFAULT 0.5,"
        " retrieval_count INTEGER DEFAULT 0, helpful_count INTEGER DEFAULT 0, created_at TIMESTAMP DEFAULT"
        f" CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP{vector}{extra})",
        *(f"INSERT INTO facts (content) VALUES ('Ann Lee keeps note {i}')" for i in range(20)),
    )


@pytest.mark.parametrize("hrr_column", [True, False])
def test_an_old_file_without_vectors_is_usable_at_once_mig_02(path, hrr_column):
    old_file(path, hrr_column=hrr_column)
    if hrr_column:
        change(path, "UPDATE facts SET hrr_vector = zeroblob(0) WHERE fact_id < 6")
    with Memory(path, embedder=None) as memory:
        assert memory.search("note 7", limit=1)[0].fact.content == "Ann Lee keeps note 7"
        assert len(memory.probe("Ann Lee", limit=50)) == 20
        memory.remove(3)
        assert memory.doctor().problems == ()
    assert rows(path, "SELECT count(*) FROM facts WHERE length(hrr_vector) = 8192") == [(19,)]
    assert_sound(path)


def test_a_killed_upgrade_is_repeated_and_complete_mig_02(path):
    old_file(path)
    code = (
        "import os, sys; from holomem import schema; from holomem.database import Database\n"
        "real = schema.rebuild_fts\n"
        "schema.rebuild_fts = lambda connection: (real(connection), os.kill(os.getpid(), 9))\n"
        "Database(sys.argv[1])"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == -9
    with Memory(path, embedder=None) as memory:
        assert len(memory) == 20
        assert memory.search("note 7", limit=1)[0].fact.content == "Ann Lee keeps note 7"
    assert_sound(path)


def test_vectors_in_the_facts_table_are_of_an_unknown_model_and_replaced(path, embedder):
    old_file(path, extra=", semantic_vector BLOB")
    change(path, "UPDATE facts SET semantic_vector = zeroblob(1536)")
    with Memory(path, embedder=embedder) as memory:
        assert memory.status().missing_vectors == 20
        assert memory.search("note 7")[0].channels.semantic is not None
    assert rows(path, "SELECT count(*) FROM facts WHERE semantic_vector IS NOT NULL") == [(0,)]


def test_the_width_of_the_files_vectors_wins_mig_01(path):
    old_file(path)
    change(path, "UPDATE facts SET hrr_vector = zeroblob(2048)")  # 256 float64 phases
    with Memory(path, embedder=None) as memory:
        memory.add("Ann Lee wrote one more")
        assert len(memory.probe("Ann Lee", limit=50)) == 21
        change(path, "UPDATE facts SET hrr_vector = zeroblob(100) WHERE fact_id = 5")
        assert memory.search("note 7", limit=1)[0].fact.content == "Ann Lee keeps note 7"
        assert len(memory.probe("Ann Lee", limit=50)) == 21  # the link still says so
        assert any("doctor --repair" in problem for problem in memory.doctor().problems)
        assert memory.doctor(repair=True).problems == ()
    assert rows(path, "SELECT DISTINCT length(hrr_vector) FROM facts") == [(2048,)]


def test_files_of_other_programs_and_of_the_future_are_refused_and_left_alone(path):
    change(path, "CREATE TABLE bookmarks (url TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Memory(path, embedder=None)
    assert path.read_bytes() == before
    path.unlink()
    Memory(path, embedder=None).close()
    change(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="upgrade holomem"):
        Memory(path, embedder=None)
