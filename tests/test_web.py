"""The page without a browser: what it shows, what it changes, whom it refuses."""

import json
import os
import re
import socket
import sqlite3
import threading
import time
from html.parser import HTMLParser

import pytest
from web_server import serving, words

from holomem import Memory, NewFact
from holomem.web import server as sockets
from holomem.web.facts import Listing, exported
from holomem.web.guard import is_loopback
from holomem.web.markup import Markup, tag, text
from holomem.web.texts import _WORDS, language

EVIL = "<img src=x onerror=alert(1)>"
BREAK = "\"'><script>1</script>"


@pytest.fixture
def site(memory):
    memory.add_many(
        [
            NewFact("nginx is deployed by CI", category="project", tags="deploy,web", entities=["nginx", "CI"]),
            NewFact("Ann Lee lives in Oslo", entities=["Ann Lee", "Oslo"]),
            NewFact("Ann Lee lives in Rome", entities=["Ann Lee", "Rome"]),
        ]
    )
    with serving(memory) as opened:
        yield opened


# ---- escaping -------------------------------------------------------------------------------------------------------


def test_everything_but_markup_is_escaped():
    assert tag("p", EVIL, title=BREAK) == (
        '<p title="&quot;&#x27;&gt;&lt;script&gt;1&lt;/script&gt;">&lt;img src=x onerror=alert(1)&gt;</p>'
    )
    assert tag("p", Markup("<b>x</b>"), [1, None, "<"], hidden=True, class_=None) == "<p hidden><b>x</b>1&lt;</p>"


def test_unseen_characters_are_named():
    assert text("a\x00b\u202ec\x1bd\x7f\ud800\tz\n") == "a\u2400b[U+202E]c\u241bd\u2421[U+D800]\tz\n"


def test_sec_01_hostile_values_in_every_field_are_text_on_every_page(memory, path):
    names = [EVIL, BREAK, "javascript:alert(1)", "a'b"]
    fact_id = memory.add(f"{EVIL} {BREAK} \u202e", category=BREAK, tags=f"{EVIL},{BREAK}", entities=names)
    memory.add_alias(EVIL, f"alias{BREAK}")
    memory.add(f"Ann lives in Oslo {EVIL}", entities=[EVIL])
    memory.add(f"Ann lives in Rome {EVIL}", entities=[EVIL])
    with serving(memory) as site:
        pages = ["/", "/?q=img", "/?q=" + "%3Cscript%3E1", "/entities", "/contradictions", "/health", "/map",
                 f"/fact/{fact_id}", f"/fact/{fact_id}/edit", "/entity?name=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
                 "/%3Cscript%3E1", "/entity?name=%22%27%3E%3Cscript%3E1", "/?category=%22%27%3E%3Cscript%3E1%3C/script%3E",
                 "/?told=%3Cscript%3E1&undo=%3Cscript%3E"]  # fmt: skip
        for page in pages:
            status, headers, html = site.get(page)
            assert status in (200, 404), page
            for element, attributes in elements(html):
                assert element not in ("img", "b", "i") or dict(attributes).get("class"), page
                assert element != "script" or dict(attributes) == {"src": "/static/htmx.min.js", "defer": None}, page
                assert not [name for name, _ in attributes if name.startswith("on") or name == "style"], page
                assert not [
                    v for name, v in attributes if name in ("href", "action", "src") and not v.startswith(("/", "#"))
                ]
            assert "unsafe" not in headers["Content-Security-Policy"]
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "\u202e" not in html, page
        status, _, html = site.post(f"/fact/{fact_id}/edit", content="", category="x")
        assert status == 400
        assert "<script>" not in html


def elements(html):
    """(element, attributes) of every start tag."""
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda element, attributes: found.append((element, attributes))
    parser.feed(html)
    return found


def test_all_words_are_there_in_both_languages():
    assert all(len(pair) == 2 and all(pair) for pair in _WORDS.values())


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("", "en"),
        ("ru", "ru"),
        ("de, ru-RU;q=0.8, en;q=0.5", "ru"),
        ("en, ru", "en"),
        ("ru;q=0.1,en;q=0.9", "en"),
        (";;,q=x", "en"),
    ],
)
def test_the_language_is_the_browsers(accepted, expected):
    assert language(accepted) == expected


# ---- showing --------------------------------------------------------------------------------------------------------


def test_the_list_shows_facts_with_their_labels_and_links(site):
    status, _, html = site.get("/")
    assert status == 200
    assert "nginx is deployed by CI" in words(html)
    assert 'href="/entity?name=Ann+Lee"' in html
    assert html.count("<li id=") == 3


def test_a_search_shows_channels_and_why_and_counts_nothing_as_retrieved(site, memory):
    _, _, html = site.get("/?q=who+deploys+nginx")
    assert "nginx is deployed by CI" in words(html)
    assert "<rect" in html
    assert "terms in common: deploy, nginx" in words(html)
    assert [fact.retrieval_count for fact in memory.facts()] == [0, 0, 0]


def test_the_filter_holds_all_words_a_category_and_an_order(site, memory):
    assert "Rome" not in words(site.get("/?q=lives+oslo&filter=1")[2])
    assert "Ann" not in words(site.get("/?category=project")[2].partition("<section")[2])
    memory.feedback(1, helpful=True)
    shown = re.findall(r'<li id="fact-(\d+)"', site.get("/?order=trusted")[2])
    assert shown[0] == "1"
    assert re.findall(r'<li id="fact-(\d+)"', site.get("/?order=nonsense&page=-1")[2]) == ["3", "2", "1"]


def test_a_long_list_has_pages(memory):
    memory.add_many(NewFact(f"fact number {n}", entities=[]) for n in range(120))
    with serving(memory) as site:
        first, second, third = (re.findall(r'<li id="fact-(\d+)"', site.get(f"/?page={n}")[2]) for n in (1, 2, 3))
        assert (len(first), len(second), len(third)) == (50, 50, 20)
        assert len({*first, *second, *third}) == 120
        assert 'rel="next"' not in site.get("/?page=3")[2]


def test_an_empty_memory_says_what_to_do(memory):
    with serving(memory) as site:
        assert "holomem add" in words(site.get("/")[2])
        assert "пуста" in words(site.get("/", Accept_Language="ru")[2])
        for page in ("/entities", "/contradictions", "/map", "/health"):
            assert site.get(page)[0] == 200


def test_contradictions_stand_side_by_side_with_the_reason(site):
    shown = words(site.get("/contradictions")[2])
    assert "Oslo / Rome" in shown


def test_an_entity_shows_its_facts_and_what_stands_beside_it(site):
    html = site.get("/entity?name=Ann+Lee")[2]
    assert html.count("<li id=") >= 2
    assert "<svg" in html
    assert "Oslo" in words(html)
    assert site.get("/entity?name=nobody")[0] == 200


def test_export_gives_what_is_shown(site):
    status, headers, body = site.get("/export.jsonl?q=lives&filter=1")
    assert status == 200
    assert "attachment" in headers["Content-Disposition"]
    assert {json.loads(line)["content"] for line in body.splitlines()} == {
        "Ann Lee lives in Oslo",
        "Ann Lee lives in Rome",
    }


def test_an_export_is_sent_in_pieces_while_others_write(memory, monkeypatch):
    monkeypatch.setattr("holomem.web.facts.PIECE", 7)
    memory.add_many(NewFact(f"fact number {n}", entities=[]) for n in range(40))
    pieces = exported(memory, Listing())
    sent = next(pieces)
    memory.remove(20)
    memory.add("fact number 41")
    got = [json.loads(line)["content"] for line in (sent + b"".join(pieces)).splitlines()]
    assert got == [f"fact number {n}" for n in range(40) if n != 19]
    with serving(memory) as site:
        asked = b"GET /export.jsonl HTTP/%b\r\nHost: localhost\r\n\r\n"
        head, _, chunked = site.raw(asked % b"1.1").partition(b"\r\n\r\n")
        assert b"Transfer-Encoding: chunked" in head
        assert chunked.endswith(b"\r\n0\r\n\r\n")
        head, _, whole = site.raw(asked % b"1.0").partition(b"\r\n\r\n")
        assert b"Transfer-Encoding" not in head
        assert len(whole.splitlines()) == 40
        assert site.get("/export.jsonl")[2].encode() == whole


def test_ids_are_listed_anew_when_facts_before_them_go(memory, monkeypatch):
    monkeypatch.setattr("holomem.web.facts.PIECE", 5)
    memory.add_many(NewFact(f"fact number {n}", entities=[]) for n in range(12))
    listed = Memory.facts

    def facts(self, **asked):
        if asked["offset"] and len(self) == 12:
            self.remove(2)
        return listed(self, **asked)

    monkeypatch.setattr(Memory, "facts", facts)
    assert len(b"".join(exported(memory, Listing())).splitlines()) == 11


def test_what_is_not_there_is_a_page_too(site):
    assert site.get("/fact/99")[0] == 404
    assert site.get("/nothing")[0] == 404
    assert site.get("/fact/x")[0] == 404


def test_vectors_are_drawn_and_missing_ones_made_with_progress(path, embedder):
    with Memory(path, embedder=None) as memory:
        memory.add_many(NewFact(f"fact {n} about the house", category="ab"[n % 2]) for n in range(40))
    with Memory(path, embedder=embedder) as memory, serving(memory) as site:
        assert "(40)" in site.get("/health")[2]
        assert site.post("/health/backfill")[0] == 303
        for _ in range(200):
            if memory.status().missing_vectors == 0:
                break
            time.sleep(0.02)
        assert "40 / 40" in words(site.get("/health")[2])
        html = site.get("/map")[2]
        assert html.count("<circle") == 40
        assert html == site.get("/map")[2]


# ---- changing -------------------------------------------------------------------------------------------------------


def test_a_fact_is_added_edited_rated_removed_and_brought_back(site, memory):
    assert site.post("/add", content="The router is a hAP", category="tool", tags="net", entities="router")[0] == 303
    fact = memory.facts(limit=1)[0]
    assert (fact.content, fact.category, fact.tags, fact.entities) == (
        "The router is a hAP",
        "tool",
        "net",
        ("router",),
    )
    site.post(
        f"/fact/{fact.fact_id}/edit",
        content="The router is a RB5009",
        category="tool",
        tags="",
        entities="router, RB5009",
    )
    assert set(memory.get(fact.fact_id).entities) == {"RB5009", "router"}
    site.post(f"/fact/{fact.fact_id}/helpful")
    site.post(f"/fact/{fact.fact_id}/unhelpful")
    assert memory.get(fact.fact_id).trust_score == pytest.approx(0.45)
    _, headers, _ = site.post(f"/fact/{fact.fact_id}/remove", back="/?q=router")
    assert len(memory) == 3
    location = headers["Location"]
    assert location.startswith("/?q=router&told=removed&undo=")
    assert 'action="/undo"' in site.get(location)[2]
    site.post("/undo", change=location.rpartition("=")[2])
    assert memory.get(fact.fact_id).trust_score == pytest.approx(0.45)


def seen(html):
    return re.search(r'name="seen" value="([^"]*)"', html)[1]


def test_a_change_that_another_page_made_meanwhile_is_not_lost(site, memory):
    both = seen(site.get("/fact/2/edit")[2])
    memory.feedback(2, helpful=True)  # is no change of what the form shows
    assert site.post("/fact/2/edit", content="Ann Lee lives in Bergen", category="general", seen=both)[0] == 303
    late = {"content": "Ann Lee lives in <Turku>", "category": "late", "tags": "t", "entities": "Ann Lee"}
    status, _, html = site.post("/fact/2/edit", seen=both, **late)
    assert status == 409
    assert memory.get(2).content == "Ann Lee lives in Bergen"
    assert "changed meanwhile" in words(html)
    assert "Ann Lee lives in Bergen" in words(html)
    assert "Ann Lee lives in <Turku>" in words(html)
    assert site.post("/fact/2/edit", seen=seen(html), **late)[0] == 303
    assert memory.get(2).content == "Ann Lee lives in <Turku>"
    memory.remove(2)
    assert site.post("/fact/2/edit", seen=both, **late)[0] == 404


def test_forms_of_one_fact_lead_to_where_it_is_seen(site):
    for page in ("/fact/2", "/fact/2/edit"):
        back = re.search(r'name="back" value="([^"]*)"', site.get(page)[2])[1]
        assert (
            site.post("/fact/2/edit", content="Ann Lee lives in Bergen", category="x", back=back)[1]["Location"]
            == "/fact/2?told=saved"
        )
        assert "Saved." in words(site.get("/fact/2?told=saved")[2])
        location = site.post("/fact/2/remove", back=back)[1]["Location"]
        assert location.startswith("/?told=removed&undo=")
        site.post("/undo", change=location.rpartition("=")[2])


def test_names_are_mended(site, memory):
    site.post("/entity/rename", name="Ann Lee", other="Anna Lee")
    site.post("/entity/alias", name="Anna Lee", other="Annie")
    site.post("/entity/merge", name="Anna Lee", other="Oslo")
    entity = next(e for e in memory.entities() if e.name == "Anna Lee")
    assert set(entity.aliases) == {"Annie", "Oslo"}
    site.post("/entity/unalias", name="Anna Lee", other="Annie")
    assert "Annie" not in next(e for e in memory.entities() if e.name == "Anna Lee").aliases
    assert site.post("/entity/rename", name="nobody", other="x")[0] == 404


def test_of_a_contradiction_one_or_both_are_kept(site, memory):
    site.post("/contradictions/both", first="2", second="3")
    assert "Oslo / Rome" not in words(site.get("/contradictions")[2])
    assert len(memory) == 3


@pytest.mark.parametrize(
    "back", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nSet-Cookie: x=1", ""]
)
def test_forms_lead_back_to_our_pages_only(site, back):
    status, headers, _ = site.post("/fact/1/helpful", back=back)
    assert status == 303
    assert headers["Location"].startswith("/?told=")
    assert "Set-Cookie" not in headers


def test_refusals_speak_the_visitors_language(site):
    for headers, path in (({}, "/nothing"), ({"Host": "evil.example"}, "/")):
        for accepted, said in (
            ("en", "There is no such page|does not go by that name"),
            ("ru", "Такой страницы нет|другое имя"),
        ):
            assert re.search(said, words(site.get(path, Accept_Language=accepted, **headers)[2]))


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be removed elsewhere")
def test_a_file_that_was_removed_or_replaced_takes_no_more_facts(site, memory, path):
    path.rename(path.with_name("moved"))
    for place in ("nothing", "another"):
        status, _, html = site.post("/add", content="would be lost")
        assert (status, len(memory)) == (409, 3), place
        assert "start holomem web again" in words(html)
        assert "start holomem web again" in words(site.get("/")[2])
        path.touch()
    path.unlink()
    path.with_name("moved").rename(path)
    assert site.post("/add", content="is kept")[0] == 303


def test_a_change_waits_for_another_program_longer_than_for_a_client(site, memory, path, monkeypatch):
    monkeypatch.setattr(sockets, "REQUEST_SECONDS", 0.2)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(1.5, other.execute, ("ROLLBACK",)).start()
    assert site.post("/add", content="after a while")[0] == 303
    assert len(memory) == 4


def test_a_bad_form_changes_nothing_and_says_why(site, memory):
    for fields in (
        {"content": ""},
        {"content": "x" * 1000 + "\ud800".encode("utf-8", "replace").decode(), "category": "a" * 5000},
    ):
        site.post("/add", **fields)
    assert site.post("/undo", change="x")[0] == 400
    assert site.post("/undo", change="99999")[0] == 404
    assert site.post("/fact/1/explode")[0] == 404
    assert [fact.fact_id for fact in memory.facts()][-3:] == [3, 2, 1]


# ---- who may ask ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[::1]", "evil@127.0.0.1", "127.0.0.1/x", ""],
)
def test_sec_03_another_name_is_refused(site, host):
    assert site.get("/", Host=host)[0] == 403


def test_sec_03_no_name_is_refused_and_the_port_of_a_tunnel_is_not(site):
    assert b" 403 " in site.raw(b"GET / HTTP/1.1\r\n\r\n").split(b"\r\n")[0]
    assert site.get("/", Host="localhost:9000")[0] == 200


def test_sec_02_another_origin_can_neither_read_nor_write(site, memory):
    foreign = {"Origin": "http://evil.example", "Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors"}
    token = site.pages.guard.form_token
    for body, kind in (
        (f"token={token}&content=x", "text/plain"),
        (f"token={token}&content=x", "application/x-www-form-urlencoded"),
        (json.dumps({"token": token, "content": "x"}), "application/json"),
    ):
        assert site.request("POST", "/add", body, Content_Type=kind, **foreign)[0] == 403
        assert site.request("POST", "/add", body, Content_Type=kind, Origin="null")[0] == 403
    status, headers, _ = site.get("/", **foreign)
    assert status == 403
    assert "Access-Control-Allow-Origin" not in headers
    for method in ("OPTIONS", "DELETE", "PUT", "PATCH", "TRACE", "SHUTDOWN"):
        assert site.request(method, "/fact/1", **foreign)[0] == 403
        status, headers, _ = site.request(method, "/fact/1", Origin=site.url)
        assert (status, headers["Allow"]) == (405, "GET, HEAD, POST")
    assert len(memory) == 3


@pytest.mark.parametrize("token", ["", "wrong", "x" * 5000, "\u00e9"])
def test_a_change_needs_the_token_of_this_server(site, memory, token):
    assert site.post("/add", token=token, content="x")[0] == 403
    assert len(memory) == 3


def test_a_change_is_no_get(site, memory):
    token = site.pages.guard.form_token
    assert site.get(f"/fact/1/remove?token={token}")[0] == 404
    assert site.get(f"/add?content=x&token={token}")[0] == 404
    assert len(memory) == 3


@pytest.mark.parametrize(
    "target",
    ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/static/", "/static//etc/passwd"],
)
def test_no_path_leads_out_of_the_static_files(site, target):
    assert site.get(target)[0] == 404


def test_read_only_changes_nothing_and_shows_no_form(memory):
    memory.add("nginx is deployed by CI")
    with serving(memory, read_only=True) as site:
        for page in ("/", "/fact/1", "/entity?name=nginx", "/health", "/contradictions"):
            assert 'method="post"' not in site.get(page)[2]
        assert site.post("/fact/1/remove")[0] == 403
    assert len(memory) == 1


def test_with_a_token_only_who_knows_it_sees_anything(memory):
    memory.add("nginx is deployed by CI")
    with serving(memory, token="s3cret-s3cret-s3cret", names=("memory.example",)) as site:
        host = {"Host": "memory.example"}
        for page in ("/", "/export.jsonl", "/fact/1", "/health"):
            status, headers, body = site.get(page, **host)
            assert (status, headers["Location"], body) == (303, "/login", "")
        form = {"Content_Type": "application/x-www-form-urlencoded", **host}
        assert site.request("POST", "/add", f"token={site.pages.guard.form_token}&content=x", **form)[0] == 303
        assert len(memory) == 1
        status, headers, _ = site.request("POST", "/login", "secret=wrong", **form)
        assert (status, headers["Set-Cookie"]) == (403, None)
        status, headers, _ = site.request("POST", "/login", "secret=s3cret-s3cret-s3cret", **form)
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "s3cret" not in cookie
        assert site.get("/", Cookie=cookie.partition(";")[0], **host)[0] == 200
        assert site.get("/", Cookie="holomem=guess", **host)[0] == 303


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("192.168.1.2", False),
        ("x.y", False),
    ],
)
def test_loopback_is_told_from_the_rest(host, expected):
    assert is_loopback(host) == expected


# ---- bounds ---------------------------------------------------------------------------------------------------------


def test_an_oversized_or_lengthless_form_is_refused(site, memory):
    head = b"POST /add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    assert b" 413 " in site.raw(head + b"Content-Length: 99999999\r\n\r\n").split(b"\r\n")[0]
    assert b" 411 " in site.raw(head + b"\r\n").split(b"\r\n")[0]
    assert b" 411 " in site.raw(head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n").split(b"\r\n")[0]
    assert b" 411 " in site.raw(head + b"Content-Length: -5\r\n\r\n").split(b"\r\n")[0]
    assert b" 400 " in site.raw(head + b"Content-Length: 50\r\n\r\ntoken=x").split(b"\r\n")[0]
    assert b" 414 " in site.raw(b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n").split(b"\r\n")[0]
    assert (
        b" 431 " in site.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 200 + b"\r\n").split(b"\r\n")[0]
    )
    assert site.get("/")[0] == 200
    assert len(memory) == 3


def test_slow_clients_are_cut_off_and_hold_nobody_up(memory, monkeypatch):
    monkeypatch.setattr(sockets, "REQUEST_SECONDS", 0.5)
    with serving(memory) as site:
        slow = [socket.create_connection(("127.0.0.1", site.port)) for _ in range(sockets.THREADS + 8)]
        for connection in slow:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert site.get("/")[0] == 200
        for connection in slow:
            connection.settimeout(20)
            assert connection.recv(100) == b""
            connection.close()


def test_two_hundred_readers_and_a_writer(site, memory):
    statuses, lock = [], threading.Lock()

    def read(n):
        found = site.get("/?q=nginx" if n % 2 else "/")[0]
        with lock:
            statuses.append(found)

    def write():
        for n in range(20):
            assert site.post("/add", content=f"written {n}")[0] == 303

    threads = [threading.Thread(target=read, args=(n,)) for n in range(200)] + [threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 200
    assert len(memory) == 23


def test_a_hundred_kilobytes_of_text_are_shown(memory):
    memory.add("word " * 20_000)
    with serving(memory) as site:
        status, _, html = site.get("/")
        assert status == 200
        assert html.count("word") >= 20_000
