"""The page of settings: every FRAMESIFT_ variable with its default, from api.settings."""

from types import UnionType
from typing import Any, get_args

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from api.settings import Settings
from documentation.reference.markdown import code, escaped, table

_HEAD = """\
# Settings

Every variable that Framesift reads its settings from, in the environment of the starting process.
A value that cannot be used ends the command with a line that names it. [Variables of
jobs](../jobs.md#what-a-job-inherits) are others.

"""
_HOME_FOLDERS = {"home": "~/.framesift", "config": "~/.config/framesift"}
"""Defaults that are made when they are asked for."""


def page() -> str:
    """The whole page."""
    return _HEAD + table(("variable", "default", ""), map(row, Settings.model_fields))


def row(name: str) -> tuple[str, str, str]:
    """A field's variable, default, and description with its limits."""
    field = Settings.model_fields[name]
    words = [escaped(field.description or ""), *_limits(field)]
    return code(f"FRAMESIFT_{name.upper()}"), code(_default(name, field)), " ".join(words)


def _default(name: str, field: FieldInfo) -> str:
    value = _HOME_FOLDERS[name] if field.default is PydanticUndefined else field.default
    if isinstance(value, tuple):
        return " ".join(value) if name.endswith("_command") else ",".join(value)
    return "" if value is None else str(value)


def _limits(field: FieldInfo) -> list[str]:
    signs = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    told = [
        f"{words} {getattr(limit, sign)}"
        for limit in field.metadata
        for sign, words in signs.items()
        if hasattr(limit, sign)
    ]
    choices = [str(choice) for choice in _choices(field.annotation)]
    return [
        *([f"One of {', '.join(code(one) for one in choices)}."] if choices else []),
        *([f"({', '.join(told)})"] if told else []),
    ]


def _choices(annotation: Any) -> tuple[Any, ...]:
    """Values of a Literal, or true and false of a bool."""
    if annotation is bool or (isinstance(annotation, UnionType) and bool in get_args(annotation)):
        return ("true", "false")
    texts = get_args(annotation)
    return texts if texts and all(isinstance(text, str) for text in texts) else ()
