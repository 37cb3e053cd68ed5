"""Settings of backends: HOME/backends.toml, a table for each, and what a job asks instead."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from catalog.errors import InvalidInput, UnknownName
from catalog.storage.bounded_file import read_bounded

FILE = "backends.toml"
_MOST_BYTES = 1 << 20

SettingsT = TypeVar("SettingsT")


def settings_of(
    kind: type[SettingsT],
    backend: str,
    file: Path | None,
    options: Mapping[str, str],
    names: Collection[str],
) -> SettingsT:
    """A backend's settings.

    Args:
        kind: Their dataclass: texts, whole numbers and tuples of texts, each with a default.
        backend: The backend's name, which the file's table has.
        file: The home's; None, or not there, for one that has no settings.
        options: What a job asks for, before what the file says.
        names: Names that jobs may ask for; the others stand in the file only, which is its owner's.

    Raises:
        InvalidInput: A setting is not of its type, jobs may not ask for it, or the file is no TOML.
        UnknownName: There is no such setting.
    """
    usual = kind()
    known = {field.name: getattr(usual, field.name) for field in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, value in _table(file, backend).items():
        if name not in known:
            raise UnknownName("setting", name, known, f"of [{backend}] in {file}")
        values[name] = _typed(f"{file}: [{backend}] {name}", value, known[name])
    for name, text in options.items():
        if name not in names and values.get(name) != text:  # what the file says is no choice
            raise UnknownName("option", f"{backend}.{name}", [f"{backend}.{of}" for of in names])
        values[name] = text
    return kind(**values)


def _table(file: Path | None, backend: str) -> dict[str, Any]:
    if file is None or not file.exists():
        return {}
    try:
        document = tomllib.loads(read_bounded(file, _MOST_BYTES).decode())
    except (ValueError, OSError) as error:
        raise InvalidInput(f"{file}: cannot be read as TOML: {error}") from error
    table = document.get(backend, {})
    if not isinstance(table, dict):
        raise InvalidInput(f"{file}: {backend}: expected a table, [{backend}]")
    return table


def _typed(where: str, value: object, usual: object) -> object:
    if isinstance(usual, tuple):
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
        raise InvalidInput(f"{where} = {value!r}: expected a list of texts")
    if type(value) is not type(usual):
        words = {str: "a text", int: "a whole number", bool: "true or false"}
        raise InvalidInput(f"{where} = {value!r}: expected {words[type(usual)]}")
    return value
