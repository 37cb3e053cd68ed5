"""CVAT 1.1, for images and video: shapes of a higher z_order lie above, of equal ones the later.

Polygons, masks, boxes and ellipses are areas; lines, points, cuboids, skeletons and tags are left
out. A video's tracks have a shape for every frame that shows the object, interpolated ones, too;
``outside`` says that a frame does not. Source: docs.cvat.ai, "XML annotation format", and CVAT's
writer, cvat/apps/dataset_manager/formats/cvat.py. Polygons and boxes, turned ones, too, are
rasterised as by CVAT's export of masks, with pycocotools (openvinotoolkit/datumaro,
datumaro/util/mask_tools.py).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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

_MOST_FRAMES = 1_000_000
"""Of a video: 9 hours of 30 frames a second."""

_IMAGE_ENDINGS = (".PNG", ".png", ".jpg", ".jpeg", ".JPG")
"""Of a video's frames; CVAT exports the first."""

_Found = tuple[int, Shape]
"""A shape's z_order, and the shape."""


@dataclass
class _Video:
    """What a file says of its video, and which frames its tracks have."""

    meta: dict[str, str] = field(default_factory=dict)
    """Texts of `_META`."""
    seen: set[int] = field(default_factory=set)
    """Frames that a track has."""

    @property
    def size(self) -> tuple[int, int] | None:
        """(W, H) [pixels]; None where the file does not say it."""
        if "width" not in self.meta or "height" not in self.meta:
            return None
        return _whole("width", self.meta["width"]), _whole("height", self.meta["height"])

    @property
    def step(self) -> int:
        """From a frame to the next."""
        name, _, text = self.meta.get("frame_filter", "").partition("=")
        return max(1, _whole("frame_filter", text)) if name == "step" else 1

    @property
    def frames(self) -> Sequence[int]:
        """Numbers of all frames, in order."""
        if "stop_frame" not in self.meta:
            return sorted(self.seen)
        first = _whole("start_frame", self.meta.get("start_frame", "0"))
        last = _whole("stop_frame", self.meta["stop_frame"])
        numbers = range(first, last + 1, self.step)
        if not 0 <= first <= last < _MOST_FRAMES:
            raise BadFile(
                f"frames {first} to {last}: expected at least one, none from {_MOST_FRAMES:,} on"
            )
        return sorted(self.seen.union(numbers))


class Cvat:
    """Files of images and their shapes, read image by image, or of a video's tracks."""

    def __init__(self, sources: Sequence[Path], images: Path) -> None:
        self._sources = [one_file(source) for source in sources]
        self._images = images
        self._videos: dict[Path, _Video] = {}
        self.left_out = Counter[str]()
        self.expected = 0
        categories: dict[str, Category] = {}
        for source in self._sources:
            listed, used, video = dict[str, Category](), set[str](), _Video()
            for element in _elements(source):
                if element.tag in _META:
                    video.meta[element.tag] = (element.text or "").strip()
                elif element.tag == "track":
                    self._videos[source] = video
                    video.seen |= {_frame(shape, source) for shape in element}
                    if any(_is_area(shape) for shape in element):
                        used.add(element.get("label", ""))
                elif element.tag == "label":
                    name = (element.findtext("name") or "").strip()
                    colour = colour_of((element.findtext("color") or "").strip())
                    listed[name] = Category(name, colour=colour)
                else:
                    self.expected += 1
                    used |= {shape.get("label", "") for shape in element if _is_area(shape)}
            if source in self._videos:
                self.expected += len(video.frames)
            categories = {**listed, **categories}
            if not listed:
                categories |= {name: Category(name) for name in sorted(used - categories.keys())}
        self.categories = [*categories.values()]

    def frames(self, keys: Mapping[str, int]) -> Iterator[AnnotatedFrame | Problem]:
        """Every frame; see Annotations."""
        for source in self._sources:
            if source in self._videos:
                yield from self._frames_of_video(source, keys)
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
        shapes: list[_Found] = []
        for number, element in enumerate(image, 1):
            label, where = element.get("label", ""), f"{element.tag} {number}"
            shapes += self._found(element, label, where, keys)
        return _in_order(shapes)

    def _found(
        self, element: ET.Element, label: str, where: str, keys: Mapping[str, int]
    ) -> Iterator[_Found]:
        if not _is_area(element):
            self.left_out[f"shapes that are no areas: {element.tag}"] += 1
            return
        if label not in keys:
            raise BadFile(f"{where}: {label!a} is none of the file's labels")
        yield _number(element, "z_order", "0"), _AREAS[element.tag](element, keys[label])

    def _frames_of_video(
        self, source: Path, keys: Mapping[str, int]
    ) -> Iterator[AnnotatedFrame | Problem]:
        video = self._videos[source]
        shapes: dict[int, list[_Found]] = {}
        wrong: dict[int, str] = {}
        for track in _elements(source):
            if track.tag != "track":
                continue
            where = f"track {track.get('id', '')}"
            follows: int | None = None  # the frame behind one that shows the object
            for element in track:
                frame = _frame(element, source)
                for missing in range(frame if follows is None else follows, frame, video.step):
                    wrong.setdefault(missing, f"{where}: has no shape here between two others")
                is_outside = element.get("outside", "0") == "1"
                follows = None if is_outside else frame + video.step
                if is_outside:
                    continue
                try:
                    found = self._found(element, track.get("label", ""), where, keys)
                    shapes.setdefault(frame, []).extend(found)
                except BadFile as error:
                    wrong.setdefault(frame, str(error))
        for frame in video.frames:
            name = self._name(frame)
            if frame in wrong:
                yield Problem("bad_file", name, wrong[frame])
            else:
                yield AnnotatedFrame(name, video.size, _in_order(shapes.get(frame, [])))

    def _name(self, frame: int) -> str:
        """A video frame's image, as CVAT's export names it."""
        names = [f"frame_{frame:06d}{ending}" for ending in _IMAGE_ENDINGS]
        return next((name for name in names if (self._images / name).is_file()), names[0])


def _in_order(shapes: Sequence[_Found]) -> list[Shape]:
    return [shape for _, shape in sorted(shapes, key=lambda each: each[0])]


def _frame(element: ET.Element, source: Path) -> int:
    """The frame of a track's shape."""
    text = element.get("frame", "")
    if not text.isdecimal() or len(text) > 9 or int(text) >= _MOST_FRAMES:
        got = f"{element.tag}: frame {text[:40]!a}"
        raise BadFile(f"{source}: {got}: expected a number below {_MOST_FRAMES:,}", str(source))
    return int(text)


def _is_area(element: ET.Element) -> bool:
    return element.tag in _AREAS


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


def _box(element: ET.Element, key: int) -> Shape:
    left, top, right, bottom = _floats(element, "xtl", "ytl", "xbr", "ybr")
    middle = (left + right) / 2, (top + bottom) / 2
    turn = math.radians(_floats(element, "rotation")[0])
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    if turn:
        corners = [_turned(corner, middle, turn) for corner in corners]
    return Shape(key, "coco", [[value for corner in corners for value in corner]])


def _turned(
    point: tuple[float, float], middle: tuple[float, float], turn: float
) -> tuple[float, float]:
    """A point turned clockwise around another."""
    x, y = point[0] - middle[0], point[1] - middle[1]
    cos, sin = math.cos(turn), math.sin(turn)
    return middle[0] + cos * x - sin * y, middle[1] + sin * x + cos * y


def _ellipse(element: ET.Element, key: int) -> Shape:
    return Shape(key, "ellipse", _floats(element, "cx", "cy", "rx", "ry", "rotation"))


_AREAS: Mapping[str, Callable[[ET.Element, int], Shape]] = {
    "polygon": _polygon, "mask": _mask, "box": _box, "ellipse": _ellipse,
}  # fmt: skip
"""What makes an element a shape."""


def _floats(element: ET.Element, *names: str) -> list[float]:
    """Numbers of attributes; ``rotation`` [degrees] need not be there."""
    numbers: list[float] = []
    for name in names:
        text = element.get(name, "0" if name == "rotation" else "")
        try:
            numbers.append(float(text))
        except ValueError as error:
            raise BadFile(f"{element.tag}: {name} {text[:40]!a}: expected a number") from error
        if not math.isfinite(numbers[-1]):
            raise BadFile(f"{element.tag}: {name} {text[:40]!a}: expected a number")
    return numbers


def _number(element: ET.Element, name: str, otherwise: str = "") -> int:
    return _whole(f"{element.tag}: {name}", element.get(name, otherwise))


def _whole(what: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise BadFile(f"{what} {text[:40]!a}: expected a whole number") from error


_META = ("width", "height", "start_frame", "stop_frame", "frame_filter")
"""What a video's file says of it, in its meta part."""

_META_PATHS = [
    ["annotations", "meta", of, *rest] for of in ("task", "job") for rest in ([], ["original_size"])
]


def _elements(source: Path) -> Iterator[ET.Element]:
    """Labels and `_META` of a file's meta part, its images and tracks, each as it has been read.

    It is forgotten then.

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
            if element.tag in ("image", "track") and path == ["annotations"]:
                if "task_id" in element.attrib and element.tag == "track":
                    raise BadFile(
                        f"{source}: is of a project of several tasks; export each task", str(source)
                    )
                yield element
                stack[-1].remove(element)
            elif path[:2] == ["annotations", "meta"] and (
                path in _META_PATHS
                if element.tag in _META
                else element.tag == "label" and path[-1] == "labels"
            ):
                yield element
    except OSError as error:
        raise BadFile(f"{source}: cannot be read: {error.strerror}", str(source)) from error
    except ET.ParseError as error:
        raise BadFile(f"{source}: is no XML: {error}", str(source)) from error
