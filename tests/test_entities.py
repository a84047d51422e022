"""Names in texts: found in any script, without junk, and recognised again whatever their case or ending."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holomem import entities


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("Мария Кюри открыла радий", ["Мария Кюри"]),
        ("József lives in Kőbánya", ["József", "Kőbánya"]),
        ("「白うさぎ」を更新した", ["白うさぎ"]),
        ("Notion에 정리한다", ["Notion"]),
        ("run it with '--tls-max-v1.2' and 'X=5' on '192.168.1.1'", []),
        ("Alice's laptop runs Debian", ["Alice", "Debian"]),
        ("Dr. Jane Goodall visited", ["Jane Goodall"]),
        ("The server restarts on Monday", []),
        ("Remember to water the plants without delay", []),
        ("Guido van Rossum created Python", ["Guido van Rossum", "Python"]),
        ("restart pve-01 and write to ops@example.org", ["pve-01", "ops@example.org"]),
        ("Книга «Мастер и Маргарита» на полке", ["Мастер и Маргарита"]),
    ],
)
def test_names_are_these_ent_02(content, names):
    assert entities.extract(content) == names


@pytest.mark.parametrize(
    ("one", "other"),
    [("Иван Петров", "ИВАН ПЕТРОВ"), ("Алёна", "алена"), ("Kőbánya", "kobanya"), ("U.S.", "US"), ("NGINX", "nginx")],
)
def test_spellings_of_one_name_have_one_key_ent_03(one, other):
    assert entities.key(one) == entities.key(other)


@pytest.mark.parametrize(("one", "other"), [("test_entity", "testXentity"), ("beta_user", "betaYuser"), ("100%", "100"),
                                            ("Бойко", "Боико")])  # fmt: skip
def test_names_that_differ_have_other_keys_ent_01(one, other):
    assert entities.key(one) != entities.key(other)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_can_be_searched_for_names(content):
    names = entities.extract(content)
    assert len(names) <= 24
    assert all(entities.key(name) for name in names)
    gazetteer = entities.Gazetteer()
    for number, name in enumerate(names):
        gazetteer.add(name, number)
    for mention in gazetteer.find(content):
        assert 0 <= mention.start < mention.end <= len(content)


def test_known_names_are_found_inflected_and_the_longest_wins():
    gazetteer = entities.Gazetteer()
    for number, name in enumerate(["Анна Каренина", "Bob", "Bob Smith", "nginx", "東京", "東京都庁", "Новый Орлеан"]):
        gazetteer.add(name, number)
    found = {
        mention.entity_id
        for mention in gazetteer.find("Анну Каренину видел BOB SMITH; NGINX в Новом Орлеане, 東京都庁")
    }
    assert found == {0, 2, 3, 5, 6}
    gazetteer.discard("Bob Smith", 2)
    assert {mention.entity_id for mention in gazetteer.find("Bob Smith")} == {1}
    assert gazetteer.ids("bob") == (1,)
    assert gazetteer.ids("nobody") == ()


@pytest.mark.parametrize(
    ("content", "pair"),
    [("Guido van Rossum aka BDFL created Python", ("Guido van Rossum", "BDFL")),
     ("Илья Сорокин, он же isorok, пишет код", ("Илья Сорокин", "isorok"))],
)  # fmt: skip
def test_aliases_are_read_from_the_text(content, pair):
    assert pair in entities.aliases(content)
