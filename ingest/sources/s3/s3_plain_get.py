"""Objects of a store that is reached by plain HTTP, received where their reader wants them.

A client of a store puts an object together in memory of its own, in threads of its own, and hands
it on from there: 0.7 s of CPU a GB. Received in place it takes 0.35, as long as next to nothing is
done for a request. So here is only what it takes where all is well. Whatever else a store answers,
and whatever fails before the content comes, the usual client asks again: it knows how long to go
on, and what the answer means.
"""

import hashlib
import hmac
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies

from ingest.sources.s3.s3_page import ObjectEntry

_HEAD_BYTES = 2**16
_PIECE_BYTES = 2**20
_CONNECT_S = 5
_REFUSALS = ("400", "403", "501")
"""Answers of a store that does not take what is signed here; then it is not asked so again."""

_NO_CONTENT = hashlib.sha256(b"").hexdigest()
_SIGNED = "host;x-amz-content-sha256;x-amz-date"


class PlainGets:
    """Requests for objects of one bucket, on connections that are kept; from many threads."""

    def __init__(
        self, endpoint: str, bucket: str, region: str, credentials: Any, idle_s: float
    ) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: Of the store, http://host:port.
            region: That requests are signed for.
            credentials: botocore's; None where nothing is signed.
        """
        parts = urlsplit(endpoint)
        self._host, self._address = parts.netloc, (parts.hostname or "", parts.port or 80)
        self._path = quote(f"{parts.path.rstrip('/')}/{bucket}/")
        self._region, self._credentials, self._idle_s = region, credentials, idle_s
        self._kept: list[socket.socket] = []
        self._lock = threading.Lock()
        # Where the environment names a proxy, its client goes by that.
        self._is_taken = not parts.username and not getproxies().keys() & {"http", "all"}

    def open(self, key: str, etag: str) -> "PlainObject | None":
        """An object, opened; None where the usual client should ask.

        Args:
            etag: That it must have; any where empty.
        """
        if not self._is_taken:
            return None
        request = self._request(self._path + quote(key), etag)
        with self._lock:
            connection = self._kept.pop() if self._kept else None
        try:
            if connection is not None:
                with suppress(ConnectionError):  # it was closed meanwhile
                    return self._requested(connection, request, key)
            return self._requested(self._connected(), request, key)
        except (OSError, ValueError, KeyError):
            return None

    def _requested(
        self, connection: socket.socket, request: bytes, key: str
    ) -> "PlainObject | None":
        """The object; None where the answer is another."""
        with ExitStack() as unless_taken:
            unless_taken.callback(connection.close)
            connection.sendall(request)
            status, headers, content = _answer(connection)
            if status != "HTTP/1.1 200" or "transfer-encoding" in headers:
                self._is_taken = status[-3:] not in _REFUSALS
                return None
            size = int(headers["content-length"])
            modified = parsedate_to_datetime(headers["last-modified"]).replace(tzinfo=None)
            entry = ObjectEntry(key, size, modified, headers.get("etag", "").strip('"'))
            if len(content) > size:
                return None
            unless_taken.pop_all()
        is_kept = headers.get("connection") != "close"
        return PlainObject(self, connection, content, entry, is_kept)

    def _connected(self) -> socket.socket:
        connection = socket.create_connection(self._address, _CONNECT_S)
        connection.settimeout(None)
        # The kernel's own: with Python's, a call takes what is there, and there are ten of them.
        idle = struct.pack("ll", int(self._idle_s), int(self._idle_s % 1 * 1e6))
        for direction in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            connection.setsockopt(socket.SOL_SOCKET, direction, idle)
        return connection

    def _request(self, path: str, etag: str) -> bytes:
        lines = [f"GET {path} HTTP/1.1", f"host: {self._host}"]
        if etag:
            lines.append(f'if-match: "{etag}"')
        if self._credentials is not None:
            lines += self._signature(path, f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
        return "\r\n".join([*lines, "", ""]).encode()

    def _signature(self, path: str, moment: str) -> list[str]:
        """The headers that sign a request for a path.

        Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html
        """
        keys = self._credentials.get_frozen_credentials()
        scope = f"{moment[:8]}/{self._region}/s3/aws4_request"
        headers = [f"x-amz-content-sha256:{_NO_CONTENT}", f"x-amz-date:{moment}"]
        signed = _SIGNED
        if keys.token:
            headers.append(f"x-amz-security-token:{keys.token}")
            signed += ";x-amz-security-token"
        request = "\n".join(
            ["GET", path, "", f"host:{self._host}", *headers, "", signed, _NO_CONTENT]
        )
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{_sha256(request)}"
        signature = _hmac(_signing_key(keys.secret_key, scope), text).hex()
        authorization = (
            f"authorization: AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, "
            f"SignedHeaders={signed}, Signature={signature}"
        )
        return [*headers, authorization]

    def give_back(self, connection: socket.socket) -> None:
        """Take a connection back whose answer was read to its end."""
        with self._lock:
            self._kept.append(connection)


def _answer(connection: socket.socket) -> tuple[str, dict[str, str], bytes]:
    """Version and status of an answer, its headers in small letters, and what follows them."""
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = connection.recv(_HEAD_BYTES - len(received))
        if not chunk:
            raise ConnectionResetError
        received += chunk
    head, _, content = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    named = (line.partition(":") for line in lines)
    return first[:12], {name.lower(): value.strip() for name, _, value in named}, content


@lru_cache(maxsize=16)
def _signing_key(secret_key: str, scope: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for component in scope.split("/"):
        key = _hmac(key, component)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class PlainObject:
    """An object whose content is about to come; its connection is let go after the block."""

    def __init__(
        self,
        gets: PlainGets,
        connection: socket.socket,
        content: bytes,
        entry: ObjectEntry,
        is_kept: bool,
    ) -> None:
        """Take a connection with what has come of the content.

        Args:
            is_kept: Whether the store keeps the connection open.
        """
        self._gets, self._connection, self._is_kept = gets, connection, is_kept
        self._begin, self._left = content, entry.size - len(content)
        self.entry = entry

    def __enter__(self) -> "PlainObject":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_kept and not self._left:
            self._gets.give_back(self._connection)
        else:
            self._connection.close()

    def read_into(self, buffer: memoryview) -> int:
        """Receive all; how many bytes came."""
        size = len(self._begin)
        buffer[:size] = self._begin
        while size < len(buffer) and (
            length := self._connection.recv_into(buffer[size:], 0, socket.MSG_WAITALL)
        ):
            size += length
            self._left -= length
        return size

    def pieces(self) -> Iterator[bytes]:
        """All bytes, in order; raises what `read_into` does."""
        if self._begin:  # headers may come alone
            yield self._begin
        while self._left and (
            piece := self._connection.recv(min(_PIECE_BYTES, self._left), socket.MSG_WAITALL)
        ):
            self._left -= len(piece)
            yield piece
