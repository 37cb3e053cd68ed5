"""A proxy before an S3 server that answers some reads of objects wrongly."""

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

Fault = Callable[[str], str]
"""Given the path of a read, its fault, "" for none: a status, "stall", "short" (it breaks off), or
a success that is none: "bytes" (one is another), "half" or "empty" (a whole answer of fewer)."""

_CODES = {"403": "AccessDenied", "500": "InternalError", "503": "SlowDown"}


class FaultyS3:
    """The proxy.

    Attributes:
        endpoint: The URL that it serves.
        fault: What is done to a read of an object; may be changed at any time.
        reads: Paths of the objects read, in order.
        ranges: Path and Range of each read, empty for the whole object.
    """

    def __init__(self, target: str) -> None:
        """Serve what the server at ``target`` answers."""
        self.fault: Fault = lambda _: ""
        self.reads: list[str] = []
        self.ranges: list[tuple[str, str]] = []
        self._target = urlsplit(target).netloc
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_read(self) -> None:
                outer.answer(self)

            do_GET = do_HEAD = handle_one_read  # noqa: N815 (the standard library's names)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        is_read = request.command == "GET" and "?" not in request.path
        fault = ""
        if is_read:
            self.reads.append(request.path)
            self.ranges.append((request.path, request.headers.get("Range", "")))
            fault = self.fault(request.path)
        if fault in _CODES:
            body = f"<?xml version='1.0'?><Error><Code>{_CODES[fault]}</Code></Error>"
            _send(request, int(fault), {}, body.encode())
            return
        if fault == "stall":
            time.sleep(3)
        connection = http.client.HTTPConnection(self._target)
        connection.request(request.command, request.path, headers=dict(request.headers))
        response = connection.getresponse()
        content = response.read()
        connection.close()
        headers = dict(response.getheaders())
        length = int(headers.get("Content-Length", len(content)))
        if fault == "bytes":
            middle = len(content) // 2
            content = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        if fault in ("half", "empty"):
            content = content[: len(content) // 2] if fault == "half" else b""
            length = len(content)
        if fault == "short":
            content = content[: len(content) // 2]
            request.close_connection = True
        _send(request, response.status, headers, content, length)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


def _send(
    request: BaseHTTPRequestHandler,
    status: int,
    headers: dict[str, str],
    content: bytes,
    length: int | None = None,
) -> None:
    request.send_response(status)
    for name, value in headers.items():
        if name.lower() not in ("content-length", "transfer-encoding", "connection", "date"):
            request.send_header(name, value)
    request.send_header("Content-Length", str(len(content) if length is None else length))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(content)


@contextmanager
def faulty_s3(target: str) -> Iterator[FaultyS3]:
    """A proxy before a server, closed at the end."""
    proxy = FaultyS3(target)
    try:
        yield proxy
    finally:
        proxy.close()
