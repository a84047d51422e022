"""Requests that cannot be read get a page that says so; clients that say nothing hold nobody up."""

import socket
import threading
import time
from contextlib import ExitStack

import pytest

from holomem import Memory
from holomem.web.guard import Guard
from holomem.web.pages import Pages
from holomem.web.server import FIELDS, THREADS, Server


@pytest.fixture
def port(tmp_path):
    with (
        Memory(tmp_path / "memory.db", embedder=None) as memory,
        Server(("127.0.0.1", 0), Pages(memory, Guard(("127.0.0.1",), None))) as server,
    ):
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def exchange(port, data):
    """Everything that comes back for these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


HOST = b"Host: 127.0.0.1\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET http://[/ HTTP/1.1\r\n" + HOST, 400),
        (b"GET /?" + b"&".join(b"a%d=1" % n for n in range(FIELDS + 1)) + b" HTTP/1.1\r\n" + HOST, 400),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nOrigin: http://127.0.0.1\r\nOrigin: http://evil.example\r\n" + HOST, 403),
        (b"GET /\r\n" + HOST, 200),  # HTTP/0.9
        (b"GET /\r\n\r\n", 403),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET / HTTP/9.9\r\n" + HOST, 505),
        (b"GET / HTTP/<script>\r\n" + HOST, 400),
        (b"<script>\r\n\r\n", 400),
        (b"<script> / / /\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),  # TLS
        (b"\x80\xff<script> / HTTP/1.1\r\n" + HOST, 405),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n" + HOST, 414),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * 70_000 + b"\r\n" + HOST, 431),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + HOST, 431),
        (b"DELETE /fact/1 HTTP/1.1\r\n" + HOST, 405),
        (b"OPTIONS * HTTP/1.1\r\n" + HOST, 405),
        (b"CONNECT evil.example:443 HTTP/1.1\r\n" + HOST, 405),
        (b"POST /add HTTP/1.1\r\nContent-Length: 20000000\r\n" + HOST + b"a" * 20_000_000, 413),
    ],
    ids=lambda value: value[:24] if isinstance(value, bytes) else value,
)
def test_every_request_is_answered_by_a_page_of_ours(port, data, status):
    head, _, body = exchange(port, data).partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0].split()[1] == b"%d" % status
    for header in (b"Content-Security-Policy: default-src 'none'", b"Cache-Control: no-store", b"Connection: close"):
        assert header in head
    assert body.startswith(b"<!doctype html>")
    assert b"<script>" not in body


@pytest.mark.parametrize("method", [b"OPTIONS", b"DELETE", b"PUT", b"PATCH", b"TRACE", b"BREW"])
@pytest.mark.parametrize(
    "stranger", [b"Host: evil.example", b"Host: 127.0.0.1\r\nOrigin: https://evil.example", b"X: no host"]
)
def test_other_methods_of_strangers_are_refused_by_the_guard_sec_02(port, method, stranger):
    reply = exchange(port, method + b" /facts/1 HTTP/1.1\r\n" + stranger + b"\r\n\r\n")
    assert reply.split()[1] == b"403"
    assert b"Access-Control" not in reply


def test_a_head_is_answered_without_a_body(port):
    for path, status in ((b"/", b"200"), (b"/nothing", b"404"), (b"/export.jsonl", b"200")):
        head, _, body = exchange(port, b"HEAD " + path + b" HTTP/1.1\r\n" + HOST).partition(b"\r\n\r\n")
        assert head.split()[1] == status
        assert b"Content-Security-Policy" in head
        assert body == b""


def test_silent_clients_in_every_thread_give_way(port):
    with ExitStack() as silent:
        for _ in range(THREADS):
            silent.enter_context(socket.create_connection(("127.0.0.1", port)))
        start = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        assert time.monotonic() - start < 8  # without giving way 15 s
