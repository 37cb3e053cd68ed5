"""Paints a whole frame: sky, ground, things from far to near, the own car, texture."""

from dataclasses import dataclass
from math import radians, sqrt, tan

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sample_data import people, roadside, vehicles
from sample_data.cameras import HEIGHT_PX, WIDTH_PX, Camera
from sample_data.classes import IDS_OF_CLASS, class_id
from sample_data.painter import Painter
from sample_data.scene import Composer, Paint
from sample_data.shapes import Pose
from sample_data.street import Street, paint_ground
from sample_data.styles import Light, SceneStyle

SHOWPIECE_PIXELS = {"Car": 15_000, "Bicycle": 4_000, "Pedestrian": 5_500}
"""Pixels of the three classes in a showpiece frame; a documented example query asks for frames
with 10,000..20,000, 3,000..5,000 and 5,000..6,000 of them."""


@dataclass(frozen=True)
class FrameSpec:
    """The contents of a frame that is drawn."""

    style: SceneStyle
    """Its scene."""
    camera: Camera
    """Its camera."""
    showpiece: bool
    """Whether it has car, bicycle and pedestrian pixels as `SHOWPIECE_PIXELS` says."""
    cyclists: int
    """Number of bicycles, with or without riders; ignored for a showpiece."""


def draw_frame(
    spec: FrameSpec, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Draws a frame.

    Returns:
        The camera picture, (H, W, 3) uint8 RGB, and the class ids, (H, W) uint8.
    """
    style = spec.style
    street = Street(
        style,
        shift_m=0.5 * (float(rng.random()) - 0.5),
        heading=0.03 * (float(rng.random()) - 0.5),
        curvature=0.0 if spec.showpiece else style.max_curvature * (2 * float(rng.random()) - 1),
    )
    painter = Painter(spec.camera, style.light)
    painter.rgb.paste(Image.fromarray(_sky(spec.camera, style.light, rng)))
    paint_ground(painter, street, rng)
    roadside.paint_skyline(painter, style.built_up > 0.5, style.foliage, rng)
    composer = Composer(spec.camera, style, street, rng)
    composer.place_surroundings()
    things = composer.things
    if spec.showpiece:
        things = [thing for thing in things if thing.distance_m > 34]
    else:
        composer.place_traffic(spec.cyclists)
    for thing in sorted(things, key=lambda thing: -thing.distance_m):
        thing.paint(painter)
    if spec.showpiece:
        for paint in _showpieces(spec, street, int(rng.integers(2**32))):
            paint(painter)
    _paint_own_car(painter)
    rgb, ids = painter.arrays()
    return _textured(rgb, ids, rng), ids


def _showpieces(spec: FrameSpec, street: Street, seed: int) -> list[Paint]:
    """A car, a cyclist and two pedestrians of the wanted sizes, side by side."""

    def car(painter: Painter, x: float) -> None:
        y = street.point(x, 0.0)[1]
        pose = Pose(x, y, street.direction(x))
        vehicles.paint_car(painter, pose, np.random.default_rng(seed))

    def cyclist(painter: Painter, x: float) -> None:
        y = street.point(x, street.lanes_left_m - 0.5)[1]
        people.paint_cyclist(painter, x, y, np.random.default_rng(seed))

    def walker(painter: Painter, x: float, walk: float, own: int) -> None:
        y = street.point(x, street.kerb_right_m - walk)[1]
        people.paint_pedestrian(painter, x, y, np.random.default_rng(seed + own))

    sizes = SHOWPIECE_PIXELS
    cases = (
        ("Car", sizes["Car"], car),
        ("Bicycle", sizes["Bicycle"], cyclist),
        ("Pedestrian", sizes["Pedestrian"] // 2, lambda p, x: walker(p, x, 0.4, 1)),
        ("Pedestrian", sizes["Pedestrian"] // 2, lambda p, x: walker(p, x, 2.1, 2)),
    )
    paints: list[Paint] = []
    for name, pixels, painted in cases:
        ahead = 20.0
        for _ in range(5):
            trial = Painter(spec.camera, spec.style.light)
            painted(trial, ahead)
            ids = np.asarray(trial.ids)
            area = int(np.isin(ids, IDS_OF_CLASS[name]).sum())
            ahead *= sqrt(area / pixels)
        paints.append(lambda p, painted=painted, ahead=ahead: painted(p, ahead))  # type: ignore[misc]
    return paints


def _sky(camera: Camera, light: Light, rng: np.random.Generator) -> NDArray[np.uint8]:
    """(H, W, 3) uint8: a vertical gradient with soft clouds."""
    horizon = camera.centre_px[1] - camera.focal_px * tan(radians(camera.pitch_deg))
    rows = np.clip(np.arange(HEIGHT_PX) / max(horizon, 1.0), 0, 1)[:, None]
    top, low = np.array(light.sky_top), np.array(light.sky_low)
    gradient = top + (low - top) * rows * np.sqrt(np.sqrt(rows))
    sky = np.repeat(np.rint(gradient)[:, None, :], WIDTH_PX, axis=1)
    clouds = _noise(rng, (7, 5)) * 0.7 + _noise(rng, (22, 14)) * 0.3
    cover = np.clip((clouds - (1 - light.cloud_share) * 0.62 - 0.16) * 3, 0, 1)
    cover = np.rint(cover * 24) / 24 * 0.75
    white = np.minimum(low + 24, 255)
    clouded: NDArray[np.float64] = sky + (white - sky) * cover[:, :, None]
    return np.rint(clouded).astype(np.uint8)


def _noise(rng: np.random.Generator, cells: tuple[int, int]) -> NDArray[np.float32]:
    """(H, W) float32 in 0..1: smooth blobs, `cells` of them across and down."""
    grid = rng.integers(0, 256, size=(cells[1], cells[0]), dtype=np.uint8)
    picture = Image.fromarray(grid).resize((WIDTH_PX, HEIGHT_PX), Image.Resampling.BICUBIC)
    return np.asarray(picture, dtype=np.float32) / 255


_TEXTURES = {
    # class: blobs across, blobs down, depth in grey values, number of steps
    "Nature object": (160, 100, 12, 4),
    "Buildings": (14, 9, 9, 4),
    "RD normal street": (12, 18, 7, 5),
    "Sidewalk": (30, 24, 7, 4),
    "Drivable cobblestone": (110, 120, 12, 3),
}


def _textured(
    rgb: NDArray[np.uint8], ids: NDArray[np.uint8], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """The picture with coarse texture on large surfaces; few steps keep the PNG small."""
    change = np.zeros(ids.shape, dtype=np.int16)
    for name, (across, down, depth, steps) in _TEXTURES.items():
        mask = ids == class_id(name)
        noise = _noise(rng, (across, down))
        if mask.any():
            stepped = np.rint(noise * steps) / steps - 0.5
            change[mask] = np.rint(stepped[mask] * 2 * depth).astype(np.int16)
    changed: NDArray[np.int16] = rgb + change[:, :, None]
    return changed.clip(0, 255).astype(np.uint8)


def _paint_own_car(painter: Painter) -> None:
    """The part of the recording car that the side and rear cameras see."""
    label = class_id("Ego car")
    colour = painter.lit((58, 62, 70), 1.0, 0.0)
    bright = painter.lit((92, 98, 108), 1.0, 0.0)
    right, bottom = float(WIDTH_PX), float(HEIGHT_PX)
    if painter.camera.name == "rear_center":
        edge = [(0.0, 1120.0), (260.0, 1070.0), (700.0, 1044.0), (1220.0, 1044.0),
                (1660.0, 1070.0), (right, 1120.0)]  # fmt: skip
    elif painter.camera.name.startswith("side"):
        edge = [(0.0, 1150.0), (400.0, 1118.0), (1100.0, 1102.0), (right, 1128.0)]
    else:
        return
    painter.flat_polygon([*edge, (right, bottom), (0.0, bottom)], label, colour)
    highlight = edge + [(x, y + 14) for x, y in reversed(edge)]
    painter.flat_polygon(highlight, label, bright)
