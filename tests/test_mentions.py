"""Names that were asked for are found in the texts, also where nobody extracted them; an absent one is not."""

import io

import pytest

from holomem import Memory, NewFact

TEXTS = [
    "Ajoblanco has bread and almond as ingredients.",  # 1
    "Alex Tyus and Žan Tabak played for the same club.",  # 2
    "The bakery sells fresh bread in New Britain, Connecticut.",  # 3
    "Канадец Пётр живёт в Торонто.",  # 4
    "Автор книги родился в Соединённых Штатах Америки.",  # 5
    "库克群岛的货币是新西兰元。",  # 6
    "スペイン語の文法は難しい。",  # 7
    "The national under 20 football team of Uruguay lost.",  # 8
    "He was born in the U.S. and moved away.",  # 9
]


@pytest.fixture
def told(memory):
    memory.add_many([NewFact(content) for content in TEXTS])
    return memory


def ids(hits):
    return {hit.fact.fact_id for hit in hits}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["bread"], {1, 3}),
        (["Breads"], {1, 3}),
        (["almond", "bread"], {1}),
        (["Alex Tyus Žan Tabak"], {2}),
        (["What do we know about Alex Tyus and Žan Tabak?"], {2}),
        (["What do we know about bread?"], {1, 3}),
        (["What do we know about almond, bread and ajoblanco?"], {1}),
        (["What do we know about Connecticut (state) and bread?"], {3}),
        (["What do we know about almond and Uruguay?"], set()),
        (["Что мы знаем про хлеб?"], set()),
        (["Что мы знаем про Канаду и Торонто?"], {4}),
        (["loaf / bread"], {1, 3}),
        (["Alex Tyus loaf / bread"], set()),
        (["New Britain loaf / bread"], {3}),
        (["loaf / bread Connecticut"], {3}),
        (["Connecticut"], {3}),
        (["New Britain, Connecticut (city)"], {3}),
        (["Канада"], {4}),
        (["新西兰元"], {6}),
        (["关于库克群岛我们知道什么？"], {6}),
        (["スペイン"], {7}),
        (["Uruguay national under-20 football team"], {8}),
        (["United States"], {9}),
        (["Oslo"], set()),
        (["bread", "Uruguay"], set()),
        (["Spain Alex Tyus"], set()),
        (["a stranger"], set()),
        (["群岛库克"], set()),
        (["the"], set()),
    ],
)
def test_a_name_is_found_where_a_text_says_it(told, names, expected):
    assert ids(told.reason(names)) == expected


def test_what_a_text_says_ranks_below_a_link(memory):
    memory.add("the scheduler runs orion nightly")
    memory.add("Orion is the scheduler")
    found = memory.probe("Orion")
    assert [hit.fact.fact_id for hit in found] == [2, 1]
    assert [hit.linked for hit in found] == [True, False]
    assert found[0].presence > found[1].presence > 0.5


def test_the_text_of_a_fact_whose_names_were_given_is_not_read(memory):
    memory.add("Alice deploys bread", entities=["Alice"])
    assert memory.probe("bread") == []
    memory.extract_entities()
    assert ids(memory.probe("bread")) == {1}
    memory.update(1, entities=["Alice"])
    assert memory.probe("bread") == []
    memory.update(1, content="Alice bakes bread")
    assert ids(memory.probe("bread")) == {1}


def test_an_unlinked_name_is_not_read_out_of_the_text(memory):
    memory.add("Jordan borders Israel")
    memory.add("Jordan won with the Bulls")
    memory.unlink(2, "Jordan")
    assert ids(memory.probe("Jordan")) == {1}
    assert ids(memory.probe("jordan")) == {1}


def test_what_is_not_said_survives_export_and_import(memory):
    memory.add("Alice deploys bread", entities=["Alice"])
    memory.add("Jordan won with the Bulls")
    memory.unlink(2, "Jordan")
    lines = io.StringIO()
    memory.export(lines)
    with Memory(":memory:", embedder=None) as other:
        other.load(lines.getvalue().splitlines())
        again = io.StringIO()
        other.export(again)
        assert other.probe("bread") == other.probe("Jordan") == []
        assert ids(other.probe("Bulls")) == {2}
    assert again.getvalue() == lines.getvalue()


def test_a_plain_word_is_no_name_though_a_sentence_began_with_it(memory):
    memory.add("Hope you are well, Nginx!")
    for i in range(4):
        memory.add(f"I hope so, {i} times, and restart nginx")
    memory.add("Hope so")
    memory.add("We met Hope in Oslo")
    assert memory.get(5).entities == ("Nginx",) or "hope" not in str(memory.get(5).entities).lower()
    assert memory.get(6).entities == ()
    assert memory.get(7).entities == ("Hope", "Oslo")
