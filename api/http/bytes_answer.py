"""Bytes as an HTTP answer: ETag, 304, 206 and 416 (RFC 9110, sections 13 and 14)."""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse

from api.http.errors import problem
from api.http.middleware.etags import names

CHUNK = 4 * 2**20
"""Bytes held of an answer that is longer."""

_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Content:
    """The content of an answer."""

    media_type: str
    """What it is."""
    size: int
    """How long it is [bytes]."""
    etag: str
    """Its strong ETag, in quotes."""
    read: Callable[[int, int], bytes]
    """Gives the part from a start of a length."""


def unchanged(request: Request, etag: str) -> Response | None:
    """304 where the client has this already; else None."""
    if names(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=_headers(etag))
    return None


async def bytes_answer(request: Request, content: Content) -> Response:
    """The content, or the one range of it that is asked for. Several ranges give all of it."""
    known = unchanged(request, content.etag)
    if known is not None:
        return known
    headers = _headers(content.etag) | {"Accept-Ranges": "bytes"}
    start, end = 0, content.size
    span = _range(request, content)
    if span is not None:
        start, end = span
        if start >= end:
            headers["Content-Range"] = f"bytes */{content.size}"
            detail = f"Range: asked for bytes beyond the end; there are {content.size:,}"
            return problem(416, "RangeNotSatisfiable", detail, headers)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{content.size}"
    status = 200 if span is None else 206
    headers["Content-Length"] = str(end - start)
    if request.method == "HEAD":
        return Response(b"", status, headers, content.media_type)
    # Before the answer begins, so that a file that cannot be read is an error and no broken answer.
    first = await run_in_threadpool(content.read, start, min(end - start, CHUNK))
    if end - start <= CHUNK:
        return Response(first, status, headers, content.media_type)

    async def chunks() -> AsyncIterator[bytes]:
        yield first
        for offset in range(start + CHUNK, end, CHUNK):
            yield await run_in_threadpool(content.read, offset, min(CHUNK, end - offset))

    return StreamingResponse(chunks(), status, headers, content.media_type)


def _headers(etag: str) -> dict[str, str]:
    return {
        "ETag": etag,
        # Asked again each time: who may see it, and the file, may have changed.
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
        "Vary": "Accept",
    }


def _range(request: Request, content: Content) -> tuple[int, int] | None:
    """First byte and the one behind the last; empty where it cannot be, None for everything."""
    matched = _RANGE.fullmatch(request.headers.get("range", "").strip())
    condition = request.headers.get("if-range")
    if request.method != "GET" or matched is None or condition not in (None, content.etag):
        return None
    first, last, suffix = matched.groups()
    if suffix is not None:
        length = min(int(suffix), content.size)
        return content.size - length, content.size
    if last and int(last) < int(first):
        return None  # no range at all, RFC 9110, 14.1.2
    return int(first), min(int(last) + 1 if last else content.size, content.size)
