"""Paints one polygon into the camera picture and, with the same outline, into the label."""

from math import exp

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sample_data.cameras import HEIGHT_PX, WIDTH_PX, Camera, Point2, Point3
from sample_data.classes import IDS_OF_CLASS, class_id
from sample_data.styles import Colour, Light

_TOUCH_PX = 3
"""Instances nearer to each other than this in the picture get different numbers."""


class Painter:
    """A camera picture and its class ids, painted from far to near.

    Attributes:
        camera: Where it is seen from.
        light: In what light.
        ids: "L" picture of class ids.
        rgb: "RGB" camera picture.
    """

    def __init__(self, camera: Camera, light: Light) -> None:
        self.camera = camera
        self.light = light
        self.ids = Image.new("L", (WIDTH_PX, HEIGHT_PX), class_id("Sky"))
        self.rgb = Image.new("RGB", (WIDTH_PX, HEIGHT_PX), light.sky_low)
        self._draw_ids = ImageDraw.Draw(self.ids)
        self._draw_rgb = ImageDraw.Draw(self.rgb)
        self._instances: dict[str, list[tuple[int, tuple[float, float, float, float]]]] = {}

    def polygon(
        self, points: list[Point3], label: int | None, colour: Colour, shade: float = 1.0
    ) -> None:
        """Paints a polygon given in the vehicle frame.

        Args:
            points: Corners in order, metres.
            label: Class id; None leaves the label as it is (a shadow, for example).
            colour: Colour of the surface under white light.
            shade: Part of the light that falls on it.
        """
        flat, depth_m = self.camera.project(points)
        if len(flat) >= 3:
            self.flat_polygon(flat, label, self.lit(colour, shade, depth_m))

    def flat_polygon(self, points: list[Point2], label: int | None, colour: Colour) -> None:
        """Paints a polygon given in the picture, pixels, in exactly this colour."""
        pixels = [(round(x), round(y)) for x, y in points]
        self._draw_rgb.polygon(pixels, fill=colour)
        if label is not None:
            self._draw_ids.polygon(pixels, fill=label)

    def lit(self, colour: Colour, shade: float, depth_m: float) -> Colour:
        """The colour that a surface shows in this light from this distance."""
        clear = exp(-depth_m / self.light.haze_m)
        red, green, blue = (
            min(255, max(0, round(channel * shade * tint * clear + far * (1 - clear))))
            for channel, tint, far in zip(colour, self.light.tint, self.light.sky_low, strict=True)
        )
        return red, green, blue

    def instance(self, class_name: str, hull: list[Point3]) -> int:
        """A class id for a new object: the first number that no object touching it has.

        Args:
            class_name: Such as "Car".
            hull: Points that enclose the object, metres.
        """
        members = IDS_OF_CLASS[class_name]
        flat, _ = self.camera.project(hull)
        if not flat:
            return members[0]
        xs = [x for x, _ in flat]
        ys = [y for _, y in flat]
        box = (min(xs) - _TOUCH_PX, min(ys) - _TOUCH_PX, max(xs) + _TOUCH_PX, max(ys) + _TOUCH_PX)
        before = self._instances.setdefault(class_name, [])
        used = {number for number, other in before if _overlap(box, other)}
        free = [number for number in members if number not in used]
        chosen = free[0] if free else members[len(before) % len(members)]
        before.append((chosen, box))
        return chosen

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The camera picture (H, W, 3) uint8 RGB and the class ids (H, W) uint8, as copies."""
        return np.array(self.rgb), np.array(self.ids)


def _overlap(
    first: tuple[float, float, float, float], second: tuple[float, float, float, float]
) -> bool:
    """Return whether two boxes (left, top, right, bottom) share a point."""
    return (
        first[0] <= second[2]
        and second[0] <= first[2]
        and first[1] <= second[3]
        and second[1] <= first[3]
    )
