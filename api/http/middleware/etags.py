"""ETags: which state of a document a client has (RFC 9110, 13).

One piece of middleware for every document below /v1: the ETag is of the bytes that are answered.
Before them stands the version of what can be changed, which the route gives; If-Match is compared
with that in the transaction of the change (api.http.conditions, docs/decisions/0040).
"""

import hashlib
import re
from collections.abc import Sequence
from http import HTTPStatus

from fastapi.responses import Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.errors import problem
from api.http.routing import found_of, rule_of
from api.http.rules import Api

_CHANGING = ("PUT", "PATCH", "DELETE")
_MOST_BYTES = 8 * 2**20
"""Largest document that gets an ETag [bytes]; a larger one is streamed."""

_TAG = re.compile(r'"[^"]*"')
_OF_UNCHANGED = ("ETag", "Cache-Control", "Vary", "Content-Type")


def etag_of(content: bytes, version: str = "") -> str:
    """A strong ETag, in quotes, of a document that shows a version."""
    digest = hashlib.sha256(content).hexdigest()
    return f'"{version}-{digest[:16]}"' if version else f'"{digest[:32]}"'


def names(header: str, etag: str) -> bool:
    """Return whether If-None-Match names one of our ETags, which are strong ones."""
    return etag in _TAG.findall(header) or header.strip() == "*"


def tags_in(header: str) -> Sequence[str]:
    """The ETags that If-Match names, without their quotes."""
    return [tag.strip('"') for tag in _TAG.findall(header)]


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
        if "if-match" in headers and _has_no_version(scope):
            why = "If-Match: what this request changes has no version; send it without the header"
            await problem(412, "PreconditionFailed", why)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _has_no_version(scope: Scope) -> bool:
    """Return whether a request would change something that no ETag is of."""
    match = found_of(scope)
    changes = scope["method"] in _CHANGING and match.answers
    return changes and not getattr(match.route, "takes_if_match", False)


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
            if message["status"] == HTTPStatus.OK and is_document:
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
        headers = MutableHeaders(raw=list(head["headers"]))
        etag = etag_of(body, headers.get("etag", "").strip('"'))
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
