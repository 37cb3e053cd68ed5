"""Solids and flat cut-outs in the vehicle frame, painted part by part."""

from dataclasses import dataclass
from math import atan2, cos, hypot, pi, sin

from sample_data.cameras import Point3
from sample_data.painter import Painter
from sample_data.styles import Colour

Outline = list[tuple[float, float]]


@dataclass(frozen=True)
class Pose:
    """A place on the ground and a direction of travel."""

    x: float
    """Metres ahead of the vehicle."""
    y: float
    """Metres to its left."""
    heading: float = 0.0
    """Turn to the left, radians."""
    z: float = 0.0
    """Height over the ground, metres."""

    def at(self, forward: float, left: float, up: float) -> Point3:
        """A point given relative to this pose, in the vehicle frame."""
        c, s = cos(self.heading), sin(self.heading)
        return (
            self.x + c * forward - s * left,
            self.y + s * forward + c * left,
            self.z + up,
        )


@dataclass(frozen=True)
class Face:
    """One side of a block: corners bottom left, bottom right, top right, top left from outside."""

    side: str
    corners: tuple[Point3, Point3, Point3, Point3]
    shade: float

    def patch(self, u0: float, v0: float, u1: float, v1: float) -> list[Point3]:
        """The part from (u0, v0) to (u1, v1); u runs to the right, v up, both 0 to 1."""
        return [self.point(u0, v0), self.point(u1, v0), self.point(u1, v1), self.point(u0, v1)]

    def point(self, u: float, v: float) -> Point3:
        """A point of the face."""
        a, b, c, d = self.corners
        x, y, z = (
            (1 - v) * ((1 - u) * a[i] + u * b[i]) + v * ((1 - u) * d[i] + u * c[i])
            for i in range(3)
        )
        return x, y, z


def block_faces(
    painter: Painter,
    pose: Pose,
    span: tuple[float, float, float, float, float, float],
    inset: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> list[Face]:
    """The sides of a block that the camera sees.

    Args:
        span: (rear, front, right, left, bottom, top) relative to the pose, metres.
        inset: How much the top is drawn in at the rear, the front and both flanks, metres.
    """
    rear, front, right, left, low, top = span
    cut_rear, cut_front, cut_side = inset
    base = [
        pose.at(f, s, low) for f, s in ((rear, left), (rear, right), (front, right), (front, left))
    ]
    roof = [
        pose.at(f, s, top)
        for f, s in (
            (rear + cut_rear, left - cut_side),
            (rear + cut_rear, right + cut_side),
            (front - cut_front, right + cut_side),
            (front - cut_front, left - cut_side),
        )
    ]
    sides = [
        (name, (base[i], base[j], roof[j], roof[i]))
        for name, i, j in (("rear", 0, 1), ("right", 1, 2), ("front", 2, 3), ("left", 3, 0))
    ]
    sides.append(("top", (roof[0], roof[1], roof[2], roof[3])))
    faces = []
    for name, corners in sides:
        normal = _normal(corners)
        eye = painter.camera.position
        if sum((eye[i] - corners[0][i]) * normal[i] for i in range(3)) > 0:
            sun = sum(normal[i] * painter.light.sun[i] for i in range(3))
            faces.append(Face(name, corners, 0.68 + 0.36 * max(0.0, sun)))
    return faces


def paint_block(
    painter: Painter,
    pose: Pose,
    span: tuple[float, float, float, float, float, float],
    label: int,
    colour: Colour,
    inset: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> list[Face]:
    """Paints a block and returns the sides that the camera sees."""
    faces = block_faces(painter, pose, span, inset)
    for face in faces:
        painter.polygon(list(face.corners), label, colour, face.shade)
    return faces


def paint_disc(
    painter: Painter,
    pose: Pose,
    centre: tuple[float, float, float],
    radius: float,
    label: int,
    colour: Colour,
) -> None:
    """Paints an upright disc lying in the plane of a pose's heading, such as a wheel."""
    forward, left, up = centre
    points = [pose.at(forward + radius * c, left, up + radius * s) for c, s in _CIRCLE]
    painter.polygon(points, label, colour, 0.9)


def facing(painter: Painter, x: float, y: float, turn: float = 0.0) -> Pose:
    """A pose whose left-right axis crosses the line of sight, for flat cut-outs.

    A cut-out's u runs to the right as the camera sees it; `turn` swings it out of that plane.
    """
    eye = painter.camera.position
    return Pose(x, y, atan2(y - eye[1], x - eye[0]) + turn)


def paint_cutout(
    painter: Painter,
    pose: Pose,
    outline: Outline,
    label: int | None,
    colour: Colour,
    shade: float = 1.0,
) -> None:
    """Paints a flat outline of (u, v) metres standing across a pose's heading."""
    painter.polygon([pose.at(0.0, -u, v) for u, v in outline], label, colour, shade)


def circle(u: float, v: float, radius: float, stretch: float = 1.0) -> Outline:
    """The outline of a circle, `stretch` times as high as wide."""
    return [(u + radius * c, v + radius * stretch * s) for c, s in _CIRCLE]


def bar(u0: float, v0: float, u1: float, v1: float, thick: float) -> Outline:
    """The outline of a straight bar from (u0, v0) to (u1, v1)."""
    length = hypot(u1 - u0, v1 - v0) or 1.0
    du = -(v1 - v0) / length * thick / 2
    dv = (u1 - u0) / length * thick / 2
    return [(u0 + du, v0 + dv), (u1 + du, v1 + dv), (u1 - du, v1 - dv), (u0 - du, v0 - dv)]


def box(u0: float, v0: float, u1: float, v1: float) -> Outline:
    """The outline of an upright rectangle."""
    return [(u0, v0), (u1, v0), (u1, v1), (u0, v1)]


def _normal(corners: tuple[Point3, Point3, Point3, Point3]) -> Point3:
    """The outward normal of a face, length 1."""
    a, b, _, d = corners
    p = (b[0] - a[0], b[1] - a[1], b[2] - a[2])
    q = (d[0] - a[0], d[1] - a[1], d[2] - a[2])
    n = (
        p[1] * q[2] - p[2] * q[1],
        p[2] * q[0] - p[0] * q[2],
        p[0] * q[1] - p[1] * q[0],
    )
    length = (n[0] ** 2 + n[1] ** 2 + n[2] ** 2) ** 0.5 or 1.0
    return n[0] / length, n[1] / length, n[2] / length


_CIRCLE = [(cos(2 * pi * i / 16), sin(2 * pi * i / 16)) for i in range(16)]
