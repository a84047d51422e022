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


@pytest.mark.parametrize(
    "target", ["http://[/", "/?" + "&".join(f"a{n}=1" for n in range(FIELDS + 1))], ids=["address", "fields"]
)
def test_an_address_that_cannot_be_read_is_answered(port, target):
    reply = asked(port, f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert reply.split(b"\r\n")[0].split()[1] == b"400"
    assert b"Content-Security-Policy: default-src 'none'" in reply


def asked(port, request):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("method", ["OPTIONS", "DELETE", "PUT", "PATCH", "TRACE", "BREW"])
def test_other_methods_are_refused_by_the_guard_and_in_our_words_sec_02(port, method):
    own = asked(port, f"{method} /facts/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert own.split()[1] == b"405"
    assert b"Allow: GET, HEAD, POST" in own
    headers = ["Host: evil.example", "Host: 127.0.0.1\r\nOrigin: https://evil.example", "X: no host"]
    for stranger in headers:
        reply = asked(port, f"{method} /facts/1 HTTP/1.1\r\n{stranger}\r\n\r\n".encode())
        assert reply.split()[1] == b"403"
        assert b"Access-Control" not in reply
        assert b"Content-Security-Policy: default-src 'none'" in reply


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"<script> / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=["word", "version", "http2", "tls", "headers", "long", "markup"],
)  # fmt: skip
def test_what_is_no_request_gets_a_page_with_our_headers(port, request_bytes):
    reply = asked(port, request_bytes)
    assert reply.split()[1][:1] in b"45"
    assert b"Content-Security-Policy: default-src 'none'" in reply
    assert b"<script> /" not in reply


def test_silent_clients_in_every_thread_give_way(port):
    with ExitStack() as silent:
        for _ in range(THREADS):
            silent.enter_context(socket.create_connection(("127.0.0.1", port)))
        start = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.0 200"
        assert time.monotonic() - start < 8  # without giving way 15 s
