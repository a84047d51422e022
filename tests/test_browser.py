"""The page in a real Chromium: clicking and typing, with JavaScript and without, on a file with facts in ten languages."""

import shutil
from importlib.resources import files
from urllib.parse import urlsplit

import pytest
from web_server import serving

from holomem import Memory, NewFact, demo

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
sync_api.expect.set_options(timeout=20_000)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; install Debian's package chromium")

EVIL = "<img src=x onerror=\"document.title='broken'\"> \"'><script>document.title='broken'</script>"
MORE = [
    NewFact("Le port du proxy est 8443", "tool", "réseau"),
    NewFact("A senha do painel muda todo mês", "general", "segurança"),
    NewFact("الخادم في برلين يعاد تشغيله يوم الجمعة", "project", "خوادم"),
    NewFact("Serwer kopii zapasowych stoi w piwnicy", "project", "kopie"),
    NewFact(f"{EVIL} \u202e end", f"cat {EVIL}", f"tag {EVIL.replace(',', '')}", entities=[EVIL, "O'Neil"]),
    NewFact("Ann Lee lives in Oslo", entities=["Ann Lee", "Oslo"]),
    NewFact("Ann Lee lives in Rome", entities=["Ann Lee", "Rome"]),
    NewFact("long " * 20_000, "general"),
]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def filled(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        memory.add_many([*demo.FACTS, *MORE])
        yield memory


@pytest.fixture
def site(filled):
    with serving(filled) as opened:
        yield opened


@pytest.fixture
def page(browser, site):
    """A tab that must see no error in its console and no request elsewhere."""
    yield from tab(browser, site)


@pytest.fixture
def plain(browser, site):
    """The same with JavaScript off."""
    yield from tab(browser, site, java_script_enabled=False)


def tab(browser, site, **options):
    context = browser.new_context(base_url=site.url, locale="en-US", **options)
    opened, wrong = context.new_page(), []
    opened.set_default_timeout(20_000)
    opened.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda r: wrong.append(r.url) if urlsplit(r.url).hostname != "127.0.0.1" else None)
    opened.goto("/")
    yield opened
    opened.wait_for_load_state("networkidle")
    assert opened.title() == "holomem"
    assert wrong == []
    context.close()


def first(page):
    return page.locator("ol.facts > li").first


def test_searching_as_you_type_shows_channels_and_why(page):
    page.get_by_role("searchbox").press_sequentially("nginx deploy order", delay=20)
    sync_api.expect(first(page)).to_contain_text("nginx deploy order: staging")
    page.wait_for_url("**/?q=nginx*")
    assert first(page).locator("svg.bars rect").count() == 8
    first(page).get_by_text("why").click()
    sync_api.expect(first(page).locator("details.why")).to_contain_text("terms in common: nginx, deploy, order")


def test_the_filter_category_and_order_narrow_the_list(page):
    page.get_by_label("only facts that hold all the words").check()
    page.get_by_role("searchbox").fill("marta allergic")
    sync_api.expect(page.locator("ol.facts > li")).to_have_count(1)
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Category", exact=True).first.select_option("tool")
    sync_api.expect(page.locator("#results .badge").first).to_have_text("tool")
    page.get_by_label("Order").select_option("oldest")
    sync_api.expect(first(page)).to_contain_text("pve-01 is the Proxmox host")


@pytest.mark.parametrize("kind", ["page", "plain"])
def test_a_fact_is_added_edited_rated_removed_and_brought_back(kind, request, filled):
    page = request.getfixturevalue(kind)
    page.get_by_text("add a fact").click()
    page.locator("details.add textarea").fill("The router is a hAP")
    page.locator("details.add input[name=tags]").fill("net")
    page.locator("details.add").get_by_role("button", name="save").click()
    sync_api.expect(page.get_by_role("status")).to_contain_text("Added")
    sync_api.expect(first(page)).to_contain_text("The router is a hAP")
    fact_id = filled.facts(limit=1)[0].fact_id
    first(page).get_by_role("button", name="Helpful", exact=True).click()
    sync_api.expect(page.get_by_role("status")).to_contain_text("Rated")
    assert filled.get(fact_id).trust_score == pytest.approx(0.55)
    first(page).get_by_role("link", name="edit").click()
    page.locator("textarea").first.fill("The router is a RB5009")
    page.get_by_role("button", name="save").last.click()
    sync_api.expect(page.get_by_text("The router is a RB5009").first).to_be_visible()
    assert filled.get(fact_id).content == "The router is a RB5009"
    page.goto("/")
    first(page).get_by_role("button", name="remove").click()
    sync_api.expect(page.get_by_role("status")).to_contain_text("Removed")
    assert fact_id not in [fact.fact_id for fact in filled.facts()]
    page.get_by_role("button", name="undo").click()
    sync_api.expect(page.get_by_role("status")).to_contain_text("It is back")
    assert filled.get(fact_id).trust_score == pytest.approx(0.55)


def test_entities_are_shown_with_what_stands_beside_and_mended(page, filled):
    page.get_by_role("link", name="entities", exact=True).click()
    sync_api.expect(page.locator("h1")).to_have_text("entities")
    page.get_by_role("link", name="Marta", exact=True).click()
    sync_api.expect(page.locator("svg.graph")).to_contain_text("nginx")
    page.get_by_label("rename: New name").fill("Marta Ruiz")
    page.get_by_role("button", name="rename").click()
    sync_api.expect(page.locator("h1")).to_have_text("Marta Ruiz")
    page.get_by_label("add another name: The other name").fill("Martita")
    page.get_by_role("button", name="add another name").click()
    sync_api.expect(page.locator("main")).to_contain_text("other names: Martita")
    page.get_by_label("merge into this: The other name").fill("Lissabon")
    page.get_by_role("button", name="merge into this").click()
    sync_api.expect(page.locator("main")).to_contain_text("Lissabon")
    assert {"Martita", "Lissabon"} <= {a for e in filled.entities() if e.name == "Marta Ruiz" for a in e.aliases}


@pytest.mark.parametrize("kind", ["page", "plain"])
def test_of_a_contradiction_one_is_kept(kind, request, filled):
    page = request.getfixturevalue(kind)
    page.get_by_role("link", name="contradictions").click()
    pair = page.locator("ol.pairs > li").filter(has_text="Oslo / Rome")
    pair.locator(".sides > div").filter(has_text="Rome").get_by_role("button").click()
    sync_api.expect(page.get_by_role("status")).to_contain_text("Removed")
    left = [fact.content for fact in filled.facts(matching="Ann Lee lives")]
    assert left == ["Ann Lee lives in Rome"]


def test_health_makes_missing_vectors_and_the_map_draws_them(browser, path, embedder):
    with Memory(path, embedder=None) as memory:
        memory.add_many(demo.FACTS)
    with Memory(path, embedder=embedder) as memory, serving(memory) as site:
        for page in tab(browser, site):
            page.get_by_role("link", name="health", exact=True).click()
            page.get_by_role("button", name="make the missing vectors").click()
            sync_api.expect(page.locator("table.state")).to_contain_text(f"{len(demo.FACTS)} / {len(demo.FACTS)}")
            page.get_by_role("button", name="check the whole file").click()
            sync_api.expect(page.locator("table.state")).to_be_visible()
            page.get_by_role("link", name="map").click()
            sync_api.expect(page.locator("svg.map circle")).to_have_count(len(demo.FACTS))
            page.locator("svg.map a").first.click()
            sync_api.expect(page.locator("ol.facts > li")).to_have_count(1)


def test_the_keyboard_alone_is_enough(page, filled):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_role("searchbox").focus()
    page.keyboard.type("allergic")
    sync_api.expect(first(page)).to_contain_text("Marta is allergic to peanuts")
    first(page).get_by_role("button", name="Helpful", exact=True).focus()
    page.keyboard.press("Enter")
    sync_api.expect(page.get_by_role("status")).to_contain_text("Rated")
    assert filled.facts(matching="allergic peanuts")[0].trust_score == pytest.approx(0.55)


@pytest.mark.parametrize("address", ["/", "/?q=img", "/entities", "/contradictions", "/map", "/health"])
def test_hostile_facts_are_text(page, address):
    page.goto(address)
    page.wait_for_load_state("networkidle")
    assert page.title() == "holomem"
    assert page.locator("main img, main script, main iframe").count() == 0


@pytest.mark.parametrize(
    "address",
    ["/", "/?q=nginx", "/entities", "/entity?name=Marta", "/contradictions", "/map", "/health", "/fact/1/edit",
     "/fact/1", "/nothing", "/login", "/?q=zz&filter=1", "/?told=removed&undo=1"],
)  # fmt: skip
@pytest.mark.parametrize(("width", "locale"), [(1280, "en-US"), (390, "ru-RU")])
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_screen(browser, site, address, width, locale):
    script = files(pytest.importorskip("axe_playwright_python")).joinpath("axe.min.js").read_text(encoding="utf-8")
    context = browser.new_context(
        base_url=site.url, viewport={"width": width, "height": 900}, bypass_csp=True, locale=locale
    )
    page = context.new_page()
    page.goto(address)
    for summary in page.locator("details.why summary, details.add summary").all()[:3]:
        summary.click()
    page.evaluate(script)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (v["id"], v["nodes"][0]["html"][:200]) for v in found["violations"] if v["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_errors_and_late_changes_are_seen_with_javascript_too(browser, site, filled):
    context = browser.new_context(base_url=site.url, locale="en-US")
    page = context.new_page()
    page.goto("/fact/1/edit")
    page.locator("textarea").first.fill("What this page says")
    filled.update(1, content="What another page said")
    page.get_by_role("button", name="save").click()
    sync_api.expect(page.get_by_role("alert")).to_contain_text("changed meanwhile")
    sync_api.expect(page.locator("main .content")).to_have_text("What another page said")
    assert page.locator("textarea").first.input_value() == "What this page says"
    page.get_by_role("button", name="save").click()
    sync_api.expect(page.locator("main .content").first).to_have_text("What this page says")
    page.goto("/fact/2/edit")
    filled.remove(2)
    page.get_by_role("button", name="save").click()
    sync_api.expect(page.get_by_role("alert")).to_contain_text("no fact 2")
    page.goto("/")
    page.get_by_label("Category", exact=True).first.evaluate("e => e.options[1].value = 'x'.repeat(100)")
    page.get_by_text("add a fact").click()
    page.locator("details.add textarea").fill("  ")
    page.locator("details.add").get_by_role("button", name="save").click()
    sync_api.expect(page.get_by_role("alert")).to_be_visible()
    context.close()


def test_motion_is_spared_where_it_is_unwanted(browser, site):
    for wish, seconds in (("reduce", "0s"), ("no-preference", "0.15s")):
        context = browser.new_context(base_url=site.url, reduced_motion=wish)
        page = context.new_page()
        page.goto("/")
        took = "e => { e.classList.add('htmx-request'); return getComputedStyle(e).transitionDuration }"
        assert page.locator("#results").evaluate(took) == seconds
        context.close()


@pytest.mark.parametrize("locale", ["en-US", "ru-RU"])
def test_fingers_find_what_is_to_be_touched_on_a_phone(browser, site, locale):
    context = browser.new_context(base_url=site.url, viewport={"width": 390, "height": 844}, locale=locale)
    page = context.new_page()
    for address in ("/", "/?q=nginx", "/fact/1/edit", "/entity?name=Marta", "/contradictions", "/health"):
        page.goto(address)
        small = page.evaluate(
            "[...document.querySelectorAll('main button, main .button, main select, nav a, main summary')].filter(e =>"
            " e.checkVisibility()).map(e => [e.textContent, e.getBoundingClientRect()]).filter(([, r]) => r.height < 34"
            " || r.width < 34).map(([t, r]) => `${t} ${r.width} ${r.height}`)"
        )
        assert small == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_the_page_speaks_russian_to_a_russian_browser(browser, site):
    context = browser.new_context(base_url=site.url, locale="ru-RU")
    page = context.new_page()
    page.goto("/")
    sync_api.expect(page.get_by_role("link", name="противоречия")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "ru"
    context.close()
