"""Layouts by name or file: the presets that Framesift brings, and users' own."""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput, UnknownName
from ingest.layouts.layout import Layout

_MOST_BYTES = 4 << 20
"""Of a layout file: 65,536 classes of 60 bytes each."""

_PRESETS = resources.files("ingest.layouts") / "presets"
_CLASSES = resources.files("ingest.layouts") / "classes"


def preset_names() -> list[str]:
    """Names of the presets, in order."""
    return _names_in(_PRESETS)


@lru_cache
def preset(name: str) -> Layout:
    """A preset.

    Raises:
        UnknownName: There is none of that name.
    """
    if name not in preset_names():
        raise UnknownName("layout", name, preset_names())
    document = tomllib.loads(layout_text(name))
    return layout_of({**document, "name": name}, name)


def presets() -> list[tuple[str, Layout]]:
    """Name and layout of every preset, by name."""
    return [(name, preset(name)) for name in preset_names()]


def read_layout(text: str) -> Layout:
    """A layout: the preset of that name, or the TOML file of that path.

    Raises:
        InvalidInput: Neither, or a file that is no layout.
    """
    if text in preset_names():
        return preset(text)
    try:
        document = tomllib.loads(layout_text(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{text}: is no TOML: {error}") from error
    return layout_of({"name": Path(text).stem, **document}, text)


def layout_text(text: str) -> str:
    """The TOML of a layout: of the preset of that name, or of the file of that path.

    Raises:
        InvalidInput: Neither.
    """
    if text in preset_names():
        return (_PRESETS / f"{text}.toml").read_text("utf-8")
    path = Path(text)
    if not path.suffix and not path.exists():
        raise UnknownName("layout", text, preset_names(), "A layout file ends in .toml.")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidInput(f"{text}: has {path.stat().st_size:,} bytes; expected a layout")
        return path.read_text("utf-8")
    except OSError as error:
        raise InvalidInput(f"{text}: {error.strerror}; expected a layout file, or a preset's name: "
                           f"{', '.join(preset_names())}") from error  # fmt: skip
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{text}: is no TOML: {error}") from error


def layout_of(document: Any, where: str) -> Layout:
    """The layout of a document, a table of classes that it names put in its place.

    Args:
        where: Its preset's name or its file's, named in errors.

    Raises:
        InvalidInput: It is none.
    """
    if not isinstance(document, Mapping):
        return Layout.of(document)
    try:
        named = document.get("classes")
        if isinstance(named, str):
            tables = _names_in(_CLASSES)
            if named not in tables:
                raise UnknownName("table of classes", named, tables)
            table = tomllib.loads((_CLASSES / f"{named}.toml").read_text("utf-8"))
            document = {**document, "classes": table["classes"]}
        return Layout.of(document)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error


def _names_in(folder: Any) -> list[str]:
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )
