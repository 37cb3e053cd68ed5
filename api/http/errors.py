"""HTTP status of each error: one table, and one body (RFC 9457 problem details)."""

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from api.http.middleware.methods import allow
from api.http.routing import rule_of
from api.http.rules import Api
from api.http.wrong_request import explained
from api.server.request_id import request_id
from api.web.error_pages import for_browser
from api.workspace import Workspace
from catalog.errors import (
    AlreadyExists,
    BadFile,
    BodyTooLarge,
    CatalogBusy,
    CatalogDamaged,
    CollectionFails,
    EngineFailed,
    FramesiftError,
    InUse,
    InvalidInput,
    JobFailed,
    LoginThrottled,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    PreconditionFailed,
    ProviderFails,
    RemovalRefused,
    ServerBusy,
    SourceFails,
    SqlError,
    StagingCancelled,
    StorageError,
    StoreAway,
    TooManyJobs,
    TooManyStreams,
    UnknownName,
)

_LOG = logging.getLogger(__name__)

STATUSES: dict[type[FramesiftError], int] = {
    FramesiftError: 500,
    InvalidInput: 400,
    UnknownName: 400,
    SqlError: 400,
    NotFound: 404,
    AlreadyExists: 409,
    InUse: 409,
    PreconditionFailed: 412,
    RemovalRefused: 409,
    NotAuthenticated: 401,
    NotAllowed: 403,
    LoginThrottled: 429,
    TooManyJobs: 429,
    TooManyStreams: 429,
    ServerBusy: 503,
    BodyTooLarge: 413,
    BadFile: 422,
    CatalogBusy: 503,
    StoreAway: 503,
    CatalogDamaged: 500,
    CollectionFails: 500,
    StorageError: 507,
    SourceFails: 502,
    JobFailed: 500,
    StagingCancelled: 409,
    EngineFailed: 502,
    ProviderFails: 503,
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
    """A problem document; ``request_id`` is what the server's log knows the request by."""
    detail = detail.encode("utf-8", "replace").decode("utf-8")  # may repeat half a character
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    if id_ := request_id.get():
        body["request_id"] = id_
    return JSONResponse(body, status, headers, media_type="application/problem+json")


def headers_of(error: FramesiftError) -> dict[str, str]:
    """Headers that an error's answer has: when to ask again."""
    if isinstance(error, LoginThrottled | ServerBusy | StoreAway | ProviderFails):
        return {"Retry-After": str(max(1, round(error.wait_s)))}
    return {"Retry-After": "1"} if isinstance(error, CatalogBusy) else {}


def error_text(scope: Scope, error: FramesiftError) -> str:
    """An error's text for a request: who does not see every row learns no place of the server's."""
    context = scope.get("state", {}).get("context")
    if context is None or (context.caller is not None and context.caller.sees_all):
        return str(error)
    workspace: Workspace = scope["app"].state.workspace
    return workspace.error_text(error)


def refusal(scope: Scope, error: FramesiftError) -> Response:
    """The answer to a request that its route does not get, in the shape of the route's errors."""
    headers = headers_of(error)
    of_discover = rule_of(scope).api is Api.DISCOVER
    if isinstance(error, NotAuthenticated):
        headers["WWW-Authenticate"] = "Basic" if of_discover else "Bearer"
    status = status_of(error)
    if of_discover:
        return _DiscoverJson(
            {"reason": error_text(scope, error), "status": "error"}, status, headers
        )
    detail = error_text(scope, error)
    return for_browser(Request(scope), problem(status, type(error).__name__, detail, headers))


class _DiscoverJson(JSONResponse):
    """With a blank after the colon, as clients of the product grep it."""

    def render(self, content: object) -> bytes:
        return json.dumps(content).encode()


def unexpected(scope: Scope, error: Exception) -> Response:
    """The answer to a request that met an error of ours."""
    # The traceback is the server's log's: the client has no use for it.
    detail = f"unexpected {type(error).__name__}; the server's log says more"
    return for_browser(Request(scope), problem(500, "InternalError", detail))


def answer_to(scope: Scope, error: FramesiftError) -> JSONResponse:
    """The answer of our own routes to a request that failed."""
    more: dict[str, object] = {}
    if isinstance(error, SqlError):
        more = {"sqlcode": error.sqlcode, "sqlstate": error.sqlstate}
    if isinstance(error, UnknownName):
        more = {"nearest": error.nearest}
    status, headers = status_of(error), headers_of(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and not headers:
        _LOG.error("request failed", exc_info=error)
    elif isinstance(error, StoreAway):
        _LOG.warning("request failed: %s", error)
    return problem(status, type(error).__name__, error_text(scope, error), headers, **more)


def add_handlers(app: FastAPI) -> None:
    """Turn every error of a route into a problem document."""

    @app.exception_handler(FramesiftError)
    async def _ours(request: Request, error: FramesiftError) -> Response:
        return for_browser(request, answer_to(request.scope, error))

    @app.exception_handler(RequestValidationError)
    async def _request(request: Request, error: RequestValidationError) -> Response:
        if (wrong := _wrong_body(request, error)) is not None:
            return wrong
        why = explained(request, error.errors()[0])
        return for_browser(request, problem(422, "InvalidRequest", why))

    @app.exception_handler(UnicodeEncodeError)
    async def _half_a_character(request: Request, _error: UnicodeEncodeError) -> Response:
        # JSON can say "\\ud83d", which no file name and no database holds.
        detail = "a text holds half of a character (a lone surrogate); send whole ones"
        return for_browser(request, problem(422, "InvalidRequest", detail))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        if isinstance(error.__cause__, ClientDisconnect):
            raise error.__cause__  # the framework takes it for a body that cannot be parsed
        headers = error.headers
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers = {"Allow": allow(request.scope)}  # of all the path's routes, not of one
        if rule_of(request.scope).api is Api.DISCOVER:
            body = {"reason": str(error.detail), "status": "error"}
            return _DiscoverJson(body, error.status_code, headers)
        if error.detail == _UNREAD:
            return problem(400, "InvalidInput", "body: no JSON: it is nested too deep, or no UTF-8")
        title = HTTPStatus(error.status_code).phrase
        detail = _message_of(error, request, headers or {})
        return for_browser(request, problem(error.status_code, title, detail, headers))


_UNREAD = "There was an error parsing the body"
"""The framework's, of JSON that ends in another error than a wrong character."""


def _message_of(error: HTTPException, request: Request, headers: Mapping[str, str]) -> str:
    """The message of an error, also where it is the framework's and only its name."""
    path = request.url.path[:200]
    if error.detail != HTTPStatus(error.status_code).phrase:
        return str(error.detail)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return f"{path}: this server has no such path; /docs and /openapi.json list those it has"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return f"{request.method[:20]}: {path} takes {headers['Allow']} only"
    return str(error.detail)


def _wrong_body(request: Request, error: RequestValidationError) -> JSONResponse | None:
    """The answer to a body that is none of JSON; None where something else is wrong."""
    fault = error.errors()[0]
    if fault["type"] == "json_invalid":
        position, why = fault["loc"][1], fault["ctx"]["error"]
        return problem(400, "InvalidInput", f"body: no JSON from character {position} on: {why}")
    kind = request.headers.get("content-type", "")
    is_read = isinstance(error.body, bytes)  # as it came, and not as what JSON stands for
    if fault["loc"][0] != "body" or not is_read:
        return None
    return problem(
        415, "Unsupported Media Type",
        f"Content-Type '{kind[:80]}': expected application/json, and a body that is JSON",
        {"Accept": "application/json"},
    )  # fmt: skip
