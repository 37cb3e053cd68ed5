"""/v1/sql: the rows of a statement, and what becomes of it."""

from dataclasses import asdict
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import At, CurrentWorkspace
from api.http.errors import answer_to
from api.http.negotiation import VARY, row_contents, row_format
from api.http.routing import Router
from api.http.rules import READ
from api.http.sql_response import SqlResponse
from api.schemas.computed_answers import ExplanationAnswer
from catalog.text.bounded import Sql
from query.run.explain import explain

router = Router(prefix="/v1/sql", tags=["SQL"])

_EXAMPLE = "select filename, car from metaocean_view where car > 10000"


class Statement(BaseModel):
    """A statement in Db2's SQL."""

    model_config = ConfigDict(extra="forbid")

    statement: Sql = Field(description="One SELECT.", examples=[_EXAMPLE])


class StatementAt(Statement):
    """A statement, and the catalog's state that it asks."""

    at: int | None = Field(
        default=None, ge=1, lt=2**63, description="Number of the catalog snapshot; else the newest."
    )


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
    406: {"description": "Accept wants no format that there is."},
}


@router.post(
    "",
    rule=READ.but(work="sql"),
    response_class=Response,
    responses=_ROWS,
    example={"statement": "select filename, car from metaocean_view where car > 10000"},
)
async def post_sql(request: Request, body: StatementAt, workspace: CurrentWorkspace) -> Response:
    """The rows of a statement, sent while they are computed."""
    answer = SqlResponse(workspace, body.statement, row_format(request), answer_to, at=body.at)
    answer.headers.update(VARY)
    return answer


@router.post(
    "/explain",
    rule=READ,
    response_model=None,
    responses={200: {"model": ExplanationAnswer}},
    example={"statement": "select count(*) from t_car"},
)
async def post_explain(
    body: Statement, workspace: CurrentWorkspace, at: At = None
) -> dict[str, Any]:
    """DuckDB's SQL for a statement, the tables it reads, and an estimate; it is not run."""
    found = await run_in_threadpool(
        explain, workspace.catalog, body.statement, at, workspace.settings.query_timeout_s
    )
    return asdict(found)
