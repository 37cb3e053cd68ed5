"""/db2whrest/v1: SQL over REST, as Spectrum Discover's warehouse service answers it."""

from functools import partial

from fastapi import Request, Response

from api.discover.db2whrest.tasks import CurrentTasks, Task, Tasks, accepted
from api.discover.replies import STATEMENT_BODY, accepted_format, refusal, statement_of
from api.http.dependencies import CurrentSession
from api.http.errors import error_text
from api.http.openapi.discover import BECOMES_A_TASK, IN_JSON_ROWS, IN_ROWS
from api.http.routing import Router
from api.http.rules import READ, Api
from api.http.sql_response import CONTENT_TYPES, SqlResponse
from api.services.session import Session
from catalog.errors import FramesiftError
from catalog.lake.statement_watch import Cancellation
from query.run.result_format import Format

router = Router(
    api=Api.DISCOVER,
    prefix="/db2whrest/v1",
    tags=["Spectrum Discover"],
)


@router.post(
    "/sql_query_json",
    rule=READ.but(work="sql"),
    openapi_extra=STATEMENT_BODY,
    answers=IN_JSON_ROWS | BECOMES_A_TASK,
)
async def post_sql_query_json(
    request: Request, session: CurrentSession, tasks: CurrentTasks
) -> Response:
    """Answer sql_query in JSON, whatever Accept says."""
    return await _answer(request, session, tasks, "json")


@router.get("/sql_query_json", rule=READ.but(work="sql"), answers=IN_JSON_ROWS | BECOMES_A_TASK)
async def get_sql_query_json(
    request: Request, session: CurrentSession, tasks: CurrentTasks
) -> Response:
    """Answer sql_query in JSON, whatever Accept says."""
    return await _answer(request, session, tasks, "json")


@router.post(
    "/sql_query",
    rule=READ.but(work="sql"),
    openapi_extra=STATEMENT_BODY,
    answers=IN_ROWS | BECOMES_A_TASK,
)
async def post_sql_query(
    request: Request, session: CurrentSession, tasks: CurrentTasks
) -> Response:
    """The rows of the statement in the raw body: CSV, or what Accept asks for.

    The body is never form-decoded, whatever its content type: curl -d calls it a form.
    """
    return await _answer(request, session, tasks)


@router.get("/sql_query", rule=READ.but(work="sql"), answers=IN_ROWS | BECOMES_A_TASK)
async def get_sql_query(request: Request, session: CurrentSession, tasks: CurrentTasks) -> Response:
    """The rows of the statement that the whole query string is."""
    return await _answer(request, session, tasks)


async def _answer(
    request: Request, session: Session, tasks: Tasks, requested: Format | None = None
) -> Response:
    statement, format_ = await statement_of(request), requested or accepted_format(request)
    view: str = request.state.context.caller.view

    def later(cancellation: Cancellation) -> tuple[Task, Response]:
        task = tasks.adopt(
            view, CONTENT_TYPES[format_], cancellation, partial(error_text, request.scope)
        )
        return task, accepted(request, task)

    def refused(error: FramesiftError) -> Response:
        return refusal(error, error_text(request.scope, error))

    return SqlResponse(session.statements.run(statement), format_, refused, later)
