"""Arguments of routes besides parameters and bodies: caller, home, services, snapshot."""

from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.concurrency import run_in_threadpool

from api.http.login_path import LOGIN
from api.http.middleware.request_context import RequestContext
from api.services.accounts.callers import Caller
from api.services.session import Session
from catalog.errors import NotAuthenticated


async def _caller(request: Request) -> Caller | None:
    caller: Caller | None = request.state.context.caller
    return caller


async def _session(request: Request, caller: Annotated[Caller | None, Depends(_caller)]) -> Session:
    if caller is None:
        raise NotAuthenticated(f"send 'Authorization: Bearer TOKEN'; a token comes from {LOGIN}")
    if caller.sees_all:
        return Session(request.app.state.workspace, caller)
    # The names of the caller's collections come from the records.
    return await run_in_threadpool(Session, request.app.state.workspace, caller)


CurrentSession = Annotated[Session, Depends(_session)]
"""The services of the served home for the caller; without a caller the answer is 401."""


CurrentCaller = Annotated[Caller, Depends(_caller)]
"""The user who sends the request."""


async def _context(request: Request) -> RequestContext:
    context: RequestContext = request.state.context
    return context


CurrentContext = Annotated[RequestContext, Depends(_context)]
"""The request; what a route writes into its `about` goes into the audit log."""

At = Annotated[
    int | None,
    Query(ge=1, lt=2**63, description="Number of the catalog snapshot to ask; else the newest."),
]
"""Snapshot of the catalog that a request reads."""
