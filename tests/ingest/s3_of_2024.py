"""An S3 server as many were before 2025: it knows no checksums but Content-MD5."""

import base64
import hashlib
import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

_NEW = ("x-amz-checksum-", "x-amz-sdk-checksum-algorithm", "x-amz-trailer")
_ERROR = "<Error><Code>{0}</Code><Message>{0}</Message></Error>"


@dataclass
class OldServer:
    """What it was asked.

    Attributes:
        endpoint: The URL it serves.
        requests: Method and path of each request that it handed on.
        refused: Method, path and reason of each that it refused.
    """

    endpoint: str
    requests: list[tuple[str, str]] = field(default_factory=list)
    refused: list[tuple[str, str, str]] = field(default_factory=list)


class _Server(ThreadingHTTPServer):
    old: OldServer
    target: tuple[str, int]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if reason := self._reason(body):
            self.server.old.refused.append((self.command, self.path, reason))
            self._answer(400, {}, _ERROR.format(reason).encode())
            return
        self.server.old.requests.append((self.command, self.path))
        connection = http.client.HTTPConnection(*self.server.target)
        connection.request(self.command, self.path, body, dict(self.headers.items()))
        answer = connection.getresponse()
        self._answer(answer.status, dict(answer.getheaders()), answer.read())
        connection.close()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 (the server's names)

    def _reason(self, body: bytes) -> str:
        if any(name.lower().startswith(_NEW) for name in self.headers):
            return "NotImplemented"
        if self.command == "POST" and "delete" in urlsplit(self.path).query:
            digest = base64.b64encode(hashlib.md5(body).digest()).decode()
            if self.headers.get("Content-MD5") != digest:
                return "MissingContentMD5"
        return ""

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        kept = {name.lower(): value for name, value in headers.items()}
        for name in ("transfer-encoding", "connection", "date", "server"):
            kept.pop(name, None)
        for name, value in {"content-length": str(len(body)), **kept}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def old_server(target: str) -> Iterator[OldServer]:
    """A server in front of another one, which does for it what a server of 2024 would do.

    It refuses a delete of many objects without the Content-MD5 of its body, as MinIO, Ceph and IBM
    COS did, and every checksum that came later.
    """
    parts = urlsplit(target)
    server = _Server(("127.0.0.1", 0), _Handler)
    old = server.old = OldServer(f"http://127.0.0.1:{server.server_address[1]}")
    server.target = (parts.hostname or "", parts.port or 80)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield old
    finally:
        server.shutdown()
        server.server_close()
