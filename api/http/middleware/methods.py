"""HEAD wherever GET is, OPTIONS everywhere, and which methods a path has.

HEAD is answered as GET, and its body is left out: what it says of the body is then true. Streams of
events have no HEAD, for they have no end.
"""

from http import HTTPStatus

from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.routing import Found, found_of

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_OF_PARTS = (b"range", b"if-range")
"""Headers that mean something with GET only (RFC 9110, 14.2)."""


class Methods:
    """The middleware, outside of all that looks at what a GET answers."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer OPTIONS, answer HEAD as GET, and let anything else through."""
        method = scope["method"] if scope["type"] == "http" else ""
        if method == "OPTIONS" and (allowed := allow(scope)):
            answer = Response(status_code=HTTPStatus.NO_CONTENT, headers={"Allow": allowed})
            await answer(scope, receive, send)
        elif method == "HEAD" and _is_answered_as_get(found_of(scope)):
            headers = [pair for pair in scope["headers"] if pair[0] not in _OF_PARTS]
            as_get = {**scope, "method": "GET", "headers": headers}
            await self._app(as_get, receive, _Bodiless(send).send)
        else:
            await self._app(scope, receive, send)


class _Bodiless:
    """An answer to GET on its way out to who asked for its head."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def send(self, message: Message) -> None:
        """Send on all but the body."""
        if message["type"] != "http.response.body":
            await self._send(message)
        elif not message.get("more_body", False):
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def allow(scope: Scope) -> str:
    """The header Allow of a path; empty where there is no such path."""
    routes = [
        route for route in scope["app"].router.routes if route.matches(scope)[0] is not Match.NONE
    ]
    allowed = {method for route in routes for method in getattr(route, "methods", None) or _METHODS}
    if "HEAD" not in allowed and any(map(_has_head, routes)):
        allowed.add("HEAD")
    return ", ".join(sorted(allowed | {"OPTIONS"})) if allowed else ""


def _is_answered_as_get(match: Found) -> bool:
    return not match.answers and match.route is not None and _has_head(match.route)


def _has_head(route: BaseRoute) -> bool:
    """Return whether HEAD is answered as a route answers GET."""
    of_success = getattr(route, "responses", {}).get(200, {})
    streams = "text/event-stream" in of_success.get("content", {})
    return "GET" in (getattr(route, "methods", None) or ()) and not streams
