"""Middleware that finds a request's route before anything else looks at the request.

Paths with control characters have none. The router's patterns end in ``$``, and that also matches
before a line feed at the end; and what stands in a path comes into logs and names.
"""

import unicodedata

from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.errors import refusal
from api.http.routing import find, find_none
from catalog.errors import InvalidInput

_REFUSED = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode's categories of control characters, half characters, ends of lines and paragraphs."""


class Resolver:
    """The middleware: 400 for a path with control characters."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif is_plain(scope["path"]):
            find(scope)
            await self._app(scope, receive, send)
        else:
            error = InvalidInput(
                "path: it holds a control character, such as a line feed (%0A), which no path of "
                "this server has; leave it out"
            )
            find_none(scope)
            await refusal(scope, error)(scope, receive, send)


def is_plain(path: str) -> bool:
    """Return whether a decoded path holds no control characters."""
    return (path.isascii() and path.isprintable()) or _is_plain(path)


def _is_plain(path: str) -> bool:
    return not any(unicodedata.category(character) in _REFUSED for character in path)
