"""Examples in the OpenAPI document: of parameters by their names, of answers by their schemas."""

from collections.abc import Mapping
from typing import Any

_ETAG = '"5d41402abc4b2a76b9719d911017c592"'

_BY_NAME: Mapping[str, Any] = {
    "action_id": "DEEPINSPECT",
    "application": "image",
    "at": 3,
    "before": 42,
    "bins": 20,
    "bucket": "SizeRange",
    "cluster": "local",
    "command": "train-0",
    "connection": "nfs1",
    "cursor": "WyJ0YWdzIiwgImJpY3ljbGUiXQ",
    "dataset": "bikes@1",
    "datasource": "a2d2",
    "family": "weather",
    "height": 302,
    "key_column": "filename",
    "log": ["car"],
    "last-event-id": "33619660e8dc6c05",
    "number": 3,
    "outcome": "403",
    "policy": "pol2",
    "prefix": "map_",
    "quality": 85,
    "regex": "digits",
    "report": "8a8cd99b-b72c-4297-8d16-7dc2746f76fc",
    "source": "a2d2",
    "split": "train",
    "table": "duplicates",
    "task": "d7dfc824-ea4b-4c95-8b46-db822554a7d1",
    "top": 20,
    "user": "anna",
    "who": "anna",
    "width": 480,
    "zero": ["car"],
}
"""Examples of parameters that declare none."""

_PARAMETERS = [
    {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string"},
        "example": example,
    }
    for name, description, example in (
        ("Range", "One range of bytes; several give everything.", "bytes=0-1023"),
        ("If-Range", "ETag of the picture that the range is of; else everything.", _ETAG),
        ("If-None-Match", "ETag of the picture that the client has.", _ETAG),
    )
]
OF_PICTURES: dict[str, Any] = {"parameters": _PARAMETERS}
"""Headers that a picture can be asked with."""

QUESTION = {"ranges": [{"tag": "bicycle", "lowest": 5000}], "cameras": ["front_center"]}
"""A question that could be posted."""

EXAMPLE_FKEY = "local:a2d2:camera_lidar_semantic/scene/camera/cam_front_center/x.png"
EXAMPLE_FRAME = {
    "fkey": EXAMPLE_FKEY,
    "scene": "20260311_130314",
    "camera": "front_center",
    "frame_number": 120,
    "image_width": 1920,
    "image_height": 1208,
}


_ANY = {"string": "", "integer": 1, "number": 0.5, "boolean": False, "object": {}}


def fill_parameters(operation: dict[str, Any], examples: Mapping[str, Any]) -> None:
    """Give every parameter an example that neither has one nor a default that says something.

    Args:
        operation: As the document has it.
        examples: Of the route's own, by the parameter's name.
    """
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        has_example = (
            {"example", "examples"} & parameter.keys()
            or {"examples", "enum"} & schema.keys()
            or schema.get("default") not in (None, "", [])
        )
        name = parameter["name"]
        example = examples.get(name) or _BY_NAME.get(name) or _first_of_parts(schema)
        if not has_example and example is not None:
            parameter["example"] = example


def _first_of_parts(schema: Mapping[str, Any]) -> Any:
    """The first value of a list of values that is one of several schemas."""
    lists = [inner["enum"] for inner in schema.get("anyOf", ()) if "enum" in inner]
    return lists[0][0] if lists else None


def fill_answers(operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    """Give every JSON answer that went well an example, made of those of its fields."""
    for status, answer in operation["responses"].items():
        content = answer.get("content", {}).get("application/json")
        if status[0] == "2" and content and "$ref" in content.get("schema", {}):
            content.setdefault("example", example_of(content["schema"], schemas))


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """A value of a schema: its own example, or one of its parts'.

    Args:
        schema: As the document has it.
        schemas: Those that references name.
    """
    own = _own(schema)
    if own is not _NONE:
        return own
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return example_of(schema[key][0], schemas)
    if "properties" in schema:
        return {name: example_of(inner, schemas) for name, inner in schema["properties"].items()}
    parts = schema.get("prefixItems", [schema["items"]] if schema.get("items") else [])
    if schema.get("type") == "array":
        return [example_of(inner, schemas) for inner in parts]
    return _ANY.get(schema.get("type", "null"))


_NONE = object()


def _own(schema: Mapping[str, Any]) -> Any:
    """The example that a schema itself names; _NONE where it names none."""
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    for key in ("example", "const", "default"):
        if key in schema:
            return schema[key]
    return _NONE
