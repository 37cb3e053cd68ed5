"""/v1/sql: the rows of a statement, and what becomes of it."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.dependencies import At, CurrentWorkspace
from api.errors import answer_to
from api.sql_response import SqlResponse
from query.explain import explain
from query.result_format import MEDIA_TYPES, Format

router = APIRouter(prefix="/v1/sql", tags=["SQL"])

_EXAMPLE = "select filename, car from metaocean_view where car > 10000"


class Statement(BaseModel):
    """A statement in Db2's SQL."""

    model_config = ConfigDict(extra="forbid")

    statement: str = Field(description="One SELECT.", examples=[_EXAMPLE])


class StatementAt(Statement):
    """A statement, and the catalog's state that it asks."""

    at: int | None = Field(
        default=None, ge=1, lt=2**63, description="Number of the catalog snapshot; else the newest."
    )


_ROWS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The rows, in the first format that Accept names; JSON where it names none. "
        "CSV begins with a line of names. Where the answer has Framesift-Max-Rows rows there may "
        "be more.",
        "content": {
            kind: {"schema": {"type": "array", "items": {"type": "object"}}}
            if kind == "application/json"
            else {"schema": {"type": "string", "format": "binary"}}
            for kind in MEDIA_TYPES
        },
    },
    406: {"description": "Accept names no format that there is."},
}


@router.post("", response_class=Response, responses=_ROWS)
async def post_sql(request: Request, body: StatementAt, workspace: CurrentWorkspace) -> Response:
    """The rows of a statement, sent while they are computed."""
    format_ = _accepted(request)
    return SqlResponse(workspace, body.statement, format_, answer_to, at=body.at)


@router.post("/explain")
async def post_explain(
    body: Statement, workspace: CurrentWorkspace, at: At = None
) -> dict[str, Any]:
    """DuckDB's SQL for a statement, the tables it reads, and an estimate; it is not run."""
    found = await run_in_threadpool(
        explain, workspace.catalog, body.statement, at, workspace.settings.query_timeout_s
    )
    return asdict(found)


def _accepted(request: Request) -> Format:
    """The first format that Accept names.

    Raises:
        HTTPException: 406, it names others only.
    """
    accept = request.headers.get("accept", "") or "*/*"
    wanted = [kind.partition(";")[0].strip().lower() for kind in accept.split(",")]
    for kind in wanted:
        if kind in MEDIA_TYPES:
            # Clients of Spectrum Discover want no names, and others cannot do without.
            return "csv-named" if MEDIA_TYPES[kind] == "csv" else MEDIA_TYPES[kind]
    if {"*/*", "application/*"} & set(wanted):
        return "json"
    raise HTTPException(406, f"Accept: {accept[:200]}; expected one of {', '.join(MEDIA_TYPES)}")
