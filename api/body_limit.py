"""How many bytes a request's body may have."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.callers import below
from api.errors import refusal
from catalog.errors import BodyTooLarge

_FILES = ("/v1/tags/values",)
"""What takes files of values, which are read in pieces."""

_MAPS = ("/v1/tags/map",)


def takes_file(path: str) -> bool:
    """Whether what is sent to a path is a file, and not what somebody asks."""
    return below(path, _FILES + _MAPS)


class BodyLimit:
    """The middleware: 413 for what is longer, said at once where the head says how long it is."""

    def __init__(self, app: ASGIApp, most_bytes: int, map_bytes: int, file_bytes: int) -> None:
        """Wrap an application.

        Args:
            app: The application.
            most_bytes: Of a body.
            map_bytes: Of a body that is a map.
            file_bytes: Of a body that is a file of values.
        """
        self._app = app
        self._most_bytes, self._map_bytes, self._file_bytes = most_bytes, map_bytes, file_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        most = self._most(path)
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and int(length) > most:
            await refusal(path, BodyTooLarge(most))(scope, receive, send)
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

    def _most(self, path: str) -> int:
        if below(path, _FILES):
            return self._file_bytes
        return self._map_bytes if below(path, _MAPS) else self._most_bytes
