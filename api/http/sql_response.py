"""A statement's rows sent while they are computed, and stopped when nobody reads them."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import chain
from typing import Protocol

import anyio
from anyio import CapacityLimiter, from_thread, to_thread
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from api.http.disconnect_watcher import DisconnectWatcher
from api.http.errors import headers_of
from api.http.fair_queue import FairQueue, Slot, caller_of
from api.server.metrics import REFUSED, observe_query
from api.services.statements import SqlRows
from catalog.errors import FramesiftError, ServerBusy
from catalog.lake.statement_watch import Cancellation
from catalog.traces.spans import queue_wait_s
from query.run.result_format import MEDIA_TYPES, Format, encoded

_LOG = logging.getLogger(__name__)

CONTENT_TYPES = {
    **{format_: kind for kind, format_ in MEDIA_TYPES.items()},
    "csv": "text/csv; charset=utf-8",
    "csv-named": "text/csv; charset=utf-8; header=present",
}
"""Format -> the Content-Type of an answer in it."""

PATIENCE_S = 10.0
"""Time after which an operation goes on as a task [s], as Spectrum Discover documents it."""

_detached: set["asyncio.Future[None]"] = set()
"""Statements that run on after their answer; nothing else refers to them."""


class Output(Protocol):
    """The result of a task."""

    def write(self, data: bytes, /) -> None:
        """Add to the body."""


class Task(Protocol):
    """A statement that goes on without its request."""

    slot: Slot | None
    """Of the statement, where it waits for one."""

    def abandon(self) -> None:
        """Stop it and leave nothing of it."""

    def run(self, work: Callable[[Output, Cancellation], None], /) -> None:
        """Write the result."""


class SqlResponse(Response):
    """The rows of a statement.

    What fails before the first rows has a status and a body of its own. Later the connection is
    cut, so that no client takes a part for the whole. Where no row is there in time the statement
    goes on as a task.
    """

    def __init__(
        self,
        rows: SqlRows,
        format_: Format,
        refusal: Callable[[FramesiftError], Response],
        later: Callable[[Cancellation], tuple[Task, Response]] | None = None,
    ) -> None:
        """Nothing runs yet.

        Args:
            rows: The statement's.
            format_: How the rows are sent.
            refusal: The answer to a statement that fails before its first rows.
            later: Makes a task of it, and the answer that says so; where it is None, the answer
                waits for the rows, however long they take.
        """
        self._rows = rows
        super().__init__(
            media_type=CONTENT_TYPES[format_],
            # So many rows in the answer: there may be more.
            headers={"Framesift-Max-Rows": str(self._rows.max_rows)},
        )
        del self.headers["content-length"]
        self._format, self._refusal, self._later = format_, refusal, later
        self._came = time.monotonic()
        self._cancellation = Cancellation()
        self._task: Task | None = None
        self._begun = False
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the statement and send its rows."""
        queue: FairQueue = scope["app"].state.statements
        try:
            slot = queue.enter(caller_of(scope))
        except ServerBusy as error:
            REFUSED.labels("sql").inc()
            answer = self._refusal(error)
            answer.headers.update(headers_of(error))
            await answer(scope, receive, send)
            return
        try:
            async with DisconnectWatcher(receive, self._stop) as client:
                running = asyncio.create_task(self._in_slot(slot, client, scope, receive, send))
                await asyncio.wait({running}, timeout=None if self._later is None else PATIENCE_S)
                handed = None if running.done() or self._begun else await self._hand_over(slot)
                if handed is None:
                    await running
                    return
                _detached.add(running)
                running.add_done_callback(_detached.discard)
                await handed(scope, receive, send)
        finally:
            if self._task is None:
                # Where this answer is cancelled, as at the end of a server, its statement is not.
                self._cancellation.cancel()
                slot.withdraw()

    async def _in_slot(
        self, slot: Slot, client: DisconnectWatcher, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            came = time.perf_counter()
            await client.granted(slot)
            queue_wait_s.set(time.perf_counter() - came)
            if not client.gone.done() or self._task is not None:  # which ends, whoever is there
                # Other requests have threads of their own; here every slot has one.
                threads = CapacityLimiter(1)
                await to_thread.run_sync(self._run, scope, receive, send, limiter=threads)
        finally:
            slot.release()

    async def _hand_over(self, slot: Slot) -> Response | None:
        """Let the statement go on as a task; None where its rows are there now, or it cannot."""
        if self._later is None:
            return None
        try:
            task, answer = await to_thread.run_sync(self._later, self._cancellation)
        except FramesiftError as error:
            _LOG.warning("a statement that takes long is no task, and its client waits: %s", error)
            return None
        with self._lock:
            if not self._begun and not self._cancellation.cancelled:
                self._task = task
                task.slot = slot
                return answer
        task.abandon()
        task.run(_nothing)
        return None

    def _stop(self) -> None:
        """The client is gone."""
        if self._task is None:
            self._cancellation.cancel()
        else:
            self._task.abandon()  # where to ask for it has not gone out

    def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """All of it in one thread, which asks the event loop to send."""
        with closing(self._chunks()) as chunks:
            failed: Exception | None = None
            first: list[bytes] = []
            began = time.perf_counter()
            try:
                first = [next(chunks, b"")]
                observe_query("sql", began)
            except Exception as error:
                failed = error
            with self._lock:
                self._begun = True
                task = self._task
            if task is not None:
                task.run(lambda output, _: _write(output, failed, chain(first, chunks)))
            elif failed is None:
                self._send(send, chain(first, chunks))
            elif not isinstance(failed, FramesiftError):
                raise failed
            elif not self._cancellation.cancelled:  # or there is nobody to tell
                from_thread.run(self._refusal(failed), scope, receive, send)

    def _send(self, send: Send, chunks: Iterator[bytes]) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        waiting: list[Message] = [head]
        try:
            for chunk in chunks:
                body = {"type": "http.response.body", "body": chunk, "more_body": True}
                from_thread.run(self._in_time, send, [*waiting, body])
                waiting = []
            end = {"type": "http.response.body", "body": b"", "more_body": False}
            from_thread.run(self._in_time, send, [*waiting, end])
        except (FramesiftError, TimeoutError) as error:
            if not self._cancellation.cancelled:
                # Without the last message the server cuts the connection.
                _LOG.warning("an answer in %s was cut short: %s", self._format, error or "not read")

    async def _in_time(self, send: Send, messages: list[Message]) -> None:
        """Send them; a client that reads nothing must not hold a statement for ever."""
        with anyio.fail_after(self._rows.timeout_s):
            for message in messages:
                await send(message)

    def _chunks(self) -> Generator[bytes]:
        # The time in the queue counts.
        with self._rows.stream(self._cancellation, began=self._came) as stream:
            yield from encoded(self._format, stream.schema, stream.batches)


def _write(output: Output, failed: Exception | None, chunks: Iterator[bytes]) -> None:
    if failed is not None:
        raise failed
    for chunk in chunks:
        output.write(chunk)


def _nothing(*_: object) -> None:
    """The work of a task that is not needed."""
