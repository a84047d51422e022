"""Sockets: a bounded number of threads, each for one request, with limits of size and time."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from holomem.errors import HolomemError, StoreError
from holomem.web.guard import COOKIE, Refused
from holomem.web.pages import Pages, Reply, Request

__all__ = ["Server"]

THREADS: Final = 32  # requests at once; more wait in the kernel's queue
BODY_BYTES: Final = 1_000_000
REQUEST_SECONDS: Final = 15.0  # for the request, for the reply, of a long one for each piece: who is slower is cut off
PATIENCE_SECONDS: Final = 1.0  # and after this already where others wait for a thread
FIELDS: Final = 200
LINE_BYTES: Final = 65536
METHODS: Final = ("GET", "HEAD", "POST")
LINGER_BYTES: Final = 32_000_000  # read and thrown away after a refusal, or the client would not get to see it
LINGER_SECONDS: Final = 2.0
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}

_log = logging.getLogger(__name__)


class Server(ThreadingHTTPServer):
    """Serves the pages at an address until `shutdown`."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], pages: Pages) -> None:
        self.pages = pages
        self._free = threading.BoundedSemaphore(THREADS)
        self._waited_for: dict[socket.socket, float] = {}  # by which clients a thread is held, since when; oldest first
        self._lock = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def service_actions(self) -> None:
        """Cut off the clients whose time is over; called about twice a second."""
        now = time.monotonic()
        with self._lock:
            late = [request for request, since in self._waited_for.items() if now - since > REQUEST_SECONDS]
        for request in late:
            _cut(request)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the request to a thread, as soon as one of them is free: a client that is slow to send or take gives way."""
        while not self._free.acquire(timeout=0.1):
            self.service_actions()
            with self._lock:
                slowest = next(iter(self._waited_for.items()), None)
            if slowest is not None and time.monotonic() - slowest[1] > PATIENCE_SECONDS:
                self.waits_for(slowest[0], waits=False)
                _cut(slowest[0])
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one request."""
        self.waits_for(request, waits=True)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def shutdown_request(self, request: Any) -> None:
        """Close the connection, of which nothing is known any more: its number may be the next one's."""
        with self._lock:
            self._waited_for.pop(request, None)
        super().shutdown_request(request)

    def waits_for(self, request: socket.socket, *, waits: bool) -> None:
        """Note whether from now on it is the client that holds its thread, not our work."""
        with self._lock:
            self._waited_for.pop(request, None)
            if waits:
                self._waited_for[request] = time.monotonic()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Log what is a fault of ours; a client that went away is none."""
        if not isinstance(sys.exception(), OSError):
            _log.exception("a request failed")


def _cut(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "holomem"
    sys_version = ""
    protocol_version = "HTTP/1.1"  # for replies in pieces; there is one request a connection all the same
    timeout = REQUEST_SECONDS
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Answer one request, whatever its method is."""
        self.command, self.path, self.headers, self.requestline = "", "/", Message(), ""
        with suppress(TimeoutError):
            self.raw_requestline = self.rfile.readline(LINE_BYTES + 1)
            if len(self.raw_requestline) > LINE_BYTES:
                self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)
            elif self.raw_requestline and self.parse_request():
                self._answer()

    def handle_expect_100(self) -> bool:
        """Ask for the form by the reply only: who waits for being asked sends it after a moment anyway."""
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Say what the standard library finds wrong on a page of ours."""
        self._send(self.server.pages.error(self._unread(), code, message or HTTPStatus(code).phrase))

    def log_message(self, *args: Any) -> None:
        """Say nothing: what people look for belongs in no log."""

    def _unread(self) -> Request:
        """What is known of a request that cannot be read: an error page needs only the language."""
        return Request("", {}, {}, self.headers.get("Accept-Language", ""))

    def _answer(self) -> None:
        pages = self.server.pages
        try:
            reply = self._reply(pages)
        except Refused as error:
            reply = pages.error(self._unread(), error.status, str(error))
        except LookupError as error:
            reply = pages.error(self._unread(), 404, str(error))
        except StoreError as error:
            reply = pages.error(self._unread(), 503, str(error))
        except (HolomemError, ValueError, TypeError) as error:
            reply = pages.error(self._unread(), 400, str(error))
        except Exception:  # the edge of the process: the others go on
            _log.exception("%s %s failed", self.command, self.path.partition("?")[0])
            reply = pages.error(self._unread(), 500, "failed")
        self._send(reply)

    def _reply(self, pages: Pages) -> Reply:
        pages.guard.check(self.command, self.headers)
        if self.command not in METHODS:
            raise Refused(405, "methods")
        request = self._request(self._form() if self.command == "POST" else {})
        self.server.waits_for(self.connection, waits=False)
        if request.path.startswith("/static/"):
            return pages.static(request)
        if request.path == "/login":
            return pages.login(request)
        if not pages.guard.knows(self.headers):
            return Reply(303, location="/login")
        if self.command == "POST":
            pages.guard.check_form(request.form, self.headers)
            return pages.change(request)
        return pages.show(request)

    def _request(self, form: dict[str, str]) -> Request:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=FIELDS))
        return Request(
            parts.path, query, form, self.headers.get("Accept-Language", ""), self.headers.get("HX-Target", "")
        )

    def _form(self) -> dict[str, str]:
        length = self.headers.get("Content-Length")
        if self.headers.get("Transfer-Encoding") or length is None or not length.isdecimal():
            raise Refused(411, "no_length")
        if int(length) > BODY_BYTES:
            raise Refused(413, "too_long")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refused(400, "cut_short")
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=FIELDS)
        return dict(pairs)

    def _send(self, reply: Reply) -> None:
        self.server.waits_for(self.connection, waits=True)
        in_pieces = reply.pieces is not None and self.request_version != "HTTP/1.0"
        self.request_version = self.protocol_version  # the library leaves the headers out for HTTP/0.9
        self.send_response(reply.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Cache-Control", "public, max-age=86400" if reply.lasting else "no-store")
        self.send_header("Content-Type", reply.kind)
        if in_pieces:
            self.send_header("Transfer-Encoding", "chunked")
        elif reply.pieces is None:
            self.send_header("Content-Length", str(len(reply.body)))
        if reply.status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", ", ".join(METHODS))
        if reply.bare:  # htmx shows it in place of the page, whatever was to be changed by what was asked for
            self.send_header("HX-Retarget", "#main")
            self.send_header("HX-Reselect", "#main")
        if reply.location is not None:
            self.send_header("Location", reply.location)
        if reply.filename is not None:
            self.send_header("Content-Disposition", f'attachment; filename="{reply.filename}"')
        if reply.session is not None:
            self.send_header("Set-Cookie", f"{COOKIE}={reply.session}; Path=/; HttpOnly; SameSite=Strict")
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)
            if reply.pieces is not None:
                self._send_pieces(reply.pieces, chunked=in_pieces)
        if reply.status >= HTTPStatus.BAD_REQUEST:
            self._linger()

    def _send_pieces(self, pieces: Iterable[bytes], *, chunked: bool) -> None:
        """Send each piece as it is made; a fault leaves the last chunk out, so that the client sees that some is missing."""
        self.server.waits_for(self.connection, waits=False)
        for piece in pieces:
            self.server.waits_for(self.connection, waits=True)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            self.server.waits_for(self.connection, waits=False)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _linger(self) -> None:
        """Read what the client still sends: closing before would take our reply away from it."""
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(LINGER_SECONDS)
        end, left = time.monotonic() + LINGER_SECONDS, LINGER_BYTES
        while left > 0 and time.monotonic() < end and (got := len(self.rfile.read1(65536))):
            left -= got
