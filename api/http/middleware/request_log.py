"""Every request gets its id here, and at its end a line in the log and its place in the metrics.

The outermost piece of the application: what any other piece answers is seen, and an error that
nobody foresaw is answered and logged under the request's id. Where traces are on, a request is a
span. Query strings are not logged, for they may hold anything: statements, names, what somebody
took for a place to put a token.
"""

import logging
import time
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.errors import unexpected
from api.http.routing import found_of, rule_of
from api.server.metrics import REQUEST_SECONDS, REQUESTS, observe_query
from api.server.request_id import request_id, taken_or_made, trace_id, trace_taken_or_made
from catalog.traces import spans

_LOG = logging.getLogger(__name__)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_TIMED = frozenset({"search", "selection", "statistics", "facets", "picture", "assistant"})
_GONE = 499
"""Status of an answer whose client has left, as nginx logs it."""

_LONGEST = 500

_UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds, for ever: their spans would hide the others."""


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
        headers = Headers(scope=scope)
        if scope["path"] in _UNTRACED:
            await self._answered(scope, receive, send, headers, spans.Span())
            return
        with spans.span("HTTP", kind="server", parent=headers) as span:
            await self._answered(scope, receive, send, headers, span)

    async def _answered(
        self, scope: Scope, receive: Receive, send: Send, headers: Headers, span: spans.Span
    ) -> None:
        id_ = taken_or_made(headers.get("x-request-id", ""))
        trace = spans.trace_id() or trace_taken_or_made(headers.get("traceparent", ""))
        before, before_trace = request_id.set(id_), trace_id.set(trace)
        answer = _Answer(scope, send, id_, span)
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
            trace_id.reset(before_trace)


class _Answer:
    """One answer on its way out."""

    def __init__(self, scope: Scope, send: Send, id_: str, span: spans.Span) -> None:
        self.status = 0
        self._scope, self._send, self._id, self._span = scope, send, id_, span
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
        """Write the line, count, and say in the span how it ended."""
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
        self._trace(known, route, status)

    def _trace(self, method: str, route: str, status: int) -> None:
        context = self._scope.get("state", {}).get("context")
        caller = None if context is None else context.caller
        self._span.name(f"{method} {route}")
        self._span.set(
            {
                "http.request.method": method if method in _METHODS else "_OTHER",
                "http.route": route,
                "http.response.status_code": status,
                "user.roles": [] if caller is None else sorted(caller.roles),
                "framesift.request_id": self._id,
                "framesift.queue_wait_s": round(spans.queue_wait_s.get(), 6),
            }
        )
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._span.fail(str(status))
