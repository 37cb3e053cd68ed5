"""How many requests of each kind are worked on at once, and that work ends when nobody wants it.

Routes work in threads of one pool. Were it one queue, slow selections would hold up every other
request; so each kind has places of its own, shared by those who ask (api.http.turns), and a bounded
queue before it. Statements in SQL and searches have places of their own (api.http.sql_response,
api.discover.tasks).
"""

import asyncio

import anyio.to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.departure import Departure
from api.http.errors import refusal
from api.http.routing import rule_of
from api.http.turns import Turn, Turns, whose
from api.server.metrics import REFUSED
from catalog.errors import ServerBusy
from query.run.statement_watch import Cancellation, cancelled_by

_PLACES = {
    "selection": 16, "statistics": 8, "picture": 16, "assistant": 8, "ready": 2, "metrics": 2,
    "other": 16,
}  # fmt: skip
_SPARE = 12
"""Threads for what is done beside these: compression, reading of results, tasks' files."""

_WAITING = 512
_PATIENCE_S = 30.0


def make_threads() -> None:
    """Have as many threads in this event loop's pool as there are places, and some more."""
    pool = anyio.to_thread.current_default_thread_limiter()
    pool.total_tokens = sum(_PLACES.values()) + _SPARE


class Admission:
    """The middleware."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app
        self._turns = {kind: Turns(places, _WAITING) for kind, places in _PLACES.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Work on a request when its turn has come; 503 where that is too far away."""
        kind = rule_of(scope).work if scope["type"] == "http" else ""
        turns = self._turns.get(kind)
        if turns is None:
            await self._app(scope, receive, send)
            return
        async with Departure(receive) as departure:
            # What is still coming takes no place: who sends slowly holds up nobody.
            await departure.whole
            try:
                turn = turns.enter(whose(scope))
            except ServerBusy as busy:
                await _refuse(busy, kind, scope, departure.receive, send)
                return
            try:
                came = await _came(turn, departure)
                if departure.gone.done():
                    return
                if came:
                    await self._work(turn, departure, scope, send)
                    return
            finally:
                turn.end()
            await _refuse(ServerBusy(5.0), kind, scope, departure.receive, send)

    async def _work(self, turn: Turn, departure: Departure, scope: Scope, send: Send) -> None:
        cancellation, begun = Cancellation(), False
        # A change is made whole, whoever waits for it.
        reads = not rule_of(scope).changes

        def leave(_: object) -> None:
            if reads and not begun:
                cancellation.cancel()

        async def releasing(message: Message) -> None:
            # The work is done: how fast the client reads is another matter.
            nonlocal begun
            begun = True
            turn.end()
            if not departure.gone.done():
                await send(message)

        departure.gone.add_done_callback(leave)
        try:
            with cancelled_by(cancellation):
                await self._app(scope, departure.receive, releasing)
        except asyncio.CancelledError:  # at the server's end: the thread asks on
            leave(None)
            raise


async def _came(turn: Turn, departure: Departure) -> bool:
    """Wait for a turn as long as its client does; whether it came."""
    if not turn.came.done():
        came = asyncio.wrap_future(turn.came)
        await asyncio.wait(
            {came, departure.gone}, timeout=_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED
        )
    return turn.came.done()


async def _refuse(busy: ServerBusy, kind: str, scope: Scope, receive: Receive, send: Send) -> None:
    REFUSED.labels(kind).inc()
    await refusal(scope, busy)(scope, receive, send)
