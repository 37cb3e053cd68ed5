"""CVAT for images 1.1: shapes of a higher z_order lie above, of equal ones the later.

Polygons and masks are areas; boxes, lines, points, cuboids, ellipses and tags are left out. Source:
docs.cvat.ai, "XML annotation format"; polygons are rasterised as by CVAT's export of masks, with
pycocotools (openvinotoolkit/datumaro, datumaro/util/mask_tools.py).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from catalog.errors import BadFile
from catalog.values import Problem
from ingest.conversion.annotations import (
    AnnotatedFrame,
    Category,
    Shape,
    colour_of,
    one_file,
)


class Cvat:
    """Files of images and their shapes, read image by image."""

    def __init__(self, sources: Sequence[Path]) -> None:
        self._sources = [one_file(source) for source in sources]
        self.left_out = Counter[str]()
        self.expected = 0
        categories: dict[str, Category] = {}
        for source in self._sources:
            listed, used = dict[str, Category](), set[str]()
            for element in _elements(source):
                if element.tag == "label":
                    name = (element.findtext("name") or "").strip()
                    colour = colour_of((element.findtext("color") or "").strip())
                    listed[name] = Category(name, colour=colour)
                else:
                    self.expected += 1
                    used |= {shape.get("label", "") for shape in element if _is_area(shape)}
            categories = {**listed, **categories}
            if not listed:
                categories |= {name: Category(name) for name in sorted(used - categories.keys())}
        self.categories = [*categories.values()]

    def frames(self, keys: Mapping[str, int]) -> Iterator[AnnotatedFrame | Problem]:
        """Every frame; see Annotations."""
        for source in self._sources:
            for element in _elements(source):
                if element.tag != "image":
                    continue
                name = element.get("name", "")
                try:
                    size = _number(element, "width"), _number(element, "height")
                    yield AnnotatedFrame(name, size, self._shapes(element, keys))
                except BadFile as error:
                    yield Problem("bad_file", name or str(source), str(error))

    def _shapes(self, image: ET.Element, keys: Mapping[str, int]) -> list[Shape]:
        shapes: list[tuple[int, Shape]] = []
        for number, element in enumerate(image, 1):
            if not _is_area(element):
                self.left_out[f"shapes that are no areas: {element.tag}"] += 1
                continue
            label, where = element.get("label", ""), f"{element.tag} {number}"
            if label not in keys:
                raise BadFile(f"{where}: {label!a} is none of the file's labels")
            make = _polygon if element.tag == "polygon" else _mask
            shape = make(element, keys[label])
            shapes.append((_number(element, "z_order", "0"), shape))
        return [shape for _, shape in sorted(shapes, key=lambda each: each[0])]


def _is_area(element: ET.Element) -> bool:
    return element.tag in ("polygon", "mask")


def _polygon(element: ET.Element, key: int) -> Shape:
    text = element.get("points", "")
    try:
        points = [float(value) for point in text.split(";") for value in point.split(",")]
    except ValueError as error:
        raise BadFile(f"polygon: points {text[:40]!a}: expected x,y;x,y;...") from error
    return Shape(key, "coco", [points])


def _mask(element: ET.Element, key: int) -> Shape:
    text = element.get("rle", "")
    try:
        runs = [int(run) for run in text.split(",")]
    except ValueError as error:
        raise BadFile(f"mask: rle {text[:40]!a}: expected whole numbers and commas") from error
    box = [_number(element, side) for side in ("left", "top", "width", "height")]
    return Shape(key, "rows", {"box": box, "runs": runs})


def _number(element: ET.Element, name: str, otherwise: str = "") -> int:
    text = element.get(name, otherwise)
    try:
        return int(text)
    except ValueError as error:
        raise BadFile(
            f"{element.tag}: {name} {text[:40]!a}: expected a whole number of pixels"
        ) from error


def _elements(source: Path) -> Iterator[ET.Element]:
    """Labels of a file's meta part and its images, each as it has been read, and forgotten then.

    Raises:
        BadFile: It is no such XML.
    """
    stack: list[ET.Element] = []
    try:
        # Expat refuses entities that grow beyond their input.
        for event, element in ET.iterparse(source, ("start", "end")):  # noqa: S314
            if event == "start":
                stack.append(element)
                continue
            stack.pop()
            if not stack and element.tag != "annotations":
                raise BadFile(
                    f"{source}: <{element.tag}>: expected <annotations> of CVAT", str(source)
                )
            path = [each.tag for each in stack]
            if element.tag == "image" and path == ["annotations"]:
                yield element
                stack[-1].remove(element)
            elif (
                element.tag == "label"
                and path[:2] == ["annotations", "meta"]
                and path[-1] == "labels"
            ):
                yield element
            elif element.tag == "track" and path == ["annotations"]:
                raise BadFile(
                    f"{source}: is CVAT for video; export it as CVAT for images 1.1", str(source)
                )
    except OSError as error:
        raise BadFile(f"{source}: cannot be read: {error.strerror}", str(source)) from error
    except ET.ParseError as error:
        raise BadFile(f"{source}: is no XML: {error}", str(source)) from error
