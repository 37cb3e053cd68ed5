"""The ground: carriageway, markings, kerbs, pavements and verges."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sample_data.cameras import Point3
from sample_data.classes import class_id
from sample_data.painter import Painter
from sample_data.styles import Colour, SceneStyle

_STATIONS_M = (
    -90.0, -50.0, -30.0, -18.0, -11.0, -7.0, -4.0, -2.0, 0.0, 2.0, 4.0, 5.5, 7.0, 9.0, 11.5,
    15.0, 20.0, 27.0, 36.0, 48.0, 64.0, 86.0, 115.0, 155.0, 195.0, 228.0,
)  # fmt: skip
"""Distances at which the street's outline is sampled [m ahead]; finer where a metre is more
pixels."""

_ASPHALT: Colour = (104, 104, 108)
_WHITE: Colour = (222, 222, 218)
_GRASS: Colour = (112, 124, 66)
_PAVING: Colour = (158, 150, 144)
_KERB: Colour = (182, 182, 176)
_COBBLE: Colour = (128, 116, 108)
_PARKING: Colour = (128, 126, 132)

_PARKING_M = 2.3
_KERB_M = 0.22
_WALK_M = 2.6


@dataclass(frozen=True)
class Street:
    """Where the street runs; offsets count from the middle of the own lane, left positive."""

    style: SceneStyle
    """The scene's style."""
    shift_m: float
    """Offset of the lane's middle at x = 0."""
    heading: float
    """Its direction at x = 0, radians."""
    curvature: float
    """1 / radius, per metre."""

    @property
    def lanes_right_m(self) -> float:
        """Offset of the carriageway's right edge."""
        return -self.style.lane_m * (0.5 + self.style.lanes_right)

    @property
    def lanes_left_m(self) -> float:
        """Offset of the carriageway's left edge."""
        return self.style.lane_m * (0.5 + self.style.lanes_left)

    @property
    def kerb_right_m(self) -> float:
        """Offset of the right kerb, outside a row of parked cars."""
        return self.lanes_right_m - (_PARKING_M if self.style.parking else 0.3)

    @property
    def kerb_left_m(self) -> float:
        """Offset of the left kerb, outside a row of parked cars."""
        return self.lanes_left_m + (_PARKING_M if self.style.parking else 0.3)

    @property
    def outer_right_m(self) -> float:
        """Offset of the right end of everything paved."""
        return self.kerb_right_m - (_KERB_M + _WALK_M if self.style.sidewalk else 0.6)

    @property
    def outer_left_m(self) -> float:
        """Offset of the left end of everything paved."""
        return self.kerb_left_m + (_KERB_M + _WALK_M if self.style.sidewalk else 0.6)

    def point(self, x: float, offset: float, z: float = 0.0) -> Point3:
        """The place `x` metres ahead and `offset` metres left of the own lane's middle."""
        return x, self.shift_m + offset + self.heading * x + self.curvature * x * x / 2, z

    def direction(self, x: float) -> float:
        """The street's direction at `x`, radians."""
        return self.heading + self.curvature * x


def paint_ground(painter: Painter, street: Street, rng: np.random.Generator) -> None:
    """Paints everything that lies flat."""
    grass = _varied(_GRASS, 12, rng)
    far = 4000.0
    corners = [(-far, -far, 0.0), (-far, far, 0.0), (far, far, 0.0), (far, -far, 0.0)]
    for reach in (far, 120.0, 60.0, 32.0, 16.0):
        shade = 0.86 + 0.14 * min(1.0, reach / 120)
        flat, _ = painter.camera.project(
            [(reach / far * x, reach / far * y, 0.0) for x, y, _ in corners]
        )
        colour = painter.lit(grass, shade, min(reach, 200.0))
        painter.flat_polygon(flat, class_id("Nature object"), colour)
    _paint_sides(painter, street)
    asphalt = _varied(_ASPHALT, 12, rng)
    road = class_id("RD normal street")
    _strip(painter, street, street.lanes_right_m - 0.3, street.lanes_left_m + 0.3, road, asphalt)
    _paint_repairs(painter, street, asphalt, rng)
    if street.style.cobblestone:
        cobble = class_id("Drivable cobblestone")
        for inner, outer in (
            (street.lanes_right_m + 1.0, street.lanes_right_m - 0.3),
            (street.lanes_left_m - 1.0, street.lanes_left_m + 0.3),
        ):
            _strip(painter, street, inner, outer, cobble, _COBBLE)
        start = 22.0 + 8.0 * float(rng.random())
        _slab(painter, street, start, start + 14, street.lanes_right_m, street.lanes_left_m,
              cobble, _COBBLE)  # fmt: skip
    _paint_lines(painter, street)
    _paint_crossing_marks(painter, street, rng)


def _paint_sides(painter: Painter, street: Street) -> None:
    """Parking strips, kerbs, pavements, the median and hard shoulders."""
    style = street.style
    for kerb, lane, sign in (
        (street.kerb_right_m, street.lanes_right_m, -1.0),
        (street.kerb_left_m, street.lanes_left_m, 1.0),
    ):
        outer = kerb + sign * (_KERB_M + _WALK_M)
        if style.sidewalk:
            _strip(painter, street, kerb, outer, class_id("Sidewalk"), _PAVING)
            _strip(painter, street, kerb, kerb + sign * _KERB_M, class_id("Curbstone"), _KERB)
        elif style.guard_rail:
            label = class_id("Non-drivable street")
            _strip(painter, street, lane, lane + sign * 2.4, label, (112, 112, 114))
        else:
            _strip(painter, street, lane, lane + sign * 1.1, class_id("Nature object"),
                   (140, 128, 92))  # fmt: skip
        if style.parking:
            _strip(painter, street, lane, kerb, class_id("Parking area"), _PARKING)
    if style.median:
        inner = street.lanes_left_m + 0.3
        _strip(painter, street, inner, inner + 2.2, class_id("Nature object"), (118, 130, 70))
        for edge in (inner, inner + 2.2):
            _strip(painter, street, edge, edge + _KERB_M, class_id("Curbstone"), _KERB)
        _strip(painter, street, inner + 2.42, inner + 9.2, class_id("RD normal street"), _ASPHALT)
        _strip(painter, street, inner + 9.2, inner + 9.42, class_id("Curbstone"), _KERB)
        _strip(painter, street, inner + 9.42, inner + 12, class_id("Sidewalk"), _PAVING)


def _paint_repairs(
    painter: Painter, street: Street, asphalt: Colour, rng: np.random.Generator
) -> None:
    """Wheel tracks and patches of newer asphalt; they do not change the class."""
    half = street.style.lane_m / 2
    for lane in range(-street.style.lanes_right, street.style.lanes_left + 1):
        middle = lane * 2 * half
        for track in (-0.75, 0.75):
            _strip(painter, street, middle + track - 0.25, middle + track + 0.25, None,
                   (asphalt[0] - 7, asphalt[1] - 7, asphalt[2] - 6))  # fmt: skip
    for _ in range(int(rng.integers(1, 5))):
        start = 4.0 + 30.0 * float(rng.random())
        side = street.lanes_right_m + float(rng.random()) * (
            street.lanes_left_m - street.lanes_right_m - 1.6
        )
        dark = 10 + int(rng.integers(10))
        _slab(painter, street, start, start + 2 + 6 * float(rng.random()), side, side + 1.5, None,
              (asphalt[0] - dark, asphalt[1] - dark, asphalt[2] - dark))  # fmt: skip


def _paint_lines(painter: Painter, street: Street) -> None:
    """Edge lines and the lines between lanes."""
    style = street.style
    solid, dashed = class_id("Solid line"), class_id("Dashed line")
    if not style.cobblestone:
        for edge in (street.lanes_right_m, street.lanes_left_m):
            _strip(painter, street, edge - 0.08, edge + 0.08, solid, _WHITE)
    dash, gap = (6.0, 12.0) if style.guard_rail else (3.0, 6.0)
    for lane in range(-style.lanes_right, style.lanes_left):
        offset = (lane + 0.5) * style.lane_m
        start = -40.0 + 3.7 * (lane % 2)
        while start < 120:
            _slab(painter, street, start, start + dash, offset - 0.08, offset + 0.08, dashed,
                  _WHITE)  # fmt: skip
            start += dash + gap


def _paint_crossing_marks(painter: Painter, street: Street, rng: np.random.Generator) -> None:
    """A zebra crossing with its stop line, arrows, humps and hatched areas, where they fit."""
    style = street.style
    chances = rng.random(5)
    left, right = street.lanes_left_m, street.lanes_right_m
    start = 15.0 + 22.0 * float(rng.random())
    if style.sidewalk and chances[0] < (0.5 if style.signals else 0.12):
        offset = right + 0.3
        while offset < left - 0.4:
            _slab(painter, street, start, start + 3.5, offset, offset + 0.5,
                  class_id("Zebra crossing"), _WHITE)  # fmt: skip
            offset += 1.0
        _slab(painter, street, start - 2.0, start - 1.5, right + 0.2, style.lane_m / 2 - 0.15,
              class_id("Solid line"), _WHITE)  # fmt: skip
    if chances[1] < (0.5 if style.signals or style.guard_rail else 0.1):
        lane = -style.lanes_right * style.lane_m
        _paint_arrow(painter, street, 8.0 + 6.0 * float(rng.random()), lane)
    if style.parking and chances[2] < 0.08:
        for stripe in range(4):
            _slab(painter, street, 13.0, 13.6, right + 0.8 * stripe, right + 0.8 * stripe + 0.6,
                  class_id("Speed bumper"), (202, 172, 50))  # fmt: skip
    if style.sidewalk and chances[3] < 0.1:
        _slab(painter, street, 26.0, 32.0, right, style.lane_m / 2 - 0.1,
              class_id("Slow drive area"), (150, 96, 84))  # fmt: skip
    if not style.parking and chances[4] < 0.35:
        label = class_id("RD restricted area")
        _slab(painter, street, 9.0, 34.0, right - 0.2, right + 0.7, label, (120, 120, 122))
        for stripe in range(9):
            at = 9.5 + 2.7 * stripe
            _slab(painter, street, at, at + 0.9, right - 0.2, right + 0.7, label, _WHITE)


def _paint_arrow(painter: Painter, street: Street, start: float, lane: float) -> None:
    """An arrow painted on a lane, pointing ahead."""
    outline = (
        (0.0, -0.1), (3.0, -0.1), (3.0, -0.45), (5.0, 0.0), (3.0, 0.45), (3.0, 0.1), (0.0, 0.1),
    )  # fmt: skip
    points = [street.point(start + ahead, lane + left) for ahead, left in outline]
    painter.polygon(points, class_id("Painted driv. instr."), _WHITE)


def _strip(
    painter: Painter, street: Street, first: float, second: float, label: int | None, colour: Colour
) -> None:
    """A band along the whole street between two offsets."""
    for near, far in pairwise(_STATIONS_M):
        _slab(painter, street, near, far, first, second, label, colour)


def _slab(
    painter: Painter,
    street: Street,
    near: float,
    far: float,
    first: float,
    second: float,
    label: int | None,
    colour: Colour,
) -> None:
    """A piece of ground from `near` to `far` metres ahead between two offsets."""
    corners = [
        street.point(near, first),
        street.point(near, second),
        street.point(far, second),
        street.point(far, first),
    ]
    painter.polygon(corners, label, colour)


def _varied(colour: Colour, spread: int, rng: np.random.Generator) -> Colour:
    """A colour made brighter or darker by up to `spread`."""
    shift = int(rng.integers(-spread, spread + 1))
    return colour[0] + shift, colour[1] + shift, colour[2] + shift
