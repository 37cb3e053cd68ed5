"""Paths without control characters, which is what everything behind this takes a path to be.

The router's patterns end in ``$``, and that also matches before a line feed at the end: the path
``/v1/users%0a`` finds the route of ``/v1/users``, and is another text for whoever compares texts.
"""

import unicodedata

from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import refusal
from catalog.errors import InvalidInput

_REFUSED = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode's categories of control characters, half characters, ends of lines and paragraphs."""


class PlainPath:
    """The middleware: 400 for any other path, before anybody looks at it."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http" or is_plain(scope["path"]):
            await self._app(scope, receive, send)
            return
        error = InvalidInput(
            "path: it holds a control character, such as a line feed (%0A), which no path of this "
            "server has; leave it out"
        )
        await refusal(scope["path"], error)(scope, receive, send)


def is_plain(path: str) -> bool:
    """Whether a decoded path holds none of these."""
    return not any(unicodedata.category(character) in _REFUSED for character in path)
