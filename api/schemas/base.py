"""The base of every schema."""

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field, PrivateAttr

TellPath = Callable[[str], str]
"""Function that turns a path into the path that a caller may see: Workspace.place."""

EXAMPLE_TIME = "2026-11-21T14:08:18Z"


class Schema(BaseModel):
    """The JSON of a noun; fields are read as of a mapping too, which a server's answer is."""

    def __getitem__(self, name: str) -> Any:
        """A field's value."""
        return getattr(self, name)

    def get(self, name: str) -> Any:
        """A field's value; None where there is no such field."""
        return getattr(self, name, None)


class Numbered(Schema):
    """A schema of a list that is in order of a record's number, which is not part of the JSON."""

    _number: int = PrivateAttr(0)

    @property
    def number(self) -> int:
        """The record's number."""
        return self._number


class Versioned(Schema):
    """A schema of what has a version, which is not part of the JSON but of its ETag."""

    _version: str = PrivateAttr("")

    @property
    def version(self) -> str:
        """The version: another one after each change."""
        return self._version

    def of_version(self, version: str) -> Self:
        """The same, of a version."""
        self._version = version
        return self


class PageAnswer(Schema):
    """A page of a list."""

    next: str | None = Field(
        description="`cursor` of the page that follows; null on the last one.", examples=[None]
    )


def set_fields(body: BaseModel) -> dict[str, Any]:
    """The values of the fields that were given, by name."""
    return {name: getattr(body, name) for name in body.model_fields_set}


def iso_time(time: datetime) -> str:
    """A record's time as ISO 8601 in UTC, to the second."""
    return time.isoformat(timespec="seconds") + "Z"


def finite(value: Any) -> Any:
    """The same as JSON in UTF-8 has it: null for what it has no number for, such as a bad loss.

    A half of a surrogate pair, which a program may write into a name or text, becomes "?".
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {finite(key): finite(element) for key, element in value.items()}
    return [finite(element) for element in value] if isinstance(value, list | tuple) else value
