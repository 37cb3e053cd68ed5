"""How many requests of each kind are worked on at once.

Routes work in threads of one pool of forty. Were it one queue, forty slow selections would hold up
every other request; so each kind has a part of the pool, and a bounded queue before it. Statements
in SQL and searches have threads and queues of their own (api.sql_response, api.discover.tasks).
"""

import anyio
from anyio import CapacityLimiter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import refusal
from api.kinds import OTHER, kind_of
from api.metrics import REFUSED
from catalog.errors import ServerBusy

_AT_ONCE = {"selection": 12, "statistics": 6, "picture": 10, OTHER: 10}
"""38 of anyio's 40 threads: /readyz finds one always."""

_WAITING = 256
_PATIENCE_S = 30.0


class Admission:
    """The middleware."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app
        self._limiters = {kind: CapacityLimiter(number) for kind, number in _AT_ONCE.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Work on a request when its turn has come; 503 where that is too far away."""
        kind = kind_of(scope["path"]) if scope["type"] == "http" else ""
        limiter = self._limiters.get(kind)
        if limiter is None:
            await self._app(scope, receive, send)
            return
        turn = object()
        if not await _come(limiter, turn):
            REFUSED.labels(kind).inc()
            await refusal(scope["path"], ServerBusy(5.0))(scope, receive, send)
            return
        held = True

        async def releasing(message: Message) -> None:
            # The work is done: how fast the client reads is another matter.
            nonlocal held
            if held:
                held = False
                limiter.release_on_behalf_of(turn)
            await send(message)

        try:
            await self._app(scope, receive, releasing)
        finally:
            if held:
                limiter.release_on_behalf_of(turn)


async def _come(limiter: CapacityLimiter, turn: object) -> bool:
    """Wait for a turn; whether it came."""
    if limiter.statistics().tasks_waiting >= _WAITING:
        return False
    with anyio.move_on_after(_PATIENCE_S) as waited:
        await limiter.acquire_on_behalf_of(turn)
    return not waited.cancelled_caught
