"""Guard rails, fences and road works: things that run along the street."""

from sample_data.classes import class_id
from sample_data.painter import Painter
from sample_data.street import Street
from sample_data.styles import Colour


def paint_guard_rail(painter: Painter, street: Street, start: float, offset: float) -> None:
    """Paints 4 m of guard rail beginning `start` metres ahead; class Road blocks."""
    label = class_id("Road blocks")
    _upright(painter, street, (start, start + 0.15), offset, (0.0, 0.7), label, (112, 116, 120))
    _upright(painter, street, (start, start + 4.05), offset, (0.42, 0.76), label, (172, 176, 180))
    _upright(painter, street, (start, start + 4.05), offset, (0.56, 0.62), label, (134, 138, 142))


def paint_fence(painter: Painter, street: Street, start: float, offset: float) -> None:
    """Paints 5 m of mesh fence beginning `start` metres ahead; class Grid structure."""
    label = class_id("Grid structure")
    _upright(painter, street, (start, start + 5.05), offset, (0.05, 1.9), label, (124, 136, 126))
    for post in range(6):
        at = start + post
        _upright(painter, street, (at, at + 0.09), offset, (0.0, 1.95), label, (82, 92, 84))
    for height in (0.5, 1.0, 1.5):
        span = (height, height + 0.06)
        _upright(painter, street, (start, start + 5.05), offset, span, label, (92, 102, 94))


def paint_barrier(painter: Painter, street: Street, start: float, offset: float) -> None:
    """Paints a red and white road-works barrier 2.4 m long; class Road blocks."""
    label = class_id("Road blocks")
    for segment in range(6):
        colour: Colour = (206, 48, 42) if segment % 2 else (236, 236, 232)
        sides = (offset + 0.4 * segment, offset + 0.4 * (segment + 1))
        corners = [
            street.point(start, sides[0], 0.55),
            street.point(start, sides[1], 0.55),
            street.point(start, sides[1], 1.0),
            street.point(start, sides[0], 1.0),
        ]
        painter.polygon(corners, label, colour)
    for side in (offset + 0.1, offset + 2.1):
        corners = [
            street.point(start, side, 0.0),
            street.point(start, side + 0.2, 0.0),
            street.point(start, side + 0.2, 0.55),
            street.point(start, side, 0.55),
        ]
        painter.polygon(corners, label, (60, 60, 62))


def _upright(
    painter: Painter,
    street: Street,
    along: tuple[float, float],
    offset: float,
    heights: tuple[float, float],
    label: int,
    colour: Colour,
) -> None:
    """A flat upright piece running along the street."""
    (near, far), (low, high) = along, heights
    corners = [
        street.point(near, offset, low),
        street.point(far, offset, low),
        street.point(far, offset, high),
        street.point(near, offset, high),
    ]
    painter.polygon(corners, label, colour)
