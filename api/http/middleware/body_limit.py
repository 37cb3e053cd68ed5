"""Limits the bytes of a request's body."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.errors import refusal
from api.http.routing import rule_of
from catalog.errors import BodyTooLarge


class BodyLimit:
    """The middleware: 413 for what is longer, said at once where the head says how long it is."""

    def __init__(self, app: ASGIApp, most_bytes: int, map_bytes: int, file_bytes: int) -> None:
        """Wrap an application.

        Args:
            most_bytes: Of a body.
            map_bytes: Of a body that is a map.
            file_bytes: Of a body that is a file of values.
        """
        self._app = app
        self._most = {"json": most_bytes, "map": map_bytes, "file": file_bytes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._most[rule_of(scope).body]
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and int(length) > most:
            await refusal(scope, BodyTooLarge(most))(scope, receive, send)
            return
        received = 0

        async def counting() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                # The only kind of exception that the framework lets through from here.
                raise HTTPException(413, str(BodyTooLarge(most)))
            return message

        await self._app(scope, counting, send)
