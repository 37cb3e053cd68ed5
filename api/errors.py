"""Which error is which HTTP status: one table, and one body (RFC 9457 problem details)."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from catalog.errors import (
    AlreadyExists,
    BadFile,
    CatalogBusy,
    CatalogDamaged,
    EngineFailed,
    FramesiftError,
    InvalidInput,
    JobFailed,
    LoginThrottled,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    SourceFails,
    SqlError,
    StorageError,
    UnknownName,
)

STATUSES: dict[type[FramesiftError], int] = {
    FramesiftError: 500,
    InvalidInput: 400,
    UnknownName: 400,
    SqlError: 400,
    NotFound: 404,
    AlreadyExists: 409,
    NotAuthenticated: 401,
    NotAllowed: 403,
    LoginThrottled: 429,
    BadFile: 422,
    CatalogBusy: 503,
    CatalogDamaged: 500,
    StorageError: 507,
    SourceFails: 502,
    JobFailed: 500,
    EngineFailed: 502,
}
"""Found along an error class's MRO, so that a subclass needs no entry of its own."""


def status_of(error: FramesiftError) -> int:
    """The HTTP status of an error."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def problem(
    status: int,
    title: str,
    detail: str,
    headers: Mapping[str, str] | None = None,
    **more: object,
) -> JSONResponse:
    """A problem document."""
    detail = detail.encode("utf-8", "replace").decode("utf-8")  # may repeat half a character
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return JSONResponse(body, status, headers, media_type="application/problem+json")


def add_handlers(app: FastAPI) -> None:
    """Turn every error of a route into a problem document."""

    @app.exception_handler(FramesiftError)
    async def _ours(_request: Request, error: FramesiftError) -> JSONResponse:
        more: dict[str, object] = {}
        if isinstance(error, SqlError):
            more = {"sqlcode": error.sqlcode, "sqlstate": error.sqlstate}
        if isinstance(error, UnknownName):
            more = {"nearest": error.nearest}
        return problem(status_of(error), type(error).__name__, str(error), None, **more)

    @app.exception_handler(RequestValidationError)
    async def _request(_request: Request, error: RequestValidationError) -> JSONResponse:
        found = error.errors()[0]
        place = ".".join(str(part) for part in found["loc"])
        message = str(found["msg"]).removeprefix("Value error, ")
        return problem(422, "InvalidRequest", f"{place}: {message}")

    @app.exception_handler(HTTPException)
    async def _http(_request: Request, error: HTTPException) -> JSONResponse:
        title = HTTPStatus(error.status_code).phrase
        return problem(error.status_code, title, str(error.detail), error.headers)

    @app.exception_handler(Exception)
    async def _unexpected(_request: Request, error: Exception) -> JSONResponse:
        # The traceback is the server's log's: the client has no use for it.
        detail = f"unexpected {type(error).__name__}; the server's log says more"
        return problem(500, "InternalError", detail)
