"""Buildings, vegetation, poles, signs and everything else that stands beside the road."""

from math import cos, radians, sin

import numpy as np

from sample_data.classes import class_id
from sample_data.painter import Painter
from sample_data.shapes import Face, Pose, bar, box, circle, facing, paint_block, paint_cutout
from sample_data.styles import Colour

WALLS: tuple[Colour, ...] = (
    (214, 200, 170),
    (196, 176, 160),
    (222, 218, 208),
    (190, 150, 120),
    (170, 176, 184),
    (206, 186, 140),
)
_ROOF: Colour = (142, 74, 56)
_WINDOW: Colour = (62, 76, 92)
_METAL: Colour = (136, 140, 144)


def paint_skyline(
    painter: Painter, urban: bool, foliage: tuple[Colour, ...], rng: np.random.Generator
) -> None:
    """Distant woods or roofs all around the horizon."""
    name = "Buildings" if urban else "Nature object"
    label = class_id(name)
    height = 9.0
    colours = WALLS if urban else foliage
    colour = colours[0]
    facing_deg = painter.camera.yaw_deg
    for step in range(-40, 40):
        height = min(17.0, max(5.0, height + 4.0 * (float(rng.random()) - 0.5)))
        if step % 4 == 0:
            colour = colours[int(rng.integers(len(colours)))]
            label = class_id("Nature object") if rng.random() < 0.3 else class_id(name)
            if label == class_id("Nature object"):
                colour = foliage[int(rng.integers(len(foliage)))]
        left, right = (radians(facing_deg - 2.0 * (step + i)) for i in (-0.05, 1.05))
        distance = 230.0
        ends = [(distance * cos(a), distance * sin(a)) for a in (left, right)]
        top_right = height + (0.0 if urban else 1.5 * (float(rng.random()) - 0.5))
        tops = (height, top_right)
        points = [(x, y, 0.0) for x, y in ends]
        points += [(x, y, top) for (x, y), top in zip(ends[::-1], tops[::-1], strict=True)]
        painter.polygon(points, label, colour, 0.85)


def paint_building(
    painter: Painter, pose: Pose, size: tuple[float, float, float], rng: np.random.Generator
) -> None:
    """Paints a house of (length along the street, depth, height) metres around a pose."""
    length, depth, height = size
    wall = WALLS[int(rng.integers(len(WALLS)))]
    pitched = rng.random() < 0.6
    label = class_id("Buildings")
    span = (-length / 2, length / 2, -depth / 2, depth / 2, 0.0, height)
    distance = painter.camera.depth_m(pose.at(0, 0, 0))
    for face in paint_block(painter, pose, span, label, wall):
        if face.side == "top":
            continue
        painter.polygon(face.patch(0, 0, 1, 0.9 / height), label, (120, 112, 104), face.shade)
        if distance < 130:
            across = length if face.side in ("left", "right") else depth
            _paint_windows(painter, face, label, across, height)
    if pitched:
        roof = (*span[:4], height - 0.05, height + 3.6)
        paint_block(painter, pose, roof, label, _ROOF, (1.5, 1.5, depth * 0.42))


def _paint_windows(painter: Painter, face: Face, label: int, across: float, height: float) -> None:
    """Rows of windows, one row per floor, and a door."""
    floors, columns = max(1, int(height / 3.1)), max(1, int(across / 2.7))
    for floor in range(floors):
        for column in range(columns):
            u = (column + 0.28) / columns
            v = (floor + 0.34) / floors
            corners = face.patch(u, v, u + 0.46 / columns, v + 0.46 / floors)
            painter.polygon(corners, label, _WINDOW, 0.9 + 0.1 * ((floor + column) % 2))
    painter.polygon(face.patch(0.46, 0.0, 0.54, 2.2 / height), label, (92, 62, 46), face.shade)


def paint_tree(
    painter: Painter,
    x: float,
    y: float,
    tall: float,
    foliage: tuple[Colour, ...],
    rng: np.random.Generator,
) -> None:
    """Paints a broad-leaved tree or, one time in five, a conifer."""
    pose = facing(painter, x, y)
    label = class_id("Nature object")
    base = foliage[int(rng.integers(len(foliage)))]
    paint_cutout(painter, pose, bar(0, 0, 0, tall * 0.5, 0.035 * tall), label, (84, 68, 54))
    if rng.random() < 0.2:
        for leaf in range(5):
            v, reach = tall * (0.14 + 0.15 * leaf), tall * (0.24 - 0.04 * leaf)
            outline = [(-reach, v), (reach, v), (0.0, v + tall * 0.3)]
            paint_cutout(painter, pose, outline, label, (52, 78, 54), 0.8 + 0.06 * leaf)
        return
    for leaf in range(22):
        spread = 0.27 * tall * (1 - 0.55 * leaf / 22)
        u = spread * (2 * float(rng.random()) - 1)
        v = tall * (0.42 + 0.42 * (leaf + float(rng.random()) * 3) / 25)
        radius = tall * (0.09 + 0.07 * float(rng.random()))
        shade = 0.62 + 0.4 * leaf / 22 + 0.1 * float(rng.random())
        paint_cutout(painter, pose, circle(u, v, radius, 0.9), label, base, shade)


def paint_bush(
    painter: Painter, x: float, y: float, foliage: tuple[Colour, ...], rng: np.random.Generator
) -> None:
    """Paints a bush about 1.5 m high."""
    pose = facing(painter, x, y)
    base = foliage[int(rng.integers(len(foliage)))]
    for leaf in range(8):
        u = 1.4 * (2 * float(rng.random()) - 1)
        outline = circle(u, 0.3 + 0.09 * leaf, 0.5 + 0.2 * float(rng.random()), 0.85)
        outline = [(a, max(0.0, b)) for a, b in outline]
        paint_cutout(painter, pose, outline, class_id("Nature object"), base, 0.68 + 0.05 * leaf)


def paint_lamp(painter: Painter, x: float, y: float, towards: float) -> None:
    """Paints a street lamp whose arm reaches to the side `towards` (left positive)."""
    pose = Pose(x, y)
    pole = class_id("Poles")
    face = facing(painter, x, y)
    paint_cutout(painter, face, bar(0, 0, 0, 7.6, 0.16), pole, _METAL, 0.85)
    arm = [pose.at(0, 0, 7.5), pose.at(0, 1.6 * towards, 7.9), pose.at(0, 1.6 * towards, 8.02),
           pose.at(0, 0, 7.65)]  # fmt: skip
    painter.polygon(arm, pole, _METAL)
    head = [
        pose.at(0, s * towards, 7.84 + d) for s, d in ((1.2, 0), (2.0, 0), (2.0, 0.2), (1.2, 0.2))
    ]
    painter.polygon(head, pole, (196, 196, 190))


def paint_sign(painter: Painter, x: float, y: float, rng: np.random.Generator) -> None:
    """Paints one of four traffic signs on its pole."""
    pose = facing(painter, x, y)
    paint_cutout(painter, pose, bar(0, 0, 0, 2.9, 0.07), class_id("Poles"), _METAL)
    hull = [pose.at(0, u, v) for u in (-0.4, 0.4) for v in (2.1, 3.0)]
    label = painter.instance("Traffic sign", hull)
    red, white, blue = (200, 32, 36), (238, 238, 234), (32, 74, 160)
    kind = int(rng.integers(4))
    if kind == 0:
        rings = [(0.36, red), (0.27, white), (0.1, (40, 40, 44))]
    elif kind == 1:
        rings = [(0.36, white), (0.33, blue), (0.12, white)]
    else:
        rings = []
    for radius, colour in rings:
        paint_cutout(painter, pose, circle(0, 2.6, radius), label, colour)
    if kind == 2:
        paint_cutout(painter, pose, [(-0.42, 2.25), (0.42, 2.25), (0, 3.0)], label, red)
        paint_cutout(painter, pose, [(-0.26, 2.34), (0.26, 2.34), (0, 2.8)], label, white)
    elif kind == 3:
        paint_cutout(painter, pose, [(0, 2.2), (0.4, 2.6), (0, 3.0), (-0.4, 2.6)], label, white)
        paint_cutout(painter, pose, [(0, 2.3), (0.3, 2.6), (0, 2.9), (-0.3, 2.6)], label,
                     (236, 190, 40))  # fmt: skip


def paint_signal(painter: Painter, x: float, y: float, rng: np.random.Generator) -> None:
    """Paints a traffic light: its housing is Signal corpus, the lit face Traffic signal."""
    pose = facing(painter, x, y)
    paint_cutout(painter, pose, bar(0, 0, 0, 3.4, 0.13), class_id("Poles"), (92, 96, 98))
    paint_cutout(painter, pose, box(-0.26, 2.4, 0.26, 3.6), class_id("Signal corpus"), (36, 40, 42))
    hull = [pose.at(0, u, v) for u in (-0.2, 0.2) for v in (2.5, 3.5)]
    label = painter.instance("Traffic signal", hull)
    paint_cutout(painter, pose, box(-0.17, 2.48, 0.17, 3.52), label, (24, 26, 28))
    lamps: tuple[tuple[float, Colour, Colour], ...] = (
        (3.34, (240, 40, 36), (70, 26, 26)),
        (3.0, (250, 180, 40), (66, 52, 24)),
        (2.66, (40, 226, 120), (22, 58, 38)),
    )
    lit = int(rng.integers(3))
    for number, (v, bright, dark) in enumerate(lamps):
        colour = bright if number == lit else dark
        paint_cutout(painter, pose, circle(0, v, 0.14), label, colour)


def paint_simple(painter: Painter, kind: str, x: float, y: float) -> None:
    """Paints a small object made of a few plain parts.

    Args:
        kind: A class name: "Sidebars" (delineator post), "Traffic guide obj." (cone),
            "Obstacles / trash" (bin), "Electronic traffic" (cabinet), "Irrelevant signs"
            (advertising board) or "Poles" (bollard).
        x: Metres ahead.
        y: Metres to the left.
    """
    pose = facing(painter, x, y)
    for outline, colour in _SIMPLE[kind]:
        paint_cutout(painter, pose, outline, class_id(kind), colour)


_SIMPLE: dict[str, tuple[tuple[list[tuple[float, float]], Colour], ...]] = {
    "Sidebars": (
        (box(-0.07, 0, 0.07, 1.05), (232, 232, 228)),
        (box(-0.07, 0.72, 0.07, 0.92), (30, 30, 32)),
        (box(-0.03, 0.76, 0.03, 0.88), (236, 150, 40)),
    ),
    "Traffic guide obj.": (
        (box(-0.24, 0, 0.24, 0.07), (54, 52, 50)),
        ([(-0.18, 0.07), (0.18, 0.07), (0.04, 0.8), (-0.04, 0.8)], (230, 92, 30)),
        ([(-0.13, 0.28), (0.13, 0.28), (0.09, 0.48), (-0.09, 0.48)], (238, 238, 234)),
    ),
    "Obstacles / trash": (
        (box(-0.3, 0.05, 0.3, 1.0), (62, 72, 66)),
        (box(-0.34, 0.95, 0.34, 1.08), (44, 50, 46)),
        (box(-0.3, 0.6, 0.3, 0.64), (46, 54, 50)),
    ),
    "Electronic traffic": (
        (box(-0.5, 0, 0.5, 1.3), (150, 156, 150)),
        (box(-0.02, 0.1, 0.02, 1.2), (96, 100, 96)),
    ),
    "Irrelevant signs": (
        (box(-0.1, 0, 0.1, 0.8), (70, 72, 74)),
        (box(-0.75, 0.7, 0.75, 2.7), (60, 62, 66)),
        (box(-0.66, 0.8, 0.66, 2.6), (232, 196, 84)),
        (box(-0.5, 1.8, 0.5, 2.4), (186, 54, 70)),
        (box(-0.5, 1.0, 0.2, 1.5), (40, 92, 130)),
    ),
    "Poles": (
        (box(-0.07, 0, 0.07, 0.9), (96, 98, 102)),
        (box(-0.07, 0.7, 0.07, 0.8), (226, 226, 222)),
    ),
}
