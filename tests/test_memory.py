"""`Memory` as its users see it: adding, changing, counting, closing."""

import threading
from datetime import UTC, datetime

import pytest
from conftest import HashEmbedder

from holomem import DegradedWarning, DuplicateFact, FactNotFound, Memory, ModelError, NewFact, StoreError
from holomem.embedding.sources import Source


def test_adding_the_same_content_returns_the_existing_id(memory):
    first = memory.add("Alice likes tea", category="user_pref", tags=["a", "b , c", ""])
    assert memory.add("  Alice likes tea ", category="other") == first
    fact = memory.get(first)
    assert (fact.category, fact.tags, fact.trust_score, len(memory)) == ("user_pref", "a,b,c", 0.5, 1)
    assert abs((datetime.now(UTC) - fact.created_at).total_seconds()) < 5


def test_accents_composed_or_not_are_the_same_content(memory):
    assert memory.add("caf\u00e9 is open") == memory.add("cafe\u0301 is open")


def test_add_many_is_all_or_nothing(memory):
    with pytest.raises(ValueError, match="content"):
        memory.add_many([NewFact("good"), NewFact("  ")])
    assert len(memory) == 0
    assert memory.add_many([NewFact("a b"), NewFact("c d"), NewFact("a b")]) == [1, 2, 1]


@pytest.mark.parametrize(
    ("bad", "error"),
    [({"content": ""}, ValueError), ({"content": None}, TypeError), ({"content": "\ud800"}, ValueError),
     ({"content": "x", "entities": "Orion"}, TypeError), ({"content": "x", "tags": [3]}, TypeError),
     ({"content": "x", "trust_score": 0.2}, ValueError), ({"content": "x", "trust_score": "a"}, ValueError),
     ({"content": "x", "category": 3}, TypeError)],
)  # fmt: skip
def test_bad_input_is_refused_and_changes_nothing(memory, bad, error):
    with pytest.raises(error):
        memory.add(**bad)
    assert len(memory) == 0


def test_an_update_moves_everything_that_follows_from_the_content(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        fact_id = memory.add("Alice Johnson deploys nginx", tags="x")
        memory.add("Bob Smith deploys caddy")
        fact = memory.update(fact_id, content="Carol Danvers deploys traefik", category="tool")
        assert (fact.content, fact.category, fact.tags) == ("Carol Danvers deploys traefik", "tool", "x")
        assert fact.entities == ("Carol Danvers",)
        assert "nginx" not in {h.fact.content for h in memory.search("nginx")}
        assert memory.search("traefik")[0].fact.fact_id == fact_id
        assert memory.probe("Alice Johnson") == []
        assert "Alice Johnson" not in {e.name for e in memory.entities()}
        assert memory.status().missing_vectors == 0


def test_a_change_of_case_only_is_searchable_and_keeps_its_vector(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        fact_id = memory.add("nginx deploys")
        memory.update(fact_id, content="Nginx deploys")
        assert memory.search("nginx")[0].fact.content == "Nginx deploys"
        assert (memory.status().missing_vectors, memory.status().unanalysed) == (0, 0)


def test_an_update_to_another_facts_content_is_refused(memory):
    first, second = memory.add("one thing"), memory.add("another thing")
    with pytest.raises(DuplicateFact) as refused:
        memory.update(second, content="one thing")
    assert refused.value.fact_id == first
    assert memory.get(second).content == "another thing"


def test_unknown_ids_are_named(memory):
    for call in (memory.get, memory.remove, memory.update, lambda i: memory.feedback(i, helpful=True)):
        with pytest.raises(FactNotFound, match="no fact 412"):
            call(412)


def test_feedback_moves_trust_within_bounds(memory):
    fact_id = memory.add("x y z")
    assert memory.feedback(fact_id, helpful=True).trust_score == 0.55
    assert memory.feedback(fact_id, helpful=False).trust_score == 0.45
    for _ in range(20):
        memory.feedback(fact_id, helpful=True)
    assert memory.get(fact_id).trust_score == 1.0
    assert memory.get(fact_id).helpful_count == 21


def test_removing_takes_links_vectors_and_lonely_entities_along(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        fact_id = memory.add("Zorblat eats fish", entities=["Zorblat"])
        memory.remove(fact_id)
        status = memory.status()
        assert (status.facts, status.entities, status.vectors) == (0, 0, 0)
        assert memory.search("Zorblat") == []


def test_a_known_name_is_recognised_in_later_facts_whatever_its_case(memory):
    memory.add("nginx is our proxy", entities=["nginx"])
    later = memory.add("we restarted NGINX twice")
    assert later in {hit.fact.fact_id for hit in memory.probe("Nginx")}


def test_listing_pages_filters_and_counts_nothing(memory):
    memory.add_many([NewFact(f"nginx note {i}", category="a" if i % 2 else "b") for i in range(10)])
    assert [f.fact_id for f in memory.facts(limit=3, offset=1)] == [9, 8, 7]
    assert len(memory.facts(category="a", limit=None)) == 5
    assert [f.content for f in memory.facts(matching="note 3")] == ["nginx note 3"]
    assert memory.facts(matching="(((") == []
    assert {f.retrieval_count for f in memory.facts()} == {0}


def test_a_closed_memory_says_so_and_closes_twice(path):
    memory = Memory(path, embedder=None)
    memory.close()
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.add("x")


def test_reading_works_without_writing(path):
    with Memory(path, embedder=None) as memory:
        memory.add("nginx runs on pve-01")
    with Memory(path, embedder=None, read_only=True) as memory:
        assert memory.search("nginx")[0].fact.retrieval_count == 0
        assert memory.probe("pve-01")
        with pytest.raises(StoreError, match="reading only"):
            memory.add("another")


def test_any_thread_may_call(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        errors = []

        def work(name):
            try:
                for i in range(15):
                    memory.add(f"{name} writes line {i}")
                    memory.search(f"line {i}")
            except Exception as error:  # a thread's error would be lost
                errors.append(error)

        threads = [threading.Thread(target=work, args=(f"thread{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert len(memory) == 120


def test_vectors_of_another_model_are_ignored_counted_and_replaced(path):
    from conftest import HashEmbedder

    with Memory(path, embedder=HashEmbedder("one")) as memory:
        memory.add_many([NewFact(f"fact {i} of the first model") for i in range(40)])
    with Memory(path, embedder=HashEmbedder("two", dim=32)) as memory:
        status = memory.status()
        assert (status.vectors, status.foreign_vectors, status.missing_vectors) == (0, 40, 40)
        assert any("holomem reembed" in problem for problem in status.problems)
        assert memory.reembed() == 40
        status = memory.status()
        assert (status.vectors, status.foreign_vectors, status.problems) == (40, 0, ())
        assert memory.search("fact 7")[0].channels.semantic is not None


def test_a_compact_file_stores_phases_in_a_quarter_of_the_space(path):
    import sqlite3

    with Memory(path, embedder=None, compact=True) as memory:
        memory.add("Ann Lee lives in Oslo", entities=["Ann Lee"])
        assert memory.probe("Ann Lee")
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT length(hrr_vector) FROM facts").fetchone() == (2048,)
    raw.close()


def test_a_file_keeps_the_model_that_it_was_filled_with(path, monkeypatch):
    first, later = HashEmbedder("first"), HashEmbedder("later")
    installed = [first]
    monkeypatch.setattr(
        "holomem.embedding.sources.sources", lambda: tuple(Source(e.model.name, "", e) for e in installed)
    )
    with Memory(path) as memory:
        memory.add("nginx is deployed by CI")
    installed.insert(0, later)
    with Memory(path) as memory:
        memory.add("backups run at night")
        assert memory.status().model == first.model
        assert memory.status().missing_vectors == 0
        assert later.embedded == 0
    installed.remove(first)
    with Memory(path) as memory:
        with pytest.warns(
            DegradedWarning, match=r"are of first .* `holomem model use` and `holomem reembed` to go over"
        ):
            assert memory.search("nginx")[0].channels.semantic is None
        assert memory.status().model is None
        with pytest.raises(ModelError, match="are of first"):
            memory.reembed()
    with Memory(path) as memory:
        assert memory.use_model() == later.model
        assert memory.status().missing_vectors == 2
        assert memory.reembed() == 2
        assert memory.search("nginx")[0].channels.semantic > 0
    installed.append(first)
    with Memory(path) as memory:
        assert memory.status().model == later.model
        assert memory.status().foreign_vectors == 0


def test_another_name_that_a_fact_tells_finds_its_entity_also_where_the_names_were_given(memory):
    memory.add("Teresa Vidal runs the bakery", entities=["Teresa Vidal", "bakery"])
    memory.add("A Teresa Vidal todos la llaman Tere", entities=["Teresa Vidal"])
    memory.add("Bread is sold out at noon", entities=["bakery"])
    assert {hit.fact.fact_id for hit in memory.probe("Tere")} == {1, 2}
    assert "Tere" in next(e for e in memory.entities() if e.name == "Teresa Vidal").aliases


def test_facts_that_are_none_are_refused_and_nothing_is_stored(memory):
    with pytest.raises(TypeError, match="is no NewFact"):
        memory.add_many([NewFact("the first"), "the second"])
    assert len(memory) == 0
