"""What the API answers in place of an object: the Status of a request that failed."""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Failure(Exception):
    """A Status, by its code, reason, message and details."""

    code: int
    reason: str
    message: str
    details: Json = field(default_factory=dict)

    def status(self) -> Json:
        """As the API answers it."""
        status: Json = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        }  # fmt: skip
        return status | ({"details": self.details} if self.details else {})


@dataclass(frozen=True)
class Cause:
    """Why a field of an object is refused."""

    reason: str
    """FieldValueRequired, FieldValueInvalid, FieldValueNotSupported, FieldValueForbidden..."""
    field: str
    message: str

    def as_json(self) -> Json:
        """As in details.causes."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def required(field: str, message: str = "") -> Cause:
    """A field that is missing."""
    said = f"Required value: {message}" if message else "Required value"
    return Cause("FieldValueRequired", field, said)


def invalid(field: str, value: object, message: str) -> Cause:
    """A value that is not allowed."""
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return Cause("FieldValueInvalid", field, f"Invalid value: {shown}: {message}")


def unsupported(field: str, value: object, allowed: tuple[str, ...]) -> Cause:
    """A word that is not one of a list."""
    words = ", ".join(f'"{word}"' for word in allowed)
    return Cause(
        "FieldValueNotSupported", field, f'Unsupported value: "{value}": supported values: {words}'
    )


def not_an_object(qualified: str, name: str, causes: list[Cause]) -> Failure:
    """422 with the fields that are wrong."""
    said = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = said[0] if len(said) == 1 else "[" + ", ".join(said) + "]"
    kind, _, group = qualified.partition(".")
    details = {
        "name": name, "group": group, "kind": kind, "causes": [each.as_json() for each in causes]
    }  # fmt: skip
    return Failure(422, "Invalid", f'{qualified} "{name}" is invalid: {listed}', details)


def not_found(resource: str, name: str) -> Failure:
    """404 of an object."""
    kind, _, group = resource.partition(".")
    details = {"name": name, "group": group, "kind": kind}
    return Failure(404, "NotFound", f'{resource} "{name}" not found', details)
