"""What is shown of a ranking: the floor, diversity, the budget. Properties, and behaviour through `Memory`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from holomem import Memory, NewFact, selection

FACTS = [
    "nginx is deployed to production by the release job on pve-01",
    "nginx is deployed to production by the release job on host two",
    "nginx is deployed to production by the release job on host three",
    "Backups of production run every night at half past two",
    "Alice Johnson prefers dark mode in every editor",
]
share = st.floats(0, 1)
scored = st.integers(1, 12).flatmap(
    lambda m: st.tuples(arrays.arrays(np.float64, m, elements=share), arrays.arrays(np.float64, (m, m), elements=share))
)


@pytest.fixture
def filled(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add_many([NewFact(content) for content in FACTS])
        yield memory


@given(scored, share)
def test_diversity_only_reorders_and_keeps_the_best_first(given_, diversity):
    scores, similarity = given_
    order = selection.diverse(scores, similarity, diversity)
    assert sorted(order.tolist()) == list(range(len(scores)))
    assert scores[order[0]] == scores.max()


@given(scored)
def test_no_diversity_is_the_order_of_the_scores(given_):
    scores, similarity = given_
    assert selection.diverse(scores, similarity, 0).tolist() == np.argsort(-scores, kind="stable").tolist()


@given(st.lists(st.integers(1, 50)), st.integers(1, 10), st.integers(1, 200))
def test_what_fits_stays_in_budget_and_leaves_out_nothing_that_would_fit(lengths, limit, budget):
    places = selection.fitting(lengths, limit, budget)
    used = sum(lengths[place] for place in places)
    assert places == sorted(set(places))
    assert used <= budget
    assert len(places) <= limit
    if len(places) < limit:
        assert all(lengths[p] > budget - used for p in range(len(lengths)) if p not in places)


@given(arrays.arrays(np.float64, st.integers(0, 12), elements=share), share, share)
def test_a_higher_floor_never_shows_more(relevance, one, other):
    low, high = sorted((one, other))
    certain = np.zeros(len(relevance), bool)
    shown = [selection.answering(relevance, certain, floor, meaning=True, among=500) for floor in (low, high)]
    assert not (shown[1] & ~shown[0]).any()
    assert (shown[0] <= (relevance > 0)).all()
    assert not shown[1].any() or relevance.max() >= high


def test_without_meaning_there_is_no_floor_unless_one_is_given():
    relevance, certain = np.array([0.01, 0.0]), np.zeros(2, bool)
    assert selection.answering(relevance, certain, None, meaning=False, among=500).tolist() == [True, False]
    assert not selection.answering(relevance, certain, None, meaning=True, among=500).any()
    assert not selection.answering(relevance, certain, 0.05, meaning=False, among=500).any()


def test_nothing_reaches_a_floor_of_one_but_what_is_certain(filled):
    assert filled.search("how does nginx get deployed", min_score=1) == []
    (hit,) = filled.search("what else is there on pve-01, if anything at all?", min_score=1)
    assert hit.fact.content == FACTS[0]
    assert [h.fact.content for h in filled.search("dark mode", min_score=1)] == [FACTS[4]]


def test_zero_shows_whatever_has_evidence(filled):
    assert len(filled.search("nginx", min_score=0)) >= len(filled.search("nginx")) >= 3


def test_diversity_brings_another_fact_before_a_near_copy(filled):
    plain = [h.fact.content for h in filled.search("nginx deployed to production", limit=2)]
    diverse = [h.fact.content for h in filled.search("nginx deployed to production", limit=2, diversity=0.7)]
    assert diverse[0] == plain[0]
    assert plain[1] in FACTS[:3]
    assert diverse[1] not in FACTS[:3]


def test_max_chars_bounds_the_contents_and_counts_only_what_is_shown(filled):
    hits = filled.search("nginx production backups", max_chars=120, min_score=0)
    assert 0 < sum(len(h.fact.content) for h in hits) <= 120
    assert filled.search("nginx", max_chars=1) == []


@pytest.mark.parametrize(
    "bad",
    [{"min_score": -0.1}, {"min_score": 2}, {"min_score": True}, {"diversity": 1.1}, {"diversity": "x"},
     {"max_chars": 0}, {"max_chars": 1.5}],
)  # fmt: skip
def test_bad_arguments_are_named(filled, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        filled.search("nginx", **bad)


ABOUT_BORIS = [f"Boris Volkov {said}" for said in ("likes tea", "plays chess", "sings in a choir", "collects stamps")]


def test_what_the_names_alone_explain_is_no_answer(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add_many([NewFact(content, entities=["Boris Volkov"]) for content in ABOUT_BORIS])
        memory.add_many([NewFact(f"An unrelated note of the day {i} about the weather") for i in range(40)])
        missing = memory.search("which shoe size has Boris Volkov", min_score=0)
        floor = 0.9 * missing[0].relevance  # which the best fact reaches, as all about him do
        assert memory.search("which shoe size has Boris Volkov", min_score=floor) == []
        assert memory.search("does Boris Volkov sing in a choir", min_score=floor)
        assert len(memory.search("Boris Volkov", min_score=floor)) >= 4


@given(arrays.arrays(np.float64, st.integers(1, 12), elements=share), share, share)
def test_what_does_not_count_never_shows_more(relevance, floor, named):
    certain = np.zeros(len(relevance), bool)
    bare, less = (
        selection.answering(relevance, certain, floor, meaning=True, among=500, named=n) for n in (0.0, named)
    )
    assert (less <= bare).all()


def test_a_name_alone_is_found_by_its_words(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add_many([NewFact(content) for content in ABOUT_BORIS])
        memory.add_many([NewFact(f"An unrelated note of the day {i} about the weather") for i in range(40)])
        near = memory.search("Boris Brockmann", min_score=0)
        floor = 0.9 * near[0].relevance
        assert memory.search("Boris Brockmann", min_score=floor) == []
        assert memory.search("Boris Volkov", min_score=floor)
