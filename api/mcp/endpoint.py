"""/mcp: the Model Context Protocol over HTTP, behind the same authentication as every route.

Stateless: any worker answers any request. What it is made of is imported at the first request
(0.6 s and 23 MB), so that servers that no assistant asks pay nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

from fastapi import HTTPException
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from api.http.middleware.read_again import read_again
from api.http.middleware.request_context import RequestContext
from api.http.routes import frames
from api.mcp.answers import ToolCaller
from api.services.session import Session
from catalog.errors import InvalidInput, NotAllowed, installs


def answers_assistants(setting: bool | None) -> bool:
    """Return whether there is such an endpoint: where it can be, unless the setting forbids it.

    Raises:
        InvalidInput: It is wanted, and cannot be.
    """
    possible = find_spec("mcp") is not None
    if setting and not possible:
        raise InvalidInput(
            f"FRAMESIFT_MCP=true: mcp is not installed here: {installs('mcp')}; or leave it out"
        )
    return possible if setting is None else setting


class Endpoint:
    """The ASGI application at /mcp, while `running`."""

    def __init__(self) -> None:
        self._manager: Any = None
        self._starting = asyncio.Lock()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests until the end of the block."""
        try:
            yield
        finally:
            self._stop.set()
            if self._task is not None:
                await self._task

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            HTTPException: 415, its body is no JSON.
        """
        request = Request(scope, receive)
        sent = request.headers.get("content-type", "")
        if sent.partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, f"Content-Type '{sent[:80]}': expected application/json")
        async with self._starting:
            if self._task is None:
                self._manager = await run_in_threadpool(_manager)
                ready = asyncio.Event()
                self._task = asyncio.create_task(self._run(ready))
                await ready.wait()
        # Read here: a body that breaks off is no failure of what answers.
        body = await request.body()
        await self._manager.handle_request(scope, read_again(body, receive), send)

    async def _run(self, ready: asyncio.Event) -> None:
        """Run the manager in one task, as the task that began must end what it starts."""
        async with self._manager.run():
            ready.set()
            await self._stop.wait()


def _manager() -> Any:
    from mcp.server.transport_security import TransportSecuritySettings

    from api.mcp.tools import server_of

    server = server_of(_caller_of)
    # Of the application that this makes only the manager is used: host, body and caller were
    # looked at before.
    server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return server.session_manager


async def _caller_of(context: Any) -> ToolCaller:
    request: Request = context.request_context.request
    of_request: RequestContext = request.state.context
    caller = of_request.caller
    if caller is None:
        raise NotAllowed("nobody is known to ask")
    tool = (context.request_context.params or {}).get("name", "")
    note = partial(request.state.authentication.note_refusal, of_request, f"tool {tool}")
    session = Session(request.app.state.workspace, caller)
    frames_url = f"{str(request.base_url).rstrip('/')}{frames.router.url_path_for('get_frames')}"
    return ToolCaller(session, frames_url, note)
