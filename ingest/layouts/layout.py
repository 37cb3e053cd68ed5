"""A layout: which files are a frame's, what their names say, and what a label's pixels mean.

A layout is a document, TOML in a file and JSON in a record (docs/layouts.md has its keys):

    images = "leftImg8bit/{split}/{scene}/{frame}_leftImg8bit.png"
    labels = "gtFine/{split}/{scene}/{frame}_gtFine_labelIds.png"
    encoding = "index"
    camera = "front_center"
    classes = [{key = 7, name = "road", colour = "#804080"}]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from catalog.errors import InvalidInput, nearest_names
from catalog.lake.schema import POSITION_TAGS
from ingest.labels.class_list import ClassList
from ingest.labels.encoding import Encoding
from ingest.layouts.pattern import FOLDERS, Pattern

PATTERNS = {
    "images": "image", "labels": "label", "lidar": "lidar", "camera_json": "camera_json",
    "boxes": "boxes",
}  # fmt: skip
"""Key of a layout and the kind of file whose pattern it is."""

_OF_FRAME = (FOLDERS, "scene", "camera", "frame_number", "stamp", "frame")
"""Fields that say which frame it is, and are no tags."""

GIVEN_SPLIT = "given_split"
"""Tag of the split that the data set's makers put a frame into."""

_TEXTS = ("title", "scene", "camera", "class_file")
_LISTS = ("cameras", "class_list_files")
_CLASS_FORMATS = ("mapillary",)
_KEYS = (*PATTERNS, "encoding", *_TEXTS, *_LISTS, "class_format", "positions", "classes")


@dataclass(frozen=True)
class FileName:
    """What a file's name says of it."""

    kind: str
    """Of PATTERNS: "image", "label"..."""
    fields: Mapping[str, str]
    """Of its pattern; see `Pattern.match`."""
    frame: tuple[str, ...]
    """Values of the layout's identity: the same for all files of a frame."""


@dataclass(frozen=True)
class Layout:
    """Layout of a source's files."""

    document: Mapping[str, Any]
    """What it was read from."""
    encoding: Encoding
    patterns: tuple[tuple[str, Pattern], ...]
    """Kind of file and its pattern."""

    @classmethod
    def of(cls, document: Any) -> "Layout":
        """The layout of a document.

        Raises:
            InvalidInput: It is none, or says what contradicts itself.
        """
        if not isinstance(document, Mapping):
            raise InvalidInput("layout: expected keys such as images, labels and encoding")
        for name in document:
            if name not in _KEYS:
                near = nearest_names(name, _KEYS)
                hint = f"did you mean {near[0]}?" if near else f"expected {', '.join(_KEYS)}"
                raise InvalidInput(f"layout: no such key '{name}'; {hint}")
        if "images" not in document and "labels" not in document:
            raise InvalidInput("layout: has neither images nor labels; give a pattern of each")
        patterns = tuple(
            (kind, Pattern(document[name])) for name, kind in PATTERNS.items() if name in document
        )
        layout = cls(document, Encoding.parse(document.get("encoding", "index")), patterns)
        layout._check()
        return layout

    @property
    def title(self) -> str:
        """What it is the layout of, in words."""
        return str(self.document.get("title", ""))

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """Fields that say which frame it is: those that images and labels share."""
        fields = [pattern.fields for kind, pattern in self.patterns if kind in ("image", "label")]
        return tuple(name for name in fields[0] if all(name in other for other in fields))

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Tags that names give, beside scene, camera and frame number."""
        named = [GIVEN_SPLIT if name == "split" else name for name in self.identity]
        return tuple(name for name in named if name not in _OF_FRAME)

    @cached_property
    def classes(self) -> ClassList | None:
        """Its classes; None where the source has them in a file of its own, or nobody gave any."""
        if "classes" not in self.document:
            return None
        return ClassList.from_json(
            {"encoding": self.encoding.text, "classes": self.document["classes"]}
        )

    def parse(self, key: str) -> FileName | None:
        """What a file's name says; None where no pattern fits it."""
        for kind, pattern in self.patterns:
            fields = pattern.match(key)
            if fields is None:
                continue
            if fields.get("camera") not in self.document.get("cameras", [fields.get("camera")]):
                return None
            return FileName(kind, fields, tuple(fields.get(name, "") for name in self.identity))
        return None

    def _check(self) -> None:
        for name in _TEXTS:
            if not isinstance(self.document.get(name, ""), str):
                raise InvalidInput(f"layout: {name} = {self.document[name]!r}: expected a text")
        for name in _LISTS:
            value = self.document.get(name, [])
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise InvalidInput(f"layout: {name} = {value!r}: expected a list of texts")
        self._check_positions(self.document.get("positions", {}))
        kind = self.document.get("class_format", "mapillary")
        if kind not in _CLASS_FORMATS:
            raise InvalidInput(
                f"layout: class_format = {kind!r}: expected {', '.join(_CLASS_FORMATS)}"
            )
        if not self.identity:
            raise InvalidInput(
                "layout: images and labels share no field, so that no label has an image; use the "
                "same field, such as {frame}, in both"
            )
        _ = self.classes

    def _check_positions(self, positions: Any) -> None:
        if not isinstance(positions, Mapping):
            raise InvalidInput("layout: positions: expected a table of cameras")
        for camera, tags in positions.items():
            if not isinstance(tags, list) or not set(tags) <= set(POSITION_TAGS):
                raise InvalidInput(
                    f"layout: positions of {camera}: {tags!r}: expected some of "
                    f"{', '.join(POSITION_TAGS)}"
                )
