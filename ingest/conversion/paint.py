"""Paints a frame's shapes into an image of class keys.

Each kind is painted as the makers of its format paint it, so that counts equal theirs:

polygon             Pillow, filled: cityscapesScripts, preparation/json2labelImg.py
outlined_polygon,   Pillow, filled with an outline: wkentaro/labelme, labelme/utils/shape.py
rectangle, circle
bitmap              a mask in a PNG, placed: the same
coco                polygons or run lengths: cocodataset/cocoapi, common/maskApi.c, by pycocotools
path                the same, of polygons with Bezier curves: scalabel, label/transforms.py,
                    poly_to_patch. The makers paint with matplotlib: pixels at edges may differ.
                    Pillow cuts fractions of coordinates off, and is for makers who use it alone
rows                run lengths of a box, along its rows: docs.cvat.ai, XML annotation format
ellipse             pixels whose middles lie in it: docs.cvat.ai, XML annotation format. CVAT's
                    export of masks rounds middle and radii to whole pixels first, for OpenCV
panoptic            a PNG of segment ids R + 256 G + 65536 B: cocodataset/panopticapi, README.md
"""

import base64
import binascii
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from catalog.errors import BadFile, not_installed
from ingest.conversion.annotations import AnnotatedFrame, Shape
from ingest.conversion.run_lengths import Runs, checked_runs, coco_runs, inside, mask_of
from ingest.labels.encoding import Encoding
from ingest.labels.label_image import decode_keys
from ingest.labels.segments import turned

_FARTHEST = 100_000
"""Coordinates beyond it [pixels] are refused: pycocotools has memory for each pixel of an edge."""

_CURVE_STEPS = 32
"""Straight pieces of a Bezier curve."""

Point = tuple[float, float]


def painted(
    frame: AnnotatedFrame, size: tuple[int, int], background: int, *, wide: bool
) -> Image.Image:
    """The label of a frame: grey, its samples the keys of classes, of 8 bits or 32.

    Args:
        size: (W, H) [pixels].
        background: Key of pixels that no shape covers.
        wide: Whether keys need more than 8 bits.

    Raises:
        BadFile: A shape is none; the message says which.
    """
    canvas = Image.new("I" if wide else "L", size, background)
    if frame.largest_first:
        _paint_by_area(canvas, frame.shapes)
        return canvas
    for number, shape in enumerate(frame.shapes, 1):
        with _naming(number):
            PAINTERS[shape.kind](canvas, shape.key, shape.data)
    return canvas


def _paint_by_area(canvas: Image.Image, shapes: Sequence[Shape]) -> None:
    """Paint shapes of kind "coco": crowds first, then by area, of equal ones in their order."""
    areas: list[tuple[Shape, Runs]] = []
    for number, shape in enumerate(shapes, 1):
        with _naming(number):
            areas.append((shape, _coco_runs(shape.data, canvas.size)))
    for shape, runs in sorted(areas, key=lambda each: (not each[0].is_crowd, -inside(each[1]))):
        _paste_columns(canvas, shape.key, runs)


@contextmanager
def _naming(number: int) -> Iterator[None]:
    """Have an error say which shape it is about."""
    try:
        yield
    except BadFile as error:
        raise BadFile(f"shape {number}: {error}") from error


def _points(data: Any, least: int) -> list[Point]:
    """Corners of ``[x, y, x, y, ...]``."""
    if not isinstance(data, list) or len(data) % 2 or len(data) < 2 * least:
        raise BadFile(f"expected at least {least} corners, got {ascii(data)[:40]}")
    for value in data:
        if type(value) not in (int, float) or not abs(value) <= _FARTHEST:
            raise BadFile(
                f"coordinate {ascii(value)[:40]}: expected numbers from -{_FARTHEST:,} to "
                f"{_FARTHEST:,}"
            )
    return [*zip(data[::2], data[1::2], strict=True)]


def _polygon(canvas: Image.Image, key: int, data: Any) -> None:
    ImageDraw.Draw(canvas).polygon(_points(data, 2), fill=key)


def _outlined_polygon(canvas: Image.Image, key: int, data: Any) -> None:
    ImageDraw.Draw(canvas).polygon(_points(data, 3), fill=key, outline=key)


def _rectangle(canvas: Image.Image, key: int, data: Any) -> None:
    (x1, y1), (x2, y2) = _two(data)
    box = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    ImageDraw.Draw(canvas).rectangle(box, fill=key, outline=key)


def _circle(canvas: Image.Image, key: int, data: Any) -> None:
    (x, y), edge = _two(data)
    radius = math.dist((x, y), edge)
    box = (x - radius, y - radius, x + radius, y + radius)
    ImageDraw.Draw(canvas).ellipse(box, fill=key, outline=key)


def _ellipse(canvas: Image.Image, key: int, data: Any) -> None:
    """An ellipse of ``[x, y, x radius, y radius, degrees it is turned clockwise]``."""
    x, y, x_radius, y_radius, degrees = data
    _points([x, y, x_radius, y_radius], 2)
    if min(x_radius, y_radius) <= 0:
        raise BadFile(f"ellipse of radii {x_radius} and {y_radius}: expected radii above 0")
    reach = max(x_radius, y_radius)
    left, right = (_within(edge, canvas.width) for edge in (x - reach, x + reach + 1))
    top, bottom = (_within(edge, canvas.height) for edge in (y - reach, y + reach + 1))
    if left >= right or top >= bottom:
        return
    across = np.arange(left, right)[None, :] + 0.5 - x
    down = np.arange(top, bottom)[:, None] + 0.5 - y
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    along, beside = cos * across + sin * down, cos * down - sin * across
    _paste(canvas, key, (along / x_radius) ** 2 + (beside / y_radius) ** 2 <= 1, (left, top))


def _within(edge: float, size: int) -> int:
    return min(max(math.floor(edge), 0), size)


def _two(data: Any) -> list[Point]:
    points = _points(data, 2)
    if len(points) != 2:
        raise BadFile(f"expected 2 points, got {len(points)}")
    return points


def _bitmap(canvas: Image.Image, key: int, data: Any) -> None:
    """A mask of ``{"points": [x, y, x, y], "mask": PNG in base64}``; the box has both its ends."""
    (x1, y1), (x2, y2) = ((int(x), int(y)) for x, y in _two(data["points"]))
    try:
        png = base64.b64decode(data["mask"], validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise BadFile("mask: expected a PNG in base64") from error
    mask = decode_keys(png, Encoding("index")) > 0
    if mask.shape != (y2 - y1 + 1, x2 - x1 + 1):
        raise BadFile(
            f"mask of {mask.shape[1]} x {mask.shape[0]} pixels; expected {x2 - x1 + 1} x "
            f"{y2 - y1 + 1}, its points' box"
        )
    _paste(canvas, key, mask, (x1, y1))


def _path(canvas: Image.Image, key: int, data: Any) -> None:
    """A closed path, ``{"vertices": [x, y, ...], "types": "LLCCC"}``; C, C, C are one curve."""
    corners = _points(data["vertices"], 3)
    types = data["types"]
    if not isinstance(types, str) or len(types) != len(corners) or not set(types) <= {"L", "C"}:
        raise BadFile(f"types {ascii(types)[:40]}: expected L or C for each of {len(corners)}")
    path, position = [corners[0]], 1
    while position < len(corners):
        if types[position] == "L":
            path.append(corners[position])
            position += 1
            continue
        if types[position : position + 3] != "CCC":
            raise BadFile(f"types {ascii(types)[:40]}: a curve is CCC: two controls and its end")
        path += _curve(path[-1], *corners[position : position + 3])
        position += 3
    _coco(canvas, key, [[value for point in path for value in point]])


def _curve(start: Point, first: Point, second: Point, end: Point) -> list[Point]:
    """Points of a cubic Bezier curve behind its start."""
    t = np.arange(1, _CURVE_STEPS + 1)[:, None] / _CURVE_STEPS
    a, b, c, d = (np.array(point, float) for point in (start, first, second, end))
    points = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
    return [(float(x), float(y)) for x, y in points]


def _coco(canvas: Image.Image, key: int, data: Any) -> None:
    _paste_columns(canvas, key, _coco_runs(data, canvas.size))


def _paste_columns(canvas: Image.Image, key: int, runs: Runs) -> None:
    _paste(canvas, key, mask_of(runs).reshape(canvas.width, canvas.height).T, (0, 0))


def _coco_runs(segmentation: Any, size: tuple[int, int]) -> Runs:
    """Run lengths of a COCO segmentation: they themselves, or the union of polygons."""
    if not isinstance(segmentation, list):
        return coco_runs(segmentation, size)
    for polygon in segmentation:
        _points(polygon, 3)
    mask = _pycocotools()
    width, height = size
    # Floats: pycocotools takes lists of 4 whole numbers for boxes.
    polygons = [[float(value) for value in polygon] for polygon in segmentation]
    merged = mask.merge(mask.frPyObjects(polygons, height, width))
    return coco_runs({"size": [height, width], "counts": merged["counts"].decode()}, size)


@cache
def _pycocotools() -> Any:
    try:
        from pycocotools import mask
    except ImportError as error:
        raise not_installed("pycocotools, which rasterises polygons,", "convert") from error
    return mask


def _rows(canvas: Image.Image, key: int, data: Any) -> None:
    """Run lengths along the rows of a box: ``{"box": [left, top, width, height], "runs": []}``."""
    left, top, width, height = data["box"]
    is_within = left + width <= canvas.width and top + height <= canvas.height
    if min(width, height) < 1 or min(left, top) < 0 or not is_within:
        raise BadFile(
            f"mask of {width} x {height} pixels at {left}, {top}: expected one within the frame of "
            f"{canvas.width} x {canvas.height}"
        )
    runs = checked_runs(data["runs"], width * height)
    _paste(canvas, key, mask_of(runs).reshape(height, width), (left, top))


def _panoptic(canvas: Image.Image, _: int, data: Any) -> None:
    """Segments of a PNG: ``{"png": path, "keys": [[segment id, key], ...]}``; 0 is none."""
    try:
        png = Path(data["png"]).read_bytes()
    except OSError as error:
        raise BadFile(f"{data['png']}: cannot be read: {error.strerror}") from error
    colours = decode_keys(png, Encoding("colour"))
    if colours.shape != (canvas.height, canvas.width):
        raise BadFile(
            f"{data['png']}: is {colours.shape[1]} x {colours.shape[0]} pixels; expected "
            f"{canvas.width} x {canvas.height}"
        )
    ids = turned(colours)
    values, positions = np.unique(ids, return_inverse=True)
    keys: Mapping[int, int] = dict(data["keys"])
    if odd := [value for value in values.tolist() if value and value not in keys]:
        raise BadFile(f"{data['png']}: segment {odd[0]} is not in segments_info")
    background = canvas.getpixel((0, 0))
    table = np.array([keys[value] if value else background for value in values.tolist()])
    pixels = table[positions].reshape(ids.shape)
    canvas.paste(Image.fromarray(pixels.astype(np.int32 if canvas.mode == "I" else np.uint8)))


def _paste(
    canvas: Image.Image, key: int, mask: npt.NDArray[np.bool_], corner: tuple[int, int]
) -> None:
    canvas.paste(key, (*corner, corner[0] + mask.shape[1], corner[1] + mask.shape[0]),
                 Image.fromarray(np.ascontiguousarray(mask)))  # fmt: skip


PAINTERS: Mapping[str, Callable[[Image.Image, int, Any], None]] = {
    "polygon": _polygon, "outlined_polygon": _outlined_polygon, "rectangle": _rectangle,
    "circle": _circle, "bitmap": _bitmap, "path": _path, "coco": _coco, "rows": _rows,
    "ellipse": _ellipse, "panoptic": _panoptic,
}  # fmt: skip
"""How each kind of shape is painted: into a canvas, with a key, by its data."""
