"""Objects against the schemas of Kubernetes 1.37, and MPIJobs against their CRD.

Unknown fields, wrong types and missing fields are refused in the words of an API server that is
asked for `fieldValidation=Strict`; a real one takes unknown fields with a warning where it is not.
"""

import copy
import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

from tests.kubernetes_stand_in.failures import (
    Cause,
    Failure,
    Json,
    invalid,
    not_an_object,
    required,
    unsupported,
)
from tests.kubernetes_stand_in.kinds import Kind

_VERSION = "v1.37.0-local-strict"
_PACKAGE = find_spec("kubernetes_validate")  # its own validator takes half a second to import
assert _PACKAGE is not None
assert _PACKAGE.origin is not None
_FOLDER = Path(_PACKAGE.origin).parent / "kubernetes-json-schema" / _VERSION
_MOST_ERRORS = 10


class Schemas:
    """The validators of all kinds."""

    def __init__(self, mpijob_crd: Path | None) -> None:
        """Read them when they are first asked for."""
        self.mpijob_crd = mpijob_crd

    def check(self, kind: Kind, given: Json, name: str) -> None:
        """Refuse an object that is not one of a kind: 400, or 422 with the fields."""
        errors = list(self._validator(kind).iter_errors(given))[:_MOST_ERRORS]
        unreadable = [_unreadable(error) for error in errors]
        if words := [each for each in unreadable if each]:
            message = (
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                + ", ".join(words)
            )
            raise Failure(400, "BadRequest", message)
        if errors:
            raise not_an_object(kind.qualified, name, [_cause(error) for error in errors])

    @cache  # noqa: B019 - one of them a server
    def _validator(self, kind: Kind) -> Any:
        if kind.kind == "MPIJob":
            if self.mpijob_crd is None:
                message = "the server could not find the requested resource"
                raise Failure(404, "NotFound", message)
            return jsonschema_rs.Draft202012Validator(_of_crd(self.mpijob_crd, kind.version))
        file = _FOLDER / f"{kind.kind.lower()}-{kind.api_version.split('.')[0]}.json"
        if "/" in kind.api_version:
            group = kind.group.split(".")[0]
            file = _FOLDER / f"{kind.kind.lower()}-{group}-{kind.version}.json"
        schema = json.loads(file.read_bytes())
        schema["$id"] = f"json-schema:///api/{file.name}"
        return jsonschema_rs.Draft202012Validator(schema, registry=_definitions())


@cache
def _definitions() -> Any:
    content = json.loads((_FOLDER / "_definitions.json").read_bytes())
    return jsonschema_rs.Registry(
        [("json-schema:///api/_definitions.json", content)], draft=jsonschema_rs.Draft202012
    )


def _of_crd(file: Path, version: str) -> Json:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for document in yaml.load_all(file.read_bytes(), loader):  # a safe one
        for each in (document or {}).get("spec", {}).get("versions", ()):
            if each["name"] == version:
                schema: Json = _strict(copy.deepcopy(each["schema"]["openAPIV3Schema"]))
                schema["properties"]["metadata"] = {"type": "object"}
                return schema
    raise ValueError(f"{file} has no version {version}")


def _strict(schema: Any) -> Any:
    """A structural schema that refuses what it does not name."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    strict = {name: _strict(each) for name, each in schema.items() if name != "format"}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields")
    has_names = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    if has_names and not is_open:
        strict.setdefault("additionalProperties", False)
    return strict


def _path(error: Any) -> str:
    text = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
    )
    return text.removeprefix(".")


def _unreadable(error: Any) -> str:
    """Why a decoder refuses a value, empty where it does not."""
    kind, at = error.kind.name, _path(error)
    if kind == "additionalProperties":
        prefix = f"{at}." if at else ""
        unknown = [f'unknown field "{prefix}{name}"' for name in error.kind.unexpected]
        return f"strict decoding error: {', '.join(unknown)}"
    if kind == "type":
        value = {dict: "object", list: "array", str: "string", bool: "bool"}.get(
            type(error.instance), "number"
        )
        wanted = next(each for each in [*error.kind.types, ""] if each != "null")
        return f"json: cannot unmarshal {value} into Go struct field {at} of type {wanted}"
    return ""


def _cause(error: Any) -> Cause:
    at = _path(error)
    if error.kind.name == "required":
        name = error.kind.property
        return required(f"{at}.{name}" if at else name)
    if error.kind.name == "enum":
        return unsupported(at, error.instance, tuple(map(str, error.kind.options)))
    return invalid(at, error.instance, re.sub(r"\s+", " ", error.message)[:200])
