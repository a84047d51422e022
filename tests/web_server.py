"""A page that is served for a test, and requests to it down to the bytes."""

import http.client
import re
import socket
import threading
from contextlib import contextmanager
from html import unescape
from urllib.parse import urlencode

from holomem.web.guard import Guard
from holomem.web.pages import Pages
from holomem.web.server import Server


class Site:
    def __init__(self, server, pages):
        self.port = server.server_address[1]
        self.pages = pages
        self.url = f"http://127.0.0.1:{self.port}"

    def request(self, method, path, body=None, **headers):
        """(status, headers, text) of one request."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        found = reply.status, reply.headers, reply.read().decode("utf-8")
        connection.close()
        return found

    def get(self, path, **headers):
        return self.request("GET", path, **headers)

    def post(self, path, token=None, **fields):
        body = urlencode({"token": self.pages.guard.form_token if token is None else token, **fields})
        return self.request("POST", path, body, Content_Type="application/x-www-form-urlencoded")

    def raw(self, data):
        """Everything that comes back for these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts)


@contextmanager
def serving(memory, *, read_only=False, token=None, names=("127.0.0.1", "localhost")):
    pages = Pages(memory, Guard(names, token), read_only=read_only)
    with Server(("127.0.0.1", 0), pages) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Site(server, pages)
        finally:
            server.shutdown()
            thread.join()


def words(html):
    """The text of a page, its white space folded."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", html)))
