"""What search returns: channels, modes, filters, degradation. Behaviour that users rely on, through `Memory`."""

import sqlite3
import warnings
from dataclasses import astuple
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from conftest import HashEmbedder

from holomem import DegradedWarning, Memory, ModelError, NewFact, fusion

FACTS = [
    "nginx is deployed to production by the release job on pve-01",
    "Alice Johnson prefers dark mode in every editor",
    "Backups run every night at half past two",
    "The staging database password rotates every 90 days",
    "Боб Смирнов отвечает за резервные копии",
    "供应商账期为月结三十天",
]


@pytest.fixture
def filled(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add_many([NewFact(content) for content in FACTS])
        yield memory


def first(memory, query, **options):
    hits = memory.search(query, **options)
    return hits[0].fact.content if hits else None


@pytest.mark.parametrize(
    ("query", "index"),
    [("who deploys nginx to production?", 0), ("pve-01", 0), ("dark mode", 1), ("when do backups run", 2),
     ("пароль database staging", 3), ("резервная копия", 4), ("账期", 5), ("账期是多少天", 5)],
)  # fmt: skip
@pytest.mark.parametrize("candidates", ["union", "cascade"])
def test_the_right_fact_comes_first(path, embedder, query, index, candidates):
    with Memory(path, embedder=embedder, candidates=candidates) as memory:
        memory.add_many([NewFact(content) for content in FACTS])
        assert first(memory, query) == FACTS[index]


def test_a_score_is_the_product_of_what_the_hit_shows(path, embedder):
    with Memory(path, embedder=embedder, half_life_days=30) as memory:
        memory.add_many([NewFact(content) for content in FACTS])
        for hit in memory.search("backups of the database on nginx", limit=5):
            c = hit.channels
            shares, weights = astuple(c), astuple(hit.weights)
            assert all(0 <= share <= 1 for share in shares)
            assert weights == tuple(fusion.WEIGHTS[0])
            assert hit.relevance == pytest.approx(sum(w * s for w, s in zip(weights, shares, strict=True)))
            assert hit.score == pytest.approx(hit.relevance * hit.fact.trust_score * hit.decay)


def test_without_an_embedder_the_other_channels_take_its_weight(memory):
    memory.add(FACTS[0])
    (hit,) = memory.search("nginx production")
    assert hit.channels.semantic is None
    c = hit.channels
    assert hit.relevance == pytest.approx(0.45 * c.fts + 0.30 * c.jaccard + 0.25 * c.hrr)


def test_an_embedder_that_cannot_work_is_reported_once_and_the_rest_goes_on(path):
    class Broken(HashEmbedder):
        def embed(self, texts, *, query=False):
            raise ModelError("the model file is damaged; fetch it again")

    with Memory(path, embedder=Broken()) as memory:
        with pytest.warns(DegradedWarning, match="fetch it again") as seen:
            memory.add(FACTS[0])
            assert first(memory, "nginx") == FACTS[0]
            memory.search("nginx")
        assert len(seen) == 1
        assert "fetch it again" in memory.status().channels["semantic"]


def test_a_fact_without_a_vector_is_found_and_given_one(path, embedder):
    with Memory(path, embedder=None) as memory:
        memory.add(FACTS[0])
    with Memory(path, embedder=embedder) as memory:
        assert memory.status().missing_vectors == 1
        (hit, *_) = memory.search("nginx production")
        assert hit.channels.semantic is not None
        assert memory.status().missing_vectors == 0


def test_many_missing_vectors_are_left_to_backfill_and_told_once(path, embedder):
    with Memory(path, embedder=None) as memory:
        memory.add_many([NewFact(f"note number {i} about nginx") for i in range(40)])
    with Memory(path, embedder=embedder) as memory:
        with pytest.warns(DegradedWarning, match="holomem backfill"):
            memory.search("nginx")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            memory.search("nginx")
        steps = []
        assert memory.backfill(progress=lambda done, total: steps.append((done, total))) == 40
        assert steps[-1] == (40, 40)
        assert memory.search("nginx")[0].channels.semantic is not None


def test_filters_apply_before_the_top_is_taken(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        near = [NewFact(f"nginx deploy order number {i}", category="work", tags="a") for i in range(300)]
        memory.add_many([*near, NewFact("we once deployed something at home", category="home", tags="b")])
        assert [h.fact.category for h in memory.search("nginx deploy order", category="home")] == ["home"]
        assert [h.fact.tags for h in memory.search("nginx deploy order", tags="b")] == ["b"]
        future = datetime.now(UTC) + timedelta(days=1)
        assert memory.search("nginx deploy order", since=future) == []
        assert len(memory.search("nginx deploy order", until=future, limit=3)) == 3


@pytest.mark.parametrize("candidates", ["union", "cascade"])
def test_a_distrusted_fact_is_hidden_from_recall_and_shown_by_listing(path, candidates):
    with Memory(path, embedder=None, candidates=candidates) as memory:
        fact_id = memory.add("Alice deploys nginx", entities=["Alice"])
        for _ in range(3):
            memory.feedback(fact_id, helpful=False)
        assert memory.search("nginx") == memory.probe("Alice") == memory.reason(["Alice"]) == []
        assert [f.fact_id for f in memory.facts()] == [fact_id]
        assert len(memory.search("nginx", min_trust=0)) == len(memory.probe("Alice", min_trust=0)) == 1


def test_cascade_falls_back_to_meaning_only_when_no_fact_has_all_words(path):
    with Memory(path, embedder=HashEmbedder(), candidates="cascade") as memory:
        memory.add_many([NewFact("alpha beta"), NewFact("beta gamma"), NewFact("gamma delta")])
        assert [h.fact.content for h in memory.search("alpha beta")] == ["alpha beta"]
        assert {h.fact.content for h in memory.search("alpha delta", limit=2)} == {"alpha beta", "gamma delta"}


def test_older_facts_decay(path):
    with Memory(path, embedder=None, half_life_days=10) as memory:
        old, new = memory.add("nginx listens on port 80"), memory.add("nginx listens on port 81")
        raw = sqlite3.connect(path)
        raw.execute("UPDATE facts SET updated_at = datetime('now', '-20 days') WHERE fact_id = ?", (old,))
        raw.commit()
        raw.close()
        hits = memory.search("nginx port")
        assert [h.fact.fact_id for h in hits] == [new, old]
        assert hits[1].decay == pytest.approx(0.25, rel=0.01)


def test_vectors_read_from_the_file_at_each_search_give_the_same_hits(path, embedder):
    contents = [f"{word} number {i} stands in rack {i % 7}" for i in range(60) for word in ("switch", "router")]
    with Memory(path, embedder=embedder) as memory:
        memory.add_many([NewFact(c) for c in contents])
        expected = memory.search("router in rack 3", limit=20)
    with Memory(path, embedder=embedder, cache_mb=0) as memory:
        found = memory.search("router in rack 3", limit=20)
        assert [h.fact.fact_id for h in found] == [h.fact.fact_id for h in expected]
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], rel=1e-5)
        memory.add("router number 99 stands in rack 3")
        assert first(memory, "router number 99") == "router number 99 stands in rack 3"


@pytest.mark.parametrize(
    ("options", "named"),
    [({"limit": 0}, "limit"), ({"limit": "5"}, "limit"), ({"limit": 10**7}, "limit"), ({"min_trust": 2}, "min_trust"),
     ({"match_tags": "some"}, "match_tags"), ({"limit": True}, "limit")],
)  # fmt: skip
def test_a_bad_argument_is_named(memory, options, named):
    with pytest.raises((ValueError, TypeError), match=named):
        memory.search("x", **options)


def test_the_rounded_scan_is_near_the_exact_one_and_hits_carry_the_exact_one(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add_many(
            [NewFact(f"{word} number {i} in rack {i % 7}") for i in range(100) for word in ("switch", "hub")]
        )
        memory.search("hub in rack 3")
        meanings, row_of = memory._index.meanings, memory._index.row_of
        query = memory._semantics.embed_query("hub in rack 3")
        exact = meanings.cosines(query, row_of)
        assert abs(meanings.nearly(query, row_of) - exact).max() < 0.02  # 64 wide; 0.005 at 384
        for hit in memory.search("hub in rack 3"):
            cosine = exact[row_of[hit.fact.fact_id]]
            assert hit.channels.semantic == pytest.approx(float(meanings.calibration.score(cosine)), abs=1e-6)


@pytest.mark.parametrize("entities", [0, 4, 12])
def test_the_hrr_channel_says_what_share_of_the_question_each_fact_holds(memory, entities):
    """As the terms themselves would, out of vectors alone: 15 terms and up to 12 names in each of 100 facts."""
    random = np.random.default_rng(entities)
    words = [
        f"{a}{b}{c}"
        for a in ("bra", "dro", "gli", "pru")
        for b in ("nto", "lka", "mpi")
        for c in ("dor", "zen", "vak", "sub")
    ]
    held = [sorted(random.choice(len(words), 15, replace=False).tolist()) for _ in range(100)]
    names = [[f"Person {i}" for i in random.choice(500, entities, replace=False)] for _ in held]
    texts = [" ".join(words[w] for w in h) for h in held]
    memory.add_many([NewFact(text, entities=n) for text, n in zip(texts, names, strict=True)])
    memory.search("anything")
    idf = memory._index.terms.idf_each(words).tolist()
    wrong = []
    for _ in range(20):
        asked = random.choice(len(words), 4, replace=False).tolist()
        for hit in memory.search(" ".join(words[w] for w in asked), limit=50):
            exact = sum(idf[w] for w in asked if w in held[hit.fact.fact_id - 1]) / sum(idf[w] for w in asked)
            wrong.append(abs(hit.channels.hrr**0.5 - exact))
    assert np.mean(wrong) < (0.01 if entities < 12 else 0.05)


def test_a_hit_tells_the_cosine_and_the_names_that_it_is_made_of(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add("Ann Lee moved the wiki to Hetzner", entities=["Ann Lee", "Hetzner"])
        memory.add("The wiki was moved by night")
        hits = {hit.fact.fact_id: hit for hit in memory.search("what did Ann Lee move to the wiki", min_score=0)}
        assert hits[1].named == ("Ann Lee",)
        assert hits[2].named == ()
        assert hits[1].cosine > 0
        assert (hits[1].cosine > hits[2].cosine) == (hits[1].channels.semantic > hits[2].channels.semantic)
    with Memory(path, embedder=None) as memory:
        assert memory.search("wiki")[0].cosine is None
