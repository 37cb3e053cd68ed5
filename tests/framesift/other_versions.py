"""A real server over HTTP that passes for one of another version."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.app import create_app
from api.settings import Settings

Edit = Callable[[str, Any], Any]
"""Given a path and the JSON document that is answered there; the document of the other version."""


class OtherVersion:
    """An application's answers as another version would give them."""

    def __init__(self, app: ASGIApp, version: str, edit: Edit, gone: Sequence[str]) -> None:
        """Wrap an application.

        Args:
            app: The application.
            version: What it says it is.
            edit: What is different about its documents.
            gone: Beginnings of the paths that it does not have.
        """
        self._app, self._version, self._edit, self._gone = app, version, edit, tuple(gone)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, with documents whole and not compressed."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(self._gone):
            scope = {**scope, "path": "/not/there"}
        plain = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
        messages: list[Message] = []

        async def hold(message: Message) -> None:
            messages.append(message)

        await self._app({**scope, "headers": plain}, receive, hold)
        head, body = messages[0], b"".join(each.get("body", b"") for each in messages[1:])
        headers = {name.lower(): value for name, value in head["headers"]}
        if headers.get(b"content-type", b"").startswith(b"application/json"):
            body = json.dumps(self._edit(scope["path"], json.loads(body))).encode()
            headers[b"content-length"] = str(len(body)).encode()
        headers[b"framesift-version"] = self._version.encode()
        await send({**head, "headers": list(headers.items())})
        await send({"type": "http.response.body", "body": body})


def same(_path: str, document: Any) -> Any:
    """A document as it is."""
    return document


@contextmanager
def serving_as(
    home: Path, version: str, edit: Edit = same, gone: Sequence[str] = ()
) -> Iterator[str]:
    """URL of a server of the home that says it is of that version."""
    app = create_app(Settings(home=home, cache=None), authenticates=False)
    other = OtherVersion(app, version, edit, gone)
    server = uvicorn.Server(uvicorn.Config(other, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 300
    while not server.started:
        assert time.monotonic() < until
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(300)
