"""Every answer says which version of Framesift gave it: clients of another major number stop."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = b"Framesift-Version"


class VersionHeader:
    """Middleware that adds the header."""

    def __init__(self, app: ASGIApp, version: str) -> None:
        """Wrap an application of that version."""
        self._app, self._version = app, version.encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (HEADER, self._version)]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, adding if scope["type"] == "http" else send)
