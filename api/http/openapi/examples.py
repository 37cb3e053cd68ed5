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
"""Of parameters that have no example of their own."""

_BY_PATH: Mapping[tuple[str, str], Any] = {
    ("/v1/datasets", "name"): "bikes",
    ("/v1/sources", "name"): "a2d2",
    ("/v1/models", "name"): "train-bikes-7",
    ("/v1/users", "name"): "anna",
    ("/v1/collections", "name"): "munich",
    ("/v1/policies", "name"): "bikes",
    ("/v1/tags/values", "type"): ["weather=VARCHAR"],
    ("/v1/tags/map", "tag"): "street",
    ("/policyengine/v1/tags", "tag"): "chargeback",
    ("/policyengine/v1/policies", "action"): "start",
    ("/connmgr/v1/scan", "action"): "stop",
}
"""Of names that stand for something else below each path, the longest first."""

OF_PICTURES: tuple[dict[str, Any], ...] = tuple(
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
)
"""Headers that a picture can be asked with."""

_ANY = {"string": "", "integer": 1, "number": 0.5, "boolean": False, "object": {}}


def fill_parameters(path: str, operation: dict[str, Any]) -> None:
    """Give every parameter an example that neither has one nor a default that says something."""
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        told = {"example", "examples"} & parameter.keys() or {"examples", "enum"} & schema.keys()
        told = told or schema.get("default") not in (None, "", [])
        example = _of_parameter(path, parameter["name"]) or _first_of_parts(schema)
        if not told and example is not None:
            parameter["example"] = example


def _of_parameter(path: str, name: str) -> Any:
    for (above, named), example in _BY_PATH.items():
        if named == name and (path == above or path.startswith(f"{above}/")):
            return example
    return _BY_NAME.get(name)


def _first_of_parts(schema: Mapping[str, Any]) -> Any:
    """The first value of a list of values that is one of several schemas."""
    lists = [part["enum"] for part in schema.get("anyOf", ()) if "enum" in part]
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
        return {name: example_of(part, schemas) for name, part in schema["properties"].items()}
    parts = schema.get("prefixItems", [schema["items"]] if schema.get("items") else [])
    if schema.get("type") == "array":
        return [example_of(part, schemas) for part in parts]
    return _ANY.get(schema.get("type", "null"))


_NONE = object()


def _own(schema: Mapping[str, Any]) -> Any:
    """What a schema itself names; _NONE where it names nothing."""
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    for key in ("example", "const", "default"):
        if key in schema:
            return schema[key]
    return _NONE
