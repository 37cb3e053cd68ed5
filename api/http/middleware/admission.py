"""Limits how many requests of each kind of work run at once, and cancels work without a client.

Routes work in threads of one pool. Were it one queue, slow selections would hold up every other
request; so each kind of work has slots of its own, shared fairly by callers (api.http.fair_queue).
Statements in SQL and searches have slots of their own (api.http.sql_response,
api.discover.db2whrest.tasks).
"""

import asyncio
import time
from collections.abc import Callable

import anyio.to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.disconnect_watcher import DisconnectWatcher
from api.http.errors import refusal
from api.http.fair_queue import FairQueue, Slot, caller_of
from api.http.routing import rule_of
from api.server.metrics import REFUSED
from catalog.errors import ServerBusy
from catalog.lake.statement_watch import Cancellation, cancelled_by
from catalog.traces.spans import queue_wait_s
from pipeline.cores import cores

_SLOTS = {
    "selection": 16, "statistics": 8, "facets": max(1, cores() // 2), "picture": 16,
    "assistant": 8, "ready": 2, "metrics": 2, "other": 16,
}  # fmt: skip
"""Facets take a core each as long as people drag: they leave half of them to the others."""

_RESTING = "facets"
_REST = 4.0
_LONGEST_REST_S = 2.0
_RECENT_S = 1.0
"""While statements in SQL run, or ran within the last second, a slot of facets rests after each
answer four times as long as that took: people who drag, however many, take a tenth of two cores
from those who ask by SQL (benchmarks/page.py)."""

_SPARE = 12
"""Threads for what is done beside these: compression, reading of results, tasks' files."""

_WAITING = 512
_PATIENCE_S = 30.0


def make_threads() -> None:
    """Have as many threads in this event loop's pool as there are slots, and some more."""
    pool = anyio.to_thread.current_default_thread_limiter()
    pool.total_tokens = sum(_SLOTS.values()) + _SPARE


class Admission:
    """The middleware."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app
        self._queues = {work: FairQueue(slots, _WAITING) for work, slots in _SLOTS.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Work on a request when it has a slot; 503 where it gets none in time."""
        work = rule_of(scope).work if scope["type"] == "http" else ""
        queue = self._queues.get(work)
        if queue is None:
            await self._app(scope, receive, send)
            return
        async with DisconnectWatcher(receive) as client:
            # A body that is still coming takes no slot: a slow sender holds up nobody.
            await client.whole
            came = time.perf_counter()
            try:
                slot = queue.enter(caller_of(scope))
            except ServerBusy as busy:
                await _refuse(busy, work, scope, client.receive, send)
                return
            release = slot.release
            try:
                granted = await client.granted(slot, _PATIENCE_S)
                if client.gone.done():
                    return
                if granted:
                    queue_wait_s.set(time.perf_counter() - came)
                    release = release_of(slot, work, scope)
                    await self._work(release, client, scope, send)
                    return
            finally:
                release()
            await _refuse(ServerBusy(5.0), work, scope, client.receive, send)

    async def _work(
        self, release: Callable[[], None], client: DisconnectWatcher, scope: Scope, send: Send
    ) -> None:
        cancellation, is_answering = Cancellation(), False
        # A change is made whole, whoever waits for it.
        reads = not rule_of(scope).changes

        def leave(_: object) -> None:
            if reads and not is_answering:
                cancellation.cancel()

        async def releasing(message: Message) -> None:
            # The work is done: how fast the client reads is another matter.
            nonlocal is_answering
            is_answering = True
            release()
            if not client.gone.done():
                await send(message)

        client.gone.add_done_callback(leave)
        try:
            with cancelled_by(cancellation):
                await self._app(scope, client.receive, releasing)
        except asyncio.CancelledError:  # at the server's end: the thread asks on
            leave(None)
            raise


def release_of(slot: Slot, work: str, scope: Scope) -> Callable[[], None]:
    """A function that gives a slot back, at once or after a rest; only its first call does."""
    if work != _RESTING:
        return slot.release
    loop, statements = asyncio.get_running_loop(), scope["app"].state.statements
    began, is_over = loop.time(), False

    def release() -> None:
        nonlocal is_over
        if is_over:
            return
        is_over = True
        if statements.running or time.monotonic() - statements.granted_at < _RECENT_S:
            rest = min(_REST * (loop.time() - began), _LONGEST_REST_S)
            loop.call_later(rest, slot.release)
        else:
            slot.release()

    return release


async def _refuse(busy: ServerBusy, work: str, scope: Scope, receive: Receive, send: Send) -> None:
    REFUSED.labels(work).inc()
    await refusal(scope, busy)(scope, receive, send)
