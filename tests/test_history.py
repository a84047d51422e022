"""The history: undoing is the inverse of each write, and says so where it cannot be."""

import sqlite3
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holomem import ChangeNotFound, FactNotFound, HolomemError, Memory, NewFact, Scope, UndoConflict

ANN, BOB = Scope(user="ann"), Scope(user="bob")
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


def state(memory):
    """All that users see, but what depends on the order of the rows."""
    return memory.facts(limit=None), {(e.name, e.entity_type, e.aliases, e.facts) for e in memory.entities()}


CONTENTS = ["Ann Lee lives in Oslo", "Ann Lee lives in Rome", "Bob Ray owns the Kite project", "the sky is blue"]
SCOPES = st.sampled_from([None, ANN, BOB, Scope("ann", run="7")])
IDS = st.integers(1, 4)
WRITES = st.one_of(
    st.tuples(
        st.just("add"),
        st.fixed_dictionaries(
            {"content": st.sampled_from(CONTENTS), "scope": SCOPES},
            optional={"tags": st.just("x,y"), "source": st.just("chat"), "metadata": st.just({"a": [1]}), "supersedes": IDS,
                      "expires_at": st.sampled_from([FUTURE, datetime(2020, 1, 1)]), "entities": st.just(["Zed"]),
                      "roles": st.just({"owner": "Ann Lee"})},
        ),
    ),
    st.tuples(
        st.just("update"),
        st.fixed_dictionaries(
            {"fact_id": IDS, "scope": SCOPES},
            optional={"content": st.sampled_from(CONTENTS), "category": st.just("tool"), "tags": st.just("z"),
                      "entities": st.sampled_from([[], ["Ann Lee", "Zed"]]), "trust_delta": st.sampled_from([0.1, -0.7, 0.9]),
                      "source": st.sampled_from(["", "mail"]), "metadata": st.sampled_from([{}, {"b": None}]),
                      "roles": st.sampled_from([{}, {"owner": "Bob Ray", "place": "Oslo"}]),
                      "expires_at": st.sampled_from(["never", FUTURE])},
        ),
    ),
    st.tuples(st.just("remove"), st.fixed_dictionaries({"fact_id": IDS, "scope": SCOPES})),
    st.tuples(st.just("feedback"), st.fixed_dictionaries({"fact_id": IDS, "helpful": st.booleans(), "scope": SCOPES})),
    st.tuples(st.just("purge"), st.just({})),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(writes=st.lists(WRITES, min_size=1, max_size=8), redo=st.booleans())
def test_undoing_every_change_backwards_passes_every_state_again(writes, redo):
    with Memory(":memory:", embedder=None) as memory:
        done = []  # (the state before a write, the changes that it made, newest first)
        newest = 0
        for name, arguments in writes:
            was = state(memory)
            try:
                getattr(memory, name)(**arguments)
            except (HolomemError, ValueError):
                assert state(memory) == was
            made = [c for c in memory.history(limit=1000) if c.change_id > newest]
            newest = max([newest, *(c.change_id for c in made)])
            done.append((was, [c.change_id for c in made if c.with_change is None]))
        for was, made in reversed(done):
            for change_id in made:
                after = state(memory)
                memory.undo(change_id)
                if redo and state(memory) != after:
                    memory.undo(memory.history(limit=1)[0].change_id)
                    assert state(memory) == after
                    memory.undo(memory.history(limit=1)[0].change_id)
            assert state(memory) == was


def test_a_removed_fact_comes_back_with_everything(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        fact_id = memory.add("Ann Lee (aka Annie) owns the Kite project", tags="a", source="chat", scope=ANN)
        memory.feedback(fact_id, helpful=True)
        memory.search("who owns Kite?")
        was, names = memory.get(fact_id), memory.entities()
        assert was.retrieval_count == 1
        memory.remove(fact_id)
        (removal,) = memory.history(limit=1)
        assert (removal.action, removal.before["content"]) == ("remove", was.content)
        memory.undo(removal.change_id)
        assert memory.get(fact_id) == was
        assert [(e.name, e.aliases) for e in memory.entities()] == [(e.name, e.aliases) for e in names]
        assert memory.search("who owns Kite?")[0].channels.semantic is not None
        assert memory.status().problems == ()


def test_the_history_of_a_fact_tells_each_change(memory):
    fact_id = memory.add("Ann Lee lives in Oslo", category="user_pref")
    memory.add("something else")
    memory.update(fact_id, content="Ann Lee lives in Rome", tags="x")
    memory.feedback(fact_id, helpful=True)
    vote, edit, made = memory.history(fact_id)
    assert [c.action for c in (made, edit, vote)] == ["add", "update", "feedback"]
    assert (made.before, made.after) == (None, {"content": "Ann Lee lives in Oslo"})
    assert (edit.before["content"], edit.after["tags"]) == ("Ann Lee lives in Oslo", "x")
    assert (vote.before["trust_score"], vote.after["trust_score"]) == (0.5, 0.55)
    assert abs((datetime.now(UTC) - vote.changed_at).total_seconds()) < 5
    assert len(memory.history(limit=2)) == 2


def test_an_older_change_is_undone_when_nothing_of_it_changed_again(memory):
    fact_id = memory.add("Ann Lee lives in Oslo", tags="x")
    memory.update(fact_id, tags="y")
    memory.feedback(fact_id, helpful=True)
    memory.feedback(fact_id, helpful=False)
    _, vote, edit, _ = memory.history(fact_id)
    memory.undo(edit.change_id)
    memory.undo(vote.change_id)
    fact = memory.get(fact_id)
    assert (fact.tags, fact.trust_score, fact.helpful_count) == ("x", 0.4, 0)


def test_a_conflict_is_a_clear_error_and_nothing_is_done(memory):
    fact_id = memory.add("Ann Lee lives in Oslo")
    memory.update(fact_id, content="Ann Lee lives in Rome")
    memory.update(fact_id, content="Ann Lee lives in Kiel")
    _, edit, made = memory.history(fact_id)
    with pytest.raises(UndoConflict, match=f"content of fact {fact_id} changed again"):
        memory.undo(edit.change_id)
    with pytest.raises(UndoConflict, match="changed since"):
        memory.undo(made.change_id)
    memory.remove(fact_id)
    with pytest.raises(UndoConflict, match="gone"):
        memory.undo(edit.change_id)
    twin = memory.add("Ann Lee lives in Kiel")
    removal = next(c for c in memory.history() if c.action == "remove")
    with pytest.raises(UndoConflict, match=f"fact {twin} says the same") as refused:
        memory.undo(removal.change_id)
    assert refused.value.change_id == removal.change_id
    assert [f.fact_id for f in memory.facts()] == [twin]
    with pytest.raises(ChangeNotFound, match="no change 4711"):
        memory.undo(4711)


def test_undoing_a_supersession_takes_the_new_fact_away_and_the_old_one_counts_again(memory):
    old = memory.add("Ann Lee lives in Oslo")
    new = memory.add("Ann Lee lives in Rome", supersedes=old)
    memory.undo(memory.history(old)[0].change_id)
    assert [h.fact.fact_id for h in memory.search("Ann Lee")] == [old]
    with pytest.raises(FactNotFound):
        memory.get(new)


def test_nobody_undoes_or_reads_what_others_did(path):
    with Memory(path, embedder=None) as memory:
        fact_id = memory.add("tea is better than coffee", scope=ANN)
        memory.add("tea is better than coffee", scope=BOB)
        memory.remove(memory.add("the vault code is 4711", scope=ANN))
        joined, made = (memory.history(fact_id)[0], memory.history(fact_id)[1])
    with Memory(path, embedder=None, scope=BOB) as bob:
        assert "4711" not in repr(bob.history())
        assert "ann" not in repr(bob.history())
        assert joined.change_id in {c.change_id for c in bob.history()}
        for change in (made.change_id, 4, 3):
            with pytest.raises(ChangeNotFound):
                bob.undo(change)
        bob.undo(joined.change_id)
        assert len(bob) == 0
    with Memory(path, embedder=None) as memory:
        assert memory.get(fact_id).scopes == (ANN,)


def test_an_import_can_be_undone(memory):
    memory.add("one", tags="x")
    lines = ['{"content": "one", "tags": "y", "updated_at": "2100-01-01T00:00:00"}', '{"content": "two"}']
    memory.load(lines)
    for change in memory.history(limit=2):
        memory.undo(change.change_id)
    assert [(f.content, f.tags) for f in memory.facts()] == [("one", "x")]


def test_purging_can_erase_the_history(memory):
    memory.remove(memory.add("the vault code is 4711"))
    assert memory.history()
    assert memory.purge(history=True) == 0
    assert memory.history() == []


def test_only_the_newest_changes_are_kept(path, monkeypatch):
    from holomem import records

    monkeypatch.setattr(records, "KEPT_CHANGES", 500)
    with Memory(path, embedder=None) as memory:
        memory.add_many([NewFact(f"note number {i}", entities=[]) for i in range(1001)])
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*), min(change_id) FROM history").fetchone() == (501, 501)
    connection.close()


def test_a_failed_write_leaves_no_change_behind(memory):
    fact_id = memory.add("one")
    memory.add("two")
    with pytest.raises(HolomemError):
        memory.update(fact_id, content="two", tags="x")
    assert len(memory.history()) == 2
