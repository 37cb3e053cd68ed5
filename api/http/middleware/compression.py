"""Answers of our own API compressed by gzip or zstd, where the client can take it and it helps.

What is sent while it is made stays so: every part is compressed and sent as it comes. The ETag of a
compressed answer differs from the plain one's, as it must (RFC 9110, 8.8.3): it ends in the coding,
which is taken off again where a client sends it back.
"""

import re
import zlib
from http import HTTPStatus
from typing import Protocol

import zstandard
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.routing import rule_of

_LEAST_BYTES = 1_024
_THREAD_BYTES = 65_536
"""Parts of more are compressed beside the event loop: gzip takes 10 ms for a megabyte."""

_GZIP_LEVEL, _ZSTD_LEVEL = 5, 3

_WORTH = re.compile(
    r"(text/(?!event-stream)|application/(json|problem\+json|x-ndjson|openmetrics-text"
    r"|vnd\.apache\.arrow\.(stream|file)))"
)
_PREFERRED = ("zstd", "gzip")
_CONDITIONS = (b"if-none-match", b"if-match")
_TAGGED = re.compile(r'-(gzip|zstd)"')


class Compression:
    """The middleware."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, and compress its answer."""
        if scope["type"] != "http" or not rule_of(scope).compressed:
            await self._app(scope, receive, send)
            return
        coding = _chosen(Headers(scope=scope).getlist("accept-encoding"))
        sent = b" ".join(value for name, value in scope["headers"] if name in _CONDITIONS)
        headers = [
            (name, _plain(value) if name in _CONDITIONS else value)
            for name, value in scope["headers"]
        ]
        answer = _Compressed(send, coding, sent.decode("latin-1"))
        await self._app({**scope, "headers": headers}, receive, answer.send)


def _plain(value: bytes) -> bytes:
    return _TAGGED.sub('"', value.decode("latin-1")).encode("latin-1")


def _chosen(headers: list[str]) -> str | None:
    """The coding that a client likes best, of ours; None where it takes neither."""
    weights: dict[str, float] = {}
    for coding in ",".join(headers).split(","):
        name, _, weight = coding.partition(";")
        match = re.fullmatch(r"\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", weight, re.ASCII)
        weights[name.strip().lower()] = float(match[1]) if match else float(not weight)
    liked = [(weights.get(name, weights.get("*", 0.0)), name) for name in _PREFERRED]
    best = max(liked, key=lambda each: each[0])  # the first of equals
    return best[1] if best[0] > 0 else None


class _Coder(Protocol):
    def part(self, data: bytes) -> bytes: ...

    def end(self, data: bytes) -> bytes: ...


class _Gzip:
    def __init__(self) -> None:
        self._made = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)

    def part(self, data: bytes) -> bytes:
        return self._made.compress(data) + self._made.flush(zlib.Z_SYNC_FLUSH)

    def end(self, data: bytes) -> bytes:
        return self._made.compress(data) + self._made.flush()


class _Zstd:
    def __init__(self) -> None:
        # Browsers refuse frames whose window is larger than 8 MB; level 3 has 2.
        self._made = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compressobj()

    def part(self, data: bytes) -> bytes:
        block = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        return self._made.compress(data) + self._made.flush(block)

    def end(self, data: bytes) -> bytes:
        return self._made.compress(data) + self._made.flush()


class _Compressed:
    """One answer on its way out."""

    def __init__(self, send: Send, coding: str | None, sent_tags: str) -> None:
        self._send, self._coding, self._sent_tags = send, coding, sent_tags
        self._head: Message | None = None
        self._coder: _Coder | None = None

    async def send(self, message: Message) -> None:
        """Send on, compressed where that is worth it."""
        if message["type"] == "http.response.start":
            self._head = message
            return
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._head is not None:
            head, self._head = self._head, None
            await self._send({**head, "headers": self._headers(head, len(body), more)})
        if self._coder is None:
            await self._send(message)
            return
        work = self._coder.part if more else self._coder.end
        if len(body) > _THREAD_BYTES:
            body = await run_in_threadpool(work, body)
        elif body or not more:
            body = work(body)
        await self._send({**message, "body": body})

    def _headers(self, head: Message, size: int, more: bool) -> list[tuple[bytes, bytes]]:
        """The answer's headers; from here on it is compressed, or is not."""
        headers = MutableHeaders(raw=list(head["headers"]))
        etag = headers.get("etag", "")
        if head["status"] == HTTPStatus.NOT_MODIFIED:
            return self._unchanged(headers)
        plain = head["status"] in (204, 206) or "content-encoding" in headers
        if plain or not _WORTH.match(headers.get("content-type", "")):
            return headers.raw
        headers.add_vary_header("Accept-Encoding")
        size = int(headers.get("content-length", _LEAST_BYTES if more else size))
        if self._coding is None or size < _LEAST_BYTES:
            return headers.raw
        self._coder = _Gzip() if self._coding == "gzip" else _Zstd()
        headers["Content-Encoding"] = self._coding
        if etag:
            headers["ETag"] = _of_coding(etag, self._coding)
        if "content-length" in headers:
            del headers["content-length"]
        return headers.raw

    def _unchanged(self, headers: MutableHeaders) -> list[tuple[bytes, bytes]]:
        """Headers of a 304: it repeats what the 200 would have said of ETag and Vary.

        api.http.middleware.etags leaves type and length of the document in it; others know no more
        than the ETag.
        """
        etag, size = headers.get("etag", ""), int(headers.get("content-length", 0))
        is_known = "content-type" in headers
        if is_known:
            headers.add_vary_header("Accept-Encoding")
        compressed = size >= _LEAST_BYTES if is_known else f'-{self._coding}"' in self._sent_tags
        if self._coding and compressed and etag:
            headers["ETag"] = _of_coding(etag, self._coding)
        for name in ("content-type", "content-length"):
            if name in headers:
                del headers[name]
        return headers.raw


def _of_coding(etag: str, coding: str) -> str:
    return f'{etag[:-1]}-{coding}"' if etag.endswith('"') else etag
