"""The LangGraph store, call by call beside LangGraph's own `InMemoryStore`."""

import asyncio
import random
import time
from datetime import UTC, datetime

import pytest

pytest.importorskip("langgraph.store.memory", reason="langgraph-checkpoint is not installed")

from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from holomem import Memory
from holomem.compat.langgraph import HolomemStore


@pytest.fixture
def store(path, embedder):
    with HolomemStore(path, embedder=embedder) as opened:
        yield opened


@pytest.fixture
def both(store):
    """A call on both stores, whose results must say the same."""
    reference = InMemoryStore()

    def call(name, *args, ordered=True, **kwargs):
        ours, theirs = (getattr(s, name)(*args, **kwargs) for s in (store, reference))
        if ordered:
            assert plain(ours) == plain(theirs)
        else:
            assert sorted(map(repr, plain(ours))) == sorted(map(repr, plain(theirs)))
        return ours

    return call


def plain(result):
    if isinstance(result, list):
        return [plain(one) for one in result]
    return (result.namespace, result.key, result.value) if hasattr(result, "namespace") else result


def test_put_get_and_delete(both):
    both("put", ("users", "ann"), "food", {"text": "likes pizza", "n": 1})
    assert both("get", ("users", "ann"), "food").value == {"text": "likes pizza", "n": 1}
    both("put", ("users", "ann"), "food", {"text": "likes sushi"})
    both("get", ("users", "ann"), "food")
    both("get", ("users", "ann"), "other")
    both("get", ("users",), "food")
    both("get", ("users", "bob"), "food")
    both("delete", ("users", "ann"), "food")
    both("get", ("users", "ann"), "food")
    both("delete", ("users", "ann"), "food")
    both("search", ("users",))


VALUES = [
    {},
    {"text": ""},
    {"a": None},
    {"a": [1, {"b": "x"}], "é": "ü 东京"},
    {"n": 0.5, "t": True},
    {"text": "x" * 20_000},
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_any_json_value_comes_back_as_it_was(both, value):
    both("put", ("a",), "k", value)
    both("get", ("a",), "k")
    both("put", ("a",), "k2", value)
    both("search", ("a",))


@pytest.mark.parametrize("key", ["a/b", "a%2Fb", "langgraph", "é 东", "", " ", "a.b", "x" * 500, "'; DROP TABLE facts"])
def test_any_key_is_a_key(both, key):
    both("put", ("a",), key, {"text": "one"})
    both("put", ("a", "b"), "k", {"text": "two"})
    both("get", ("a",), key)
    both("search", ("a", "b"))
    both("delete", ("a",), key)
    both("search", ())


@pytest.mark.parametrize(
    "filters",
    [{"kind": "x"}, {"n": {"$gt": 1}}, {"n": {"$gte": 1, "$lt": 3}}, {"kind": {"$ne": "x"}}, {"n": {"$eq": 2}}, {"n": {"$lte": 1}},
     {"deep": {"a": 1}}, {"deep": {"a": {"$gt": 0}}}, {"list": [1, 2]}, {"list": [1]}, {"absent": None}, {"kind": "x", "n": 1}],
)  # fmt: skip
def test_filters_are_those_of_langgraph(both, filters):
    for n, kind in ((1, "x"), (2, "y"), (3, "x")):
        both("put", ("docs", kind), f"d{n}", {"n": n, "kind": kind, "deep": {"a": n, "b": 0}, "list": [1, n]})
    both("search", ("docs",), filter=filters)
    both("search", ("docs", "x"), filter=filters)
    both("search", ("docs",), filter=filters, limit=1)
    both("search", ("docs",), filter=filters, limit=5, offset=1)


def test_an_unknown_operator_is_refused(store):
    store.put(("a",), "k", {"n": 1})
    with pytest.raises(ValueError, match="Unsupported operator"):
        store.search(("a",), filter={"n": {"$regex": "x"}})


def test_namespaces_are_listed(both):
    for namespace in [("a", "b", "c"), ("a", "b", "d"), ("a", "e"), ("f",), ("g", "b", "c")]:
        both("put", namespace, "k", {"text": str(namespace)})
    both("list_namespaces")
    both("list_namespaces", prefix=("a",))
    both("list_namespaces", prefix=("a", "*", "c"))
    both("list_namespaces", suffix=("c",))
    both("list_namespaces", suffix=("b", "*"))
    both("list_namespaces", prefix=("a",), suffix=("c",))
    both("list_namespaces", max_depth=2)
    both("list_namespaces", max_depth=1, limit=2, offset=1)
    both("list_namespaces", prefix=("z",))


@pytest.mark.parametrize("namespace", [(), ("langgraph",), ("a.b",), ("",), (3,), ("a\0",)])
def test_bad_namespaces_are_refused_alike(store, namespace):
    for one in (store, InMemoryStore()):
        with pytest.raises(InvalidNamespaceError):
            one.put(namespace, "k", {"text": "x"})


def test_a_random_sequence_of_calls_gives_what_theirs_gives(both):
    chance = random.Random(7)
    spaces = [("u", "ann"), ("u", "bob"), ("u",), ("docs",)]
    for _ in range(60):
        namespace, key = chance.choice(spaces), chance.choice("abc")
        match chance.choice(["put", "put", "get", "delete", "search"]):
            case "put":
                both(
                    "put",
                    namespace,
                    key,
                    {"n": chance.randrange(3), "text": chance.choice(["likes tea", "lives in Oslo"])},
                )
            case "get":
                both("get", namespace, key)
            case "delete":
                both("delete", namespace, key)
            case "search":
                both("search", namespace[:1], filter={"n": 1}, ordered=False)
                both("search", namespace[:1], limit=20, ordered=False)


def test_a_batch_reads_before_it_writes_and_the_last_put_counts(store):
    reference = InMemoryStore()
    ops = [
        PutOp(("a",), "k", {"v": 1}), GetOp(("a",), "k"), PutOp(("a",), "k", {"v": 2}), SearchOp(("a",)),
        ListNamespacesOp((MatchCondition("prefix", ("a",)),)), PutOp(("a",), "gone", {"v": 3}), PutOp(("a",), "gone", None),
    ]  # fmt: skip
    results = [plain(one.batch(ops)) for one in (store, reference)]
    assert results[0][:4] + results[0][5:] == results[1][:4] + results[1][5:]
    assert results[0][4] == []  # theirs knows a namespace from having looked into it
    assert plain(store.batch(ops[1:4:2])) == plain(reference.batch(ops[1:4:2]))


def test_a_batch_with_a_bad_operation_does_nothing(store):
    for bad in (PutOp(("a.b",), "k", {"v": 1}), PutOp(("a",), "k", {"v": object()}), "no operation"):
        with pytest.raises((ValueError, TypeError)):
            store.batch([PutOp(("a",), "first", {"v": 1}), bad])
    assert store.search(()) == []


def test_search_ranks_by_the_question_and_lists_the_rest_after(store):
    store.put(("m",), "1", {"text": "Ann likes pizza with mushrooms"})
    store.put(("m",), "2", {"text": "the server runs in Oslo"})
    store.put(("m",), "3", {"text": "pizza is served on Fridays"}, index=False)
    store.put(("other",), "4", {"text": "Ann likes pizza"})
    hits = store.search(("m",), query="who likes pizza?")
    assert hits[0].key == "1"
    assert {hit.key for hit in hits} == {"1", "2", "3"}
    assert 0 < hits[0].score <= 1
    assert next(hit for hit in hits if hit.key == "3").score is None
    assert [hit.key for hit in store.search(("m",), query="pizza", limit=1, offset=1)] != ["1"]


def test_only_the_indexed_fields_are_searched(path, tmp_path):
    with HolomemStore(path, embedder=None, fields=["summary", "parts[*].text"]) as store:
        store.put(("d",), "1", {"summary": "a note about nginx", "secret": "zebra", "parts": [{"text": "caddy"}]})
        store.put(("d",), "2", {"summary": "something else", "title": "giraffe"}, index=["title"])
        assert store.search(("d",), query="nginx")[0].score
        assert store.search(("d",), query="caddy")[0].score
        assert store.search(("d",), query="zebra")[0].score is None
        assert store.search(("d",), query="giraffe")[0].key == "2"


def test_two_items_that_say_the_same_are_two(both):
    for namespace in (("u", "ann"), ("u", "bob")):
        for key in "ab":
            both("put", namespace, key, {"text": "likes tea"})
    both("search", ("u",))
    both("put", ("u", "ann"), "a", {"text": "likes coffee"})
    both("put", ("u", "ann"), "b", {"text": "likes coffee"})
    both("delete", ("u", "ann"), "a")
    both("search", ("u", "ann"))
    both("search", ("u", "bob"))


def test_an_item_expires_and_reading_it_prolongs_its_life(path):
    with HolomemStore(path, embedder=None, ttl={"default_ttl": 0.02, "refresh_on_read": True}) as store:
        store.put(("a",), "read", {"text": "one"})
        store.put(("a",), "left", {"text": "two"})
        store.put(("a",), "kept", {"text": "three"}, ttl=None)
        for _ in range(4):
            time.sleep(0.5)
            assert store.get(("a",), "read") is not None
            store.get(("a",), "left", refresh_ttl=False)
        assert store.get(("a",), "left") is None
        assert {item.key for item in store.search(("a",))} == {"read", "kept"}
        assert store.search(("a",), query="two") != []
        assert "left" not in {item.key for item in store.search(("a",), query="two")}
        assert store.sweep_ttl() == 1
        store.put(("a",), "left", {"text": "two"})
        assert store.get(("a",), "left").value == {"text": "two"}


def test_putting_again_keeps_when_it_was_made(store):
    store.put(("a",), "k", {"v": 1})
    first = store.get(("a",), "k")
    time.sleep(1.1)
    store.put(("a",), "k", {"v": 2})
    again = store.get(("a",), "k")
    assert again.created_at == first.created_at
    assert again.updated_at > first.updated_at
    assert abs((datetime.now(UTC) - again.updated_at).total_seconds()) < 5


def test_items_survive_and_are_facts_for_other_doors(path):
    with HolomemStore(path, embedder=None) as store:
        store.put(("users", "ann"), "home", {"text": "Ann Lee lives in Oslo"})
    with Memory(path, embedder=None) as memory:
        (hit,) = memory.probe("Ann Lee")
        assert (hit.fact.content, hit.fact.source) == ("Ann Lee lives in Oslo", "langgraph/users/ann/home")
        memory.add("Ann Lee lives in Rome")
        with HolomemStore(memory) as store:
            assert [item.key for item in store.search(())] == ["home"]
            store.put(("users", "ann"), "new", {"text": "Ann Lee lives in Rome"})
            assert len(store.search(("users",))) == 2
        assert len(memory) == 3


def test_the_async_methods_do_the_same(store):
    async def main():
        await asyncio.gather(*(store.aput(("a",), str(i), {"text": f"note {i}"}) for i in range(10)))
        assert (await store.aget(("a",), "3")).value == {"text": "note 3"}
        assert len(await store.asearch(("a",), limit=20)) == 10
        assert await store.alist_namespaces() == [("a",)]
        await store.adelete(("a",), "3")
        assert await store.aget(("a",), "3") is None

    asyncio.run(main())


def test_a_graph_uses_the_store(store):
    graphs = pytest.importorskip("langgraph.graph", reason="langgraph is not installed")

    def remember(state, *, store):
        store.put(("users", "ann"), "drink", {"text": state["said"]})
        return {"said": store.search(("users", "ann"), query="drink tea")[0].value["text"]}

    from langgraph.store.base import BaseStore

    remember.__annotations__["store"] = BaseStore
    builder = graphs.StateGraph(dict)
    builder.add_node("remember", remember)
    builder.add_edge(graphs.START, "remember")
    graph = builder.compile(store=store)
    assert graph.invoke({"said": "Ann drinks tea"}) == {"said": "Ann drinks tea"}
