"""A job's changes as server-sent events.

Each process looks at a job once a second, however many listen to it, with a thread for each look
and none between two: what changed the job, and in which process, does not matter.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from api.schemas.jobs import JobBody
from api.server.stopping import Stopping
from catalog.errors import TooManyStreams
from pipeline.job_state import FINISHED

_LOOK_EVERY_S = 1.0
_SILENT_S = 15.0
"""A comment is sent at least so often: proxies close what is silent."""


@dataclass(frozen=True)
class Look:
    """A job as it stood."""

    text: str
    """The job in JSON."""
    ended: bool
    """Whether it changes no more."""

    @classmethod
    def of(cls, body: JobBody) -> "Look":
        """A job's."""
        return cls(body.model_dump_json(), body.state in FINISHED)

    @cached_property
    def event_id(self) -> str:
        """Id of the event that tells it."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


class Listeners:
    """All of a process who listen to jobs: what they share, and how many streams each has."""

    def __init__(self, streams_each: int) -> None:
        """Nobody listens.

        Args:
            streams_each: Streams that one caller may have at once.
        """
        self._most = streams_each
        self._streams: Counter[str] = Counter()
        self._looks: dict[Hashable, tuple[float, asyncio.Task[Look]]] = {}

    def begin(self, caller: str) -> None:
        """Count one more stream of a caller, until `end`.

        Raises:
            TooManyStreams: The caller has as many as may be.
        """
        if self._streams[caller] >= self._most:
            raise TooManyStreams(self._most)
        self._streams[caller] += 1

    def end(self, caller: str) -> None:
        """A caller's stream has ended."""
        self._streams[caller] -= 1
        if not self._streams[caller]:
            del self._streams[caller]

    async def look(self, key: Hashable, look: Callable[[], JobBody]) -> Look:
        """A job as it stood less than a second ago, or stands now.

        Args:
            key: The same for all who are shown the same.
            look: Gives the job as it stands.
        """
        now = time.monotonic()
        began, task = self._looks.get(key, (now, None))
        if task is None or (task.done() and now - began >= _LOOK_EVERY_S):
            task = asyncio.create_task(run_in_threadpool(lambda: Look.of(look())))
            self._looks[key] = now, task
            asyncio.get_running_loop().call_later(3 * _LOOK_EVERY_S, self._forget, key, task)
        return await asyncio.shield(task)

    def _forget(self, key: Hashable, task: "asyncio.Task[Look]") -> None:
        """Forget a look that nobody listens to any more."""
        if task.done() and self._looks.get(key, (0.0, None))[1] is task:
            del self._looks[key]


class _Stream(StreamingResponse):
    """Counts for its caller as long as it is sent."""

    def __init__(self, events: AsyncIterator[str], ended: Callable[[], None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._ended = ended

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


def events_of(
    look: Callable[[], Awaitable[Look]],
    first: Look,
    last_id: str | None,
    stopping: Stopping,
    listeners: Listeners,
    caller: str,
    may_listen: Callable[[], Awaitable[bool]],
) -> Response:
    """The events of a job until it has ended, or the server stops: clients connect again.

    They end when the caller is another one by now, too: a client that connects again is told why.

    Args:
        look: Gives the job as it stands.
        first: The same, a moment ago.
        last_id: Of the last event that the client has, which it does not get again.
        stopping: Says when the server stops.
        listeners: All of this process.
        who: The caller for whom the stream counts.
        may_listen: Whether the token counts as it did, and its user's rights are the same.
    """
    if first.ended and last_id == first.event_id:
        return Response(status_code=204)  # tells a browser to connect no more
    listeners.begin(caller)
    events = _events(look, first, last_id, stopping, may_listen)
    return _Stream(events, lambda: listeners.end(caller))


async def _events(
    look: Callable[[], Awaitable[Look]],
    current: Look,
    last_id: str | None,
    stopping: Stopping,
    may_listen: Callable[[], Awaitable[bool]],
) -> AsyncIterator[str]:
    yield "retry: 2000\n\n"
    sent = time.monotonic()
    while True:
        if current.event_id != last_id:
            last_id, sent = current.event_id, time.monotonic()
            yield f"id: {last_id}\nevent: job\ndata: {current.text}\n\n"
        elif time.monotonic() - sent >= _SILENT_S:
            sent = time.monotonic()
            yield ": still so\n\n"
        if current.ended or stopping.begun:
            return
        await asyncio.sleep(_LOOK_EVERY_S)
        if not await may_listen():
            return
        current = await look()
