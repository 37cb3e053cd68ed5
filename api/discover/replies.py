"""Bodies, errors and JSON that Spectrum Discover's services have in common."""

import json
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import unquote_plus

from fastapi import Request, Response

from api.http.errors import error_text, headers_of, status_of
from api.http.routing import Route, Router
from api.http.rules import Api
from catalog.errors import FramesiftError, SqlError
from query.db2.read_only import MAX_STATEMENT_BYTES
from query.run.result_format import MEDIA_TYPES, Format

_ODBC_STATES = {"42703": "42S22", "42704": "42S02", "42601": "42000"}
"""ODBC's own SQLSTATE where the driver that the product uses reports another than Db2."""

_HINT = re.compile(r' The nearest is "[^"]*"\.')
"""Part of our messages that Db2's do not have, and the documented body neither."""


STATEMENT_BODY: dict[str, Any] = {
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
"""A raw body for the OpenAPI document."""


class DiscoverRoute(Route):
    """A route whose errors are answered in the documented form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler, with its errors turned into answers."""
        handler = super().get_route_handler()

        async def answering(request: Request) -> Response:
            try:
                return await handler(request)
            except FramesiftError as error:
                return refusal(error, error_text(request.scope, error))

        return answering


def discover_router(service: str, examples: Mapping[str, Any] | None = None) -> Router:
    """A router of one of the product's services, such as "db2whrest"."""
    return Router(
        api=Api.DISCOVER,
        examples=examples,
        prefix=f"/{service}/v1",
        tags=["Spectrum Discover"],
        route_class=DiscoverRoute,
    )


async def body_of(request: Request, most: int) -> bytes:
    """The raw body, whatever its content type: curl -d calls everything a form.

    Where it has more than ``most`` bytes, so many of them and a few more.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            break
    return bytes(body)


async def statement_of(request: Request) -> str:
    """The statement in the body, or of GET the one that the whole query string is.

    One that is too long is cut after the limit: its check says so in Db2's words.
    """
    if request.method == "GET":
        query: bytes = request.scope["query_string"]
        return unquote_plus(query.decode("latin-1"))
    return (await body_of(request, MAX_STATEMENT_BYTES)).decode("utf-8", "replace")


def accepted_format(request: Request) -> Format:
    """The first format that Accept names; CSV where it names none."""
    accept = request.headers.get("accept", "")
    kinds = (kind.partition(";")[0].strip().lower() for kind in accept.split(","))
    return next((MEDIA_TYPES[kind] for kind in kinds if kind in MEDIA_TYPES), "csv")


def in_json(value: Any, status: int = 200) -> Response:
    """An answer with a blank after each colon and comma, as clients of the product grep it."""
    return Response(json.dumps(value), status, media_type="application/json")


def in_text(text: str, status: int = 200) -> Response:
    """An answer that clients of the product compare letter by letter."""
    return Response(text, status, media_type="text/plain")


def product_time(time: str) -> str:
    """2020-03-27T11:12:10Z as the product writes it: 2020-03-27_11:12:10, UTC."""
    return time.replace("T", "_").removesuffix("Z")


def refusal(error: FramesiftError, why: str | None = None) -> Response:
    """The documented answer to a request that failed, with its text unless ``why`` is another."""
    headers = headers_of(error)
    return Response(reason(error, why), status_of(error), headers, media_type="application/json")


def reason(error: FramesiftError, why: str | None = None) -> str:
    """The documented error body: the text of the ODBC exception inside a JSON object."""
    if not isinstance(error, SqlError):
        return failure(str(error) if why is None else why)
    state = _ODBC_STATES.get(error.sqlstate, error.sqlstate)
    text = _HINT.sub("", str(error))
    message = f"[{state}] [IBM][CLI Driver][DB2/LINUXX8664] {text}\n"
    return failure(str((state, message)))


def failure(why: str) -> str:
    """The documented error body."""
    return json.dumps({"reason": why, "status": "error"})
