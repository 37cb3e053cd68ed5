"""Formats whose JSON lists images, categories by id, and annotations that name both by id.

coco        cocodataset.org/#format-data, "Object Detection"; no order is given where masks overlap:
            crowds lie below the others, larger areas below smaller ones
coco-panoptic
            the same page, "Panoptic Segmentation": each annotation is a PNG of segments, in the
            folder that has the JSON's name
rle-json    Framesift's own, for programs that write labels (docs/layouts.md): frames, each with its
            segments as COCO's run lengths; later ones lie above earlier ones
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.errors import BadFile
from catalog.values import Problem
from ingest.conversion.annotations import (
    AnnotatedFrame,
    Category,
    JsonFile,
    Shape,
    colour_of,
    one_file,
    part,
    size_in,
)

Row = Mapping[str, Any]


class _Numbered:
    """What the three have in common."""

    frames_in = "images"
    """The member that lists frames."""

    def __init__(self, sources: Sequence[Path]) -> None:
        self._sources = [one_file(source) for source in sources]
        self._json = JsonFile()
        self.left_out = Counter[str]()
        self.categories: list[Category] = []
        self.expected = 0
        for source in self._sources:
            document = self._json.read(source)
            self._add_categories(part(document, "categories", list, str(source)), source)
            self.expected += len(part(document, self.frames_in, list, str(source)))

    def frames(self, keys: Mapping[str, int]) -> Iterator[AnnotatedFrame | Problem]:
        """Every frame; see Annotations. A class's key is its id."""
        del keys
        for source in self._sources:
            document = self._json.read(source)
            ids = {part(row, "id", int, f"{source}: category") for row in document["categories"]}
            for where, row, make in self._rows(document, source):
                try:
                    frame = make(row, ids, source)
                except BadFile as error:
                    yield Problem("bad_file", where, str(error))
                    continue
                if frame is not None:
                    yield frame

    def _add_categories(self, rows: list[Any], source: Path) -> None:
        known = set(self.categories)
        for number, row in enumerate(rows):
            where = f"{source}: category {number + 1}"
            category = Category(
                part(row, "name", str, where),
                part(row, "id", int, where),
                colour_of(row.get("color")),
                row.get("ignore") is True,
            )
            if category not in known:
                self.categories.append(category)

    def _rows(self, document: Any, source: Path) -> Iterator[tuple[str, Any, Any]]:
        raise NotImplementedError


class Coco(_Numbered):
    """Instances of COCO."""

    def _rows(self, document: Any, source: Path) -> Iterator[tuple[str, Any, Any]]:
        of_image: dict[Any, list[Any]] = {}
        for row in part(document, "annotations", list, str(source)):
            image_id = row.get("image_id") if isinstance(row, Mapping) else None
            of_image.setdefault(_hashable(image_id), []).append(row)
        for number, row in enumerate(document["images"]):
            image_id = row.get("id") if isinstance(row, Mapping) else None
            of_this_image = of_image.pop(_hashable(image_id), [])
            yield _name(row, f"{source}: image {number + 1}"), (row, of_this_image), self._frame
        for image_id, rows in of_image.items():
            yield f"{source}", (image_id, rows), _without_image

    def _frame(self, rows: tuple[Any, list[Any]], ids: set[int], _: Path) -> AnnotatedFrame:
        row, annotations = rows
        name = part(row, "file_name", str, "image")
        shapes = []
        for number, each in enumerate(annotations):
            key = _category(each, ids, f"annotation {number + 1} of the image")
            if not (segmentation := each.get("segmentation")):
                self.left_out["annotations without segmentation"] += 1
                continue
            shapes.append(Shape(key, "coco", segmentation, bool(each.get("iscrowd"))))
        size = size_in(row, "width", "height", name)
        return AnnotatedFrame(name, size, shapes, largest_first=True)


class Panoptic(_Numbered):
    """Panoptic segmentations of COCO."""

    def _rows(self, document: Any, source: Path) -> Iterator[tuple[str, Any, Any]]:
        annotations = {
            _hashable(row.get("image_id")): row
            for row in part(document, "annotations", list, str(source))
            if isinstance(row, Mapping)
        }
        for number, row in enumerate(document["images"]):
            image_id = row.get("id") if isinstance(row, Mapping) else None
            annotation = annotations.get(_hashable(image_id))
            yield _name(row, f"{source}: image {number + 1}"), (row, annotation), self._frame

    def _frame(self, rows: tuple[Any, Any], ids: set[int], source: Path) -> AnnotatedFrame | None:
        row, annotation = rows
        name = part(row, "file_name", str, "image")
        if annotation is None:
            self.left_out["images without annotation"] += 1
            return None
        keys = [
            [part(segment, "id", int, "segment"), _category(segment, ids, "segment")]
            for segment in part(annotation, "segments_info", list, "annotation")
        ]
        png = source.with_suffix("") / part(annotation, "file_name", str, "annotation")
        try:
            status = png.stat()
        except OSError as error:
            raise BadFile(f"{png}: cannot be read: {error.strerror}") from error
        data = {"png": str(png), "version": [status.st_size, status.st_mtime_ns], "keys": keys}
        size = size_in(row, "width", "height", name)
        return AnnotatedFrame(name, size, [Shape(0, "panoptic", data)])


class RleJson(_Numbered):
    """Frames of run lengths."""

    frames_in = "frames"

    def _rows(self, document: Any, source: Path) -> Iterator[tuple[str, Any, Any]]:
        for number, row in enumerate(document["frames"]):
            yield _name(row, f"{source}: frame {number + 1}"), row, self._frame

    def _frame(self, row: Any, ids: set[int], _: Path) -> AnnotatedFrame:
        name = part(row, "file_name", str, "frame")
        shapes = [
            Shape(_category(segment, ids, "segment"), "coco", part(segment, "rle", dict, "segment"))
            for segment in part(row, "segments", list, "frame")
        ]
        return AnnotatedFrame(name, size_in(row, "width", "height", name), shapes)


def _without_image(rows: tuple[Any, list[Any]], *_: Any) -> AnnotatedFrame:
    image_id, annotations = rows
    raise BadFile(f"{len(annotations):,} annotations of image_id {image_id!r}, which no image has")


def _category(row: Any, ids: set[int], where: str) -> int:
    key: int = part(row, "category_id", int, where)
    if key not in ids:
        raise BadFile(f"{where}: category_id {key}: no category has this id")
    return key


def _name(row: Any, otherwise: str) -> str:
    name = row.get("file_name") if isinstance(row, Mapping) else None
    return name if isinstance(name, str) else otherwise


def _hashable(value: Any) -> int | str | None:
    return value if isinstance(value, int | str) else None
