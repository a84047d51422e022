"""The tools a model calls: the plugin's recorded calls, careful reading of arguments, errors that can be acted on."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holomem import Memory, tools


@pytest.fixture
def recorded(shared):
    return json.loads((shared / "compat" / "hermes_memory_store.json").read_text("utf-8"))


def store(memory, **arguments):
    return tools.call(memory, "fact_store", arguments)


def rate(memory, **arguments):
    return tools.call(memory, "fact_feedback", arguments)


def shape(value):
    """Keys and types, without the values."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return type(value)


FACT = {"fact_id", "content", "category", "tags", "trust_score", "retrieval_count", "helpful_count",
        "created_at", "updated_at"}  # fmt: skip


def listed(recorded):
    return next(c["result"]["facts"] for c in recorded["calls"] if c["args"].get("action") == "list")


def test_every_recorded_call_of_the_plugin_gives_the_same_keys_and_types(memory, recorded):
    for add in recorded["adds"]:
        assert store(memory, action="add", **add["args"]) == add["result"]
    mirrored = [row for row in listed(recorded) if row["fact_id"] > 32]  # by the host, not by a tool
    for call in recorded["calls"]:
        if call["args"].get("action") == "search" and len(memory) < 33:
            for row in mirrored:
                memory.add(row["content"], category=row["category"])
        result = tools.call(memory, call["tool"], call["args"])
        expected = call["result"]
        assert list(result) == list(expected), call
        for key, value in expected.items():
            assert type(result[key]) is type(value), call
            if isinstance(value, list) and value and result[key]:
                shapes = {json.dumps(sorted(row)) for row in value}  # probe falls back to search: with fts_rank then
                assert {json.dumps(sorted(row)) for row in result[key]} <= shapes, call
                kinds = {name: kind for row in value for name, kind in shape(row).items()}
                assert all(kinds[name] is kind for row in result[key] for name, kind in shape(row).items()), call
        if call["tool"] == "fact_feedback" and "error" not in expected:
            assert result == {k: pytest.approx(v) if isinstance(v, float) else v for k, v in expected.items()}
        elif "results" not in expected and "facts" not in expected and "error" not in expected:
            assert result == expected
        elif "facts" in expected:
            unstable = {"created_at", "updated_at", "retrieval_count", "trust_score"}
            assert [{k: v for k, v in row.items() if k not in unstable} for row in result["facts"]] == [
                {k: v for k, v in row.items() if k not in unstable} for row in expected["facts"]
            ]
    assert tools.call(memory, "zzz", {})["error"] == "Unknown tool: 'zzz'"


def test_the_recorded_schemas_are_held(recorded):
    for ours, theirs in zip(tools.SCHEMAS, recorded["tool_schemas"], strict=True):
        assert ours["name"] == theirs["name"]
        assert ours["parameters"]["required"] == theirs["parameters"]["required"]
        for name, kind in theirs["parameters"]["properties"].items():
            own = {k: v for k, v in ours["parameters"]["properties"][name].items() if k != "description"}
            assert set(kind.pop("enum", [])) <= set(own.pop("enum", []))
            assert own == kind
    json.dumps(tools.SCHEMAS)


def test_contradictions_have_the_recorded_keys(memory, recorded):
    store(memory, action="add", content="Project Apollo deploys to Kubernetes every Tuesday")
    store(memory, action="add", content="Project Apollo deploys to Kubernetes every Friday")
    pair = store(memory, action="contradict")["results"][0]
    expected = recorded["retriever_contradict_threshold_0.2"][0]
    assert set(pair) == {*expected, "reason"}
    assert shape({k: v for k, v in pair.items() if k != "reason"}) == shape(expected)
    assert "apollo" in " ".join(pair["shared_entities"])


def test_a_file_of_the_plugin_answers_as_it_did(shared, tmp_path, recorded):
    shutil.copyfile(shared / "compat" / "hermes_memory_store.db", tmp_path / "memory_store.db")
    with Memory(tmp_path / "memory_store.db", embedder=None) as memory:
        listed = store(memory, action="list", limit=100)
        assert listed["count"] == 33
        assert all(set(row) == FACT for row in listed["facts"])
        trusts = [row["trust_score"] for row in listed["facts"]]
        assert trusts == sorted(trusts, reverse=True)


@pytest.fixture
def seven(memory):
    for number in range(1, 8):
        store(memory, action="add", content=f"Orion Works keeps note number {number}", category="project")
    return memory


def test_null_is_not_given_and_near_misses_are_read_ent_07(seven):
    added = store(seven, action="add", content="Zoe Park likes tea", category=None, tags=["drink", "tea"])
    fact = seven.get(added["fact_id"])
    assert (fact.category, fact.tags) == ("general", "drink,tea")
    assert store(seven, action="search", query="note", limit="5", min_trust=None)["count"] == 5
    assert store(seven, action="update", fact_id="7", trust_delta=None, tags="x") == {"updated": True}
    assert seven.get(7).trust_score == 0.5
    assert store(seven, action="reason", entities="Orion Works")["count"] == 7
    assert store(seven, action="reason", entities='["Orion Works"]')["count"] == 7
    assert rate(seven, action="helpful", fact_id=3.0)["new_trust"] == 0.55
    assert store(seven, action="list", limit=10_000_000)["count"] == 8
    assert store(seven, action=" LIST ", colour="red")["count"] == 8
    assert tools.call(seven, "fact_store", '{"action": "list"}')["count"] == 8
    assert store(seven, action="remove", fact_id="7") == {"removed": True}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"action": "search", "query": "x", "limit": 0}, "limit is 0; use a whole number from 1"),
        ({"action": "search", "query": "x", "limit": -1}, "limit is -1"),
        ({"action": "search", "query": "x", "limit": "many"}, "limit is 'many'; give a whole number"),
        ({"action": "search", "query": "x", "limit": True}, "limit is True"),
        ({"action": "search", "query": "x", "min_trust": "nan"}, "min_trust is 'nan'; give a number"),
        ({"action": "search", "query": "x", "min_trust": 7}, "min_trust is 7; use a number from 0 to 1"),
        ({"action": "search", "query": {"a": 1}}, "query is {'a': 1}; give text"),
        ({"action": "update", "fact_id": 1, "trust_delta": "-2"}, "trust_delta is '-2'"),
        ({"action": "update", "fact_id": 1, "content": ""}, "content must not be empty"),
        ({"action": "update", "fact_id": [1]}, "fact_id is [1]"),
        ({"action": "remove", "fact_id": 1.5}, "fact_id is 1.5; give a whole number"),
        ({"action": "add", "text": "hello"}, "'content' (not known here: 'text')"),
        ({"action": "add", "content": "x", "tags": {"a": 1}}, "tags is"),
        ({"action": "add", "content": "a\ud800b"}, "content"),
        ({"action": "reason", "entities": 5}, "entities is 5"),
        ({"action": "reason", "entities": [None]}, "entities is None"),
        ({"action": "ask", "role": "owner"}, "'roles'"),
        ({"action": "ask", "role": "owner", "roles": "nginx"}, "give an object"),
        ({"action": "nope"}, "use one of add, search"),
        ({"action": None}, "'action'"),
        ("[1, 2]", "give an object"),
    ],
)
def test_a_bad_argument_is_an_error_that_names_it_and_changes_nothing(seven, arguments, says):
    before = seven.facts(limit=None)
    result = tools.call(seven, "fact_store", arguments)
    assert list(result) == ["error"]
    assert says in result["error"]
    assert len(result["error"]) < 400
    assert seven.facts(limit=None) == before


def test_ids_that_no_file_can_have_are_unknown_ids(seven):
    assert store(seven, action="remove", fact_id=10**30).keys() & {"error", "removed"}
    assert store(seven, action="update", fact_id=-1, tags="x").keys() & {"error", "updated"}
    assert "no fact 99" in rate(seven, action="helpful", fact_id=99)["error"]


def test_what_ours_adds_works(memory):
    store(memory, action="add", content="Alice Chen owns nginx", roles={"owner": "Alice Chen", "service": "nginx"})
    answer = store(memory, action="ask", role="owner", roles={"service": "nginx"})["results"][0]
    assert answer["filler"] == "Alice Chen"
    assert set(answer["facts"][0]) == FACT
    names = store(memory, action="entities")
    assert names["total"] == 2
    assert {row["name"] for row in names["entities"]} == {"Alice Chen", "nginx"}
    why = store(memory, action="why", query="who owns nginx?")["results"][0]
    assert why["score"] == pytest.approx(why["why"]["relevance"] * why["why"]["trust"] * why["why"]["decay"])
    assert why["why"]["channels"]["semantic"] is None
    parts = [channel for channel in why["why"]["channels"].values() if channel]
    assert why["why"]["relevance"] == pytest.approx(sum(c["value"] * c["weight"] for c in parts))


def test_a_memory_that_is_closed_is_an_error_and_no_exception(path):
    memory = Memory(path, embedder=None)
    memory.close()
    assert "error" in store(memory, action="list")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
actions = st.sampled_from(tools.FACT_STORE["parameters"]["properties"]["action"]["enum"]) | anything
names = st.sampled_from(sorted(tools.FACT_STORE["parameters"]["properties"])) | st.text(max_size=8)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["fact_store", "fact_feedback"]), actions, st.dictionaries(names, anything, max_size=6))
def test_whatever_a_model_sends_is_answered_with_json(seven, name, action, arguments):
    result = tools.call(seven, name, {**arguments, "action": action})
    json.dumps(result, allow_nan=False)
    if "error" in result:
        assert list(result) == ["error"]
        assert "the memory failed" not in result["error"]
        assert result["error"].strip()
