"""JSON bodies of Spectrum Discover's services: read raw, whatever their content type says."""

import json
from typing import Any, TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ValidationError

from api.http.middleware.json_shape import TooMuch, read_json
from catalog.errors import InvalidInput

Kind = TypeVar("Kind", bound=BaseModel)


def body_schema(kind: type[BaseModel], example: dict[str, Any]) -> dict[str, Any]:
    """The description of a body that is read raw, for the OpenAPI document."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    parts = schema.pop("$defs", {})
    text = json.dumps(schema)
    for name, definition in parts.items():  # one level deep: written out where they are used
        text = text.replace(
            json.dumps({"$ref": f"#/components/schemas/{name}"}), json.dumps(definition)
        )
    content = {"application/json": {"schema": json.loads(text), "example": example}}
    return {"requestBody": {"required": True, "content": content}}


async def body_as(kind: type[Kind], request: Request) -> Kind:
    """The JSON object in a request's body."""
    return read_as(kind, await json_of(request))


async def json_of(request: Request) -> dict[str, Any]:
    """The JSON object in the body.

    Raises:
        InvalidInput: There is none, or it holds too much.
    """
    try:
        document = await read_json(await request.body())
        # Half of a character cannot be kept.
        await run_in_threadpool(lambda: json.dumps(document, ensure_ascii=False).encode())
    except TooMuch as error:
        raise InvalidInput(f"the body {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the body is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidInput(f"the body is a JSON {type(document).__name__}; expected an object")
    return document


def read_as(kind: type[Kind], document: dict[str, Any]) -> Kind:
    """A body's object.

    Raises:
        InvalidInput: It is no such.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(key)[:80] for key in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise InvalidInput(f"{path}: {message}; given: {str(first['input'])[:80]}") from error
