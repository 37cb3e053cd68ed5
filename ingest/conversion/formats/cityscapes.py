"""Polygons of Cityscapes, as its own scripts make labels of them.

Later objects lie above earlier ones; "cargroup" is a car's where no class has that name; deleted
objects and those of no id (license plate) are left out. Source: mcordts/cityscapesScripts,
cityscapesscripts/preparation/json2labelImg.py and helpers/annotation.py.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from catalog.errors import BadFile
from catalog.values import Problem
from ingest.conversion.annotations import (
    AnnotatedFrame,
    Category,
    Shape,
    files_of,
    part,
    points_of,
    read_json,
    size_in,
)
from ingest.layouts.read_layout import preset

_ENDING = "_polygons.json"
_GROUP = "group"
_WITHOUT_ID = "license plate"


class Cityscapes:
    """Files of polygons, one for each frame."""

    def __init__(self, sources: Sequence[Path]) -> None:
        self._files = files_of(sources, _ENDING)
        self.left_out = Counter[str]()
        classes = preset("cityscapes").classes
        self.categories = [
            Category(each.name, each.key, f"#{each.colour:06x}", each.ignore)
            for each in (classes.keys if classes else ())
        ]
        self.expected = len(self._files)

    def frames(self, keys: Mapping[str, int]) -> Iterator[AnnotatedFrame | Problem]:
        """Every frame; see Annotations."""
        for path, _ in self._files:
            try:
                document = read_json(path)
                shapes = [*self._shapes(part(document, "objects", list, "file"), keys)]
                size = size_in(document, "imgWidth", "imgHeight", "file")
                yield AnnotatedFrame(_image(path), size, shapes)
            except BadFile as error:
                yield Problem("bad_file", str(path), str(error))

    def _shapes(self, objects: list[Any], keys: Mapping[str, int]) -> Iterator[Shape]:
        for number, each in enumerate(objects, 1):
            where = f"object {number}"
            label = part(each, "label", str, where)
            if each.get("deleted"):
                self.left_out["deleted objects"] += 1
                continue
            if label not in keys and label.endswith(_GROUP):
                label = label.removesuffix(_GROUP)
            if label not in keys:
                raise BadFile(f"{where}: {label!a} is no class of Cityscapes")
            if label == _WITHOUT_ID:
                self.left_out["objects of license plates, which have no id"] += 1
                continue
            yield Shape(keys[label], "polygon", points_of(each.get("polygon"), where))


def _image(path: Path) -> str:
    """The image's path below the data set's root, as its folders and name tell.

    >>> _image(Path("gtFine/val/ulm/ulm_000001_000019_gtFine_polygons.json"))
    'leftImg8bit/val/ulm/ulm_000001_000019_leftImg8bit.png'
    """
    stem = path.name.removesuffix(_ENDING).rpartition("_")[0]
    folders = path.absolute().parts[-3:-1]
    if len(folders) < 2 or not stem:
        raise BadFile(f"expected a path such as gtFine/val/ulm/ulm_000001_000019_gtFine{_ENDING}")
    return str(PurePosixPath("leftImg8bit", *folders, f"{stem}_leftImg8bit.png"))
