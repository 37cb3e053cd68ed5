"""Pedestrians, cyclists, motorcyclists and animals, as flat cut-outs towards the camera."""

import numpy as np

from sample_data.painter import Painter
from sample_data.shapes import Outline, Pose, bar, box, circle, facing, paint_cutout
from sample_data.styles import Colour

_SKIN: tuple[Colour, ...] = ((222, 178, 148), (190, 140, 108), (128, 86, 62))
_HAIR: tuple[Colour, ...] = ((44, 34, 28), (108, 78, 44), (176, 168, 160))
_COATS: tuple[Colour, ...] = (
    (176, 44, 48),
    (44, 70, 134),
    (60, 60, 66),
    (196, 168, 92),
    (70, 120, 96),
    (210, 208, 204),
)
_TROUSERS: tuple[Colour, ...] = ((40, 46, 66), (62, 58, 54), (92, 84, 72))
_TYRE: Colour = (30, 30, 32)
_SPOKES: Colour = (92, 94, 98)


def paint_pedestrian(painter: Painter, x: float, y: float, rng: np.random.Generator) -> None:
    """Paints a walking person at (x, y)."""
    pose = facing(painter, x, y)
    tall = 1.6 + 0.28 * float(rng.random())
    stride = 0.1 + 0.22 * float(rng.random())
    coat, trousers = _pick(rng, _COATS), _pick(rng, _TROUSERS)
    skin, hair = _pick(rng, _SKIN), _pick(rng, _HAIR)
    hull = [pose.at(0.0, u, v) for u in (-0.4, 0.4) for v in (0.0, tall)]
    label = painter.instance("Pedestrian", hull)
    _paint_shadow(painter, pose, 0.35)
    hip, neck = 0.48 * tall, 0.84 * tall
    parts: list[tuple[Outline, Colour]] = [
        (bar(0.02, hip, stride, 0.04, 0.2), _darker(trousers)),
        (bar(-0.02, hip, -stride, 0.04, 0.2), trousers),
        (box(stride - 0.08, 0.0, stride + 0.16, 0.09), _TYRE),
        (box(-stride - 0.08, 0.0, -stride + 0.16, 0.09), _TYRE),
        (bar(0.2, neck - 0.08, 0.3, hip - 0.04, 0.13), _darker(coat)),
        ([(-0.2, hip - 0.06), (0.2, hip - 0.06), (0.25, neck - 0.08), (0.1, neck),
          (-0.1, neck), (-0.25, neck - 0.08)], coat),
        (bar(-0.2, neck - 0.08, -0.3, hip - 0.04, 0.13), _darker(coat)),
        (circle(0.3, hip - 0.08, 0.06), skin),
        (circle(-0.3, hip - 0.08, 0.06), skin),
        (box(-0.06, neck - 0.03, 0.06, neck + 0.06), skin),
        (circle(0.0, tall - 0.14, 0.115, 1.25), hair),
        (circle(0.025, tall - 0.17, 0.09, 1.2), skin),
    ]  # fmt: skip
    for outline, colour in parts:
        paint_cutout(painter, pose, outline, label, colour)


def paint_cyclist(painter: Painter, x: float, y: float, rng: np.random.Generator) -> None:
    """Paints a bicycle with its rider seen from the side; A2D2 labels both as Bicycle."""
    mirror = -1.0 if rng.random() < 0.5 else 1.0
    pose = facing(painter, x, y, 0.25 * mirror)
    frame = _pick(rng, ((190, 40, 36), (30, 96, 60), (34, 60, 130), (208, 160, 40)))
    coat, trousers = _pick(rng, _COATS), _pick(rng, _TROUSERS)
    skin, helmet = _pick(rng, _SKIN), _pick(rng, ((228, 228, 224), (200, 52, 44), (40, 42, 46)))
    hull = [pose.at(0.0, u, v) for u in (-1.0, 1.0) for v in (0.0, 1.75)]
    label = painter.instance("Bicycle", hull)
    _paint_shadow(painter, pose, 0.9)
    for shape, colour in [*_bicycle(frame), *_rider(coat, trousers, skin, helmet)]:
        outline = [(u * mirror, v) for u, v in shape]
        paint_cutout(painter, pose, outline, label, colour)


def paint_parked_bicycle(painter: Painter, x: float, y: float, rng: np.random.Generator) -> None:
    """Paints a bicycle standing without a rider."""
    pose = facing(painter, x, y, 0.3)
    frame = _pick(rng, ((190, 40, 36), (30, 96, 60), (34, 60, 130), (60, 60, 64)))
    hull = [pose.at(0.0, u, v) for u in (-1.0, 1.0) for v in (0.0, 1.1)]
    label = painter.instance("Bicycle", hull)
    for outline, colour in _bicycle(frame):
        paint_cutout(painter, pose, outline, label, colour)


def paint_motorcycle(painter: Painter, x: float, y: float, rng: np.random.Generator) -> None:
    """Paints a scooter or motorcycle from behind, with rider; class Small vehicles."""
    pose = facing(painter, x, y)
    hull = [pose.at(0.0, u, v) for u in (-0.45, 0.45) for v in (0.0, 1.7)]
    label = painter.instance("Small vehicles", hull)
    jacket, body = _pick(rng, _COATS), _pick(rng, ((36, 36, 40), (150, 30, 30), (200, 200, 204)))
    _paint_shadow(painter, pose, 0.4)
    parts: list[tuple[Outline, Colour]] = [
        (box(-0.09, 0.0, 0.09, 0.6), _TYRE),
        ([(-0.22, 0.4), (0.22, 0.4), (0.26, 0.85), (-0.26, 0.85)], body),
        (box(-0.08, 0.62, 0.08, 0.74), (214, 34, 28)),
        (bar(-0.28, 0.35, -0.18, 0.9, 0.17), (44, 46, 52)),
        (bar(0.28, 0.35, 0.18, 0.9, 0.17), (44, 46, 52)),
        ([(-0.22, 0.8), (0.22, 0.8), (0.27, 1.32), (-0.27, 1.32)], jacket),
        (bar(-0.25, 1.26, -0.4, 0.96, 0.14), _darker(jacket)),
        (bar(0.25, 1.26, 0.4, 0.96, 0.14), _darker(jacket)),
        (circle(0.0, 1.5, 0.15, 1.1), (232, 232, 234)),
        (box(-0.1, 1.46, 0.1, 1.54), (40, 44, 50)),
    ]
    for outline, colour in parts:
        paint_cutout(painter, pose, outline, label, colour)


def paint_dog(painter: Painter, x: float, y: float, label: int) -> None:
    """Paints a dog; class Animals."""
    pose = facing(painter, x, y)
    fur = (112, 82, 52)
    parts: list[Outline] = [
        box(-0.32, 0.28, 0.28, 0.52),
        *(box(u, 0.0, u + 0.08, 0.32) for u in (-0.3, -0.16, 0.1, 0.2)),
        circle(0.38, 0.58, 0.13),
        bar(-0.3, 0.48, -0.5, 0.66, 0.06),
    ]
    for outline in parts:
        paint_cutout(painter, pose, outline, label, fur)


def _bicycle(frame: Colour) -> list[tuple[Outline, Colour]]:
    """The parts of a bicycle heading to the right."""
    return [
        *((circle(u, 0.35, 0.35), _TYRE) for u in (-0.53, 0.53)),
        *((circle(u, 0.35, 0.29), _SPOKES) for u in (-0.53, 0.53)),
        (bar(-0.53, 0.35, 0.0, 0.3, 0.06), frame),
        (bar(0.0, 0.3, -0.14, 0.92, 0.07), frame),
        (bar(0.0, 0.3, 0.38, 0.8, 0.07), frame),
        (bar(-0.12, 0.78, 0.38, 0.82, 0.07), frame),
        (bar(0.53, 0.35, 0.36, 1.04, 0.06), frame),
        (box(-0.28, 0.9, -0.02, 0.98), _TYRE),
        (bar(0.28, 1.06, 0.46, 1.02, 0.06), _TYRE),
    ]


def _rider(
    coat: Colour, trousers: Colour, skin: Colour, helmet: Colour
) -> list[tuple[Outline, Colour]]:
    """The parts of a rider heading to the right."""
    return [
        (bar(-0.12, 0.98, 0.2, 0.68, 0.17), trousers),
        (bar(0.18, 0.7, 0.06, 0.24, 0.14), trousers),
        (box(0.0, 0.18, 0.2, 0.27), _TYRE),
        ([(-0.26, 0.94), (0.02, 0.92), (0.28, 1.42), (0.1, 1.52), (-0.08, 1.46)], coat),
        (bar(0.18, 1.4, 0.4, 1.08, 0.11), _darker(coat)),
        (circle(0.26, 1.6, 0.12, 1.15), skin),
        (circle(0.24, 1.66, 0.13, 0.8), helmet),
    ]


def _paint_shadow(painter: Painter, pose: Pose, reach: float) -> None:
    """A patch of shade on the ground; the label keeps the ground's class."""
    points = [pose.at(0.22 * v, -reach * u, 0.01) for u, v in circle(0.0, 0.0, 1.0)]
    painter.polygon(points, None, (58, 58, 60))


def _darker(colour: Colour) -> Colour:
    """Three quarters of a colour."""
    return colour[0] * 3 // 4, colour[1] * 3 // 4, colour[2] * 3 // 4


def _pick(rng: np.random.Generator, choices: tuple[Colour, ...]) -> Colour:
    """One of some colours."""
    return choices[int(rng.integers(len(choices)))]
