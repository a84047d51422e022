"""Several threads and processes on one file: no update is lost, no reader waits, everybody sees everything."""

import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from holomem import Memory, NewFact, StoreError
from holomem.database import has_wal_reset_bug


def run_all(path, code, count, *arguments):
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path), str(n), *arguments], stderr=subprocess.PIPE, text=True)
        for n in range(count)
    ]
    errors = [process.communicate(timeout=100)[1] for process in processes]
    assert not any(process.returncode for process in processes), errors


def test_four_processes_lose_no_fact_and_no_error_reaches_a_caller_con_03(path):
    code = """
import sys
from holomem import Memory
with Memory(sys.argv[1], embedder=None) as memory:
    for i in range(40):
        memory.add(f"process adds fact-{sys.argv[2]}-{i}")
        assert memory.search(f"fact-{sys.argv[2]}-{i}")[0].fact.content == f"process adds fact-{sys.argv[2]}-{i}"
        if i % 20 == 0:
            memory.doctor()
"""
    run_all(path, code, 4)
    with Memory(path, embedder=None) as memory:
        assert len(memory) == 160
        assert memory.doctor().problems == ()


def test_votes_and_retrievals_of_two_processes_are_all_counted_con_04(path):
    with Memory(path, embedder=None) as memory:
        fact_id = memory.add("nginx is deployed by CI")
        memory.update(fact_id, trust_delta=-0.5)
    code = """
import sys
from holomem import Memory
with Memory(sys.argv[1], embedder=None) as memory:
    for i in range(5):
        memory.feedback(1, helpful=True)
    for i in range(50):
        memory.search("nginx", min_trust=0.0)
"""
    run_all(path, code, 2)
    with Memory(path, embedder=None) as memory:
        fact = memory.get(fact_id)
        assert (fact.retrieval_count, fact.helpful_count, fact.trust_score) == (100, 10, 0.5)


def test_eight_threads_on_two_memories_of_one_file_lose_nothing(path):
    with Memory(path, embedder=None) as one, Memory(path, embedder=None) as two:
        errors = []

        def work(n):
            try:
                for i in range(20):
                    (one if n % 2 else two).add(f"thread adds fact-{n}-{i}")
            except Exception as error:  # a thread's error would be lost
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert len(one) == len(two) == 160
        assert one.search("fact-3-7")[0].fact.content == "thread adds fact-3-7"


def test_each_sees_at_once_what_the_other_changed(path):
    with Memory(path, embedder=None) as one, Memory(path, embedder=None) as two:
        fact_id = one.add("Ann Lee deploys nginx")
        assert two.search("nginx")[0].fact.fact_id == fact_id
        two.update(fact_id, content="Ann Lee deploys caddy", category="tool")
        assert one.search("caddy", category="tool")[0].fact.content == "Ann Lee deploys caddy"
        one.update(fact_id, trust_delta=-0.4)
        assert two.search("caddy") == []
        later = two.add("later ann lee was seen")  # the name is known by the other's fact
        assert {h.fact.fact_id for h in one.probe("Ann Lee", min_trust=0.0)} == {fact_id, later}
        one.remove(fact_id)
        assert {h.fact.fact_id for h in two.probe("Ann Lee")} == {later}


def test_readers_do_not_wait_for_a_writer_and_their_counts_follow_con_03(path):
    with Memory(path, embedder=None) as memory:
        memory.add("nginx is deployed by CI")
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        assert memory.search("nginx")
        with Memory(path, embedder=None) as reader:
            assert reader.search("nginx")
            assert time.monotonic() - started < 10  # BUSY_SECONDS is 30
            writer.execute("ROLLBACK")
        writer.close()
        assert memory.get(1).retrieval_count == 2


def test_a_cache_patched_by_many_changes_equals_a_fresh_one(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add_many([NewFact(f"fact number {i} about thing{i % 7}", category=f"c{i % 3}") for i in range(60)])
        memory.search("thing3")
        for i in range(1, 60, 3):
            memory.update(i, content=f"changed {i} about thing{i % 5}")
            memory.search(f"thing{i % 5}")
        for i in range(2, 40, 5):
            memory.remove(i)
        questions = ["thing3", "changed number", "fact 12", "about thing1 fact"]
        with Memory(path, embedder=embedder) as fresh:
            for question in questions:
                ours, theirs = memory.search(question, limit=30), fresh.search(question, limit=30)
                assert [h.fact.fact_id for h in ours] == [h.fact.fact_id for h in theirs]
                assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], rel=1e-4)


@pytest.mark.parametrize(
    ("version", "affected"),
    [((3, 6, 23), False), ((3, 7, 0), True), ((3, 40, 1), True), ((3, 44, 6), False), ((3, 50, 7), False),
     ((3, 51, 2), True), ((3, 51, 3), False)],
)  # fmt: skip
def test_the_versions_with_the_wal_reset_bug_are_known(version, affected):
    assert has_wal_reset_bug(version) == affected


def test_on_such_a_version_nobody_checkpoints_by_itself(path):
    with Memory(path, embedder=None) as memory:
        connection = memory._database._connection
        expected = 0 if has_wal_reset_bug() else 1000
        assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (expected,)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_writers_and_checkpoints_at_once_lose_nothing(tmp_path):
    """A short run of the stress that `bench/wal_stress.py` makes for minutes."""
    from pathlib import Path

    script = Path(__file__).parents[1] / "bench" / "wal_stress.py"
    run = subprocess.run(
        [sys.executable, script, "--seconds", "4", "--folder", tmp_path], capture_output=True, text=True, timeout=100
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "lost 0" in run.stdout


def test_a_write_that_could_not_begin_leaves_the_next_one_durable(path):
    with Memory(path, embedder=None) as memory:
        memory.add("nginx is deployed by CI")
        database = memory._database
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError), database.write(durable=False, wait=False):
            pass
        writer.execute("ROLLBACK")
        writer.close()
        assert database._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert database._connection.execute("PRAGMA busy_timeout").fetchone() == (30_000,)


def test_a_write_inside_a_read_is_refused(path):
    with Memory(path, embedder=None) as memory, memory._database.read(), pytest.raises(RuntimeError, match="read"):
        memory.add("it would be written outside of the lock between processes")
