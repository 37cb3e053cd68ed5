"""/db2whrest/v1: SQL over REST, as Spectrum Discover's warehouse service answers it."""

import json
from urllib.parse import unquote_plus

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from api.dependencies import CurrentWorkspace
from api.workspace import Workspace
from catalog.errors import SqlError
from query.result_format import to_csv, to_json
from query.run_sql import run_sql

router = APIRouter(prefix="/db2whrest/v1", tags=["Spectrum Discover"])

_ODBC_STATES = {"42703": "42S22", "42704": "42S02", "42601": "42000"}
"""ODBC's own SQLSTATE where the driver that the product uses reports another than Db2."""

_STATEMENT_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "text/plain": {
                "schema": {"type": "string"},
                "example": "select platform,datasource,filename from metaocean",
            }
        },
    }
}


@router.post("/sql_query", openapi_extra=_STATEMENT_BODY)
async def post_sql_query(request: Request, workspace: CurrentWorkspace) -> Response:
    """The rows of the statement in the raw body: CSV, or JSON when asked for by Accept.

    The body is never form-decoded, whatever its content type: curl -d calls it a form.
    """
    return await _answer(request, workspace, (await request.body()).decode("utf-8", "replace"))


@router.get("/sql_query")
async def get_sql_query(request: Request, workspace: CurrentWorkspace) -> Response:
    """The rows of the statement that the whole query string is."""
    return await _answer(request, workspace, unquote_plus(request.url.query))


async def _answer(request: Request, workspace: Workspace, statement: str) -> Response:
    settings = workspace.settings
    try:
        result = await run_in_threadpool(
            run_sql,
            workspace.catalog,
            statement,
            max_rows=settings.query_max_rows,
            timeout_s=settings.query_timeout_s,
        )
    except SqlError as error:
        return Response(_reason(error), 400, media_type="application/json")
    if "application/json" in request.headers.get("accept", ""):
        return Response(to_json(result.rows), media_type="application/json")
    return StreamingResponse(to_csv(result.rows), media_type="text/csv; charset=utf-8")


def _reason(error: SqlError) -> str:
    """The documented error body: the text of the ODBC exception inside a JSON object."""
    state = _ODBC_STATES.get(error.sqlstate, error.sqlstate)
    message = f"[{state}] [IBM][CLI Driver][DB2/LINUXX8664] {error}\n"
    return json.dumps({"reason": str((state, message)), "status": "error"})
