"""The OpenAPI document: what FastAPI finds in the routes, and what holds for all of them.

Errors, credentials and conditions are of the whole server and not of a route, so they are written
into the document here, for routes that come later, too.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field

from api.http.openapi.assistants import OPERATION, PATH
from api.http.openapi.examples import fill_answers, fill_parameters
from api.http.routing import AsgiRoute, Route
from api.http.rules import Api, Rule


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(description="Kind of the error.", examples=["NotFound"])
    status: int = Field(examples=[404])
    detail: str = Field(
        description="What was given, what was expected, what to do.",
        examples=["no dataset named 'bikes': known: cars"],
    )
    request_id: str | None = Field(
        default=None, description="What the server's log knows the request by.", examples=["7f3a"]
    )
    nearest: list[str] | None = Field(
        default=None, description="Names that are like an unknown one.", examples=[["bicycle"]]
    )
    sqlcode: int | None = Field(default=None, description="Db2's, of a statement.", examples=[-206])
    sqlstate: str | None = Field(default=None, description="Db2's.", examples=["42703"])


class DiscoverProblem(BaseModel):
    """An error as Spectrum Discover's services answer it."""

    reason: str = Field(examples=["('42S22', '[42S22] [IBM][CLI Driver][DB2/LINUXX8664] ...')"])
    status: str = Field(examples=["error"])


_ERRORS = {
    "400": "What is asked cannot be done so: a name, value, cursor or statement.",
    "401": "Nobody who may ask: the token is missing, wrong, expired or revoked.",
    "403": "Who asks may not do this, or not see it.",
    "404": "There is no such thing.",
    "422": "A parameter or the body is not of its schema.",
    "503": "The catalog is being written, or the server has too much to do: Retry-After says when.",
    "default": "Another error.",
}
_OF_CHANGES = {
    "409": "There is one of that name, or the first request with this key is under way.",
    "413": "The body is too long.",
}
_OF_BODIES = {"415": "The body is of another type than those that are listed."}
_OF_CONDITIONS = {"412": "If-Match names another version than there is now."}

_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Of the client's making, such as a UUID: who repeats the request with it gets "
    "the first answer again, for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    "example": "7f9c24e8-3b12-4fef-91e0-8a5d2d0f0b4a",
}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "ETag of the state that the client has.",
    "schema": {"type": "string"},
    "example": '"5d41402abc4b2a76b9719d911017c592"',
}
_ETAG = {"ETag": {"description": "Of this state.", "schema": {"type": "string"}}}


def describe(app: FastAPI) -> None:
    """Have an application answer this document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            openapi = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
            )
            routes = {
                (route.path_format, method.lower()): route
                for route in app.router.routes
                if isinstance(route, Route | AsgiRoute)
                for method in route.methods or ()
            }
            if (PATH, "post") in routes:
                openapi["paths"][PATH] = {"post": deepcopy(OPERATION)}
            _complete(openapi, routes)
            app.openapi_schema = openapi
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # as FastAPI documents it


def _complete(
    document: dict[str, Any], routes: Mapping[tuple[str, str], Route | AsgiRoute]
) -> None:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for model in (Problem, DiscoverProblem):
        schemas[model.__name__] = model.model_json_schema()
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A token."},
        "basic": {"type": "http", "scheme": "basic", "description": "Name and password."},
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            route = routes[path, method]
            _complete_operation(method, operation, route)
            fill_parameters(operation, getattr(route, "examples", {}))
            fill_answers(operation, schemas)
        if route.rule.api is not Api.DISCOVER:
            operations |= _head(operations.get("get"))


def _head(get: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """HEAD of a path by its GET, as middleware.methods answers it; empty where it does not."""
    if get is None or "text/event-stream" in get["responses"].get("200", {}).get("content", {}):
        return {}
    answers = {
        status: {name: value for name, value in answer.items() if name != "content"}
        for status, answer in get["responses"].items()
        if status in ("200", "204", "304")
    }
    parts = ("Range", "If-Range")
    parameters = [each for each in get.get("parameters", ()) if each["name"] not in parts]
    return {
        "head": {
            **get,
            "operationId": f"head_{get['operationId']}",
            "description": "What GET answers, without the body.",
            "parameters": parameters,
            "responses": {**answers, "default": {"description": "What GET answers then."}},
        }
    }


def _complete_operation(method: str, operation: dict[str, Any], route: Route | AsgiRoute) -> None:
    rule = route.rule
    of_discover = rule.api is Api.DISCOVER
    operation["security"] = _security(rule)
    answers = operation["responses"]
    for status, own in getattr(route, "answers", {}).items():
        answers[str(status)] = {**answers.get(str(status), {}), **deepcopy(own)}
    if getattr(route, "refuses", False):
        for status in [status for status in answers if status[0] == "2"]:
            del answers[status]
    content = _content("DiscoverProblem" if of_discover else "Problem")
    errors = _errors(route, method) | (_OF_BODIES if "requestBody" in operation else {})
    for status, description in errors.items():
        answers.setdefault(status, {"description": description})
    answers["431"] = {
        "description": "Path, query and headers together are too long.",
        "content": _content("Problem"),  # nobody read them, so of whose route it is is not known
    }
    # Parameters are checked before Discover's own routes are asked.
    answers["422"] = {"description": _ERRORS["422"], "content": _content("Problem")}
    for status, answer in answers.items():
        if status[0] in "45d":
            answer.setdefault("content", content)
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    example = getattr(route, "example", None)
    if example is not None:
        body.setdefault("example", example)
    if rule.api is Api.V1:
        _conditions(rule, method, operation)


def _errors(route: Route | AsgiRoute, method: str) -> dict[str, str]:
    """Errors of an operation, with what they mean."""
    rule = route.rule
    if rule.permission is None and rule.api is not Api.DISCOVER:
        return {"default": _ERRORS["default"]}
    errors = dict(_ERRORS)
    if method != "get":
        errors |= _OF_CHANGES
    if getattr(route, "takes_if_match", False):
        errors |= _OF_CONDITIONS
    return errors


def _conditions(rule: Rule, method: str, operation: dict[str, Any]) -> None:
    parameters = operation.setdefault("parameters", [])
    if rule.idempotency_key == "takes":
        parameters.append(_KEY)
    answer = operation["responses"].get("200", {})
    if method == "get" and "application/json" in answer.get("content", {}):
        parameters.append(_IF_NONE_MATCH)
        answer["headers"] = answer.get("headers", {}) | _ETAG
        operation["responses"].setdefault("304", {"description": "The client has this state."})


def _security(rule: Rule) -> list[dict[str, list[str]]]:
    bearer: list[dict[str, list[str]]] = [{"bearer": []}] if rule.permission is not None else []
    return [*bearer, {"basic": []}] if rule.api is Api.DISCOVER else bearer


def _content(schema: str) -> dict[str, Any]:
    kind = "application/json" if schema == "DiscoverProblem" else "application/problem+json"
    return {kind: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
