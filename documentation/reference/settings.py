"""The page of settings: every FRAMESIFT_ variable with its default, from api.settings."""

from types import UnionType
from typing import Any, get_args

from api.settings import SETTINGS, default_of
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
    return _HEAD + table(("variable", "default", ""), map(row, SETTINGS))


def row(name: str) -> tuple[str, str, str]:
    """A field's variable, default, and description with its limits."""
    about = SETTINGS[name].metadata["about"]
    words = [escaped(about.description), *_limits(name)]
    return code(f"FRAMESIFT_{name.upper()}"), code(_default(name)), " ".join(words)


def _default(name: str) -> str:
    value = _HOME_FOLDERS.get(name) or default_of(name)
    if isinstance(value, tuple):
        return " ".join(value) if name.endswith("_command") else ",".join(value)
    return "" if value is None else str(value)


def _limits(name: str) -> list[str]:
    setting = SETTINGS[name]
    signs = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    told = [
        f"{signs[sign]} {limit}"
        for sign, limit in setting.metadata["about"].limits.items()
        if sign in signs
    ]
    choices = [str(choice) for choice in _choices(setting.type)]
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
