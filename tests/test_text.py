"""One analyzer for every channel: what a term is, and that any text becomes a query that FTS5 takes."""

import sqlite3
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holomem import text

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


@pytest.mark.parametrize(
    ("content", "terms"),
    [
        ("pve-01", ["pve-01", "pve", "01"]),
        ("C++", ["c++"]),
        ("C#", ["c#"]),
        ("node.js", ["node.js", "node", "js"]),
        ("snake_case_name", ["snake_case_name", "snake", "case", "name"]),
        ("MariaDB", ["mariadb", "maria", "db"]),
        ("PLAT-15800", ["plat-15800", "plat", "15800"]),
        ("deploying deployed deploys", ["deploy", "deploy", "deploy"]),
        ("серверов сервера сервер", ["сервер", "сервер", "сервер"]),
        ("Ёлка елка", ["елк", "елк"]),
        ("供应商", ["供应", "应商"]),
        ("账", ["账"]),
        ("배포는", ["배포", "포는"]),
        ("12世の", ["12", "世の"]),
        ("Notion에", ["notion", "에"]),
        ("café cafe\u0301", ["cafe", "cafe"]),
        ("ＡＰＩ", ["api"]),
        ("the and of", ["the", "and", "of"]),
        ("the server", ["server"]),
        ("IT in the US", ["it", "us"]),
        ("", []),
    ],
)
def test_terms_are_these(content, terms):
    assert text.analyze(content) == terms


@pytest.mark.parametrize(
    "content",
    ["Über München", "El niño está aquí", "Łódź i Kraków", "İstanbul'da", "Αθήνα", "מדינה", "القاهرة", "हिन्दी भाषा",
     "ภาษาไทย", "မြန်မာ", "Ελλάδα", "Việt Nam", "日本語のテスト", "한국어", "ქართული", "🚀 launch"],
)  # fmt: skip
def test_every_script_has_terms_and_finds_itself(content):
    terms = text.analyze(content)
    assert terms
    assert set(text.query_terms(content)) <= set(terms)


@given(anything)
@settings(max_examples=300, deadline=None)
def test_terms_hold_no_white_space_and_do_not_depend_on_composition(content):
    terms = text.analyze(content)
    assert all(term and not any(char.isspace() for char in term) for term in terms)
    assert text.analyze(unicodedata.normalize("NFC", content)) == text.analyze(unicodedata.normalize("NFD", content))
    assert text.normalise(text.normalise(content)) == text.normalise(content)


@pytest.fixture(scope="module")
def fts():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE f USING fts5(content, tags, terms)")
    connection.execute("INSERT INTO f VALUES ('a', 'b', ?)", (" ".join(text.analyze("pve-01 PLAT-15800 C++ 供应商")),))
    yield connection
    connection.close()


@given(anything)
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_query_that_fts5_takes(fts, content):
    terms = text.query_terms(content)
    for match in (text.match_all(terms), text.match_any(terms)):
        if match:
            fts.execute("SELECT rowid FROM f WHERE f MATCH ?", (match,)).fetchall()


@pytest.mark.parametrize(("query", "found"), [("plat-158", True), ("pve", True), ("供应", True), ("plat-9", False)])
def test_the_beginning_of_an_identifier_matches(fts, query, found):
    rows = fts.execute("SELECT rowid FROM f WHERE f MATCH ?", (text.match_any(text.query_terms(query)[:1]),)).fetchall()
    assert bool(rows) == found


def test_a_lone_surrogate_and_a_wrong_type_are_named():
    with pytest.raises(ValueError, match="query holds the lone surrogate"):
        text.check("a\ud800", "query")
    with pytest.raises(TypeError, match="query must be a str"):
        text.check(3, "query")
