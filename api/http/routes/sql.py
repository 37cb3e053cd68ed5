"""/v1/sql: the rows of a statement, and what becomes of it."""

from functools import partial
from typing import Any

from fastapi import Request, Response

from api.http.dependencies import At, CurrentSession
from api.http.errors import answer_to
from api.http.negotiation import VARY, row_contents, row_format
from api.http.routing import Router
from api.http.rules import READ
from api.http.sql_response import SqlResponse
from api.schemas.statements import ExplanationAnswer, Statement, StatementAt

router = Router(prefix="/v1/sql", tags=["SQL"])

_ROWS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The rows, in the format that Accept wants; JSON where it wants none. "
        "CSV begins with a line of names. Where the answer has Framesift-Max-Rows rows there may "
        "be more.",
        "content": row_contents(
            {
                "schema": {"type": "array", "items": {"type": "object"}},
                "example": [
                    {"filename": "20180807145028_camera_frontcenter_000000091.png", "car": "10412"}
                ],
            },
            {"filename": "camera_lidar_semantic/x.png", "car": 18614},
        ),
    },
    406: {"description": "Accept names no format that the server has."},
}


@router.post(
    "",
    rule=READ.but(work="sql"),
    response_class=Response,
    responses=_ROWS,
    example={"statement": "select filename, car from metaocean_view where car > 10000"},
)
async def post_sql(request: Request, body: StatementAt, session: CurrentSession) -> Response:
    """The rows of a statement, sent while they are computed."""
    rows = session.statements.run(body.statement, at=body.at)
    answer = SqlResponse(rows, row_format(request), partial(answer_to, request.scope))
    answer.headers.update(VARY)
    return answer


@router.post(
    "/explain",
    rule=READ,
    example={"statement": "select count(*) from t_car"},
)
def post_explain(body: Statement, session: CurrentSession, at: At = None) -> ExplanationAnswer:
    """DuckDB's SQL for a statement, the tables it reads, and an estimate; it is not run."""
    return session.statements.explain(body.statement, at=at)
