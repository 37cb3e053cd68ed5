"""The pages of routes and schemas: the OpenAPI document, as people read it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from api.app import create_app
from api.settings import Settings
from documentation.reference.markdown import code, escaped, table

_HEAD = """\
# Routes of the REST APIs

Every route of a server, from its OpenAPI document, which `/openapi.json` gives to programs and
`/docs` shows. [REST](../rest.md) has what the routes of `/v1` share, [Spectrum Discover's
services](../spectrum-discover.md) those of clients written for it. Each `GET` of `/v1` has
a `HEAD`. [Schemas](schemas.md) has the fields of bodies and answers.

"""
_SCHEMAS_HEAD = """\
# Schemas of the REST APIs

Bodies and answers of [the routes](routes.md), by their names in the OpenAPI document.

"""
_METHODS = ("get", "post", "put", "patch", "delete")


def document() -> dict[str, Any]:
    """The OpenAPI document of a server with the usual settings."""
    return create_app(Settings(home=Path("/nowhere"))).openapi()


def operations(api: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each route's method, path and description; HEAD is its GET's."""
    for path, methods in sorted(api["paths"].items()):
        for method in _METHODS:
            if method in methods:
                yield method, path, methods[method]


def page(api: dict[str, Any]) -> str:
    """Routes by their tag, behind what the statuses of errors mean."""
    parts = [_HEAD, "## Errors\n\n", table(("status", ""), _errors(api)), "\n"]
    tags = {operation["tags"][0]: None for *_, operation in operations(api)}
    for tag in tags:
        parts.append(f"## {tag[0].upper()}{tag[1:]}\n\n")
        parts += [
            _operation(method, path, operation)
            for method, path, operation in operations(api)
            if operation["tags"][0] == tag
        ]
    return "".join(parts)


def schemas(api: dict[str, Any]) -> str:
    """The page of schemas."""
    named = sorted(api["components"]["schemas"].items())
    return "".join([_SCHEMAS_HEAD, *(_schema(name, schema) for name, schema in named)])


def _errors(api: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each status of an error, and what routes say of it."""
    told: dict[str, dict[str, None]] = {}
    for *_, operation in operations(api):
        for status, answer in operation["responses"].items():
            if _is_error(status):
                told.setdefault(status, {})[escaped(answer["description"])] = None
    for status, words in sorted(told.items()):
        yield status, " ".join(words)


def _is_error(status: str) -> bool:
    return status == "default" or status >= "400"


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"### `{method.upper()} {path}`\n", f"{escaped(operation.get('description', ''))}\n"]
    rows = [
        (code(one["name"]), one["in"], _type(one["schema"]), escaped(one.get("description", "")))
        for one in operation.get("parameters", ())
    ]
    if rows:
        parts.append(table(("parameter", "in", "", ""), rows))
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body, `{kind}`: {_type(content.get('schema', {}))}\n")
        if "example" in content:
            parts.append(_example(content["example"]))
    responses = sorted(operation["responses"].items())
    answers = [
        (status, ", ".join(_content(answer)), escaped(answer["description"]))
        for status, answer in responses
        if not _is_error(status)
    ]
    if answers:
        parts.append(table(("answer", "", ""), answers))
    errors = [status for status, _ in responses if _is_error(status)]
    parts.append(f"[Errors](#errors): {', '.join(errors)}.\n")
    return "\n".join(parts) + "\n"


def _content(answer: dict[str, Any]) -> Iterator[str]:
    for kind, content in answer.get("content", {}).items():
        schema = content.get("schema", {})
        yield _type(schema) if kind.endswith("json") and "$ref" in schema else code(kind)


def _example(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(f"    {line}\n" for line in text.splitlines())


def _schema(name: str, schema: dict[str, Any]) -> str:
    parts = [f"## {name}\n"]
    if "description" in schema:
        parts.append(f"{escaped(schema['description'])}\n")
    required = schema.get("required", ())
    rows = [
        (
            code(field),
            _type(of_field) + ("" if field in required else ", optional"),
            escaped(of_field.get("description", "")),
        )
        for field, of_field in schema.get("properties", {}).items()
    ]
    parts.append(table(("field", "", ""), rows) if rows else f"{_type(schema)}\n")
    return "\n".join(parts) + "\n"


def _type(schema: dict[str, Any]) -> str:
    """A schema in few words; another one as a link to it."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](schemas.md#{name.lower()})"
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            names = dict.fromkeys(_type(one) for one in schema[word])
            return " or ".join(names)
    if "enum" in schema:
        return " or ".join(code(json.dumps(value)) for value in schema["enum"])
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    limits = [
        f"{words} {schema[key]}"
        for key, words in (("minimum", "from"), ("maximum", "to"), ("maxLength", "at most"))
        if key in schema
    ]
    return " ".join([str(kind), *limits])
