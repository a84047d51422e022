"""Sockets: a bounded number of threads, each for one request, with limits of size and time."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from holomem.errors import HolomemError
from holomem.web.guard import COOKIE, Refused
from holomem.web.pages import Pages, Reply, Request

__all__ = ["Server"]

THREADS: Final = 32  # requests at once; more wait in the kernel's queue
BODY_BYTES: Final = 1_000_000
REQUEST_SECONDS: Final = 15.0  # from the first byte to the last: who is slower is cut off
PATIENCE_SECONDS: Final = 1.0  # and after this already where others wait for a thread
FIELDS: Final = 200
CHUNK_CHARS: Final = 65_536
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

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the request to a thread, as soon as one of them is free: a client that is slow to send or take gives way."""
        while not self._free.acquire(timeout=0.1):
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
        watch = threading.Timer(REQUEST_SECONDS, _cut, (request,))
        watch.daemon = True
        watch.start()
        self.waits_for(request, waits=True)
        try:
            super().process_request_thread(request, client_address)
        finally:
            watch.cancel()
            self.waits_for(request, waits=False)
            self._free.release()

    def waits_for(self, request: socket.socket, *, waits: bool) -> None:
        """Note whether it is the client that holds its thread, not our work."""
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
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Answer what the standard library refuses, such as a line that is no request, by a page as all others.

        A method that is not served is refused to strangers as any request of theirs is, and told to our own pages.
        """
        self.close_connection = True
        if not hasattr(self, "headers"):  # not read yet, or there are none
            self.headers = Message()
        self.requestline, self.request_version = (
            "",
            self.protocol_version,
        )  # so that even the oldest client gets a status
        if code == 501:
            try:
                self.server.pages.guard.check(self.command, self.headers)
                refused = Refused(405, "the page is asked by GET, HEAD and POST")
            except Refused as error:
                refused = error
        else:
            refused = Refused(code, message or "the request cannot be read")
        self._refuse(refused)

    def log_message(self, *args: Any) -> None:
        """Say nothing: what people look for belongs in no log."""

    def _answer(self) -> None:
        try:
            self._send(self._reply(self.server.pages))
        except Refused as error:
            self._refuse(error)
        except LookupError as error:
            self._refuse(Refused(404, str(error)))
        except (HolomemError, ValueError, TypeError) as error:
            self._refuse(Refused(400, str(error)))
        except OSError:
            raise  # the client went away
        except Exception:  # the edge of the process: the others go on
            _log.exception("%s %s failed", self.command, self.path.partition("?")[0])
            self._refuse(Refused(500, "the page failed; the log of the server says why"))

    def _refuse(self, refused: Refused) -> None:
        # An address that cannot be read is no reason to answer nothing: errors need only the language.
        unread = Request("", {}, {}, self.headers.get("Accept-Language", ""))
        self._send(self.server.pages.error(unread, refused.status, str(refused)))

    def _reply(self, pages: Pages) -> Reply:
        pages.guard.check(self.command, self.headers)
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
        return Request(parts.path, query, form, self.headers.get("Accept-Language", ""))

    def _form(self) -> dict[str, str]:
        length = self.headers.get("Content-Length")
        if self.headers.get("Transfer-Encoding") or length is None or not length.isdecimal():
            raise Refused(411, "the length of the form is missing")
        if int(length) > BODY_BYTES:
            raise Refused(413, f"the form is longer than {BODY_BYTES} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refused(400, "the form is cut short")
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=FIELDS)
        return dict(pairs)

    def _send(self, reply: Reply) -> None:
        self.server.waits_for(self.connection, waits=True)
        self.send_response(reply.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Cache-Control", "public, max-age=86400" if reply.lasting else "no-store")
        self.send_header("Content-Type", reply.kind)
        if reply.lines is None:  # else the end of the connection tells the end
            self.send_header("Content-Length", str(len(reply.body)))
        if reply.location is not None:
            self.send_header("Location", reply.location)
        if reply.filename is not None:
            self.send_header("Content-Disposition", f'attachment; filename="{reply.filename}"')
        if reply.session is not None:
            self.send_header("Set-Cookie", f"{COOKIE}={reply.session}; Path=/; HttpOnly; SameSite=Strict")
        if reply.status == 405:
            self.send_header("Allow", "GET, HEAD, POST")
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(reply.body)
        if reply.lines is not None:
            with reply.lines:
                while part := reply.lines.read(CHUNK_CHARS):
                    self.server.waits_for(self.connection, waits=True)
                    self.wfile.write(part.encode())
