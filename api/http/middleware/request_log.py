"""Every request gets its id here, and at its end a line in the log and its place in the metrics.

The outermost piece of the application: what any other piece answers is seen, and an error that
nobody foresaw is answered and logged under the request's id. Query strings are not logged, for they
may hold anything: statements, names, what somebody took for a place to put a token.
"""

import logging
import time
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.errors import unexpected
from api.http.routing import found_of, rule_of
from api.server.metrics import REQUEST_SECONDS, REQUESTS, observe_query
from api.server.request_id import request_id, taken_or_made

_LOG = logging.getLogger(__name__)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_TIMED = frozenset({"search", "selection", "statistics", "facets", "picture", "assistant"})
_GONE = 499
"""Status of an answer whose client has left, as nginx logs it."""

_LONGEST = 500


class RequestLog:
    """The middleware."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and write down that it was."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        id_ = taken_or_made(Headers(scope=scope).get("x-request-id", ""))
        before = request_id.set(id_)
        answer = _Answer(scope, send, id_)
        try:
            await self._app(scope, receive, answer.send)
        except Exception as error:
            _LOG.exception("request failed")
            if not answer.status:
                await unexpected(scope, error)(scope, receive, answer.send)
            # Else the server sees that the answer has no end, and cuts the connection.
        finally:
            answer.note()
            request_id.reset(before)


class _Answer:
    """One answer on its way out."""

    def __init__(self, scope: Scope, send: Send, id_: str) -> None:
        self.status = 0
        self._scope, self._send, self._id = scope, send, id_
        self._began = time.perf_counter()
        self._bytes = 0
        self._whole = False

    async def send(self, message: Message) -> None:
        """Send on, and look at what is sent."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", []), (b"X-Request-Id", self._id.encode())]
            message = {**message, "headers": headers}
            work = rule_of(self._scope).work
            if work in _TIMED and self.status < HTTPStatus.BAD_REQUEST:
                observe_query(work, self._began)
        elif message["type"] == "http.response.body":
            self._bytes += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
        await self._send(message)

    def note(self) -> None:
        """Write the line, and count."""
        scope, seconds = self._scope, time.perf_counter() - self._began
        route, method = found_of(scope).template or "(none)", scope["method"]
        known = method if method in _METHODS else "other"
        status = self.status or _GONE
        REQUESTS.labels(route, known, str(status)).inc()
        REQUEST_SECONDS.labels(route, known).observe(seconds)
        context = scope.get("state", {}).get("context")
        fields = {
            "user": (context.who if context is not None else "")[:_LONGEST],
            "address": scope["client"][0] if scope.get("client") else "",
            "method": method[:_LONGEST],
            "route": route,
            # Not decoded: no byte of it can end the line or pass for another one's field.
            "path": scope.get("raw_path", b"")[:_LONGEST].decode("latin-1"),
            "status": status,
            "ms": round(seconds * 1000, 1),
            "bytes": 0 if method == "HEAD" else self._bytes,
        }
        if self.status and not self._whole:
            fields["cut"] = True
        _LOG.info("request", extra={"fields": fields})
