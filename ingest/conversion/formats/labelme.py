"""JSON of labelme: later shapes lie above earlier ones.

A hole is a later shape of `_background_`, whose pixels are of no class; `__ignore__` is ignored.
Groups tell which shapes are of one object, and change no pixel. Lines and points have no area.
Source: wkentaro/labelme, labelme/utils/shape.py and examples/semantic_segmentation/labelme2voc.py.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from catalog.errors import BadFile
from catalog.values import Problem
from ingest.conversion.annotations import (
    UNLABELED,
    AnnotatedFrame,
    Category,
    Shape,
    files_of,
    part,
    points_of,
    read_json,
    size_in,
)

_BACKGROUND, _IGNORE = "_background_", "__ignore__"
_KINDS = {"polygon": "outlined_polygon", "rectangle": "rectangle", "circle": "circle"}
_WITHOUT_AREA = ("point", "points", "line", "linestrip")


class Labelme:
    """Files of shapes, one for each frame."""

    def __init__(self, sources: Sequence[Path], images: Path) -> None:
        self._files = files_of(sources, ".json")
        self._images = images.absolute()
        self.left_out = Counter[str]()
        self.expected = len(self._files)
        names: set[str] = set()
        for path, _ in self._files:
            try:
                names |= {_label(shape) for shape in _shapes_in(read_json(path))}
            except BadFile:
                continue  # told when its frame is made
        self.categories = [
            Category(name, ignore=name == _IGNORE) for name in sorted(names - {_BACKGROUND})
        ]

    def frames(self, keys: Mapping[str, int]) -> Iterator[AnnotatedFrame | Problem]:
        """Every frame; see Annotations."""
        keys = {**keys, _BACKGROUND: keys[UNLABELED]}
        for path, below in self._files:
            try:
                document = read_json(path)
                shapes = [*self._shapes(_shapes_in(document), keys)]
                image = self._image(part(document, "imagePath", str, "file"), path, below)
                size = size_in(document, "imageWidth", "imageHeight", "file")
                yield AnnotatedFrame(image, size, shapes)
            except BadFile as error:
                yield Problem("bad_file", str(path), str(error))

    def _shapes(self, rows: list[Any], keys: Mapping[str, int]) -> Iterator[Shape]:
        labels = [_label(row) for row in rows]  # one without: none of the file's names is known
        for number, (row, label) in enumerate(zip(rows, labels, strict=True), 1):
            key, kind = keys[label], row.get("shape_type") or "polygon"
            points = points_of(row.get("points"), f"shape {number}")
            if kind == "mask":
                yield Shape(key, "bitmap", {"points": points, "mask": row.get("mask")})
            elif kind in [*_KINDS]:
                yield Shape(key, _KINDS[kind], points)
            elif kind in _WITHOUT_AREA:
                self.left_out[f"shapes without area: {kind}"] += 1
            else:
                raise BadFile(f"shape {number}: no such shape_type {ascii(kind)[:40]}")

    def _image(self, named: str, path: Path, below: str) -> str:
        """The image's path below the images' folder: as the file says, else as it lies itself."""
        named = named.replace("\\", "/")
        image_path = PurePosixPath(
            normpath(PurePosixPath(path.absolute().parent.as_posix(), named))
        )
        if image_path.is_relative_to(self._images):
            return str(image_path.relative_to(self._images))
        return str(PurePosixPath(below).with_suffix(PurePosixPath(named).suffix))


def _shapes_in(document: Any) -> list[Any]:
    shapes: list[Any] = part(document, "shapes", list, "file")
    return shapes


def _label(shape: Any) -> str:
    label: str = part(shape, "label", str, "shape")
    return label
