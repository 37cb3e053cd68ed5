"""Every example in the OpenAPI document is one of its schema, and nothing lacks one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from api.app import create_app
from api.callers import below
from api.settings import Settings
from query.selection import Question

DOCUMENT: dict[str, Any] = create_app(Settings(home=Path("/nowhere"))).openapi()
OPERATIONS = [
    (f"{method} {path}", operation)
    for path, found in DOCUMENT["paths"].items()
    if below(path, ("/v1",))
    for method, operation in found.items()
]


def check(schema: dict[str, Any], example: Any, where: str) -> None:
    """Whether an example is one of a schema of the document."""
    whole = {**schema, "components": DOCUMENT["components"]}
    try:
        jsonschema_rs.Draft202012Validator(whole).validate(example)
    except jsonschema_rs.ValidationError as error:
        pytest.fail(f"{where}: {example!r}: {error.message}")


def examples_of(told: dict[str, Any]) -> list[Any]:
    """Those of a parameter or a content."""
    named = told.get("examples", {})
    values = [found["value"] for found in named.values()] if isinstance(named, dict) else named
    return [*values, *([told["example"]] if "example" in told else [])]


@pytest.mark.parametrize(("where", "operation"), OPERATIONS, ids=[name for name, _ in OPERATIONS])
def test_an_operation(where: str, operation: dict[str, Any]) -> None:
    """Its parameters, its bodies, and what it answers when all goes well."""
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        for example in examples_of(parameter):
            check(schema, example, f"{where} {parameter['name']}")
        told = examples_of(parameter) or {"examples", "default", "enum", "const"} & schema.keys()
        in_parts = any("enum" in part or "const" in part for part in schema.get("anyOf", ()))
        assert told or in_parts or schema.get("type") == "boolean", (where, parameter["name"])
    contents = dict(operation.get("requestBody", {}).get("content", {}))
    for status, answer in operation["responses"].items():
        if status[0] == "2":
            contents |= {
                f"{status} {kind}": content for kind, content in answer.get("content", {}).items()
            }
    for kind, content in contents.items():
        examples = examples_of(content)
        assert examples or "json" not in kind or "ndjson" in kind, (where, kind)
        for example in examples:
            check(content.get("schema", {}), example, f"{where} {kind}")


def fields(found: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema with examples in the document."""
    if isinstance(found, dict):
        if isinstance(found.get("examples"), list):
            yield where, found
        for name, part in found.items():
            if name not in ("examples", "example"):
                yield from fields(part, f"{where}.{name}")


def test_fields() -> None:
    """What a schema gives as an example of one of its fields is one."""
    seen = 0
    for where, schema in fields(DOCUMENT["components"]["schemas"], ""):
        for example in schema["examples"]:
            check(schema, example, where)
            seen += 1
    assert seen > 250


def test_questions() -> None:
    """Wherever a question is an example, it is one that can be asked."""
    seen = 0
    for schema in DOCUMENT["components"]["schemas"].values():
        found = schema.get("properties", {}).get("question", {})
        for example in found.get("examples", ()):
            if isinstance(example, dict):
                Question.model_validate(example)
                seen += 1
    assert seen > 1


def test_pictures_can_be_asked_in_parts() -> None:
    """Range, If-Range and If-None-Match, and what else they answer."""
    for kind in ("images", "labels", "overlays"):
        operation = DOCUMENT["paths"][f"/v1/{kind}/{{fkey}}"]["get"]
        names = {parameter["name"] for parameter in operation["parameters"]}
        assert {"Range", "If-Range", "If-None-Match"} <= names
        assert {"206", "304", "406", "416"} <= set(operation["responses"])
    for path in ("frames", "selections", "sql", "classes", "statistics/histogram"):
        (operation,) = (
            found for method, found in DOCUMENT["paths"][f"/v1/{path}"].items() if method != "head"
        )
        assert {"text/csv", "application/json"} <= set(operation["responses"]["200"]["content"])
        assert "406" in operation["responses"]
    for method, path in (("post", "/v1/tags/values"), ("post", "/v1/sql")):
        assert "415" in DOCUMENT["paths"][path][method]["responses"]
