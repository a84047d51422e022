"""Failures that users met with other systems, each with the right value; the id stands in the test's name."""

import io
import json
import sqlite3

import numpy as np
import pytest
from conftest import HashEmbedder

from holomem import Memory, NewFact, StoreError, hrr, text


def filled(path, *contents, **options):
    memory = Memory(path, **{"embedder": None, **options})
    memory.add_many([NewFact(content) for content in contents])
    return memory


def found(memory, query, **options):
    return [hit.fact.content for hit in memory.search(query, **options)]


def raw(path, statement, *values):
    connection = sqlite3.connect(path)
    with connection:
        result = connection.execute(statement, values).fetchall()
    connection.close()
    return result


# ---- query syntax --------------------------------------------------------------------------------------------------


def test_qry_01_identifiers_are_found_whole_and_by_their_beginning(path):
    proxy, ticket = "pve-01 runs the reverse proxy", "Ticket PLAT-15800 tracks cache eviction"
    with filled(path, proxy, ticket, "Nothing of the kind is here") as memory:
        assert found(memory, "pve-01")[0] == proxy
        assert found(memory, "PLAT-15800")[0] == ticket
        assert found(memory, "PLAT-158")[0] == ticket


@pytest.mark.parametrize("candidates", ["union", "cascade"])
def test_qry_02_no_query_is_syntax(path, candidates):
    content = "project hermes deadline is Friday; gateway/WebUI needs don't-care flags"
    with filled(path, content, candidates=candidates) as memory:
        for query in ["project:hermes", "gateway/WebUI", "don't", '"', "AND", "NOT x", "NEAR(", "(", "*", "a.b", "a,b",
                      "a?", "-x", "+x", "#x", "@x", "%", "a OR", "..", "x\0y", "", " ", "{terms}:x", "🚀", "^x"]:  # fmt: skip
            memory.search(query)
        for query in ["project:hermes", "gateway/WebUI", "project AND", "hermes*", '"deadline"']:
            assert found(memory, query) == [content] or candidates == "cascade"


def test_qry_03_a_question_need_not_share_every_word(path):
    right = "The Thursday rollout was reverted because of a stale migration"
    with filled(path, right, "The rollout is a kind of deployment", "What happened happened") as memory:
        assert found(memory, "what happened with the rollout on Thursday evening")[0] == right


# ---- tokenisation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["账期", "供应商账期", "供应商 账期", "账期是多少天"])
def test_tok_02_chinese_is_found_spaced_or_not(path, query):
    with filled(path, "供应商账期为月结三十天", "ภาษาไทยง่าย", "unrelated") as memory:
        assert found(memory, query)[0] == "供应商账期为月结三十天"
        assert found(memory, "ไทย")[0] == "ภาษาไทยง่าย"
        assert set(found(memory, "供应商账期")) == set(found(memory, "供应商 账期"))


@pytest.mark.parametrize(
    ("query", "index"), [("сервер", 0), ("аренда серверов", 0), ("배포", 1), ("Notion", 2), ("сервера", 0)]
)
def test_tok_03_inflected_words_are_found(path, query, index):
    contents = ["Мы арендовали сервера в Хельсинки", "배포는 금요일에 한다", "Notion에 정리한다"]
    with filled(path, *contents) as memory:
        assert found(memory, query)[0] == contents[index]


def test_tok_04_yo_is_ye_and_short_i_is_not_i(path):
    with filled(path, "Ёлка стоит в холле", "Отчет сдан", "Мой дом", "Мои дома") as memory:
        assert found(memory, "елка") == ["Ёлка стоит в холле"]
        assert found(memory, "отчёт") == ["Отчет сдан"]


def test_tok_06_unicode_variants_are_the_same_term(path):
    with filled(path, "ＡＰＩ quota is 500", "caf\u00e9 opens at nine", "μέλι is honey") as memory:
        assert found(memory, "api")[0] == "ＡＰＩ quota is 500"
        assert found(memory, "cafe\u0301")[0] == "caf\u00e9 opens at nine"
        assert found(memory, "μελι")[0] == "μέλι is honey"


def test_tok_07_cpp_csharp_and_c_are_different(path):
    contents = ["Parser is written in C++", "Service is written in C#", "Driver is written in C", "Backend uses .NET",
                "Frontend uses node.js"]  # fmt: skip
    with filled(path, *contents) as memory:
        for query, index in [("C++", 0), ("C#", 1), (".NET", 3), ("node.js", 4)]:
            assert found(memory, query)[0] == contents[index]


# ---- scoring -------------------------------------------------------------------------------------------------------


def test_scr_01_recall_counts_and_maintenance_does_not(path):
    with filled(path, "Orion runs the scheduler") as memory:
        for _ in range(3):
            memory.search("scheduler")
        memory.probe("Orion")
        assert memory.get(1).retrieval_count == 4
        memory.facts(matching="scheduler")
        memory.export(io.StringIO())
        memory.contradictions()
        memory.add("Orion runs the scheduler")
        memory.update(1, tags="x")
        memory.doctor()
        assert memory.get(1).retrieval_count == 4
    with Memory(path, embedder=None, read_only=True) as memory:
        assert found(memory, "scheduler")
    assert raw(path, "SELECT retrieval_count FROM facts") == [(4,)]


def test_scr_02_a_weak_match_scores_clearly_below_an_exact_one(tmp_path):
    with filled(tmp_path / "a.db", "Lunch is at noon") as memory:
        weak = memory.search("noon backup rotation policy")[0].score
    exact = "the noon backup rotation policy keeps seven copies"
    with filled(tmp_path / "b.db", exact, *(f"policy {i} about thing {i}" for i in range(200))) as memory:
        strong = memory.search(exact)[0]
    assert strong.fact.content == exact
    assert weak < 0.1 < 0.25 < strong.score <= 1


def test_scr_03_a_trusted_stranger_does_not_beat_the_right_fact(memory):
    right = memory.add("Orion needs a restart", entities=["Orion"])
    memory.add_many([NewFact(f"thing {i}", entities=[f"Thing {i}"], trust_score=0.9) for i in range(30)])
    memory.update(right, trust_delta=-0.2)
    hits = memory.probe("Orion")
    assert [h.fact.fact_id for h in hits] == [right]


def test_scr_04_one_floor_for_every_recall_and_none_for_listing(memory):
    fact_id = memory.add("Orion needs a restart", entities=["Orion", "Mars"])
    memory.add("Mars has a rover", entities=["Mars", "Rover"])
    for _ in range(3):
        memory.feedback(fact_id, helpful=False)
    assert memory.search("restart") == memory.probe("Orion") == memory.reason(["Orion"]) == []
    assert memory.related("Rover") == []
    assert memory.search("restart", min_trust=0.0)
    assert memory.related("Rover", min_trust=0.0)
    assert fact_id in {fact.fact_id for fact in memory.facts()}
    with pytest.raises(ValueError, match="trust_score"):
        memory.add("starts below the floor", trust_score=0.2)


def test_scr_05_the_order_of_votes_does_not_decide(memory):
    for votes in ["ubuhu", "buuhu", "uuhhbbuu"[:5], "huuhu"]:
        fact_id = memory.add(f"rated {votes}")
        for vote in votes:
            if vote != "b":
                memory.feedback(fact_id, helpful=vote == "h")
        trust = memory.get(fact_id).trust_score
        assert trust == round(trust, 2)
    fact_id = memory.add("exactly at the floor")
    for helpful in (False, True, False, True, False):
        memory.feedback(fact_id, helpful=helpful)
    assert memory.get(fact_id).trust_score == 0.3
    assert memory.search("exactly floor")


def test_scr_08_vectors_of_zeros_or_nan_score_nothing_and_are_found_by_words(path):
    with filled(path, "alpha beta", "gamma delta", "...", embedder=HashEmbedder()) as memory:
        raw(path, "UPDATE fact_vectors SET semantic_vector = zeroblob(256) WHERE fact_id = 1")
        raw(path, "UPDATE fact_vectors SET semantic_vector = ? WHERE fact_id = 2", np.full(64, np.nan, "f4").tobytes())
        hits = {h.fact.content: h for h in memory.search("alpha gamma")}
        assert set(hits) >= {"alpha beta", "gamma delta"}
        assert hits["alpha beta"].channels.semantic == 0
        for hit in hits.values():
            json.dumps([hit.score, hit.relevance, hit.channels.semantic], allow_nan=False)


@pytest.mark.parametrize("embedder", [None, HashEmbedder()])
def test_scr_09_filters_apply_before_the_cut(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add_many([NewFact(f"the nginx deploy order number {i}", category="work") for i in range(500)])
        home = memory.add("order of deploying at home", category="home", tags="garden")
        assert [h.fact.fact_id for h in memory.search("nginx deploy order", category="home", limit=5)] == [home]
        assert [h.fact.fact_id for h in memory.search("nginx deploy order", tags="garden", limit=5)] == [home]
        memory.update(home, trust_delta=0.4)
        assert [h.fact.fact_id for h in memory.search("nginx deploy order", min_trust=0.8, limit=5)] == [home]


def test_scr_10_tags_match_whole_without_wildcards(memory):
    for tag in ["test", "testing", "my-test-tag", "a_b", "aXb", "x,y z", "Тест"]:
        memory.add(f"fact with {tag}", tags=tag)
    assert [f.tags for f in memory.facts(tags="test")] == ["test"]
    assert [f.tags for f in memory.facts(tags="a_b")] == ["a_b"]
    assert memory.facts(tags="%") == []
    assert [f.tags for f in memory.facts(tags="Y Z")] == ["x,y z"]
    assert [f.tags for f in memory.facts(tags="тест")] == ["Тест"]
    assert [f.tags for f in memory.facts(tags=["x", "y z"], match_tags="all")] == ["x,y z"]
    assert {f.tags for f in memory.facts(tags="x, test")} == {"x,y z", "test"}
    assert memory.facts(tags=["x", "test"], match_tags="all") == []


# ---- durability ----------------------------------------------------------------------------------------------------


def test_con_07_a_damaged_file_gives_one_clear_message_and_stays(path):
    with filled(path, *(f"fact number {i} of many" for i in range(300))):
        pass
    whole = path.read_bytes()
    for damaged in (b"x" * 100 + whole[100:], whole[: len(whole) // 2], b"just a text file\n" * 50):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"memory\.db: .*(restore a backup|name another file)"):
            Memory(path, embedder=None)
        assert path.read_bytes() == damaged


def test_con_08_counters_trust_and_vectors_leave_the_text_index_alone(path):
    with filled(path, *(f"fact number {i}" for i in range(50))) as memory:
        before = raw(path, "SELECT id, block FROM facts_fts_data ORDER BY id")
        memory.search("number 7")
        memory.feedback(3, helpful=True)
        memory.update(4, category="other")
        raw(path, "UPDATE facts SET retrieval_count = retrieval_count + 1, trust_score = 0.6")
        assert raw(path, "SELECT id, block FROM facts_fts_data ORDER BY id") == before
        memory.update(5, tags="changed")
        assert raw(path, "SELECT id, block FROM facts_fts_data ORDER BY id") != before


def test_con_09_a_broken_text_index_is_seen_and_repaired(path):
    with filled(path, "alpha beta", "gamma delta") as memory:
        raw(path, "INSERT OR REPLACE INTO facts (fact_id, content) VALUES (9, 'alpha beta')")
        assert any("doctor --repair" in problem for problem in memory.doctor().problems)
        assert memory.doctor(repair=True).problems == ()
        assert found(memory, "alpha") == ["alpha beta"]


def test_con_11_memory_means_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with filled(":memory:", "alpha") as memory:
        assert len(memory) == 1
    assert list(tmp_path.iterdir()) == []
    with Memory(":memory:", embedder=None) as memory:
        assert len(memory) == 0


def test_mig_04_vectors_of_another_model_are_not_compared(path):
    with filled(path, *(f"fact {i}" for i in range(40)), embedder=HashEmbedder("a")):
        pass
    for other in (HashEmbedder("b"), HashEmbedder("c", dim=32)):
        with Memory(path, embedder=other) as memory:
            status = memory.status()
            assert (status.vectors, status.foreign_vectors) == (0, 40)
            with pytest.warns(UserWarning, match="backfill"):
                assert all(hit.channels.semantic is None for hit in memory.search("fact 3"))


# ---- entities ------------------------------------------------------------------------------------------------------


def test_ent_01_names_with_percent_and_underscore_are_names(memory):
    memory.add("first", entities=["testXentity", "SomeOrg"])
    memory.add("second", entities=["test_entity", "100%", "betaYuser", "C_API"])
    assert {e.name for e in memory.entities()} == {
        "testXentity",
        "SomeOrg",
        "test_entity",
        "100%",
        "betaYuser",
        "C_API",
    }
    assert [h.fact.content for h in memory.probe("test_entity")] == ["second"]


def test_ent_03_one_person_whatever_the_case(memory):
    for i, name in enumerate(["Иван Петров", "ИВАН ПЕТРОВ", "иван петров", "Алёна", "Алена"]):
        memory.add(f"запись {i}", entities=[name])
    assert len(memory.entities()) == 2
    for name in ("иван Петров", "ИВАН ПЕТРОВ"):
        assert len(memory.probe(name)) == 3
    assert len(memory.probe("алена")) == len(memory.probe("АЛЁНА")) == 2


# ---- import and export ---------------------------------------------------------------------------------------------


def lines(memory):
    out = io.StringIO()
    memory.export(out)
    return out.getvalue().splitlines()


@pytest.fixture
def source(tmp_path):
    with Memory(tmp_path / "source.db", embedder=None) as memory:
        for i in range(20):
            memory.add(f"Факт {i} о Zürich", tags=f"t{i},общий", category="c", entities=[f"Name {i}", "Zürich"])
        memory.feedback(3, helpful=True)
        memory.feedback(4, helpful=False)
        memory.search("Факт 7")
        raw(
            tmp_path / "source.db",
            "UPDATE entities SET aliases = 'Turicum', entity_type = 'place' WHERE name = 'Zürich'",
        )
        raw(tmp_path / "source.db", "UPDATE facts SET created_at = '2020-05-03 10:00:00' WHERE fact_id = 5")
        memory.search("Zürich")
        yield memory


def test_imp_01_export_import_export_gives_the_same_lines(source, path):
    exported = lines(source)
    with Memory(path, embedder=None) as memory:
        assert memory.load(exported).added == 20
        assert lines(memory) == exported
        again = memory.load(exported)
        assert (again.added, again.updated, again.unchanged) == (0, 0, 20)
        assert lines(memory) == exported
        assert len(memory.probe("turicum", limit=50)) == 20


def test_imp_01_what_was_edited_or_removed_here_stays_so(source, path):
    exported = lines(source)
    with Memory(path, embedder=None) as memory:
        memory.load(exported)
        memory.remove(1)
        memory.update(2, content="a better wording")
        memory.update(3, tags="mine")
        kept = lines(memory)
        dry = memory.load(exported, dry_run=True)
        assert (dry.added, dry.updated, dry.skipped) == (0, 0, 2)
        assert memory.load(exported) == dry
        assert lines(memory) == kept
        assert memory.load(exported, restore=True).added == 2


def test_imp_01_a_newer_record_wins_and_bad_lines_are_counted(source, path):
    exported = lines(source)
    with Memory(path, embedder=None) as memory:
        memory.load(exported)
        newer = json.loads(exported[0])
        newer.update(tags="newer", updated_at="2099-01-01T00:00:00+00:00")
        bad = ["{", '{"content": 3}', '{"content": "x", "trust_score": 7}', "[" * 100_000, "",
               '{"content": "y", "retrieval_count": 1e9}', '{"content": "z", "created_at": "soon"}',
               '{"content": "w", "entities": "Alice"}', '{"content": "\\ud800"}']  # fmt: skip
        report = memory.load([*bad, json.dumps(newer)])
        assert report.updated == 1
        assert [number for number, _ in report.errors] == [1, 2, 3, 4, 6, 7, 8, 9]
        assert memory.get(1).tags == "newer"
        assert len(memory) == 20


def test_imp_01_export_works_read_only(source, path):
    path.write_bytes(b"")
    source.backup(path.with_name("copy.db"))
    with Memory(path.with_name("copy.db"), embedder=None, read_only=True) as memory:
        assert lines(memory) == lines(source)


def test_imp_03_a_backup_is_one_complete_private_file(source, tmp_path):
    copy = source.backup(tmp_path / "backup.db")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert raw(copy, "SELECT count(*) FROM facts") == [(20,)]
    assert raw(copy, "PRAGMA integrity_check") == [("ok",)]
    assert not copy.with_name("backup.db-wal").exists()
    with pytest.raises(StoreError, match="exists"):
        source.backup(copy)
    source.close()
    alone = tmp_path / "alone.db"
    alone.write_bytes((tmp_path / "source.db").read_bytes())  # closing has checkpointed
    assert raw(alone, "SELECT count(*) FROM facts") == [(20,)]


# ---- structure ---------------------------------------------------------------------------------------------------


def test_hrr_01_who_is_present_stands_out_and_a_stranger_is_answered_with_nothing(path):
    with filled(path) as memory:
        memory.add("ann lee owns the billing service", entities=["ann lee", "billing"])
        memory.add("the office is in paris", entities=["paris"])
        for name, fact_id in [("ann lee", 1), ("billing", 1), ("paris", 2)]:
            (hit,) = memory.probe(name)
            assert hit.fact.fact_id == fact_id
            assert hit.similarity > 0.2
            assert hit.presence > 0.8
        assert memory.probe("a stranger") == []
        assert memory.reason(["ann lee", "paris"]) == []


@pytest.mark.parametrize("parts", [1, 2, 4, 8, 16, 32, 64])
def test_hrr_02_a_fact_of_many_entities_is_found_by_each_and_a_trusted_stranger_never_passes_it(path, parts):
    names = [f"host-{i:02}" for i in range(parts)]
    with filled(path) as memory:
        memory.add("the whole cluster", entities=names, trust_score=0.3)
        memory.add_many([NewFact(f"spare {i}", entities=[f"spare-{i}"], trust_score=1.0) for i in range(200)])
        assert all([hit.fact.fact_id for hit in memory.probe(name)] == [1] for name in names)
        assert [hit.fact.fact_id for hit in memory.reason(names[:3])] == [1]
        assert not any(memory.probe(f"stranger-{i}") for i in range(20))


def test_hrr_04_the_channel_of_search_tells_a_paraphrase_from_an_unrelated_fact(path):
    contents = ["ann lee owns the billing service", "the kitchen was painted green in may"]
    with Memory(path, embedder=HashEmbedder()) as memory:
        memory.add_many([NewFact(content, entities=[]) for content in contents])
        shares = {hit.fact.content: hit.channels.hrr for hit in memory.search("billing service owner")}
        assert shares[contents[0]] > 0.1
        assert shares.get(contents[1], 0) < 0.02


@pytest.mark.parametrize(
    ("one", "near", "other"),
    [("供应商账期为月结", "供应商账期为季结", "明天下午在会议室开会"), ("It is state-of-the-art!", "it is state of the art", "bread"),
     ("сервера в Хельсинки", "Сервер в Хельсинки.", "кошка спит дома")],
)  # fmt: skip
def test_hrr_05_a_near_sentence_is_near_in_every_script(one, near, other):
    first, second, third = (hrr.encode_fact(text.analyze(content), []) for content in (one, near, other))
    assert hrr.similarity(first, second) > 0.4
    assert abs(hrr.similarity(first, third)) < 5 * hrr.noise()


def test_hrr_06_old_facts_that_cannot_both_hold_are_found_below_six_hundred_newer_ones(path):
    texts = ["Ann lives in Oslo", "Ann plays the cello", "Ann lives in Rome", "Ann no longer lives in Oslo",
             "Door sensor flapped, no action", "Door sensor opened at noon"]  # fmt: skip
    with filled(path, *texts) as memory:
        memory.add_many([NewFact(f"Shelf {i} holds box {i + 1000}") for i in range(600)])
        found = {(c.first.content, c.second.content): c.reason for c in memory.contradictions(limit=1000)}
        assert {(texts[0], texts[2]), (texts[0], texts[3])} <= found.keys()
        assert all(found.values())
        assert not any(texts[1] in pair or texts[4] in pair for pair in found)
