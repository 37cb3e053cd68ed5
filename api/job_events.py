"""A job's changes as server-sent events.

Each listener looks at the records by itself, with a thread for each look and none between two:
what changed the job, and in which process, does not matter.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse

from api.answers import JobBody
from api.stopping import Stopping
from pipeline.jobs.state import FINISHED

_LOOK_EVERY_S = 1.0
_SILENT_S = 15.0
"""A comment is sent at least so often: proxies close what is silent."""


def events_of(
    look: Callable[[], JobBody], first: JobBody, last_id: str | None, stopping: Stopping
) -> Response:
    """The events of a job until it has ended, or the server stops: clients connect again.

    Args:
        look: Gives the job as it stands.
        first: The same, a moment ago.
        last_id: Of the last event that the client has, which it does not get again.
        stopping: Says when the server stops.
    """
    if first.state in FINISHED and last_id == _id(first.model_dump_json()):
        return Response(status_code=204)  # tells a browser to connect no more
    return StreamingResponse(
        _events(look, first, last_id, stopping),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(
    look: Callable[[], JobBody], body: JobBody, last_id: str | None, stopping: Stopping
) -> AsyncIterator[str]:
    yield "retry: 2000\n\n"
    sent = time.monotonic()
    while True:
        text = body.model_dump_json()
        if _id(text) != last_id:
            last_id, sent = _id(text), time.monotonic()
            yield f"id: {last_id}\nevent: job\ndata: {text}\n\n"
        elif time.monotonic() - sent >= _SILENT_S:
            sent = time.monotonic()
            yield ": still so\n\n"
        if body.state in FINISHED or stopping.begun:
            return
        await asyncio.sleep(_LOOK_EVERY_S)
        body = await run_in_threadpool(look)


def _id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
