"""Mem0's documented examples on a holomem file, and what its users rely on: shapes, owners, filters."""

import pytest

from holomem import FactNotFound
from holomem import Memory as Holomem
from holomem.compat.mem0 import Memory, MemoryClient

MOVIES = [
    {"role": "user", "content": "I'm planning to watch a movie tonight. Any recommendations?"},
    {"role": "assistant", "content": "How about a thriller movies? They can be quite engaging."},
    {"role": "user", "content": "I'm not a big fan of thriller movies but I love sci-fi movies."},
    {
        "role": "assistant",
        "content": "Got it! I'll avoid thriller recommendations and suggest sci-fi movies in the future.",
    },
]


@pytest.fixture
def m(path, embedder):
    with Memory(path, embedder=embedder) as opened:
        yield opened


def texts(results):
    return [entry["memory"] for entry in results["results"]]


def test_the_python_quickstart(m):
    result = m.add(MOVIES, user_id="alice", metadata={"category": "movie_recommendations"}, infer=False)
    assert [entry["event"] for entry in result["results"]] == ["ADD"] * 4
    assert [entry["role"] for entry in result["results"]] == ["user", "assistant", "user", "assistant"]

    all_memories = m.get_all(user_id="alice")
    assert len(all_memories["results"]) == 4
    memory_id = all_memories["results"][0]["id"]
    single = m.get(memory_id)
    assert {"id", "memory", "hash", "metadata", "created_at", "updated_at", "user_id"} <= set(single)
    assert (single["user_id"], single["metadata"]) == ("alice", {"category": "movie_recommendations"})
    assert single == all_memories["results"][0]

    related = m.search(query="Which movies do I love?", user_id="alice")
    assert related["results"][0]["memory"] == MOVIES[2]["content"]
    assert 0 < related["results"][0]["score"] <= 1

    assert m.update(memory_id=memory_id, data="I love India, it is my favorite country.") == {
        "message": "Memory updated successfully!"
    }
    assert m.get(memory_id)["memory"] == "I love India, it is my favorite country."
    history = m.history(memory_id=memory_id)
    assert [entry["event"] for entry in history] == ["ADD", "UPDATE"]
    assert history[1]["old_memory"] == single["memory"]
    assert history[1]["new_memory"] == "I love India, it is my favorite country."

    assert m.delete(memory_id=memory_id) == {"message": "Memory deleted successfully!"}
    assert m.get(memory_id) is None
    assert m.history(memory_id)[-1]["event"] == "DELETE"
    assert m.delete_all(user_id="alice") == {"message": "Memories deleted successfully!"}
    assert m.get_all(user_id="alice") == {"results": []}
    m.reset()


def test_the_quickstart_with_ids_in_filters(m):
    messages = [
        {"role": "user", "content": "Hi, I'm Alex. I love basketball and gaming."},
        {"role": "assistant", "content": "Hey Alex! I'll remember your interests."},
    ]
    m.add(messages, user_id="alex")
    results = m.search("What do you know about Alex?", filters={"user_id": "alex"})
    assert len(results["results"]) == 2
    assert results["results"][0]["user_id"] == "alex"


def test_a_string_is_one_memory_and_told_again_it_is_not_doubled(m):
    first = m.add("Likes to play cricket on weekends", user_id="alice")["results"][0]
    again = m.add("Likes to play cricket on weekends", user_id="alice")["results"][0]
    assert (first["event"], again["event"], again["id"]) == ("ADD", "NONE", first["id"])
    assert len(m.get_all(user_id="alice")["results"]) == 1


def test_owners_are_apart_even_when_they_say_the_same(m):
    ann = m.add("likes tea", user_id="ann", metadata={"mood": "calm"})["results"][0]["id"]
    bob = m.add("likes tea", user_id="bob", metadata={"mood": "wild"})["results"][0]["id"]
    m.add("hides the code 4711", user_id="ann", run_id="s1")
    assert ann != bob
    assert m.get(ann)["metadata"] == {"mood": "calm"}
    assert m.search("tea", user_id="bob")["results"][0]["metadata"] == {"mood": "wild"}
    assert "hides the code 4711" not in texts(m.search("code 4711", user_id="bob"))
    assert len(m.get_all(user_id="ann")["results"]) == 2
    assert texts(m.get_all(user_id="ann", run_id="s1")) == ["hides the code 4711"]
    assert texts(m.get_all(run_id="s1")) == ["hides the code 4711"]
    m.update(ann, data="likes coffee")
    assert texts(m.get_all(user_id="bob")) == ["likes tea"]
    assert m.get(bob)["metadata"] == {"mood": "wild"}
    (coffee,) = [entry for entry in m.get_all(user_id="ann")["results"] if entry["memory"] == "likes coffee"]
    assert (coffee["metadata"], "ann" in repr(m.get_all(user_id="bob"))) == ({"mood": "calm"}, False)
    m.update(bob, data="likes coffee")
    assert m.get(coffee["id"])["metadata"] == {"mood": "calm"}
    m.delete_all(user_id="bob")
    assert m.get(coffee["id"])["memory"] == "likes coffee"
    assert m.get_all(user_id="bob")["results"] == []


def test_an_owner_whose_name_holds_separators(m):
    name = "ann/lee:1@x.org é"
    memory_id = m.add("likes tea", user_id=name)["results"][0]["id"]
    assert m.get(memory_id)["user_id"] == name
    m.delete(memory_id)
    assert m.get_all(user_id=name)["results"] == []


@pytest.mark.parametrize(
    ("filters", "found"),
    [({"user_id": "ann"}, {"a", "b", "c"}), ({"AND": [{"user_id": "ann"}, {"price": {"gte": 2}}]}, {"b", "c"}),
     ({"user_id": "ann", "price": {"lt": 3, "ne": 1}}, {"b"}), ({"user_id": "ann", "kind": {"in": ["x"]}}, {"a", "c"}),
     ({"user_id": "ann", "OR": [{"kind": "y"}, {"price": 1}]}, {"a", "b"}), ({"user_id": "ann", "NOT": [{"kind": "x"}]}, {"b"}),
     ({"user_id": "ann", "kind": "*"}, {"a", "b", "c"}), ({"user_id": "ann", "kind": {"icontains": "Y"}}, {"b"}),
     ({"user_id": "ann", "absent": {"gt": 1}}, set())],
)  # fmt: skip
def test_filters_choose_by_metadata_before_the_top_is_taken(m, filters, found):
    for name, price, kind in (("a", 1, "x"), ("b", 2, "y"), ("c", 3, "x")):
        m.add(f"thing {name}", user_id="ann", metadata={"price": price, "kind": kind, "name": name})
    m.add("thing d", user_id="bob", metadata={"price": 2, "kind": "x"})
    assert {entry["metadata"]["name"] for entry in m.get_all(filters=filters)["results"]} == found
    assert {entry["metadata"]["name"] for entry in m.search("thing", filters=filters)["results"]} == found
    assert len(m.search("thing", filters=filters, limit=1)["results"]) == min(1, len(found))


def test_expired_memories_are_hidden(m):
    m.add("the fair is on", user_id="bob")
    memory_id = m.add("the fair is on", user_id="ann", expiration_date="2020-01-31")["results"][0]["id"]
    assert texts(m.get_all(user_id="ann")) == texts(m.search("fair", user_id="ann")) == []
    assert texts(m.search("fair", user_id="bob")) == ["the fair is on"]
    assert m.get_all(user_id="ann", show_expired=True)["results"][0]["expiration_date"].startswith("2020-01-31T23:59")
    m.update(memory_id, expiration_date="2100-01-31")
    assert texts(m.search("fair", user_id="ann")) == ["the fair is on"]


def test_facts_of_other_doors_are_no_memories_of_anyone_and_survive_a_reset(path):
    with Holomem(path, embedder=None) as memory:
        memory.add("the office opens at nine")
    with Memory(path, embedder=None) as m:
        memory_id = m.add("the office opens at nine", user_id="ann")["results"][0]["id"]
        assert texts(m.get_all(user_id="ann")) == ["the office opens at nine"]
        assert m.get_all(user_id="bob")["results"] == []
        m.add("likes tea", user_id="ann")
        assert m.users()["results"] == [{"type": "user", "name": "ann", "total_memories": 2}]
        m.reset()
        assert m.get(memory_id) is None
    with Holomem(path, embedder=None) as memory:
        assert [(f.content, f.metadata) for f in memory.facts()] == [("the office opens at nine", None)]


def test_bad_calls_say_what_is_wrong(m):
    with pytest.raises(ValueError, match="At least one of"):
        m.add("x")
    with pytest.raises(ValueError, match="At least one of"):
        m.search("x")
    with pytest.raises(ValueError, match="At least one of"):
        m.delete_all()
    with pytest.raises(ValueError, match="is no message"):
        m.add([{"role": "user"}], user_id="ann")
    with pytest.raises(ValueError, match="memory_id"):
        m.get("892db2ae-06d9-49e5-8b3e-585ef9b85b8e")
    with pytest.raises(FactNotFound):
        m.delete("412:ann//")
    with pytest.raises(ValueError, match="operator"):
        m.add("x", user_id="ann")
        m.get_all(filters={"user_id": "ann", "x": {"like": 3}})
    with pytest.raises(ValueError, match="nothing to update"):
        m.update("1:ann//")


def test_messages_of_the_system_and_empty_ones_are_not_kept(m):
    parts = {"role": "user", "content": [{"type": "text", "text": "likes tea"}, {"type": "image_url", "image_url": {}}]}
    m.add([{"role": "system", "content": "be nice"}, {"role": "user", "content": " "}, parts], user_id="ann")
    assert texts(m.get_all(user_id="ann")) == ["likes tea"]


def test_the_client_takes_a_key_and_gives_pages(path):
    with MemoryClient(api_key="m0-xxx", path=path, embedder=None) as client:
        for i in range(5):
            client.add(f"note {i}", user_id="ann")
        page = client.get_all(filters={"AND": [{"user_id": "ann"}]}, page=2, page_size=2)
        assert (page["count"], page["next"], page["previous"]) == (5, 3, 1)
        assert texts(page) == ["note 2", "note 1"]
        with pytest.raises(TypeError, match="unknown"):
            client.get_all(user_id="ann", colour="red")


def test_from_config_and_the_default_path(path, monkeypatch):
    with Memory.from_config({"path": str(path), "llm": {"provider": "openai"}}, embedder=None) as m:
        m.add("likes tea", user_id="ann")
    monkeypatch.setenv("HOLOMEM_DB", str(path))
    with Memory(embedder=None) as m:
        assert texts(m.get_all(user_id="ann")) == ["likes tea"]
