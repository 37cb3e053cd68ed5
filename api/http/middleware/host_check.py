"""Checks the names by which clients call a server that does not authenticate.

A page on the web can have its own name point to 127.0.0.1 and so read what a browser's user reaches
there (DNS rebinding); its requests carry that name as their Host. And it can send requests without
reading the answers; those carry its Origin.
"""

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.errors import problem
from api.server.loopback import is_loopback


class HostCheck:
    """The middleware."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        """Wrap an application.

        Args:
            names: What it is called, beside loopback's own names.
        """
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with 421 or 403."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._knows(f"//{host}"):
            refused = problem(
                421, "Misdirected Request",
                f"Host: {host[:100]}: this server answers to names of loopback (localhost, "
                "127.0.0.1, [::1]) and those of --allowed-host; ask it by one of these",
            )  # fmt: skip
        elif origin is not None and not self._knows(origin):
            refused = problem(
                403, "Forbidden",
                f"Origin: {origin[:100]}: pages of other places may not ask this server, which "
                "does not authenticate; name theirs by --allowed-host",
            )  # fmt: skip
        else:
            await self._app(scope, receive, send)
            return
        await refused(scope, receive, send)

    def _knows(self, address: str) -> bool:
        try:
            name = urlsplit(address).hostname or ""
        except ValueError:
            return False
        return name in self._names or is_loopback(name)
