"""Pairs that cannot both hold: what is one, in any language, what is none, and that no fact is passed over."""

import json
from pathlib import Path

import pytest

from holomem import Conflict, FactNotFound, Memory, NewFact, claims
from holomem.contradictions import MIN_SCORE

PAIRS = Path(__file__).parents[1] / "bench" / "data" / "contradiction_pairs.jsonl"


def judged(first, second, closeness=None):
    return claims.judge(claims.parse(first), claims.parse(second), closeness)


def found(memory, **options):
    return {(c.first.content, c.second.content): c for c in memory.contradictions(**options)}


CONFLICTS = [
    ("Acme's support line closes at 18:00", "Acme's support line closes at 20:00", "18:00 / 20:00"),
    ("The editor of choice is Vim", "The editor of choice is Emacs", "Vim / Emacs"),
    ("Olga lebt in Graz", "Olga lebt in Linz", "Graz / Linz"),
    ("Ольга живёт в Туле", "Ольга живёт в Перми", "Туле / Перми"),
    ("Marta vive en Cádiz", "Marta vive en Vigo", "Cádiz / Vigo"),
    ("Luc travaille à Lille", "Luc travaille à Metz", "Lille / Metz"),
    ("小王住在成都", "小王住在西安", "成都 / 西安"),
    ("The backup is encrypted", "The backup is not encrypted", "denies"),
    ("Marta come carne", "Marta nunca come carne", "denies"),
    ("Luc mange du poisson", "Luc ne mange jamais de poisson", "denies"),
    ("Olga trinkt Kaffee", "Olga trinkt keinen Kaffee", "denies"),
    ("Ольга пьёт кофе", "Ольга не пьёт кофе", "denies"),
    ("小王吃牛肉", "小王不吃牛肉", "denies"),
    ("The side gate is open", "The side gate is closed", "open / closed"),
    ("Калитка открыта", "Калитка закрыта", "открыта / закрыта"),
    ("The volume is mounted", "The volume is unmounted", "mounted / unmounted"),
    ("The lease ends in March", "The lease ends in October", "March / October"),
    ("Standup is on Monday", "Standup is on Friday", "Monday / Friday"),
]


@pytest.mark.parametrize(("first", "second", "reason"), CONFLICTS)
def test_a_conflict_is_sure_and_says_why(first, second, reason):
    result = judged(first, second)
    assert result.score >= MIN_SCORE
    assert reason in result.reason
    assert judged(second, first).score == pytest.approx(result.score)


COMPATIBLE = [
    ("Ann lives in Oslo", "Ann plays the cello"),  # two facts about one entity
    ("Ann's office is in Oslo", "Ann's birthday is in May"),
    ("Door sensor flapped, no action", "Door sensor opened at noon"),
    ("The mean latency of Vega is 20 ms", "The maximum latency of Vega is 90 ms"),
    ("The bar holds 12 g of fat", "The bar holds 30 g of sugar"),
    ("Ben's son studies in Kiel", "Ben's aunt studies in Bonn"),
    ("Acme's CTO is Ann", "Globex's CTO is Bob"),
    ("Vega serves the Berlin office", "Altair serves the Berlin office"),
    ("In 2019 the team met in Rome", "In 2022 the team met in Kyiv"),
    ("Olga formerly worked at Initech", "Olga works at Hooli"),
    ("Olga speaks Czech", "Olga speaks Finnish"),
    ("One of the colours of the flag is Red", "One of the colours of the flag is Blue"),
    ("Is the side gate open?", "The side gate is closed"),
    ("The gate weighs 12,000 kg", "The gate weighs 12000 kg"),
    ("The lunch break is at two", "The lunch break is at 2"),
    ("Ola isn't in Rome", "Ola isn't in Paris"),
    ("MIT is in Boston", "MIT is in Boston, near the river"),
    ("Ann: I like the red one", "Bob: I like the blue one"),
]


@pytest.mark.parametrize(("first", "second"), COMPATIBLE)
def test_what_can_both_hold_is_no_conflict(first, second):
    assert judged(first, second).score < 0.5
    assert judged(second, first).score < 0.5


@pytest.mark.parametrize("first", ["", "?", "...", "🙂", "的", "no", "Why?", "a" * 5000, "不"])
def test_odd_texts_are_judged_too(first):
    for second in ("", "Ann lives in Oslo", first):
        result = judged(first, second, 0.9)
        assert 0 <= result.score <= 1
    assert judged(first, first).score == 0


def test_scores_stay_in_bounds_and_the_same_says_nothing_against_itself():
    texts = [pair[side] for pair in map(json.loads, PAIRS.read_text(encoding="utf-8").splitlines()) for side in "ab"]
    for text, other in zip(texts, texts[7:] + texts[:7], strict=True):
        for closeness in (None, -1.0, 0.0, 0.7, 1.0):
            assert 0 <= judged(text, other, closeness).score <= 1
            assert judged(text, text, closeness).score == 0


def test_pairs_written_before_the_method_are_told_apart_without_a_model():
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    scores = [(judged(p["a"], p["b"]).score, p["label"] == "conflict") for p in pairs]
    wins = [
        1.0 if yes > no else 0.5 if yes == no else 0.0
        for yes, conflict in scores
        if conflict
        for no, other in scores
        if not other
    ]
    assert sum(wins) / len(wins) > 0.8


def test_a_cosine_tells_the_same_property_in_other_words_from_another_property():
    first, second = "The atlas project is written in Rust", "Go is what the atlas project was implemented with"
    assert judged(first, second, 0.75).score > judged(first, second, 0.4).score + 0.2


def test_the_files_of_the_hermes_plugin(shared, tmp_path):
    path = tmp_path / "store.db"
    path.write_bytes((shared / "compat" / "hermes_memory_store.db").read_bytes())
    with Memory(path, embedder=None) as memory:
        contents = {fact.content for fact in memory.facts(limit=None)}
        pairs = [sorted((c.first.content, c.second.content)) for c in memory.contradictions(limit=100)]
    assert any("Kubernetes" in a + b and "bare metal" in a + b for a, b in pairs)
    assert any("Acme" in a + b and "Globex" in a + b for a, b in pairs)
    assert len(pairs) <= len(contents) / 4


def test_two_facts_about_one_entity_alone_are_never_reported(memory):
    subjects = ["Ann", "Vega", "Project Apollo"]
    told = ["plays the cello", "was restarted by Bob", "has a blue logo", "needs more disk", "met Carla in Rome"]
    memory.add_many([NewFact(f"{name} {what}", entities=[name]) for name in subjects for what in told])
    assert memory.contradictions(min_score=0.5) == []


def test_an_old_fact_among_many_newer_ones_about_the_same_is_found(memory):
    memory.add("Vega listens on port 8080", entities=["Vega"])
    memory.add_many([NewFact(f"Vega also met visitor-{i}", entities=["Vega"]) for i in range(700)])
    memory.add("Vega listens on port 9090", entities=["Vega"])
    pairs = found(memory, limit=50)
    assert ("Vega listens on port 8080", "Vega listens on port 9090") in pairs


def test_facts_without_entities_are_compared_by_their_terms(memory):
    memory.add_many([NewFact("the nightly dump starts at 02:30", entities=[]),
                     NewFact("the nightly dump starts at 04:15", entities=[])])  # fmt: skip
    (pair,) = memory.contradictions()
    assert pair.shared_entities == ()
    assert "02:30 / 04:15" in pair.reason


def test_values_that_one_fact_has_both_of_count_less(memory):
    texts = ["Ola was born in Lyon", "Ola was born in France"]
    memory.add_many([NewFact(text) for text in texts])
    (before,) = memory.contradictions()
    memory.add("The fair is in Lyon, France")
    assert memory.contradictions() == []
    (after,) = memory.contradictions(min_score=0.3)
    assert after.score < before.score


def test_near_meanings_bring_pairs_together_and_every_result_has_its_facts(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add_many([NewFact(f"filler-{i} and thing-{i * 7 % 50}", entities=[]) for i in range(300)])
        memory.add_many([NewFact(text, entities=[]) for text in ("the door code is 4711", "the door code is 1234")])
        (pair,) = memory.contradictions()
        assert {pair.first.content, pair.second.content} == {"the door code is 4711", "the door code is 1234"}
        assert pair.first.fact_id < pair.second.fact_id
        assert len(memory.contradicted_by("the door code is 9999")) == 2
        assert memory.contradicted_by("the door code is 4711")[0].fact.content == "the door code is 1234"


def test_a_new_statement_is_held_against_what_is_stored(memory):
    memory.add_many([NewFact("Ann lives in Oslo"), NewFact("Ann plays the cello"), NewFact("Bob lives in Oslo")])
    (conflict,) = memory.contradicted_by("Ann lives in Rome")
    assert isinstance(conflict, Conflict)
    assert conflict.fact.content == "Ann lives in Oslo"
    assert "Oslo / Rome" in conflict.reason
    assert memory.contradicted_by("Ann lives in Oslo") == []
    assert memory.contradicted_by("Carla lives in Rome") == []
    assert len(memory) == 3
    assert all(fact.retrieval_count == 0 for fact in memory.facts())


def test_nothing_stored_contradicts_nothing(memory):
    assert memory.contradictions() == []
    assert memory.contradicted_by("Ann lives in Rome") == []


@pytest.mark.parametrize("content", ["", "  ", "\ud800"])
def test_a_bad_statement_is_refused(memory, content):
    with pytest.raises(ValueError, match="content"):
        memory.contradicted_by(content)


@pytest.mark.parametrize("min_score", [-0.1, 1.5, float("nan")])
def test_a_bad_score_is_refused(memory, min_score):
    with pytest.raises(ValueError, match="min_score"):
        memory.contradictions(min_score=min_score)
    with pytest.raises(ValueError, match="min_score"):
        memory.contradicted_by("Ann lives in Rome", min_score=min_score)


def test_a_filter_chooses_the_facts(memory):
    memory.add_many([NewFact("Ann lives in Oslo", category="a"), NewFact("Ann lives in Rome", category="b")])
    assert len(memory.contradictions()) == 1
    assert memory.contradictions(category="a") == []


def pairs(memory):
    return [(c.first.fact_id, c.second.fact_id) for c in memory.contradictions()]


def test_pairs_are_told_again_from_memory_until_something_changes(path):
    with Memory(path, embedder=None) as memory, Memory(path, embedder=None) as other:
        memory.add_many(
            [NewFact("Olga lives in Graz"), NewFact("Olga lives in Linz"), NewFact("The lease ends in March")]
        )
        assert pairs(memory) == pairs(memory) == [(1, 2)]
        other.add("The lease ends in October")
        assert sorted(pairs(memory)) == [(1, 2), (3, 4)]
        for _ in range(3):
            other.feedback(2, helpful=False)  # below what is recalled
        assert pairs(memory) == [(3, 4)]
        other.remove(3)
        assert pairs(memory) == []


def test_a_pair_that_was_told_to_stay_is_reported_no_more_until_one_changes(path):
    with Memory(path, embedder=None) as memory:
        memory.add_many([NewFact("Olga lives in Graz"), NewFact("Olga lives in Linz")])
        assert pairs(memory) == [(1, 2)]
        memory.keep_both(2, 1)
        assert pairs(memory) == []
        assert memory.contradicted_by("Olga lives in Linz") == []
        assert [c.fact.fact_id for c in memory.contradicted_by("Olga lives in Rome")] != []
    with Memory(path, embedder=None) as memory:
        assert pairs(memory) == []
        memory.keep_both(1, 2, keep=False)
        assert pairs(memory) == [(1, 2)]
        memory.keep_both(1, 2)
        memory.feedback(1, helpful=True)
        assert pairs(memory) == []
        memory.update(2, content="Olga lives in Salzburg")
        assert pairs(memory) == [(1, 2)]
        memory.keep_both(1, 2)
        memory.remove(1)
        memory.add("Olga lives in Graz")
        assert len(pairs(memory)) == 1


def test_a_pair_that_is_told_to_stay_is_two_facts_that_are_there(memory):
    memory.add("Olga lives in Graz")
    with pytest.raises(ValueError, match="name two"):
        memory.keep_both(1, 1)
    with pytest.raises(FactNotFound):
        memory.keep_both(1, 7)
