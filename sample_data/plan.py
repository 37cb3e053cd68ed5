"""Scene, camera and contents of each frame of a set.

Frame k depends on the seed and on k alone, so a larger set begins with the smaller one.
"""

from dataclasses import dataclass

import numpy as np

from sample_data.cameras import CAMERAS
from sample_data.draw import FrameSpec
from sample_data.layout import FrameName, frame_name
from sample_data.png_writer import LABEL_NONE, LABEL_SUB, PngEncoding
from sample_data.styles import SCENES

_SHOWPIECE_EVERY = 72
"""Frames from one showpiece to the next, a multiple of three rounds of the scenes, so that each
is front_center; frame 0 is the first."""


@dataclass(frozen=True)
class PlannedFrame:
    """A frame before it is drawn."""

    index: int
    """Its position in the set, counted from 0."""
    name: FrameName
    """Its identity."""
    spec: FrameSpec
    """What it shows."""
    label_encoding: PngEncoding
    """Byte layout of its label file."""
    entropy: tuple[int, int]
    """What its random generator starts from."""

    @property
    def scene(self) -> int:
        """Position of its scene in SCENES."""
        return self.index % len(SCENES)


def plan_frame(index: int, seed: int) -> PlannedFrame:
    """Plans the frame of an index, counted from 0."""
    scene, position = index % len(SCENES), index // len(SCENES)
    style = SCENES[scene]
    camera = _camera_at(style.extra_cameras, position)
    rng = np.random.default_rng([seed, index, 3])
    cyclists = 0
    if index == 1 or rng.random() < style.bicycles:
        cyclists = 1 + int(rng.integers(2))
    spec = FrameSpec(style, CAMERAS[camera], index % _SHOWPIECE_EVERY == 0, cyclists)
    encoding = LABEL_NONE if scene % 2 else LABEL_SUB
    name = frame_name(scene, position, camera, seed)
    return PlannedFrame(index, name, spec, encoding, (seed, index))


def _camera_at(extra: tuple[str, ...], position: int) -> str:
    """front_center but for every third frame, which goes round the scene's other cameras."""
    if not extra or position % 3 != 2:
        return "front_center"
    return extra[position // 3 % len(extra)]
