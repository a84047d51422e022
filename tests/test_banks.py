"""The plugin's category banks follow every change at a cost that does not grow, and are what the plugin would rebuild."""

import sqlite3
import time
from importlib.util import find_spec

import numpy as np
import pytest

from holomem import Memory, NewFact, hrr


def rows(path, statement, *values):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def bank_of(vectors):
    total = sum(np.exp(1j * np.frombuffer(vector)) for vector in vectors)
    return np.mod(np.angle(total), 2 * np.pi)


def assert_right(path):
    """Every bank is the bundle of the vectors of its category, and every category has one."""
    banks = {name: (hrr.decode(vector), count, dim) for name, vector, count, dim in rows(
        path, "SELECT bank_name, vector, fact_count, dim FROM memory_banks")}  # fmt: skip
    held = {}
    for category, vector in rows(path, "SELECT category, hrr_vector FROM facts WHERE hrr_vector IS NOT NULL"):
        held.setdefault(f"cat:{category}", []).append(vector)
    assert banks.keys() == held.keys()
    for name, vectors in held.items():
        phases, count, dim = banks[name]
        assert (count, dim) == (len(vectors), 1024)
        # Where parts cancel each other the angle is rounding noise; elsewhere it is the same.
        assert hrr.similarity(phases, bank_of(vectors)) > 1 - 1e-9


@pytest.fixture
def banked(path):
    """A file with a bank, as the plugin leaves it."""
    with Memory(path, embedder=None) as memory:
        memory.add_many([NewFact(f"fact {i} of Alice", "general", entities=["Alice", f"x{i}"]) for i in range(6)])
    vectors = [vector for (vector,) in rows(path, "SELECT hrr_vector FROM facts")]
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "INSERT INTO memory_banks (bank_name, vector, dim, fact_count) VALUES ('cat:general', ?, 1024, 6)",
            (bank_of(vectors).tobytes(),),
        )
    connection.close()
    return path


def test_every_change_is_followed(banked):
    changes = [
        lambda m: m.add("a new one about Bob"),
        lambda m: m.add("a first one of its kind", category="tool"),
        lambda m: m.update(1, content="another content"),
        lambda m: m.update(2, category="tool"),
        lambda m: m.update(3, tags="x", trust_delta=0.1),
        lambda m: m.update(4, entities=["Carol"]),
        lambda m: m.rename_entity("Alice", "Alicia"),
        lambda m: m.merge_entities("Alicia", "x5"),
        lambda m: m.remove(5),
        lambda m: m.remove(8),
        lambda m: m.remove(2),  # the last one of its category
        lambda m: m.add_many([NewFact(f"batch {i}", "batch") for i in range(4)]),
    ]
    with Memory(banked, embedder=None) as memory:
        for change in changes:
            change(memory)
            assert_right(banked)


def test_a_change_that_fails_leaves_the_bank_alone(banked):
    before = rows(banked, "SELECT vector, fact_count FROM memory_banks")
    with Memory(banked, embedder=None) as memory, pytest.raises(LookupError):
        memory.merge_entities("Alice", "x1", "nobody")
    assert rows(banked, "SELECT vector, fact_count FROM memory_banks") == before


def test_a_bank_that_somebody_else_wrote_is_summed_up_anew(banked):
    with Memory(banked, embedder=None) as memory:
        memory.add("one by us")
        connection = sqlite3.connect(banked)
        with connection:  # as the plugin removes a fact
            connection.execute("DELETE FROM fact_entities WHERE fact_id = 1")
            connection.execute("DELETE FROM facts WHERE fact_id = 1")
            left = [vector for (vector,) in connection.execute("SELECT hrr_vector FROM facts")]
            connection.execute("UPDATE memory_banks SET vector = ?, fact_count = 6", (bank_of(left).tobytes(),))
        connection.close()
        assert_right(banked)
        memory.add("another by us")
        assert_right(banked)


def test_a_file_without_banks_gets_none(memory, path):
    memory.add("Alice deploys nginx")
    memory.update(1, category="tool")
    assert rows(path, "SELECT count(*) FROM memory_banks") == [(0,)]


def test_many_small_changes_do_not_drift(banked):
    with Memory(banked, embedder=None) as memory:
        for i in range(60):
            fact_id = memory.add(f"passing thought {i}")
            memory.remove(fact_id)
    assert_right(banked)


def test_the_cost_does_not_grow_with_the_category(banked):
    with Memory(banked, embedder=None) as memory:

        def cost(times=25):
            spent = []
            for i in range(times):
                started = time.process_time()
                memory.remove(memory.add(f"timed {i}", entities=["Timer"]))
                spent.append(time.process_time() - started)
            return float(np.median(spent))

        small = cost()
        memory.add_many([NewFact(f"filler {i}", entities=()) for i in range(1500)])
        assert cost() < 4 * small + 0.002
    assert_right(banked)


@pytest.mark.skipif(find_spec("plugins") is None, reason="hermes-agent is not installed")
def test_the_bank_is_what_the_plugin_rebuilds(banked):
    from plugins.memory.holographic.store import MemoryStore

    with Memory(banked, embedder=None) as memory:
        memory.add("Dave repairs bicycles")
        memory.update(2, content="Bob repairs clocks")
        memory.remove(3)
    ours = rows(banked, "SELECT vector, fact_count FROM memory_banks WHERE bank_name = 'cat:general'")[0]
    plugin = MemoryStore(str(banked))
    plugin._rebuild_bank("general")
    theirs = rows(banked, "SELECT vector, fact_count FROM memory_banks WHERE bank_name = 'cat:general'")[0]
    assert ours[1] == theirs[1]
    assert hrr.similarity(np.frombuffer(ours[0]), np.frombuffer(theirs[0])) > 1 - 1e-9
    plugin.add_fact("Erin paints houses")
    with Memory(banked, embedder=None) as memory:  # mends what the plugin wrote
        memory.add("Frank sings")
    assert_right(banked)
