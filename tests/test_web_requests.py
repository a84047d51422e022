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
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        reply = b"".join(iter(lambda: connection.recv(65536), b""))
    assert reply.split(b"\r\n")[0].split()[1] == b"400"
    assert b"Content-Security-Policy: default-src 'none'" in reply


def test_silent_clients_in_every_thread_give_way(port):
    with ExitStack() as silent:
        for _ in range(THREADS):
            silent.enter_context(socket.create_connection(("127.0.0.1", port)))
        start = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.0 200"
        assert time.monotonic() - start < 8  # without giving way 15 s
