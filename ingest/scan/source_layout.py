"""A source's layout: given, at its root, or told by its names; and the classes of its labels."""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import ClassListMissing, FramesiftError, InvalidInput
from ingest.labels.class_list import ClassList
from ingest.labels.class_list_file import CLASS_LIST, read_class_list, source_content
from ingest.layouts.layout import Layout
from ingest.layouts.read_layout import layout_of, preset
from ingest.layouts.recognise import (
    LAYOUT_FILE,
    LOOKED_AT,
    Recognition,
    how_to_say_classes,
    recognised,
)
from ingest.sources.recorded import data_set_of, other_sources_of_data_set
from ingest.sources.schemes import open_source
from ingest.sources.source_options import SourceOptions

if TYPE_CHECKING:
    from catalog.records.store import RecordStore
    from catalog.records.tables import Source
    from ingest.sources.source_files import SourceFiles

DEFAULT = "a2d2"
"""Preset of a source whose names tell none, such as one with lidar files alone."""

_GIVE_UP_AFTER_S = 5.0
"""A source is looked at while its user waits."""


def layout_of_source(records: "RecordStore", source: "Source", files: "SourceFiles") -> Layout:
    """The layout by which a source is scanned.

    That which it was given; else its layout.toml's; else the one of its last scan; else the preset
    that its names tell; else that of the data set's other sources; else A2D2's.

    Raises:
        InvalidInput: Its layout.toml is no layout, or several presets fit its names alike.
    """
    if source.layout:
        return Layout.of(source.layout)
    at_root = _at_root(files)
    if at_root is not None:
        return at_root
    if source.scanned_layout:
        return Layout.of(source.scanned_layout)
    recognition = recognised_in(files)
    if recognition.layout is not None:
        return recognition.layout
    for other in _other_sources(records, source):
        if document := other.layout or other.scanned_layout:
            return Layout.of(document)
    if recognition.fits:
        raise InvalidInput(
            f"{recognition.summary(source.name)}: framesift source set {source.name} --layout NAME"
        )
    return preset(DEFAULT)


def scanned_layout(source: "Source") -> Layout:
    """The layout of a source's last whole scan."""
    return Layout.of(source.scanned_layout) if source.scanned_layout else preset(DEFAULT)


def recognised_in(files: "SourceFiles") -> Recognition:
    """The presets that fit the names of a source that is open."""

    def names(below: str) -> Iterator[str]:
        return (file.key for file in files.list(below, lambda _key, _reason: None))

    return recognised(names)


def own_or_recognised_in(files: "SourceFiles") -> Recognition:
    """How the names of a source that is open fit its own layout file; where it has none, presets.

    Raises:
        InvalidInput: Its layout.toml is no layout.
    """
    own = _at_root(files)
    if own is None:
        return recognised_in(files)

    def names(below: str) -> Iterator[str]:
        return (file.key for file in files.list(below, lambda _key, _reason: None))

    return replace(recognised(names, [(LAYOUT_FILE, own)]), own=own)


def check_still_fits(source: "Source", files: "SourceFiles", layout: Layout) -> None:
    """Refuse a new layout that fits no name of a source whose last one fits some.

    All frames of the source would go from the catalog, and each label be read again once it is
    corrected.

    Raises:
        InvalidInput: It is so.
    """
    before = scanned_layout(source)
    if not source.scanned_layout or before.naming == layout.naming:
        return
    names = [file.key for file in islice(files.list("", lambda _key, _reason: None), LOOKED_AT)]
    known = [name for name in names if before.match(name)]
    if known and not any(layout.match(name) for name in names):
        raise InvalidInput(
            f"layout {layout.name} fits none of the first {len(names):,} names of {source.name}, "
            f"such as {known[0]}; {before.name}, of the last scan, fits {len(known):,}. Nothing "
            f"was changed: framesift layout check {files.root} --layout FILE says why they do not "
            f"fit, framesift source set {source.name} --layout FILE gives another"
        )


def looked_at(uri: str, options: SourceOptions) -> Recognition | None:
    """The layouts that fit the names of a source that is added; None where it cannot be listed now.

    An archive is not looked at: its index would be made while its user waits.

    Raises:
        InvalidInput: Its layout.toml is no layout.
    """
    if uri.lower().endswith(".tar"):
        return None
    wait = min(options.give_up_after, _GIVE_UP_AFTER_S)
    try:
        return own_or_recognised_in(open_source(uri, replace(options, give_up_after=wait)))
    except InvalidInput:
        raise
    except FramesiftError:
        return None


def classes_of_source(
    records: "RecordStore",
    source: "Source",
    files: "SourceFiles",
    layout: Layout,
    chosen: Path | None,
) -> ClassList:
    """The classes of a source's labels.

    Those of the file that was chosen; else the layout's; else those of the source's own file; else
    those of the data set's other sources, as for A2D2's archives, which have none.

    Raises:
        ClassListMissing: There are none.
        InvalidInput: The file is none, or says classes by colour where labels are read by number.
    """
    if chosen is not None and not layout.encoding.is_colour:
        raise InvalidInput(
            f"--class-list {chosen}: says classes by colour, and layout {layout.name} reads labels "
            f"by {layout.encoding.text}; write the classes into a layout file (docs/layouts.md)"
        )
    if chosen is None and layout.classes is not None:
        return layout.classes
    try:
        return _own_classes(files, layout, chosen)
    except ClassListMissing:
        for other in () if chosen is not None else _other_sources(records, source):
            if other.class_list:
                return ClassList.from_json(other.class_list)
        raise


def _own_classes(files: "SourceFiles", layout: Layout, chosen: Path | None) -> ClassList:
    if "class_file" in layout.document:
        return _configured_classes(files, layout)
    if layout.encoding.is_colour:
        keys = layout.document.get("class_list_files", [CLASS_LIST])
        return read_class_list(files, chosen, keys)
    raise ClassListMissing(how_to_say_classes(layout))


def _configured_classes(files: "SourceFiles", layout: Layout) -> ClassList:
    """The classes of a Mapillary Vistas configuration: a label's number is a class's position.

    Source: datumaro 1.13, plugins/data_formats/mapillary_vistas/format.py.
    """
    key = layout.document["class_file"]
    text = source_content(files, key)
    where = f"{files.root}/{key}"
    if text is None:
        raise ClassListMissing(
            f"{where}: is not there; it says which number is which class: lay it there, or write "
            f"the classes into a layout file in place of class_file (framesift layout show "
            f"{layout.name} --toml > mine.toml makes one to begin with) and give it by --layout"
        )
    try:
        labels = json.loads(text)["labels"]
        readable = [label["readable"] for label in labels]
        names = readable if len({*readable}) == len(labels) else [each["name"] for each in labels]
        classes = [
            {
                "key": number,
                "name": name,
                "colour": "#{:02x}{:02x}{:02x}".format(*label["color"]),
                **({} if label.get("evaluate", True) else {"ignore": True}),
            }
            for number, (name, label) in enumerate(zip(names, labels, strict=True))
        ]
        return ClassList.from_json({"encoding": layout.encoding.text, "classes": classes})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(
            f"{where}: expected labels with name, readable and color, as Mapillary Vistas has them"
        ) from error
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error


def _other_sources(records: "RecordStore", source: "Source") -> "list[Source]":
    """Those of the source's data set; first that which the data set is named after."""
    other_sources = other_sources_of_data_set(records, source)
    return sorted(other_sources, key=lambda other: other.name != data_set_of(source))


def _at_root(files: "SourceFiles") -> Layout | None:
    text = source_content(files, LAYOUT_FILE)
    if text is None:
        return None
    where = f"{files.root}/{LAYOUT_FILE}"
    try:
        document = tomllib.loads(text.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{where}: is no TOML: {error}") from error
    return layout_of({"name": LAYOUT_FILE, **document}, where)
