"""Whom a fact belongs to, where it is from, how long it holds: isolation in every recall, call and count."""

import io
import sqlite3
import time
from datetime import UTC, datetime, timedelta

import pytest
from conftest import make_first_version
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holomem import DuplicateFact, FactNotFound, Memory, NewFact, Scope

ANN, BOB = Scope(user="ann"), Scope(user="bob")
PAST, FUTURE = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def contents(hits):
    return [hit.fact.content for hit in hits]


# ---- isolation ----------------------------------------------------------------------------------------------------


def test_what_one_user_tells_another_does_not_learn_by_any_call(path, embedder):
    with Memory(path, embedder=embedder, scope=ANN) as ann:
        secret = ann.add(
            "Ann Lee hides the vault code 4711 in Oslo", tags="secret", roles={"owner": "Ann Lee", "place": "Oslo"}
        )
        rumour = ann.add("Ann Lee hides the vault code 4712 in Oslo")
    with Memory(path, embedder=embedder, scope=BOB) as bob:
        own = bob.add("The weather in Oslo is fine", entities=["Oslo"])
        for query in ("vault code", "4711", "where does Ann Lee hide it?", "Oslo"):
            assert {hit.fact.fact_id for hit in bob.search(query, limit=100)} <= {own}
        assert bob.probe("Ann Lee") == []
        assert [h.fact.fact_id for h in bob.probe("Oslo")] == [own]
        assert {h.fact.fact_id for h in bob.related("Oslo")} <= {own}
        assert bob.reason(["Ann Lee", "Oslo"]) == []
        assert bob.contradictions() == []
        assert bob.contradicted_by("Ann Lee hides the vault code 4713 in Oslo") == []
        assert bob.ask("owner", {"place": "Oslo"}) == []
        assert [f.fact_id for f in bob.facts(limit=None)] == [own]
        assert bob.facts(matching="vault") == bob.facts(tags="secret") == []
        assert [e.name for e in bob.entities()] == ["Oslo"]
        assert bob.entities()[0].facts == 1
        assert len(bob) == 1
        lines = io.StringIO()
        assert bob.export(lines) == 1
        assert "4711" not in lines.getvalue()
        assert {change.fact_id for change in bob.history()} == {own}
        for call in (bob.get, bob.remove, lambda i: bob.update(i, tags="x"), lambda i: bob.feedback(i, helpful=False),
                     lambda i: bob.add("The vault is empty", supersedes=i)):  # fmt: skip
            with pytest.raises(FactNotFound):
                call(secret)
        assert len(bob) == 1
    with Memory(path, embedder=embedder) as everything:
        assert everything.get(secret).scopes == (ANN,)
        assert everything.get(secret).trust_score == 0.5
        assert len(everything.contradictions()) == 1
        assert everything.contradicted_by("Ann Lee hides the vault code 4713 in Oslo")
        assert everything.ask("owner", {"place": "Oslo"})[0].facts[0].fact_id == secret
        assert {rumour, secret} <= {h.fact.fact_id for h in everything.search("vault code")}


def test_unscoped_facts_are_everybodys_and_a_memory_without_scope_sees_all(memory):
    common = memory.add("the office opens at nine")
    private = memory.add("the office key is under the mat", scope=ANN)
    assert {h.fact.fact_id for h in memory.search("office", scope=ANN)} == {common, private}
    assert [h.fact.fact_id for h in memory.search("office", scope=BOB)] == [common]
    assert {h.fact.fact_id for h in memory.search("office")} == {common, private}


@pytest.mark.parametrize(
    ("fact", "asker", "seen"),
    [(Scope("ann"), Scope("ann"), True), (Scope("ann"), Scope("bob"), False), (Scope("ann", run="7"), Scope("ann"), True),
     (Scope("ann"), Scope("ann", run="7"), True), (Scope("ann", run="8"), Scope("ann", run="7"), False),
     (Scope(agent="coder"), Scope("ann"), False), (Scope(agent="coder"), Scope("ann", "coder"), True),
     (Scope("bob", "coder"), Scope("ann", "coder"), False), (Scope("ann", "coder"), Scope(agent="coder"), True),
     (None, Scope("ann", "coder", "7"), True), (Scope("ann"), None, True)],
)  # fmt: skip
def test_a_fact_is_seen_by_who_shares_a_part_and_differs_in_none(memory, fact, asker, seen):
    memory.add("the printer is broken", scope=fact)
    assert bool(memory.search("printer", scope=asker)) is seen
    assert bool(memory.facts(scope=asker)) is seen


PARTS = st.sampled_from([None, "a", "b"])
SCOPES = st.one_of(st.none(), st.builds(Scope, PARTS, PARTS, PARTS))
WORDS = [f"Person {name} likes topic {name.lower()}" for name in "Alpha Beta Gamma Delta".split()]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=st.lists(st.tuples(st.sampled_from(WORDS), SCOPES), max_size=8), asker=SCOPES, removed=SCOPES)
def test_no_recall_shows_what_the_rule_hides(told, asker, removed):
    def visible(scope, other):
        if other is None or scope is None or scope == Scope() or other == Scope():
            return True
        pairs = [(a, b) for a, b in zip(other_parts(scope), other_parts(other), strict=True) if None not in (a, b)]
        return bool(pairs) and all(a == b for a, b in pairs)

    def other_parts(scope):
        return scope.user, scope.agent, scope.run

    held = {}  # content -> its scopes; () when it is everybody's
    with Memory(":memory:", embedder=None) as memory:
        for content, scope in told:
            memory.add(content, scope=scope)
            scope = None if scope == Scope() else scope
            if scope is None or held.get(content) == ():
                held[content] = ()
            else:
                held[content] = (*held.get(content, ()), scope)
        for content in list(held):
            fact_id = next(f.fact_id for f in memory.facts() if f.content == content)
            if all(not visible(s, removed) for s in held[content]) and held[content]:
                with pytest.raises(FactNotFound):
                    memory.remove(fact_id, scope=removed)
                continue
            memory.remove(fact_id, scope=removed)
            held[content] = tuple(s for s in held[content] if not visible(s, removed))
            if not held[content]:
                del held[content]
        expected = {c for c, scopes in held.items() if not scopes or any(visible(s, asker) for s in scopes)}
        shown = [
            {f.content for f in memory.facts(scope=asker)},
            {h.fact.content for h in memory.search("who likes which topic?", limit=50, scope=asker)},
            {h.fact.content for word in WORDS for h in memory.probe(" ".join(word.split()[:2]), scope=asker)},
        ]
        assert shown[0] == expected
        assert shown[1] == expected
        assert shown[2] <= expected
        for fact in memory.facts(scope=asker):
            assert all(visible(scope, asker) for scope in fact.scopes)


def test_a_scope_that_leaves_that_of_the_memory_is_refused(path):
    with Memory(path, embedder=None, scope=ANN) as ann:
        with pytest.raises(ValueError, match="that of user 'ann'"):
            ann.search("x", scope=BOB)
        with pytest.raises(ValueError, match="that of user 'ann'"):
            ann.add("x", scope=BOB)
        assert ann.get(ann.add("y", scope=Scope(run="7"))).scopes == (Scope("ann", run="7"),)


@pytest.mark.parametrize("bad", ["ann", Scope(""), Scope(user=3), Scope(run="\ud800")])
def test_a_bad_scope_is_refused(memory, bad):
    with pytest.raises((ValueError, TypeError), match="scope"):
        memory.add("x", scope=bad)
    assert len(memory) == 0


# ---- several hold one fact ----------------------------------------------------------------------------------------


def test_two_users_hold_one_fact_and_each_lets_go_alone(memory):
    fact_id = memory.add("tea is better than coffee", scope=ANN)
    assert memory.add("tea is better than coffee", scope=BOB) == fact_id
    assert memory.get(fact_id).scopes == (ANN, BOB)
    assert memory.get(fact_id, scope=ANN).scopes == (ANN,)
    memory.remove(fact_id, scope=ANN)
    with pytest.raises(FactNotFound):
        memory.get(fact_id, scope=ANN)
    assert memory.search("tea", scope=BOB)
    memory.remove(fact_id, scope=BOB)
    assert len(memory) == 0


def test_another_content_for_one_of_two_is_a_copy(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        shared = memory.add("lunch is at twelve", tags="day", scope=ANN)
        memory.add("lunch is at twelve", scope=BOB)
        copy = memory.update(shared, content="lunch is at one", scope=ANN)
        assert copy.fact_id != shared
        assert (copy.tags, copy.scopes) == ("day", (ANN,))
        assert contents(memory.search("lunch", scope=BOB)) == ["lunch is at twelve"]
        assert contents(memory.search("lunch", scope=ANN)) == ["lunch is at one"]
        assert memory.status().missing_vectors == 0


def test_a_content_that_only_others_hold_is_taken_on_not_refused(memory):
    theirs = memory.add("dinner is at seven", scope=BOB)
    mine = memory.add("dinner is at six", scope=ANN)
    assert memory.update(mine, content="dinner is at seven", scope=ANN).fact_id == theirs
    assert memory.get(theirs).scopes == (ANN, BOB)
    with pytest.raises(FactNotFound):
        memory.get(mine)
    other = memory.add("breakfast is at eight", scope=ANN)
    with pytest.raises(DuplicateFact):
        memory.update(other, content="dinner is at seven", scope=ANN)


def test_stating_it_for_all_makes_it_everybodys(memory):
    fact_id = memory.add("the lift is broken", scope=ANN)
    assert memory.add("the lift is broken") == fact_id
    assert memory.search("lift", scope=BOB)


def test_scopes_written_by_another_process_are_seen_at_the_next_recall(path):
    with Memory(path, embedder=None) as reader, Memory(path, embedder=None) as writer:
        fact_id = writer.add("the router is in the cellar", scope=ANN)
        assert reader.search("router", scope=BOB) == []
        writer.add("the router is in the cellar", scope=BOB)
        assert [h.fact.fact_id for h in reader.search("router", scope=BOB)] == [fact_id]


# ---- source, expiry, supersession -----------------------------------------------------------------------------------


def test_a_fact_carries_where_it_is_from_and_how_long_it_holds(memory):
    fact = memory.get(memory.add("the fair ends soon", source=" chat 42 ", expires_at=datetime(2100, 1, 1)))
    assert (fact.source, fact.expires_at) == ("chat 42", FUTURE)
    fact = memory.update(fact.fact_id, source="", expires_at="never")
    assert (fact.source, fact.expires_at) == (None, None)
    zone = datetime.fromisoformat("2100-01-01T02:00:00+02:00")
    assert memory.update(fact.fact_id, expires_at=zone).expires_at == FUTURE
    for bad in ({"source": 3}, {"expires_at": "tomorrow"}):
        with pytest.raises(TypeError):
            memory.update(fact.fact_id, **bad)


def test_metadata_are_kept_as_they_are(memory):
    fact_id = memory.add("the lift is broken", metadata={"ticket": 7, "who": ["Ann", None], "é": {"x": 0.5}})
    assert memory.get(fact_id).metadata == {"ticket": 7, "who": ["Ann", None], "é": {"x": 0.5}}
    assert memory.update(fact_id, metadata={"ticket": 8}).metadata == {"ticket": 8}
    assert memory.update(fact_id, metadata={}).metadata is None
    for bad in ([1], {"x": object()}, {"x": float("nan")}, "text"):
        with pytest.raises((TypeError, ValueError), match="metadata"):
            memory.add("x", metadata=bad)


def test_facts_are_listed_by_source_as_a_path_and_searched_among_some(memory):
    ids = [
        memory.add(f"the lift is broken {s}", source=s) for s in ("chat", "chat/42", "chats", "chat 42", "mail/chat")
    ]
    assert {f.fact_id for f in memory.facts(source="chat")} == {ids[0], ids[1]}
    assert [f.fact_id for f in memory.facts(source="chat/42")] == [ids[1]]
    assert {h.fact.fact_id for h in memory.search("lift", among={ids[2], 99})} == {ids[2]}
    assert memory.search("lift", among=set()) == []


def test_an_expired_fact_is_listed_but_not_recalled_until_it_is_purged(memory):
    memory.add_many([NewFact("Old Town fair is open", expires_at=PAST), NewFact("Old Town fair is large")])
    assert contents(memory.search("fair")) == ["Old Town fair is large"]
    assert len(memory.probe("Old Town")) == 1
    assert len(memory.facts()) == 2
    assert [f.content for f in memory.facts(current=True)] == ["Old Town fair is large"]
    assert memory.purge() == 1
    assert len(memory) == 1
    assert memory.purge() == 0


def test_a_fact_expires_while_the_memory_is_open(memory):
    memory.add("the kettle is hot", expires_at=datetime.now(UTC) + timedelta(seconds=0.3))
    assert memory.search("kettle")
    time.sleep(0.35)
    assert memory.search("kettle") == []


def test_a_superseded_fact_stays_but_is_left_out(memory):
    old = memory.add("Ann Lee lives in Oslo")
    new = memory.add("Ann Lee lives in Rome", supersedes=old)
    assert contents(memory.search("where does Ann Lee live?")) == ["Ann Lee lives in Rome"]
    assert contents(memory.probe("Ann Lee")) == ["Ann Lee lives in Rome"]
    assert memory.contradictions() == []
    assert memory.get(old).superseded_by == new
    assert memory.add("Ann Lee lives in Oslo", supersedes=new) == old  # she moved back
    assert contents(memory.search("where does Ann Lee live?")) == ["Ann Lee lives in Oslo"]
    assert memory.get(new).superseded_by == old


def test_what_cannot_be_superseded_is_refused_and_nothing_is_stored(memory):
    with pytest.raises(FactNotFound):
        memory.add("Ann Lee lives in Rome", supersedes=412)
    fact_id = memory.add("one thing")
    with pytest.raises(ValueError, match="itself"):
        memory.add("one thing", supersedes=fact_id)
    assert [f.content for f in memory.facts()] == ["one thing"]


def test_superseding_for_one_leaves_it_to_the_others(memory):
    old = memory.add("the standup is at nine", scope=ANN)
    memory.add("the standup is at nine", scope=BOB)
    memory.add("the standup is at ten", scope=ANN, supersedes=old)
    assert contents(memory.search("standup", scope=ANN)) == ["the standup is at ten"]
    assert contents(memory.search("standup", scope=BOB)) == ["the standup is at nine"]


def test_an_expired_fact_that_is_stated_again_counts_again(memory):
    fact_id = memory.add("the pool is open", expires_at=PAST)
    assert memory.add("the pool is open", expires_at=FUTURE) == fact_id
    assert memory.search("pool")[0].fact.expires_at == FUTURE


# ---- the file -----------------------------------------------------------------------------------------------------


def test_export_and_import_carry_it_all(path, tmp_path):
    with Memory(path, embedder=None) as memory:
        old = memory.add("Ann Lee lives in Oslo", source="chat", metadata={"n": [1, "é"]},
                         expires_at=FUTURE, scope=Scope("ann", run="7"))  # fmt: skip
        memory.add("Ann Lee lives in Oslo", scope=BOB)
        memory.add("Ann Lee lives in Rome", supersedes=old)
        gone = memory.add("Ann Lee lives in Bonn", supersedes=memory.add("Ann Lee lives in Kiel"))
        memory.remove(gone)
        first = io.StringIO()
        memory.export(first)
    with Memory(tmp_path / "copy.db", embedder=None) as copy:
        report = copy.load(first.getvalue().splitlines())
        assert (report.added, report.errors) == (3, ())
        again = io.StringIO()
        copy.export(again)
        assert again.getvalue() == first.getvalue()
        assert contents(copy.search("where does Ann Lee live?")) == ["Ann Lee lives in Rome"]


def test_what_a_scope_imports_belongs_to_it(path):
    lines = ['{"content": "one"}', '{"content": "two", "scopes": [{"run": "7"}]}', '{"content": "x", "scopes": [{"user": "bob"}]}',
             '{"content": "y", "scopes": [{}]}', '{"content": "z", "scopes": 3}', '{"content": "z", "expires_at": 3}']  # fmt: skip
    with Memory(path, embedder=None) as memory, Memory(path, embedder=None, scope=ANN) as ann:
        report = ann.load(lines)
        assert (report.added, [number for number, _ in report.errors]) == (2, [3, 4, 5, 6])
        assert {f.scopes for f in memory.facts()} == {(ANN,), (Scope("ann", run="7"),)}


def test_a_file_of_the_first_version_is_copied_aside_and_migrated(path):
    with Memory(path, embedder=None) as memory:
        memory.add("nginx runs on pve-01", category="tool")
    make_first_version(path)
    with Memory(path, embedder=None) as memory:
        assert memory.adopted_copy is not None
        assert memory.search("nginx")[0].fact.category == "tool"
        assert memory.add("the proxy is caddy", scope=ANN, supersedes=1) == 2
        assert contents(memory.search("nginx")) == []
        assert memory.doctor().problems == ()
    with Memory(path, embedder=None) as memory:
        assert memory.adopted_copy is None


def test_a_fact_that_another_program_deletes_leaves_nothing_behind(path):
    with Memory(path, embedder=None) as memory:
        memory.add("nginx runs on pve-01", scope=ANN, source="chat")
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM facts")
    connection.commit()
    assert connection.execute(
        "SELECT (SELECT count(*) FROM fact_scopes), (SELECT count(*) FROM fact_extras)"
    ).fetchone() == (0, 0)
    connection.close()
