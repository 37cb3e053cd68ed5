"""/db2whrest/v1: SQL over REST, as Spectrum Discover's warehouse service answers it."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote_plus

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from api.dependencies import CurrentWorkspace
from api.errors import status_of
from api.workspace import Workspace
from catalog.errors import FramesiftError, SqlError
from query.read_only import MAX_STATEMENT_BYTES
from query.result_format import to_csv, to_json
from query.run_sql import run_sql

router = APIRouter(prefix="/db2whrest/v1", tags=["Spectrum Discover"])

_ODBC_STATES = {"42703": "42S22", "42704": "42S02", "42601": "42000"}
"""ODBC's own SQLSTATE where the driver that the product uses reports another than Db2."""

_HINT = re.compile(r' The nearest is "[^"]*"\.')
"""What our own messages add to Db2's, which the documented body does not have."""

_LINES_PER_CHUNK = 2_000

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
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_STATEMENT_BYTES:
            break  # too long already: run_sql says so in Db2's words
    return await _answer(request, workspace, body.decode("utf-8", "replace"))


@router.get("/sql_query")
async def get_sql_query(request: Request, workspace: CurrentWorkspace) -> Response:
    """The rows of the statement that the whole query string is."""
    query: bytes = request.scope["query_string"]
    return await _answer(request, workspace, unquote_plus(query.decode("latin-1")))


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
    except FramesiftError as error:
        return Response(_reason(error), status_of(error), media_type="application/json")
    if "application/json" in request.headers.get("accept", ""):
        return Response(to_json(result.rows), media_type="application/json")
    return StreamingResponse(_chunks(to_csv(result.rows)), media_type="text/csv; charset=utf-8")


def _chunks(lines: Iterator[str]) -> Iterator[str]:
    """Many lines at once: each chunk is a message of its own on the wire."""
    while chunk := "".join(islice(lines, _LINES_PER_CHUNK)):
        yield chunk


def _reason(error: FramesiftError) -> str:
    """The documented error body: the text of the ODBC exception inside a JSON object."""
    if not isinstance(error, SqlError):
        return json.dumps({"reason": str(error), "status": "error"})
    state = _ODBC_STATES.get(error.sqlstate, error.sqlstate)
    text = _HINT.sub("", str(error))
    message = f"[{state}] [IBM][CLI Driver][DB2/LINUXX8664] {text}\n"
    return json.dumps({"reason": str((state, message)), "status": "error"})
