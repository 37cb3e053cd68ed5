"""Cars, trucks and other vehicles."""

import numpy as np

from sample_data.painter import Painter
from sample_data.shapes import Face, Pose, paint_block, paint_disc
from sample_data.styles import Colour

_GLASS: Colour = (38, 48, 60)
_TYRE: Colour = (26, 26, 28)
_RIM: Colour = (128, 130, 134)
_LAMP: Colour = (196, 26, 22)
_HEADLAMP: Colour = (236, 236, 220)
_PLATE: Colour = (226, 228, 230)
_SHADOW: Colour = (44, 44, 48)

CAR_PAINTS: tuple[Colour, ...] = (
    (34, 36, 42),
    (176, 180, 186),
    (226, 228, 230),
    (38, 62, 118),
    (150, 30, 34),
    (96, 100, 106),
    (70, 82, 74),
    (112, 90, 66),
)
TRUCK_PAINTS: tuple[Colour, ...] = (
    (222, 224, 226),
    (42, 78, 140),
    (190, 60, 40),
    (60, 112, 86),
    (206, 186, 120),
)

_CAR_BODIES = (
    # length, width, waist, roof, rear inset, front inset
    (4.2, 1.78, 0.92, 1.48, 0.25, 0.85),
    (4.7, 1.84, 0.95, 1.44, 0.75, 0.95),
    (4.5, 1.86, 1.02, 1.68, 0.2, 0.8),
    (3.7, 1.66, 0.9, 1.5, 0.12, 0.6),
)


def paint_car(painter: Painter, pose: Pose, rng: np.random.Generator) -> None:
    """Paints a passenger car or, one time in eight, a van; both are class Car."""
    paint = CAR_PAINTS[rng.integers(len(CAR_PAINTS))]
    kind = int(rng.integers(8))
    length, width, waist, roof, rear_cut, front_cut = _CAR_BODIES[kind % len(_CAR_BODIES)]
    if kind == 7:
        length, width, waist, roof, rear_cut, front_cut = 5.1, 1.95, 1.15, 2.2, 0.06, 1.3
    half, side = length / 2, width / 2
    label = painter.instance("Car", _hull(pose, half, side, roof))
    _paint_shadow(painter, pose, half, side)
    _paint_underside(painter, pose, half, side, label)
    body = paint_block(
        painter, pose, (-half, half, -side, side, 0.26, waist), label, paint, (0.06, 0.14, 0.04)
    )
    for face in body:
        _paint_lamps(painter, face, label, paint)
    _paint_wheels(painter, pose, body, half * 0.62, side, 0.33, label)
    nose = half * 0.34 if kind != 7 else half * 0.78
    cabin = (-half + 0.08, nose, -side + 0.06, side - 0.06, waist, roof)
    for face in paint_block(painter, pose, cabin, label, paint, (rear_cut, front_cut, 0.16)):
        _paint_windows(painter, face, label)


def paint_truck(painter: Painter, pose: Pose, rng: np.random.Generator) -> None:
    """Paints a lorry: cab, box and, on some, a coloured band along the box."""
    paint = TRUCK_PAINTS[rng.integers(len(TRUCK_PAINTS))]
    band = TRUCK_PAINTS[rng.integers(len(TRUCK_PAINTS))]
    half = 3.6 + 2.2 * float(rng.random())
    top = 3.3 + 0.5 * float(rng.random())
    side = 1.24
    label = painter.instance("Truck", _hull(pose, half, side, top))
    _paint_shadow(painter, pose, half, side)
    _paint_underside(painter, pose, half, side, label)
    cab = Pose(*pose.at(half - 1.1, 0.0, 0.0)[:2], pose.heading)
    cargo = Pose(*pose.at(-1.2, 0.0, 0.0)[:2], pose.heading)
    cab_nearer = painter.camera.depth_m(cab.at(0, 0, 1)) < painter.camera.depth_m(cargo.at(0, 0, 1))
    if not cab_nearer:
        _paint_cab(painter, cab, side, label, band)
    chassis = (-half + 1.2, half - 1.1, -side, side, 0.45, 1.05)
    frame = paint_block(painter, cargo, chassis, label, (52, 54, 58))
    for face in frame:
        if face.side == "rear":
            for u in (0.04, 0.82):
                painter.polygon(face.patch(u, 0.35, u + 0.14, 0.7), label, _LAMP)
            painter.polygon(face.patch(0.4, 0.3, 0.62, 0.62), label, _PLATE)
    _paint_wheels(painter, cargo, frame, (half - 1.2) * 0.66, side, 0.5, label)
    for face in paint_block(
        painter, cargo, (-half + 1.2, half - 1.1, -side, side, 1.05, top), label, paint
    ):
        if face.side in ("left", "right"):
            painter.polygon(face.patch(0.0, 0.3, 1.0, 0.52), label, band, face.shade)
        elif face.side == "rear":
            painter.polygon(face.patch(0.49, 0.02, 0.51, 0.98), label, (80, 82, 86))
            painter.polygon(face.patch(0.1, 0.55, 0.9, 0.75), label, band, face.shade)
    if cab_nearer:
        _paint_cab(painter, cab, side, label, band)


def _paint_cab(painter: Painter, pose: Pose, side: float, label: int, paint: Colour) -> None:
    """The cab of a lorry, 2.2 m long around a pose."""
    for face in paint_block(
        painter, pose, (-1.1, 1.1, -side, side, 0.45, 2.9), label, paint, (0.0, 0.25, 0.06)
    ):
        if face.side == "front":
            painter.polygon(face.patch(0.06, 0.5, 0.94, 0.86), label, _GLASS)
            painter.polygon(face.patch(0.12, 0.16, 0.88, 0.36), label, (46, 48, 52))
        if face.side in ("left", "right"):
            painter.polygon(face.patch(0.4, 0.52, 0.9, 0.84), label, _GLASS)
        if face.side in ("front", "left", "right"):
            painter.polygon(face.patch(0.0, 0.0, 1.0, 0.1), label, _SHADOW)


def paint_utility_vehicle(painter: Painter, pose: Pose, rng: np.random.Generator) -> None:
    """Paints an excavator or a sweeper in orange."""
    half, side = 2.3, 1.15
    label = painter.instance("Utility vehicle", _hull(pose, half, side, 3.0))
    orange = (224, 138, 28)
    _paint_shadow(painter, pose, half, side)
    paint_block(painter, pose, (-half, half, -side, side, 0.0, 0.75), label, (48, 46, 44))
    paint_block(painter, pose, (-half, 0.6, -side, side, 0.75, 1.7), label, orange)
    for face in paint_block(
        painter, pose, (-0.4, 0.9, -side + 0.1, 0.3, 0.75, 2.8), label, orange, (0.1, 0.2, 0.05)
    ):
        if face.side != "top":
            painter.polygon(face.patch(0.12, 0.45, 0.88, 0.92), label, _GLASS)
    if rng.random() < 0.6:
        for span in ((0.6, 1.0, 0.35, 0.75, 0.9, 3.6), (0.8, 3.2, 0.35, 0.75, 3.2, 3.6)):
            paint_block(painter, pose, span, label, orange)
        paint_block(painter, pose, (2.8, 3.3, 0.2, 0.9, 0.6, 3.3), label, (86, 80, 70))


def paint_tractor(painter: Painter, pose: Pose) -> None:
    """Paints a farm tractor in green with yellow rims."""
    label = painter.instance("Tractor", _hull(pose, 2.0, 1.1, 2.7))
    green = (44, 112, 52)
    _paint_shadow(painter, pose, 2.0, 1.1)
    paint_block(painter, pose, (0.2, 1.9, -0.5, 0.5, 0.7, 1.6), label, green)
    for face in paint_block(
        painter, pose, (-1.5, 0.3, -0.8, 0.8, 1.0, 2.7), label, green, (0.1, 0.1, 0.08)
    ):
        if face.side != "top":
            painter.polygon(face.patch(0.08, 0.3, 0.92, 0.9), label, _GLASS)
    for left in (-1.05, 0.75):
        paint_block(painter, pose, (-1.8, -0.2, left, left + 0.36, 0.0, 1.6), label, _TYRE)
        paint_block(painter, pose, (1.0, 1.9, left, left + 0.3, 0.0, 0.95), label, _TYRE)
    for left in (-1.06, 1.12):
        paint_disc(painter, pose, (-1.0, left, 0.8), 0.42, label, (212, 186, 44))


def _hull(pose: Pose, half: float, side: float, top: float) -> list[tuple[float, float, float]]:
    """The corners of a vehicle's bounding block."""
    return [
        pose.at(forward, left, up)
        for forward in (-half, half)
        for left in (-side, side)
        for up in (0.0, top)
    ]


def _paint_shadow(painter: Painter, pose: Pose, half: float, side: float) -> None:
    """The dark ground under a vehicle; the label keeps the ground's class."""
    reach_x, reach_y = half + 0.12, side + 0.16
    corners = ((-reach_x, -reach_y), (-reach_x, reach_y), (reach_x, reach_y), (reach_x, -reach_y))
    painter.polygon([pose.at(f, s, 0.01) for f, s in corners], None, _SHADOW)


def _paint_underside(painter: Painter, pose: Pose, half: float, side: float, label: int) -> None:
    """Tyres and the dark gap between them, as seen along the vehicle."""
    for end in (-half * 0.86, half * 0.82):
        for left in (-side, side - 0.24):
            span = (end - 0.1, end + 0.1, left + 0.02, left + 0.22, 0.0, 0.4)
            paint_block(painter, pose, span, label, _TYRE)
    span = (-half + 0.1, half - 0.1, -side + 0.1, side - 0.1, 0.16, 0.3)
    paint_block(painter, pose, span, label, (30, 30, 32))


def _paint_wheels(
    painter: Painter,
    pose: Pose,
    faces: list[Face],
    axle: float,
    side: float,
    radius: float,
    label: int,
) -> None:
    """The wheels on the flank that the camera sees."""
    for face in faces:
        if face.side not in ("left", "right"):
            continue
        left = (side + 0.01) * (1 if face.side == "left" else -1)
        for forward in (-axle, axle):
            paint_disc(painter, pose, (forward, left, radius), radius, label, _TYRE)
            paint_disc(painter, pose, (forward, left, radius), radius * 0.6, label, _RIM)


def _paint_lamps(painter: Painter, face: Face, label: int, paint: Colour) -> None:
    """Lamps, plate and bumper on a car's rear or front, a sill on its flanks."""
    dark = (paint[0] // 2 + 12, paint[1] // 2 + 12, paint[2] // 2 + 12)
    painter.polygon(face.patch(0.0, 0.0, 1.0, 0.2), label, dark, face.shade)
    if face.side == "rear":
        lamp = _LAMP
    elif face.side == "front":
        lamp = _HEADLAMP
        painter.polygon(face.patch(0.3, 0.3, 0.7, 0.62), label, (30, 32, 36))
    else:
        return
    for u in (0.02, 0.78):
        painter.polygon(face.patch(u, 0.56, u + 0.2, 0.88), label, lamp)
    painter.polygon(face.patch(0.36, 0.26, 0.64, 0.46), label, _PLATE)


def _paint_windows(painter: Painter, face: Face, label: int) -> None:
    """The glass of a cabin's side; flanks have a pillar in the middle."""
    if face.side == "top":
        return
    if face.side in ("rear", "front"):
        painter.polygon(face.patch(0.06, 0.12, 0.94, 0.9), label, _GLASS)
        painter.polygon(face.patch(0.12, 0.5, 0.5, 0.86), label, (66, 78, 92))
        return
    for u in (0.05, 0.53):
        painter.polygon(face.patch(u, 0.1, u + 0.42, 0.86), label, _GLASS)
