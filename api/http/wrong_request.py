"""Messages for requests that do not fit their route's schema: given, expected, what there is.

The framework says "Extra inputs are not permitted" and "Input should be a valid tuple".
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

from fastapi import Request
from fastapi.dependencies.models import Dependant
from pydantic import TypeAdapter

_Schema = Mapping[str, Any]
_Error = Mapping[str, Any]

_SHOWN = 80
"""Characters of what was given, and of an example."""

_KINDS = {
    "tuple": "a list", "list": "a list", "set": "a list", "dict": "an object", "model": "an object",
    "string": "a text", "int": "a whole number", "float": "a number", "bool": "true or false",
    "date": "a date", "datetime": "a time",
}  # fmt: skip
"""Beginnings of pydantic's error types, each with its name in JSON."""


def explained(request: Request, error: _Error) -> str:
    """One error of pydantic, in our words.

    Args:
        request: The request, whose route's schema says what was expected.
        error: Its ``errors()`` entry.
    """
    path = ".".join(str(key)[:_SHOWN] for key in error["loc"])
    explain = _SAID.get(str(error["type"]), _other)
    return f"{path}: {explain(error, _schemas_at(request, error['loc']))}"


def _unknown_field(error: _Error, above: Sequence[_Schema]) -> str:
    if error["loc"][0] == "query":
        return str(error["msg"])  # of known_parameters
    known = sorted({name for schema in above for name in schema.get("properties", {})})
    near = get_close_matches(str(error["loc"][-1])[:_SHOWN], known, n=1)
    meant = f", did you mean '{near[0]}'?" if near else ""
    return f"there is no such field{meant}; there are {', '.join(known)}"


def _missing(error: _Error, schemas: Sequence[_Schema]) -> str:
    value = error.get("input")
    if isinstance(value, Mapping):
        names = ", ".join(str(name)[:40] for name in [*value][:10])
        return f"is missing{_such_as(schemas)}; given: {names or 'nothing'}"
    return f"is missing{', expected JSON' if error['loc'] == ('body',) else _such_as(schemas)}"


def _choice(error: _Error, _: Sequence[_Schema]) -> str:
    context = error["ctx"]
    known = [name.strip("' ") for name in context["expected_tags"].split(",")]
    near = get_close_matches(context["tag"][:_SHOWN], known, n=1)
    meant = f", did you mean '{near[0]}'?" if near else ""
    name = context["discriminator"].strip("'")
    return f"unknown {name} '{context['tag'][:_SHOWN]}'{meant}; there are {', '.join(known)}"


def _no_choice(error: _Error, schemas: Sequence[_Schema]) -> str:
    name = error["ctx"]["discriminator"].strip("'")
    known = sorted({str(tag) for schema in schemas for tag in _choices(schema)})
    return f"'{name}' is missing: expected one of {', '.join(known)}"


def _pattern(error: _Error, schemas: Sequence[_Schema]) -> str:
    descriptions = [
        schema["description"].rstrip(".") for schema in schemas if "description" in schema
    ]
    expected = descriptions[0] if descriptions else f"what matches {error['ctx']['pattern']}"
    return f"got {_input_text(error)}, expected: {expected}{_such_as(schemas)}"


def _other(error: _Error, schemas: Sequence[_Schema]) -> str:
    kind, _, rest = str(error["type"]).partition("_")
    message = str(error["msg"]).removeprefix("Value error, ")
    if kind in _KINDS and rest in ("type", "parsing", "attributes_type", "from_float"):
        return f"got {_input_text(error)}, expected {_KINDS[kind]}{_such_as(schemas)}"
    if message.startswith("Input should be "):
        return f"got {_input_text(error)}, expected {message.removeprefix('Input should be ')}"
    return message


def _long_text(error: _Error, _: Sequence[_Schema]) -> str:
    value = error["input"]
    length = f"{len(value):,}" if isinstance(value, str) else "more"
    return f"got {length} characters, expected at most {error['ctx']['max_length']:,}"


def _long_list(error: _Error, _: Sequence[_Schema]) -> str:
    what = "fields" if error["ctx"]["field_type"] == "Dictionary" else "elements"
    return f"got {len(error['input']):,} {what}, expected at most {error['ctx']['max_length']:,}"


_SAID: Mapping[str, Callable[[_Error, Sequence[_Schema]], str]] = {
    "extra_forbidden": _unknown_field,
    "missing": _missing,
    "union_tag_invalid": _choice,
    "union_tag_not_found": _no_choice,
    "string_pattern_mismatch": _pattern,
    "string_too_long": _long_text,
    "too_long": _long_list,
}


def _input_text(error: _Error) -> str:
    """The value given; of more than a word or number, and of a secret, only its kind."""
    value = error.get("input")
    is_secret = any(word in str(error["loc"][-1]) for word in ("password", "secret", "token"))
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, str):
        return "a text" if is_secret else f"'{value[:_SHOWN]}'"
    return "another value" if is_secret else json.dumps(value, default=str)[:_SHOWN]


def _such_as(schemas: Sequence[_Schema]) -> str:
    for schema in schemas:
        example = _example(schema, schema["$defs"])
        if example is not None:
            text = json.dumps(example)
            return f", such as {text}" if len(text) <= _SHOWN else ""
    return ""


def _example(schema: _Schema, types: _Schema) -> Any:
    """A value of a schema; None where it shows none."""
    if "$ref" in schema:
        return _example(_target(schema, types), types)
    if schema.get("examples"):
        return schema["examples"][0]
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], types)
    if "items" in schema:
        one = _example(schema["items"], types)
        return None if one is None else [one]
    if "properties" in schema:
        values = {name: _example(inner, types) for name, inner in schema["properties"].items()}
        return {name: value for name, value in values.items() if value is not None} or None
    return schema.get("const")


def _schemas_at(request: Request, loc: Sequence[str | int]) -> list[_Schema]:
    """Schemas of what stands there, each with its ``$defs``.

    Where there is no such field, those of what it would stand in.
    """
    route = request.scope.get("route")
    dependant = getattr(route, "dependant", None)
    if dependant is None:
        return []
    schemas = list(_declared(dependant, loc))
    rest = loc[1:] if loc[0] == "body" else loc[2:]
    for depth, key in enumerate(rest):
        below: list[_Schema] = [
            {**inner, "$defs": schema["$defs"]}
            for schema in schemas
            for inner in _below(schema, key, schema["$defs"])
        ]
        if not below and depth == len(rest) - 1:
            return [
                {**variant, "$defs": schema["$defs"]}
                for schema in schemas
                for variant in _variants(schema, schema["$defs"])
            ]
        schemas = below
    return schemas


def _declared(dependant: Dependant, loc: Sequence[str | int]) -> Iterator[_Schema]:
    """The schema of the body, or of a parameter."""
    if loc[0] == "body":
        fields = dependant.body_params
    else:
        parameters = [*dependant.query_params, *dependant.path_params]
        fields = [field for field in parameters if field.alias == loc[-1]]
    for field in fields:
        declared: Any = Annotated[field.field_info.annotation, field.field_info]
        yield {"$defs": {}, **TypeAdapter(declared).json_schema()}
    if loc[0] != "body":
        for nested in dependant.dependencies:
            yield from _declared(nested, loc)


def _below(schema: _Schema, key: str | int, types: _Schema) -> Iterator[_Schema]:
    """The schemas at a field or a position of a list, or of a union's choice."""
    for variant in _variants(schema, types):
        if isinstance(key, int) and "items" in variant:
            yield variant["items"]
        elif key in variant.get("properties", {}):
            yield variant["properties"][key]
    if key in (choices := _choices(schema)):
        yield _target({"$ref": choices[key]}, types)


def _choices(schema: _Schema) -> Mapping[str | int, str]:
    """The schema's name for each value of the field that tells a union's members apart."""
    unions = (schema, *schema.get("anyOf", ()))
    mappings = [union["discriminator"]["mapping"] for union in unions if "discriminator" in union]
    return mappings[0] if mappings else {}


def _variants(schema: _Schema, types: _Schema) -> Iterator[_Schema]:
    """The schema, or those that it is one of."""
    schema = _target(schema, types) if "$ref" in schema else schema
    if "anyOf" not in schema:
        yield schema
    for variant in schema.get("anyOf", ()):
        yield from _variants(variant, types)


def _target(schema: _Schema, types: _Schema) -> _Schema:
    target: _Schema = types[schema["$ref"].rpartition("/")[2]]
    return target
