"""ETags: which state of a resource a client has, and which one it means to change (RFC 9110, 13).

One piece of middleware for every document below /v1: the ETag is of the bytes that are answered.
"""

import asyncio
import hashlib
import re
from http import HTTPStatus

from fastapi.responses import Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.errors import problem
from api.http.middleware.read_again import read_again
from api.http.routing import find, found_of, rule_of
from api.http.rules import Api

_CHANGING = ("PUT", "PATCH", "DELETE")
_MOST_BYTES = 8 * 2**20
"""Of a document with an ETag; a longer one goes out as it comes."""

_TAG = re.compile(r'"[^"]*"')
_OF_UNCHANGED = ("ETag", "Cache-Control", "Vary", "Content-Type")

_OF_REQUEST = (b"content-length", b"content-type", b"transfer-encoding", b"range")


def etag_of(content: bytes) -> str:
    """A strong ETag, in quotes."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def names(header: str, etag: str) -> bool:
    """Return whether If-None-Match or If-Match names an ETag of ours, all of which are strong."""
    return etag in _TAG.findall(header) or header.strip() == "*"


class ETags:
    """The middleware."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with an ETag, with 304, with 412, or as the application does."""
        if scope["type"] != "http" or rule_of(scope).api is not Api.V1:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["method"] == "GET":
            known = headers.get("if-none-match", "")
            await self._app(scope, receive, _Tagged(scope, receive, send, known).send)
            return
        expected = headers.get("if-match")
        if expected is not None and _changes(scope):
            current = await self._current(scope)
            if current is None or not names(expected, current):
                why = "If-Match: the resource is another one by now; GET it, and decide anew"
                await problem(412, "PreconditionFailed", why)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _current(self, scope: Scope) -> str | None:
        """The ETag that a GET of the same path would have.

        Empty where what it answers has none, as streams have; None where there is nothing.
        """
        passed = [
            (name, value)
            for name, value in scope["headers"]
            if name not in _OF_REQUEST and not name.startswith(b"if-")
        ]
        as_get = {**scope, "method": "GET", "headers": passed, "query_string": b""}
        find(as_get)
        receive = read_again(b"", _never)
        try:
            await self._app(as_get, receive, _Tagged(as_get, receive, _look, "").send)
        except _Seen as seen:
            return seen.etag
        return None


def _changes(scope: Scope) -> bool:
    """Return whether a request would change something: the path takes its method."""
    return scope["method"] in _CHANGING and found_of(scope).answers


class _Seen(Exception):
    """Enough of an answer, which ends here: bodies may be long, and streams have no end."""

    def __init__(self, etag: str | None) -> None:
        super().__init__()
        self.etag = etag


async def _look(message: Message) -> None:
    if message["type"] == "http.response.start":
        ok = message["status"] == HTTPStatus.OK
        raise _Seen(Headers(raw=message["headers"]).get("etag", "") if ok else None)


async def _never() -> Message:
    """The messages of a client that stays and sends nothing more; the wait holds up nobody."""
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never


class _Tagged:
    """An answer to GET on its way out, which gets its ETag."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, known: str) -> None:
        self._scope, self._receive, self._send, self._known = scope, receive, send, known
        self._head: Message | None = None
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        """Hold a document until it is whole; send anything else on."""
        if message["type"] == "http.response.start":
            headers = Headers(raw=message["headers"])
            is_document = headers.get("content-type", "").startswith("application/json")
            if message["status"] == HTTPStatus.OK and is_document and "etag" not in headers:
                self._head = message
                return
        if self._head is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        more = message.get("more_body", False)
        if more and len(self._body) <= _MOST_BYTES:
            return
        head, self._head = self._head, None
        if more:
            await self._send(head)
            await self._send({**message, "body": bytes(self._body)})
            return
        await self._whole(head, bytes(self._body))

    async def _whole(self, head: Message, body: bytes) -> None:
        etag = etag_of(body)
        headers = MutableHeaders(raw=list(head["headers"]))
        headers["ETag"] = etag
        # Asked again each time: who may see it, and what it is, may have changed.
        headers.setdefault("Cache-Control", "private, no-cache")
        if self._known and names(self._known, etag):
            # Type and length, because what the ETag of the compressed answer is goes by them.
            repeated = {name: headers[name] for name in _OF_UNCHANGED if name in headers}
            repeated["Content-Length"] = str(len(body))
            await Response(status_code=304, headers=repeated)(
                self._scope, self._receive, self._send
            )
            return
        await self._send({**head, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})
