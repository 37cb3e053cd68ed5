"""Frames of Scalabel, as BDD100K has them: later labels lie above earlier ones.

Labels of a model have scores: those with higher ones lie above. Open paths are lines, and have no
area. Source: scalabel/scalabel, doc/src/format.rst and scalabel/label/transforms.py;
bdd100k/bdd100k, bdd100k/label/to_mask.py.
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
    one_file,
    part,
    points_of,
    size_in,
)


class Scalabel:
    """Files of frames."""

    def __init__(self, sources: Sequence[Path]) -> None:
        self._sources = [one_file(source) for source in sources]
        self._json = JsonFile()
        self.left_out = Counter[str]()
        self.expected = 0
        names: dict[str, None] = {}
        for source in self._sources:
            frames, config = self._opened(source)
            self.expected += len(frames)
            names |= dict.fromkeys([*_leaves(config.get("categories"))] or _seen(frames))
        self.categories = [Category(name) for name in names]

    def frames(self, keys: Mapping[str, int]) -> Iterator[AnnotatedFrame | Problem]:
        """Every frame; see Annotations."""
        for source in self._sources:
            frames, config = self._opened(source)
            named = config.get("imageSize") or config.get("image_size") or {}
            for number, row in enumerate(frames, 1):
                where = f"{source}: frame {number}"
                try:
                    where = name = _image(row)
                    if row.get("labels") is None:
                        self.left_out["frames without labels"] += 1
                        continue
                    size = size_in(row.get("size") or named, "width", "height", "size")
                    yield AnnotatedFrame(name, size, [*self._shapes(row, keys)])
                except BadFile as error:
                    yield Problem("bad_file", where, str(error))

    def _opened(self, source: Path) -> tuple[list[Any], Mapping[str, Any]]:
        document = self._json.read(source)
        if isinstance(document, list):
            return document, {}
        config = document.get("config") if isinstance(document, Mapping) else None
        frames = part(document, "frames", list, str(source))
        return frames, config if isinstance(config, Mapping) else {}

    def _shapes(self, row: Any, keys: Mapping[str, int]) -> Iterator[Shape]:
        labels = part(row, "labels", list, "frame")
        if not all(isinstance(each, Mapping) for each in labels):
            raise BadFile("labels: expected objects")
        if labels and all(isinstance(each.get("score"), int | float) for each in labels):
            labels = sorted(labels, key=lambda each: float(each["score"]))
        for number, label in enumerate(labels, 1):
            where = f"label {number}"
            category = part(label, "category", str, where)
            if category not in keys:
                raise BadFile(f"{where}: {category!a} is none of the file's categories")
            yield from self._areas(label, keys[category], where)

    def _areas(self, label: Any, key: int, where: str) -> Iterator[Shape]:
        if label.get("rle") is not None:
            yield Shape(key, "coco", part(label, "rle", dict, where))
        elif label.get("poly2d") is not None:
            for path in part(label, "poly2d", list, where):
                vertices = part(path, "vertices", list, where)
                if not path.get("closed"):
                    self.left_out["open paths, which have no area"] += 1
                    continue
                types = path.get("types") or "L" * len(vertices)
                data = {"vertices": points_of(vertices, where), "types": types}
                yield Shape(key, "path", data)
        else:
            self.left_out["labels without poly2d or rle"] += 1


def _image(row: Any) -> str:
    name: str = part(row, "name", str, "frame")
    video = row.get("videoName") or row.get("video_name")
    return f"{video}/{name}" if video and "/" not in name else name


def _leaves(categories: Any) -> Iterator[str]:
    for each in categories if isinstance(categories, list) else ():
        if below := each.get("subcategories") if isinstance(each, Mapping) else None:
            yield from _leaves(below)
        elif isinstance(each, Mapping):
            yield part(each, "name", str, "category")
        else:
            yield str(each)


def _seen(frames: list[Any]) -> list[str]:
    """Categories of the labels, by name."""
    labels = (
        label
        for row in frames
        if isinstance(row, Mapping)
        for label in row.get("labels") or ()
        if isinstance(label, Mapping)
    )
    return sorted({each for label in labels if isinstance(each := label.get("category"), str)})
