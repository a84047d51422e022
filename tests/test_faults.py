"""What goes wrong outside of us: killed processes, full disks, failing models, damaged rows, hostile text."""

import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from conftest import HashEmbedder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holomem import Memory, NewFact, StoreError, ingest

WRITER = """
import sys
from holomem import Memory
memory = Memory(sys.argv[1], embedder=None)
for i in range(100000):
    content = f"writer {sys.argv[2]} says that Person {i % 50} uses tool-{i}"
    fact_id = memory.add(content)
    print(content, flush=True)
    if i % 5 == 0:
        memory.search(f"tool-{i}")
    if i % 7 == 0:
        memory.update(fact_id, tags="seen")
"""


def integrity(path):
    connection = sqlite3.connect(path)
    try:
        connection.execute("INSERT INTO facts_fts(facts_fts, rank) VALUES ('integrity-check', 1)")
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()


def test_a_writer_killed_at_any_moment_loses_nothing_acknowledged_and_leaves_no_half_fact_con_02(path):
    chance = random.Random(5)
    acknowledged = set()
    for round_ in range(4):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, path, f"{round_}.{n}"], stdout=subprocess.PIPE, text=True)
            for n in range(2)
        ]
        first = writers[0].stdout.readline()  # it runs; now at a random moment
        acknowledged.add(first.rstrip("\n"))
        time.sleep(chance.uniform(0.05, 0.4))
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        for writer in writers:
            acknowledged.update(line.rstrip("\n") for line in writer.stdout if line.endswith("\n"))
            writer.wait()
            writer.stdout.close()
    assert len(acknowledged) >= 4
    connection = sqlite3.connect(path)
    halves = connection.execute(
        "SELECT count(*) FROM facts f WHERE terms IS NULL OR hrr_vector IS NULL"
        " OR NOT EXISTS (SELECT 1 FROM fact_entities l WHERE l.fact_id = f.fact_id)"
    ).fetchone()
    stored = {row[0] for row in connection.execute("SELECT content FROM facts")}
    connection.close()
    assert halves == (0,)
    assert acknowledged <= stored
    with Memory(path, embedder=None) as memory:
        assert memory.doctor().problems == ()
    assert integrity(path) == "ok"


@pytest.mark.parametrize(
    "step", ["store.Store.insert", "links.Links.link", "links.Links.set_keys", "models.Models.set_vectors"]
)
def test_a_fault_in_the_middle_of_an_add_undoes_all_of_it_con_01(path, step, monkeypatch):
    with Memory(path, embedder=HashEmbedder()) as memory, Memory(path, embedder=None) as other:

        def fail(*arguments, **named):
            raise sqlite3.OperationalError("disk I/O error")

        with monkeypatch.context() as patch:
            patch.setattr(f"holomem.{step}", fail)
            with pytest.raises(StoreError, match="disk I/O error"):
                memory.add("Ann Lee lives in Oslo")
        assert len(memory) == 0
        assert memory.entities() == []
        assert other.add("written at once by another") == 1
        assert memory.add("Ann Lee lives in Oslo") == 2
        assert [h.fact.fact_id for h in memory.probe("Ann Lee")] == [2]
        assert memory.status().missing_vectors == 1  # of the other's fact


def test_a_full_disk_changes_nothing_and_says_so(path):
    code = """
import resource, signal, sys
from holomem import Memory, StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
memory = Memory(sys.argv[1], embedder=None)
for i in range(20):
    memory.add(f"fact {i}")
resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, 700_000))
stored = 20
try:
    for i in range(20, 2000):
        memory.add(f"fact {i}")
        stored += 1
except StoreError as error:
    print(stored, len(memory), error)
"""
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    stored, counted, message = run.stdout.split(" ", 2)
    assert stored == counted, run.stderr
    assert "memory.db" in message
    with Memory(path, embedder=None) as memory:
        assert len(memory) == int(stored)
        assert memory.doctor().problems == ()


def test_a_text_that_is_no_unicode_in_one_row_spoils_only_that_row(path):
    with Memory(path, embedder=None) as memory:
        memory.add_many([NewFact("alpha beta"), NewFact("gamma delta")])
    connection = sqlite3.connect(path)
    connection.execute(
        "UPDATE facts SET content = CAST(X'616c706861ff' AS TEXT), created_at = 'never' WHERE fact_id = 1"
    )
    connection.execute("UPDATE facts SET trust_score = 'high', category = NULL, tags = NULL WHERE fact_id = 2")
    connection.commit()
    connection.close()
    with Memory(path, embedder=None) as memory:
        assert memory.search("alpha")[0].fact.fact_id == 1
        assert [f.fact_id for f in memory.facts(limit=None)] == [2, 1] or len(memory) == 2
        assert memory.search("gamma", min_trust=0.0) is not None
        assert memory.get(2).category == "general"


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(texts, texts)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_valid_content_and_a_valid_query(content, query):
    with Memory(":memory:", embedder=None) as memory:
        if content.strip():
            fact_id = memory.add(content)
            assert memory.get(fact_id).content == content.strip()
        for hit in memory.search(query) + memory.search(content):
            assert 0 <= hit.score <= 1
        memory.facts(matching=query)
        if query.strip():
            memory.probe(query)
        assert not [p for p in memory.doctor().problems if "damaged" in p]


def test_a_nul_and_a_megabyte_are_content_and_a_lone_surrogate_is_not(memory):
    with_nul = memory.add("before\0after")
    assert memory.get(with_nul).content == "before\0after"
    assert memory.search("after")[0].fact.fact_id == with_nul
    long = " ".join(f"word{i} Name{i % 9}" for i in range(70_000))[:1_000_000]
    fact_id = memory.add(long)
    assert memory.search("word42")[0].fact.fact_id == fact_id
    memory.search(long)
    for call in (memory.add, memory.search, memory.probe):
        with pytest.raises(ValueError, match="surrogate"):
            call("half of a character: \ud83d")


def test_a_closed_pipe_of_time_does_not_stop_reading(path):
    """A forked child must not use its parent's connection."""
    with Memory(path, embedder=None) as memory:
        memory.add("alpha beta")
        code = """
import os, sys
from holomem import Memory, StoreError
memory = Memory(sys.argv[1], embedder=None)
pid = os.fork()
if pid == 0:
    try:
        memory.add("from the child")
    except StoreError as error:
        os._exit(7 if "fork" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
memory.add("from the parent")
"""
        assert subprocess.run([sys.executable, "-c", code, path]).returncode == 0
        assert len(memory) == 2


def test_mending_stops_at_a_locked_file_and_goes_on_later(path, monkeypatch):
    with Memory(path, embedder=None) as memory:
        memory.add("alpha beta")
        with monkeypatch.context() as patch:

            def locked(*arguments):
                raise StoreError("locked")

            patch.setattr(ingest, "mend", locked)
            assert memory.search("alpha")
        assert memory.search("alpha")
