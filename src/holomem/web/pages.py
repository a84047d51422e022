"""From a request to a reply: which view shows what, and what each form does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote, urlencode

from holomem.errors import HolomemError
from holomem.memory import Memory
from holomem.types import Fact
from holomem.web import entity_views, fact_views, frame, state_views
from holomem.web.facts import Listing, exported, listing
from holomem.web.guard import Guard, Refused
from holomem.web.markup import Markup
from holomem.web.texts import Words, language

__all__ = ["Pages", "Reply", "Request"]

HTML: Final = "text/html; charset=utf-8"
STATIC: Final = {
    "style.css": "text/css; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
PAIRS: Final = 50  # contradictions shown


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked."""

    path: str
    query: dict[str, str]
    form: dict[str, str]
    accepted: str
    target: str = ""  # the id of what htmx puts the reply into

    @property
    def words(self) -> Words:
        """The words of the visitor's language."""
        return Words(language(self.accepted))


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered: `body`, then `pieces` as they are made.

    `lasting` may be kept by the browser; `session` is a cookie to be set; `bare` is a page without navigation.
    """

    status: int = 200
    body: bytes = b""
    kind: str = HTML
    location: str | None = None
    filename: str | None = None
    lasting: bool = False
    session: str | None = None
    pieces: Iterator[bytes] | None = None
    bare: bool = False


@dataclass(slots=True)
class _Backfill:
    done: int = 0
    total: int = 0
    running: bool = False
    problem: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Pages:
    """The pages of one memory."""

    def __init__(self, memory: Memory, guard: Guard, *, read_only: bool = False) -> None:
        self.guard = guard
        self._memory = memory
        self._read_only = read_only
        self._backfill = _Backfill()
        self._file = _identity(memory.path)
        self._editing = threading.Lock()  # from looking whether a fact is as its form says until it is changed
        memory.status()  # reads the file into the caches, which the first visitor would wait for: 0.4 s for 10,000 facts

    # ---- showing ----------------------------------------------------------------------------------------------------

    def show(self, request: Request) -> Reply:
        """The page at a path."""
        shown: dict[str, Callable[[Request], Reply]] = {
            "/": self._facts,
            "/entities": self._entities,
            "/entity": self._entity,
            "/contradictions": self._contradictions,
            "/health": self._health,
            "/map": self._map,
            "/export.jsonl": self._export,
        }
        if (page := shown.get(request.path)) is not None:
            return page(request)
        fact_id, action = _fact_path(request.path)
        if action == "edit":
            return self._page(request, "facts", fact_views.edit(self._page_words(request), self._memory.get(fact_id)))
        if action == "":
            fact = self._memory.get(fact_id)
            return self._page(
                request, "facts", fact_views.one(self._page_words(request), fact, request.query.get("told", ""))
            )
        raise Refused(404, "no_page")

    def static(self, request: Request) -> Reply:
        """A file that belongs to the page."""
        name = request.path.removeprefix("/static/")
        if name not in STATIC:
            raise Refused(404, "no_file")
        return Reply(body=(files("holomem.web") / "static" / name).read_bytes(), kind=STATIC[name], lasting=True)

    def login(self, request: Request) -> Reply:
        """The form for the token, and what it leads to."""
        if "secret" not in request.form:
            return self._bare(request, frame.login(request.words, None))
        session = self.guard.login(request.form["secret"])
        if session is None:
            return self._bare(request, frame.login(request.words, request.words["wrong_token"]), 403)
        return Reply(303, location="/", session=session)

    def error(self, request: Request, status: int, message: str) -> Reply:
        """A page that says what was wrong."""
        return self._bare(request, frame.failure(request.words, request.words.said(message)), status)

    def _facts(self, request: Request) -> Reply:
        asked = Listing.of(request.query)
        found = listing(self._memory, asked)
        told = request.query.get("told", "")
        undo = request.query.get("undo", "")
        words = self._page_words(request)
        # At each keystroke only the results are asked for, and counting the categories takes longer than the search.
        categories = {} if request.target == "results" else self._memory.categories()
        body = fact_views.facts(words, asked, found, categories, told, undo if undo.isdecimal() else None)
        return self._page(request, "facts", body)

    def _entities(self, request: Request) -> Reply:
        wanted, page = request.query.get("q", ""), _number(request.query.get("page", "1"))
        found = [e for e in self._memory.entities() if wanted.casefold() in " ".join((e.name, *e.aliases)).casefold()]
        shown = found[(page - 1) * entity_views.NAMES : page * entity_views.NAMES]
        return self._page(
            request, "entities", entity_views.entities(self._page_words(request), shown, wanted, page, len(found))
        )

    def _entity(self, request: Request) -> Reply:
        name = request.query.get("name", "")
        known = {e.name: e for e in self._memory.entities()}
        hits = self._memory.probe(name, limit=100)
        related = self._memory.related(name, limit=20)
        body = entity_views.entity(
            self._page_words(request), name, known.get(name), hits, related, request.query.get("told", "")
        )
        return self._page(request, "entities", body)

    def _contradictions(self, request: Request) -> Reply:
        pairs = self._memory.contradictions(limit=PAIRS)
        told, undo = request.query.get("told", ""), request.query.get("undo", "")
        body = state_views.contradictions(self._page_words(request), pairs, told, undo if undo.isdecimal() else None)
        return self._page(request, "contradictions", body)

    def _health(self, request: Request) -> Reply:
        run = self._backfill
        progress = (run.done, run.total) if run.running else None
        checked = request.query.get("told") == "checked"
        status = self._memory.doctor() if checked else self._memory.status()
        body = state_views.health(self._page_words(request), status, progress, run.problem, checked=checked)
        return self._page(request, "health", body)

    def _map(self, request: Request) -> Reply:
        return self._page(request, "map", state_views.chart(self._page_words(request), self._memory.map()))

    def _export(self, request: Request) -> Reply:
        pieces = exported(self._memory, Listing.of(request.query))
        return Reply(kind="application/x-ndjson; charset=utf-8", filename="facts.jsonl", pieces=pieces)

    def _is_gone(self) -> bool:
        """Whether the file that is open is no longer the one at its place: what is written now would be lost."""
        return _identity(self._memory.path) != self._file

    def _page_words(self, request: Request) -> frame.Page:
        return frame.Page(request.words, self.guard.form_token, read_only=self._read_only, here=_here(request))

    def _page(self, request: Request, current: str, body: Markup) -> Reply:
        status = self._memory.status()
        note = "file_gone" if self._is_gone() else "read_only" if self._read_only else None
        page = frame.layout(self._page_words(request), current, body, status, note)
        return Reply(body=page.encode())

    def _bare(self, request: Request, body: Markup, status: int = 200) -> Reply:
        return Reply(status, frame.bare(request.words, body).encode(), bare=True)

    # ---- changing ---------------------------------------------------------------------------------------------------

    def change(self, request: Request) -> Reply:
        """What a form asks for, then the page that it came from."""
        if self._read_only:
            raise Refused(403, "read_only")
        if self._is_gone():
            raise Refused(409, "file_gone")
        form = request.form
        said = _Fields.of(form)
        fact_id, action = _fact_path(request.path)
        undo: int | None = None
        match request.path, action:
            case "/add", _:
                self._memory.add(said.content, category=said.category, tags=said.tags, entities=said.entities)
                told = "added"
            case "/undo", _:
                self._memory.undo(_number(form.get("change", "")))
                told = "restored"
            case "/entity/rename", _:
                entity = self._memory.rename_entity(form.get("name", ""), form.get("other", ""))
                return _back(f"/entity?{urlencode({'name': entity.name})}", "saved")
            case "/entity/merge", _:
                entity = self._memory.merge_entities(form.get("name", ""), form.get("other", ""))
                return _back(f"/entity?{urlencode({'name': entity.name})}", "saved")
            case "/entity/alias", _:
                self._memory.add_alias(form.get("name", ""), form.get("other", ""))
                told = "saved"
            case "/entity/unalias", _:
                self._memory.remove_alias(form.get("name", ""), form.get("other", ""))
                told = "saved"
            case "/contradictions/both", _:
                self._memory.keep_both(_number(form.get("first", "")), _number(form.get("second", "")))
                told = "kept"
            case "/health/backfill", _:
                self._start_backfill()
                return Reply(303, location="/health")
            case "/health/check", _:
                return Reply(303, location="/health?told=checked")
            case _, "edit":
                with self._editing:
                    fact = self._memory.get(fact_id)
                    if form.get("seen", fact_views.state(fact)) != fact_views.state(fact):
                        return self._changed_meanwhile(request, fact, said)
                    self._memory.update(
                        fact_id, content=said.content, category=said.category, tags=said.tags, entities=said.entities
                    )
                told = "saved"
            case _, "remove":
                self._memory.remove(fact_id)
                undo, told = self._memory.history(fact_id, limit=1)[0].change_id, "removed"
            case _, "helpful" | "unhelpful":
                self._memory.feedback(fact_id, helpful=action == "helpful")
                told = "rated"
            case _:
                raise Refused(404, "no_form")
        back = form.get("back", "/")
        if told == "removed" and back.partition("?")[0] == f"/fact/{fact_id}":
            back = "/"  # its own page is gone
        return _back(back, told, undo)

    def _changed_meanwhile(self, request: Request, fact: Fact, said: _Fields) -> Reply:
        """The form again, with what the visitor typed and what the fact says by now."""
        names = tuple(said.entities or ())
        typed = replace(fact, content=said.content, category=said.category, tags=said.tags, entities=names)
        body = fact_views.edit(self._page_words(request), fact, typed)
        return replace(self._page(request, "facts", body), status=409)

    def _start_backfill(self) -> None:
        run = self._backfill
        with run.lock:
            if run.running:
                return
            run.running, run.done, run.total, run.problem = True, 0, 0, None
        threading.Thread(target=self._fill, daemon=True).start()

    def _fill(self) -> None:
        run = self._backfill

        def progress(done: int, total: int) -> None:
            run.done, run.total = done, total

        try:
            self._memory.backfill(progress=progress)
        except HolomemError as error:
            run.problem = str(error)
        finally:
            run.running = False


@dataclass(frozen=True, slots=True)
class _Fields:
    """What the form of a fact says; `entities` None where it says nothing about them."""

    content: str
    category: str
    tags: str
    entities: list[str] | None

    @classmethod
    def of(cls, form: Mapping[str, str]) -> Self:
        names = [name.strip() for name in form.get("entities", "").split(",") if name.strip()]
        said = names or form.get("had_entities")
        return cls(
            form.get("content", ""),
            form.get("category", "").strip() or "general",
            form.get("tags", ""),
            names if said else None,
        )


def _identity(path: str) -> tuple[int, int] | None:
    """What tells a file from another one at the same place; None where there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _fact_path(path: str) -> tuple[int, str | None]:
    """The id and the rest of /fact/<id>/<action>; no action for another path."""
    parts = path.split("/")
    if (
        len(parts) in (3, 4)
        and parts[1] == "fact"
        and parts[2].isascii()
        and parts[2].isdecimal()
        and len(parts[2]) < 19
    ):
        return int(parts[2]), parts[3] if len(parts) == 4 else ""
    return 0, None


def _number(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and 0 < len(value) < 19):
        raise ValueError(f"{value[:40]!r} is no number")
    return max(1, int(value))


def _here(request: Request) -> str:
    """The address of the page, for the forms that lead back to it."""
    kept = {name: value for name, value in request.query.items() if name not in ("told", "undo")}
    return quote(request.path) + (f"?{urlencode(kept)}" if kept else "")


def _back(address: str, told: str, undo: int | None = None) -> Reply:
    """Lead back to a page of ours, which says what was done."""
    if (
        not address.startswith("/")
        or address.startswith("//")
        or "\\" in address
        or not address.isascii()
        or not address.isprintable()
    ):
        address = "/"
    said = {"told": told, **({"undo": str(undo)} if undo is not None else {})}
    return Reply(303, location=f"{address}{'&' if '?' in address else '?'}{urlencode(said)}")
