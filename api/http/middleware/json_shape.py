"""Limits how many fields, elements and levels a JSON body has, before a schema checks it.

A schema lists each unknown field of an object, which costs a thousand times as much as to accept
one. To parse a megabyte of JSON takes 10 ms, so a thread parses long bodies.
"""

import json
from typing import Any

from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from api.http.errors import problem
from api.http.middleware.read_again import read_again, whole_body
from api.http.routing import rule_of
from api.http.rules import Api
from catalog.text.bounded import MOST_MANY

_MOST_FIELDS = 5_000
_MOST_OBJECTS = 10_000
_MOST_DEEP = 100
_LONG = 16 << 10
"""Bytes from which on a thread parses a body."""


class TooMuch(ValueError):
    """A JSON document has more fields, elements or levels than any request needs."""


async def read_json(body: bytes) -> Any:
    """The document that a body holds."""
    return await run_in_threadpool(_read, body) if len(body) > _LONG else _read(body)


def _read(body: bytes) -> Any:
    document = json.loads(body)
    check_shape(document)
    return document


def check_shape(document: Any) -> None:
    """Check that a document has no more fields, elements and levels than a request may need.

    Raises:
        TooMuch: It has more.
    """
    level, depth, objects = [document], 0, 0
    while level:
        depth += 1
        if depth > _MOST_DEEP:
            raise TooMuch(f"is nested more than {_MOST_DEEP} deep")
        below_it: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                objects += 1
                _check(len(node), _MOST_FIELDS, "fields in one object")
                below_it += node.values()
            elif isinstance(node, list):
                _check(len(node), MOST_MANY, "elements in one list")
                below_it += node
        _check(objects, _MOST_OBJECTS, "objects")
        level = [node for node in below_it if isinstance(node, dict | list)]


def _check(number: int, most: int, what: str) -> None:
    if number > most:
        raise TooMuch(f"holds {number:,} {what}, expected at most {most:,}; send less")


class JsonShape:
    """The middleware: it answers 422 to a JSON body with too many fields, elements or levels.

    It passes files, and requests of Spectrum Discover's routes, which read their bodies themselves.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if not _has_json(scope):
            await self._app(scope, receive, send)
            return
        try:
            body = await whole_body(receive)
            if body is None:
                return  # the client left: what it sent is no request
            await _look_at(body)
        except HTTPException as error:  # it is too long
            why = str(error.detail)
            await problem(error.status_code, "BodyTooLarge", why)(scope, receive, send)
            return
        except TooMuch as error:
            await problem(422, "InvalidRequest", f"body: {error}")(scope, receive, send)
            return
        await self._app(scope, read_again(body, receive), send)


async def _look_at(body: bytes) -> None:
    """Check a body; one that is no JSON passes: its route answers with the error."""
    try:
        await read_json(body)
    except TooMuch:
        raise
    except (ValueError, RecursionError):
        return


def _has_json(scope: Scope) -> bool:
    if scope["type"] != "http":
        return False
    rule = rule_of(scope)
    if rule.api is Api.DISCOVER or rule.body != "json":
        return False
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    return kind.startswith("application/") and kind.endswith(("/json", "+json"))
