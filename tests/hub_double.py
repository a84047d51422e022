"""A model hub on loopback: the paths and headers that the hub's client asks for, with faults on demand."""

import hashlib
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub(ThreadingHTTPServer):
    """Serves `files` (path -> bytes) as /<owner>/<name>/resolve/<revision>/<path>."""

    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.breaks = 0  # how many more transfers of a large file break off in the middle
        self.requests = []  # (method, path, Range)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def ranges(self):
        return [header for method, _, header in self.requests if method == "GET" and header]


@contextmanager
def serving(files):
    with Hub(files) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self._send(None)

    def do_GET(self):
        self._send(self.headers.get("Range"))

    def log_message(self, *args):
        pass

    def _send(self, wanted):
        self.server.requests.append((self.command, self.path, wanted))
        repository, _, rest = self.path.partition("/resolve/")
        revision, _, path = rest.partition("/")
        data = self.server.files.get(path)
        if data is None or not repository:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        etag = hashlib.sha256(data).hexdigest()
        self.send_response(206 if wanted else 200)
        for name, value in (
            ("ETag", f'"{etag}"'),
            ("X-Linked-ETag", f'"{etag}"'),
            ("X-Linked-Size", str(len(data))),
            ("X-Repo-Commit", revision),
            ("Accept-Ranges", "bytes"),
            ("Content-Length", str(len(data) - start)),
        ):
            self.send_header(name, value)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.server.breaks > 0 and len(data) - start > 1_000_000:
            self.server.breaks -= 1
            self.wfile.write(data[start : start + (len(data) - start) // 2])
            self.close_connection = True
            return
        self.wfile.write(data[start:])
