"""An HTTP server that looks like S3 and, when told to, redirects its clients elsewhere."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = b"db-password=swordfish\n"


class Redirecting(ThreadingHTTPServer):
    """Answers like S3 where `target` is empty, and else sends every GET of an object there.

    Attributes:
        target: Where to.
        asked: Paths that were asked for.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = ""
        self.asked: list[str] = []
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Redirecting

    def do_GET(self) -> None:
        """An object's bytes, a page of one object, or a redirect."""
        self.server.asked.append(self.path)
        is_page = "list-type=2" in self.path
        content = SECRET
        if is_page:
            content = (
                b"<ListBucketResult><Contents><Key>a.csv</Key><Size>9</Size><ETag>x</ETag>"
                b"<LastModified>2026-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>"
            )
        elsewhere = self.server.target and not is_page
        if self.path.endswith("/layout.toml") and not elsewhere:  # the bucket has none
            self.send_error(404)
            return
        self.send_response(302 if elsewhere else 200)
        if elsewhere:
            self.send_header("Location", self.server.target + "/latest/meta-data")
        self.send_header("ETag", '"x"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET  # noqa: N815 (http.server's name)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@contextmanager
def redirecting() -> Iterator[Redirecting]:
    """A server for the block."""
    with Redirecting() as server:
        yield server
        server.shutdown()
