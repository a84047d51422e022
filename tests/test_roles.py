"""Roles of a fact and `ask`: the table, the algebra and their agreement, editing, other programs, files of before."""

import io
import json
import random
import sqlite3

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import make_first_version

from holomem import Memory, NewFact, hrr
from holomem.cli import main

SERVICES = [
    ("Alice looks after nginx", {"owner": "Alice", "service": "nginx", "env": "prod"}),
    ("Bob looks after postgres", {"owner": "Bob", "service": "postgres", "env": "prod"}),
    ("nginx in staging is Bob's", {"owner": "Bob", "service": "nginx", "env": "staging"}),
    ("nginx depends on Alice's patch", None),
]


@pytest.fixture
def services(memory):
    memory.add_many([NewFact(content, roles=roles) for content, roles in SERVICES])
    return memory


def change(path, *statements):
    raw = sqlite3.connect(path)
    for statement in statements:
        raw.execute(statement)
    raw.commit()
    raw.close()


def answers(memory, role, **where):
    return {a.filler: {fact.fact_id for fact in a.facts} for a in memory.ask(role, where, limit=1000)}


def test_ask_returns_the_fillers_with_the_facts_that_say_so(services):
    assert answers(services, "owner", service="nginx") == {"Alice": {1}, "Bob": {3}}
    assert answers(services, "owner", service="nginx", env="prod") == {"Alice": {1}}
    assert answers(services, "service", owner="Bob") == {"postgres": {2}, "nginx": {3}}


def test_roles_are_not_interchangeable(services):
    assert services.ask("owner", {"env": "nginx"}) == []
    assert services.ask("service", {"service": "Alice"}) == []


@pytest.mark.parametrize(("role", "where"), [("boss", {"service": "nginx"}), ("owner", {"service": "a stranger"}),
                                             ("owner", {"boss": "nginx"})])  # fmt: skip
def test_what_is_unknown_is_answered_with_nothing(services, role, where):
    assert services.ask(role, where) == []


def test_role_names_and_fillers_are_found_whatever_their_case_or_alias(services):
    services.add("Robert (aka Bob) joined in May")
    assert answers(services, " OWNER", **{"Service ": "NGINX", "env": "Staging"}) == {"Bob": {3}}
    services.add("OpenSearch (aka the finder) is searched daily", roles={"owner": "Cleo", "service": "OpenSearch"})
    services.add("OpenSearch is also known as Finder")
    assert answers(services, "owner", service="opensearch") == {"Cleo": {6}}


def test_a_filler_is_an_entity_of_the_fact(services):
    fact = services.get(1)
    assert fact.roles == {"env": "prod", "owner": "Alice", "service": "nginx"}
    assert set(fact.entities) == {"Alice", "nginx", "prod"}
    assert {hit.fact.fact_id for hit in services.probe("prod")} == {1, 2}
    given = services.add("the usual one", entities=["Kai"], roles={"owner": "Dana"})
    assert set(services.get(given).entities) == {"Kai", "Dana"}


def test_several_facts_make_an_answer_surer_and_trust_ranks(services):
    services.add("Bob answers for nginx at night", roles={"owner": "Bob", "service": "nginx"})
    first, second = services.ask("owner", {"service": "nginx"})
    assert (first.filler, second.filler) == ("Bob", "Alice")
    assert 0 < second.score < first.score <= 1
    services.feedback(1, helpful=False)
    assert services.ask("owner", {"service": "nginx", "env": "prod"})[0].score < second.score
    assert [a.filler for a in services.ask("owner", {"service": "nginx"}, limit=1)] == ["Bob"]


def test_ask_respects_category_and_trust_and_counts_what_it_returns(memory):
    memory.add("one", category="a", roles={"owner": "Ann", "service": "x1"})
    memory.add("two", category="b", roles={"owner": "Ben", "service": "x1"})
    memory.add("three", trust_score=0.3, roles={"owner": "Cem", "service": "x1"})
    memory.feedback(3, helpful=False)
    assert [a.filler for a in memory.ask("owner", {"service": "x1"}, category="b")] == ["Ben"]
    assert {a.filler for a in memory.ask("owner", {"service": "x1"})} == {"Ann", "Ben"}
    assert {a.filler for a in memory.ask("owner", {"service": "x1"}, min_trust=0.0)} == {"Ann", "Ben", "Cem"}
    assert memory.get(2).retrieval_count == 3


def expected(facts, role, where):
    """What the statements themselves say, as `answers` gives it; facts as (id, NewFact)."""
    found = {}
    for fact_id, fact in facts:
        if where.items() <= fact.roles.items() and role in fact.roles:
            found.setdefault(fact.roles[role], set()).add(fact_id)
    return found


@pytest.mark.parametrize("roles", [1, 3, 5])
def test_the_algebra_and_the_table_agree_up_to_the_limit(path, roles):
    """Random facts of up to 24 parts: asked with the table, and with half of the facts' rows taken from it."""
    rng = random.Random(roles)
    names = [f"person {i}" for i in range(40)]
    facts = []
    for i in range(150):
        held = {role: rng.choice(names) for role in rng.sample(["owner", "user", "buyer", "a b", "d"], roles)}
        extra = [f"extra {rng.randrange(500)}" for _ in range(rng.randrange(hrr.CAPACITY - 2 * roles))]
        facts.append((i + 1, NewFact(f"statement {i}", entities=extra, roles=held)))
    questions = [(asked, {given: name}) for asked in ("owner", "user") for given in ("owner", "a b") for name in names]
    with Memory(path, embedder=None) as memory:
        memory.add_many([fact for _, fact in facts])
        for role, where in questions:
            assert answers(memory, role, **where) == expected(facts, role, where)
        change(path, "DELETE FROM fact_roles WHERE fact_id % 2")
        lost, false = 0, 0
        for role, where in questions:
            known = {fact.roles[role] for fact_id, fact in facts if fact_id % 2 == 0 and role in fact.roles}
            right = {name: ids for name, ids in expected(facts, role, where).items() if name in known}
            false += answers(memory, role, **where) != right
            lost += sum(fact_id % 2 for ids in right.values() for fact_id in ids)
        assert lost > 5
        assert false <= 4, "one false fact in 100 questions, of 160"


def test_beyond_the_limit_the_table_decides(memory):
    roles = {f"role {i}": f"filler {i}" for i in range(40)}
    memory.add("the whole organisation", entities=[], roles=roles)
    memory.add_many(
        [NewFact(f"other {i}", entities=[], roles={"role 1": f"x{i}", "role 2": f"y{i}"}) for i in range(50)]
    )
    assert 2 * len(roles) > 3 * hrr.CAPACITY
    for i in range(1, 40):
        assert answers(memory, f"role {i}", **{"role 0": "filler 0"}) == {f"filler {i}": {1}}
        assert answers(memory, "role 0", **{f"role {i}": f"filler {i}"}) == {"filler 0": {1}}


def test_update_replaces_roles_and_keeps_them_otherwise(services):
    assert services.update(1, roles={"owner": "Cleo"}).roles == {"owner": "Cleo"}
    assert answers(services, "owner", service="nginx") == {"Bob": {3}}
    fact = services.update(1, content="Someone looks after it", tags="a")
    assert (fact.roles, fact.entities) == ({"owner": "Cleo"}, ("Cleo",))
    fact = services.update(1, entities=["Zoe"])
    assert (fact.roles, set(fact.entities)) == ({"owner": "Cleo"}, {"Zoe", "Cleo"})
    assert answers(services, "owner", owner="cleo") == {"Cleo": {1}}
    assert services.update(1, roles={}).roles == {}
    assert services.ask("owner", {"owner": "Cleo"}) == []
    assert services.doctor().problems == ()


@pytest.mark.parametrize(
    ("roles", "message"),
    [({"": "x"}, "role is empty"), ({"  ": "x"}, "role is empty"), ({"entity": "x"}, "by itself"),
     ({"Content": "x"}, "by itself"), ({"a=b": "x"}, "'='"), ({"a\tb\0": "x"}, "control"), ({"r" * 65: "x"}, "65"),
     ({"owner": ""}, "must be a name"), ({"owner": " "}, "must be a name"), ({"Owner": "x", "owner": "y"}, "twice"),
     ({"owner": "\ud800"}, "surrogate")],
)  # fmt: skip
def test_bad_roles_are_refused_and_change_nothing(services, roles, message):
    for call in (lambda: services.add("new", roles=roles), lambda: services.update(1, roles=roles),
                 lambda: services.ask("owner", roles)):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
    assert len(services) == len(SERVICES)
    assert services.get(1).roles == {"env": "prod", "owner": "Alice", "service": "nginx"}


def test_a_wrong_type_or_no_condition_is_an_error(services):
    with pytest.raises(TypeError, match="mapping"):
        services.add("new", roles=["owner"])
    with pytest.raises(TypeError, match="filler"):
        services.add("new", roles={"owner": 3})
    with pytest.raises(ValueError, match="where is empty"):
        services.ask("owner", {})


def test_export_and_import_keep_roles(services, path):
    lines = io.StringIO()
    services.export(lines)
    with Memory(path.with_name("copy.db"), embedder=None) as copy:
        copy.load(lines.getvalue().splitlines())
        again = io.StringIO()
        copy.export(again)
        assert again.getvalue() == lines.getvalue()
        assert answers(copy, "owner", service="nginx") == {"Alice": {1}, "Bob": {3}}
        newer = json.loads(lines.getvalue().splitlines()[0]) | {
            "roles": {"owner": "Eve"},
            "updated_at": "2999-01-01T00:00:00",
        }
        copy.load([json.dumps(newer)])
        assert copy.get(1).roles == {"owner": "Eve"}
        ((_, error),) = copy.load([json.dumps({"content": "x", "roles": {"entity": "y"}})]).errors
        assert "by itself" in error


def test_removed_facts_and_links_take_their_roles_with_them(services, path):
    services.remove(1)
    change(path, "DELETE FROM fact_entities WHERE fact_id = 2", "DELETE FROM facts WHERE fact_id = 4")
    left = sqlite3.connect(path)
    assert left.execute("SELECT DISTINCT fact_id FROM fact_roles").fetchall() == [(3,)]
    left.close()


def test_an_edit_by_another_program_encodes_the_roles_again(services, path):
    change(path, "UPDATE facts SET content = 'Alice cares for nginx' WHERE fact_id = 1")
    assert answers(services, "owner", service="nginx") == {"Alice": {1}, "Bob": {3}}
    vector = sqlite3.connect(path).execute("SELECT hrr_vector FROM facts WHERE fact_id = 1").fetchone()[0]
    expected = hrr.bind(hrr.atom("alice"), hrr.atom("__hrr_role_owner__"))
    assert hrr.similarity(hrr.decode(vector), expected) > 0.25


def test_doctor_encodes_the_roles_again(services, path):
    change(path, "UPDATE facts SET hrr_vector = NULL")
    assert answers(services, "owner", service="nginx") == {"Alice": {1}, "Bob": {3}}
    services.doctor(repair=True)
    (answer,) = services.ask("owner", {"service": "nginx", "env": "prod"})
    assert 0.7 < answer.presence < 1


def test_a_file_of_the_format_before_roles_opens_and_can_have_them(path):
    with Memory(path, embedder=None) as memory:
        memory.add("Alice looks after nginx")
    make_first_version(path)
    with Memory(path, embedder=None) as memory:
        assert [hit.fact.roles for hit in memory.probe("Alice")] == [{}]
        memory.update(1, roles={"owner": "Alice", "service": "nginx"})
        assert answers(memory, "owner", service="nginx") == {"Alice": {1}}
        assert memory.doctor().problems == ()


def test_a_filler_is_similar_to_its_fact_bound_to_its_own_role_only(memory):
    fact = hrr.encode_fact(["nginx"], ["Alice"], roles=[("owner", "Alice"), ("service", "nginx")])
    owner, service = (hrr.atom(hrr.role_token(role)) for role in ("owner", "service"))
    assert hrr.role_token("owner") == "__hrr_role_owner__"
    assert hrr.similarity(fact, hrr.bind(hrr.atom("alice"), owner)) == pytest.approx(
        float(hrr.gain(np.array(4))), abs=0.08
    )
    assert abs(hrr.similarity(fact, hrr.bind(hrr.atom("alice"), service))) < 4 * hrr.noise()
    assert hrr.cleanup(hrr.unbind(fact, owner), ["nginx", "bob", "alice"])[0] == "alice"


def test_the_command_line_gives_and_asks_roles(path):
    def run(*arguments):
        return CliRunner().invoke(main, ["--db", str(path), "--no-model", *arguments])

    assert run("add", "Alice looks after nginx", "--role", "owner=Alice", "--role", "service=nginx").exit_code == 0
    assert "owner=Alice" in run("show", "1").output
    shown = run("ask", "owner", "service=nginx")
    assert "Alice" in shown.output
    assert "Alice looks after nginx" in shown.output
    (answer,) = json.loads(run("ask", "owner", "service=NGINX", "--json").stdout)
    assert (answer["filler"], answer["facts"][0]["fact_id"]) == ("Alice", 1)
    assert json.loads(run("edit", "1", "--role", "owner=Bob", "--json").stdout)["roles"] == {"owner": "Bob"}
    assert json.loads(run("edit", "1", "--role", "", "--json").stdout)["roles"] == {}
    assert "nothing found" in run("ask", "owner", "service=nginx").stderr
    for wrong in (["ask", "owner", "nginx"], ["ask", "owner", "a=b", "a=c"], ["add", "a fact", "--role", "owner"]):
        assert run(*wrong).exit_code == 2
    assert run("ask", "entity", "a=b").exit_code == 1
