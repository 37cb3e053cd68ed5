"""/db2whrest/v1/sql_query_async and task_status: statements that nobody waits for."""

import time

from fastapi import Request, Response

from api.discover.db2whrest.task_files import Output, Result, is_task
from api.discover.db2whrest.tasks import CurrentTasks, Tasks, scheduled, streamed
from api.discover.replies import (
    STATEMENT_BODY,
    accepted_format,
    discover_router,
    in_json,
    statement_of,
)
from api.http.dependencies import CurrentCaller, CurrentSession
from api.http.openapi.discover import EXAMPLE_ROWS, IN_ROWS, SCHEDULED, Responses, json_answer
from api.http.rules import READ
from api.http.sql_response import CONTENT_TYPES
from api.server.metrics import observe_query
from api.services.session import Session
from catalog.lake.statement_watch import Cancellation
from query.run.result_format import Format, encoded

router = discover_router("db2whrest")

_RUNNING = {
    "description": "The task runs: ask again.",
    "content": json_answer({"status": "running"})[200]["content"],
}
_TASK: Responses = {
    # What the task's request would have been answered: rows, a search's reply, a report.
    200: {"content": {**IN_ROWS[200]["content"], "application/json": {"example": EXAMPLE_ROWS}}},
    303: _RUNNING,
}


_STATEMENT = {"requestBody": STATEMENT_BODY["requestBody"]}


@router.post(
    "/sql_query_async",
    rule=READ.but(work="sql"),
    status_code=202,
    openapi_extra=_STATEMENT,
    answers=SCHEDULED,
)
async def post_sql_query_async(
    request: Request, session: CurrentSession, tasks: CurrentTasks
) -> Response:
    """Where to ask for the rows of the statement in the raw body."""
    return await _scheduled(request, session, tasks)


@router.get("/sql_query_async", rule=READ.but(work="sql"), status_code=202, answers=SCHEDULED)
async def get_sql_query_async(
    request: Request, session: CurrentSession, tasks: CurrentTasks
) -> Response:
    """Where to ask for the rows of the statement that the whole query string is."""
    return await _scheduled(request, session, tasks)


@router.get("/task_status/{task}", rule=READ, answers=_TASK)
def task_status(task: str, tasks: CurrentTasks, caller: CurrentCaller) -> Response:
    """303 while the task runs, then what its request would have been answered."""
    outcome = _look(task, tasks, caller.view)
    return streamed(outcome) if isinstance(outcome, Result) else outcome


@router.get(
    "/task_status/{task}/peek",
    rule=READ,
    answers=json_answer({"status": "complete"}) | {303: _RUNNING},
)
def peek(task: str, tasks: CurrentTasks, caller: CurrentCaller) -> Response:
    """The status alone."""
    outcome = _look(task, tasks, caller.view)
    if not isinstance(outcome, Result):
        return outcome
    outcome.body.close()
    return in_json({"status": "complete" if outcome.status < 400 else "failed"}, outcome.status)


def _look(task: str, tasks: Tasks, view: str) -> Result | Response:
    if is_task(task) and tasks.files.view(task) == view:
        if tasks.files.running(task):
            # No Location: clients would follow it, at once and again and again.
            return in_json({"status": "running"}, 303)
        result = tasks.files.result(task)
        if result is not None:
            return result
    why = f"there is no task {task[:40]}, or its result has expired"
    return in_json({"reason": why, "status": "error"}, 404)


async def _scheduled(request: Request, session: Session, tasks: Tasks) -> Response:
    statement, format_ = await statement_of(request), accepted_format(request)

    def work(output: Output, cancellation: Cancellation) -> None:
        _write(session, statement, format_, output, cancellation)

    return await scheduled(request, tasks, CONTENT_TYPES[format_], work)


def _write(
    session: Session,
    statement: str,
    format_: Format,
    output: Output,
    cancellation: Cancellation,
) -> None:
    began = time.perf_counter()
    with session.statements.run(statement).stream(cancellation) as stream:
        for chunk in encoded(format_, stream.schema, stream.batches):
            output.write(chunk)
    observe_query("sql", began)
