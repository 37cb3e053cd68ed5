"""Successful answers of Spectrum Discover's routes, for the OpenAPI document.

Their answers are texts that clients grep, and no models, so FastAPI finds neither type nor shape.
"""

import json
from typing import Any

from api.http.openapi.rows import in_rows

Responses = dict[int | str, dict[str, Any]]
"""Responses by status, the type that FastAPI's decorators take."""

EXAMPLE_ROWS = [
    {"platform": "IBM COS", "datasource": "a2d2", "filename": "camera_lidar_semantic/x.png"}
]


_KINDS = {dict: "object", list: "array", str: "string", int: "integer"}


def json_answer(example: dict[str, Any] | list[Any], status: int = 200) -> Responses:
    """An answer in JSON."""
    schema: dict[str, Any] = {"type": "object"}
    if isinstance(example, list):
        schema = {"type": "array", "items": {"type": _KINDS[type(example[0])]}}
    content = {"application/json": {"schema": schema, "example": example}}
    return {status: {"content": content}}


def text_answer(example: str, media_type: str = "text/plain", status: int = 200) -> Responses:
    """An answer in text."""
    content = {media_type: {"schema": {"type": "string"}, "example": example}}
    return {status: {"content": content}}


IN_ROWS: Responses = {200: {"content": in_rows(EXAMPLE_ROWS, "csv")}}
IN_JSON_ROWS: Responses = {
    200: {"content": {"application/json": IN_ROWS[200]["content"]["application/json"]}}
}

_TASK_BEGUN = {
    **text_answer(json.dumps({"status": "work scheduled"}), "text/html")[200],
    "headers": {
        "Location": {
            "description": "Where to ask for the result.",
            "schema": {"type": "string"},
            "example": "http://127.0.0.1:8008/db2whrest/v1/task_status/"
            "d7dfc824-ea4b-4c95-8b46-db822554a7d1",
        }
    },
}
SCHEDULED: Responses = {202: _TASK_BEGUN}
"""Responses of operations that are always tasks."""

BECOMES_A_TASK: Responses = {
    202: {"description": "It takes long: the rest is a task.", **_TASK_BEGUN}
}
"""Response of an operation that becomes a task where it takes long."""
