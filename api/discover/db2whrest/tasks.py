"""Work that may take long: answered where it is done in time, else as a task to ask for.

Every result is written to a file first (task_files), so that memory stays flat whatever the answer
is, and a request that has waited for ten seconds can leave its work running.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import to_thread
from fastapi import Depends, FastAPI, Request, Response
from starlette.responses import StreamingResponse

from api.discover.db2whrest.task_files import Limits, Output, Result, TaskFiles
from api.discover.replies import failure, in_json, reason
from api.http.disconnect_watcher import DisconnectWatcher
from api.http.errors import error_text, headers_of, status_of
from api.http.fair_queue import FairQueue, Slot, caller_of
from api.http.sql_response import PATIENCE_S
from api.server.metrics import REFUSED
from catalog.errors import FramesiftError, ServerBusy, StoreAway
from catalog.lake.statement_watch import Cancellation
from catalog.traces.spans import queue_wait_s

_LOG = logging.getLogger(__name__)

_STOPPED = "the server was stopped while the task was running; send the request again"
_STOP_S = 5.0
_CHUNK = 1 << 20

Work = Callable[[Output, Cancellation], None]
"""Writes the body; ends soon after it was cancelled."""


class Task:
    """One that was started.

    Attributes:
        id: Its id.
        future: Done when the result is there, or will never be.
        slot: Of its work, where that waits for one.
        why: An error's text for the caller.
    """

    def __init__(
        self, output: Output, cancellation: Cancellation, why: Callable[[FramesiftError], str]
    ) -> None:
        self.id, self.why = output.id, why
        self.future: Future[None] = Future()
        self.slot: Slot | None = None
        self._output, self._cancellation = output, cancellation
        self._wanted = True

    def abandon(self) -> None:
        """Stop it and leave nothing of it: nobody knows its id."""
        self._wanted = False
        self.stop()

    def stop(self) -> None:
        """Stop it; it has failed."""
        self._cancellation.cancel()
        if self.slot is not None:
            self.slot.withdraw()

    def run(self, work: Work) -> None:
        """Do the work, and show what came of it."""
        try:
            self._do(work)
            if self._wanted:
                self._output.finish()
            else:
                self._output.discard()
        except (OSError, FramesiftError):
            # Without its lock the file says by itself that the task failed.
            _LOG.exception("the result of task %s was not written", self.id)
        finally:
            self.future.set_result(None)

    def _do(self, work: Work) -> None:
        try:
            if self._cancellation.cancelled:
                self._output.replace(500, failure(_STOPPED))
            else:
                work(self._output, self._cancellation)
        except FramesiftError as error:
            stopped = self._cancellation.cancelled
            status, body = (
                (500, failure(_STOPPED))
                if stopped
                else (status_of(error), reason(error, self.why(error)))
            )
            self._output.replace(status, body)
        except Exception as error:
            _LOG.exception("task %s failed", self.id)
            unexpected = f"unexpected {type(error).__name__}; the server's log says more"
            self._output.replace(500, failure(unexpected))


class Tasks:
    """This worker's tasks, and the results of all workers'."""

    def __init__(self, folder: Path, queue: FairQueue, limits: Limits | None = None) -> None:
        """Nothing is made before the first task.

        Args:
            folder: Of the results.
            queue: Of statements, whose slots tasks take, too.
            limits: Of the results.
        """
        self.files = TaskFiles(folder, limits or Limits())
        self._queue = queue
        self._threads = ThreadPoolExecutor(queue.slots, "task")
        self._tasks: set[Task] = set()

    def start(
        self,
        view: str,
        content_type: str,
        work: Work,
        caller: str | None = None,
        why: Callable[[FramesiftError], str] = str,
    ) -> Task:
        """Begin it when it has a slot.

        Args:
            view: What alone may have the result; see Caller.
            content_type: Of the result.
            work: What makes it.
            who: The caller whose share it counts against; the view's when None.
            why: An error's text for the caller.
        """
        slot = self._queue.enter(view if caller is None else caller)
        try:
            task = self.adopt(view, content_type, Cancellation(), why)
        except BaseException:
            slot.release()
            raise
        task.slot = slot
        task.future.add_done_callback(lambda _: slot.release())
        context, came = copy_context(), time.perf_counter()  # in which is known who asks

        def begin(_: object) -> None:
            context.run(queue_wait_s.set, time.perf_counter() - came)
            self._threads.submit(context.run, task.run, work)

        slot.granted.add_done_callback(begin)
        return task

    def adopt(
        self,
        view: str,
        content_type: str,
        cancellation: Cancellation,
        why: Callable[[FramesiftError], str] = str,
    ) -> Task:
        """A task for work that runs already, elsewhere, and will `run` it.

        Args:
            view: What alone may have the result; see Caller.
            content_type: Of the result.
            cancellation: Of the work.
            why: An error's text for the caller.
        """
        task = Task(self.files.new(view, content_type), cancellation, why)
        self._tasks.add(task)
        task.future.add_done_callback(lambda _: self._tasks.discard(task))
        return task

    @property
    def unfinished(self) -> int:
        """Number of tasks that wait or run."""
        return len(self._tasks)

    def close(self, patience_s: float = 0.0) -> None:
        """Stop all that are not done after that time; they have failed."""
        wait([task.future for task in list(self._tasks)], patience_s)
        stopped = list(self._tasks)
        for task in stopped:
            task.stop()
        wait([task.future for task in stopped], _STOP_S)
        self._threads.shutdown(wait=True)


@asynccontextmanager
async def tasks_kept(app: FastAPI) -> AsyncIterator[None]:
    """Tasks for as long as the server runs."""
    app.state.tasks = Tasks(app.state.workspace.home / "tasks", app.state.statements)
    yield
    await to_thread.run_sync(app.state.tasks.close, app.state.stopping.seconds_left)


async def _tasks(request: Request) -> Tasks:
    tasks: Tasks = request.app.state.tasks
    return tasks


CurrentTasks = Annotated[Tasks, Depends(_tasks)]
"""The tasks of this server."""


async def answered(request: Request, tasks: Tasks, content_type: str, work: Work) -> Response:
    """The work's result, or after ten seconds where to ask for it.

    A client that goes away before that stops the work.
    """
    try:
        task = await _started(request, tasks, content_type, work)
    except ServerBusy as error:
        return _full(error)
    done = asyncio.wrap_future(task.future)
    handed_over = False
    try:
        async with DisconnectWatcher(request.receive) as client:
            either = {done, client.gone}
            await asyncio.wait(either, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
            handed_over = done.done() or not client.gone.done()
    finally:
        if not handed_over:
            task.abandon()
    if not done.done():
        return accepted(request, task)
    result = await to_thread.run_sync(lambda: tasks.files.result(task.id, take=True))
    return in_json(_nothing(), 500) if result is None else streamed(result)


async def scheduled(request: Request, tasks: Tasks, content_type: str, work: Work) -> Response:
    """Where to ask for the work's result, at once."""
    try:
        task = await _started(request, tasks, content_type, work)
    except ServerBusy as error:
        return _full(error)
    return accepted(request, task)


async def _started(request: Request, tasks: Tasks, content_type: str, work: Work) -> Task:
    view: str = request.state.context.caller.view
    caller, why = caller_of(request.scope), partial(error_text, request.scope)
    return await to_thread.run_sync(tasks.start, view, content_type, work, caller, why)


def accepted(request: Request, task: Task) -> Response:
    """202 with the task's address, as the product's documentation prints it."""
    answer = in_json({"status": "work scheduled"}, 202)
    answer.headers["content-type"] = "text/html; charset=utf-8"
    address = str(request.url_for("task_status", task=task.id))
    answer.raw_headers.append((b"Location", address.encode("latin-1", "replace")))
    return answer


def streamed(result: Result) -> Response:
    """A result as an answer, read while it is sent."""
    return StreamingResponse(
        _chunks(result),
        result.status,
        {"content-length": str(result.length), **_again(result.status)},
        media_type=result.content_type,
    )


def _again(status: int) -> dict[str, str]:
    """When to ask again: the result of a task is its status and its body alone."""
    return {"Retry-After": f"{StoreAway.wait_s:.0f}"} if status == 503 else {}


async def _chunks(result: Result) -> AsyncIterator[bytes]:
    with result.body as body:
        while chunk := await to_thread.run_sync(body.read, _CHUNK):
            yield chunk


def _full(error: ServerBusy) -> Response:
    REFUSED.labels("task").inc()
    answer = in_json({"reason": str(error), "status": "error"}, status_of(error))
    answer.headers.update(headers_of(error))
    return answer


def _nothing() -> dict[str, str]:
    return {"reason": "the result was lost; the server's log says more", "status": "error"}
