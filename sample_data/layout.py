"""Scene, camera and time of a frame, and the JSON files that A2D2's sets have beside pictures."""

import json
from dataclasses import dataclass
from datetime import datetime
from math import cos, radians, sin

import numpy as np

from sample_data.cameras import CAMERAS, HEIGHT_PX, WIDTH_PX, Camera
from sample_data.styles import SCENES

CALIBRATION_FILE = "cams_lidars.json"
FRAMES_PER_SECOND = 29.97

_LIDAR_IDS = {
    "0": "front_left",
    "1": "rear_right",
    "2": "front_right",
    "3": "front_center",
    "4": "rear_left",
}
_LIDARS = {
    # name: position (x, y, z) metres, turn to the left and tilt down in degrees
    "front_center": ((1.70, 0.0, 1.52), 0.0, 1.5),
    "front_left": ((1.70, 0.62, 1.50), 42.0, 6.0),
    "front_right": ((1.70, -0.62, 1.50), -42.0, 6.0),
    "rear_left": ((-0.44, 0.60, 1.50), 138.0, 5.0),
    "rear_right": ((-0.44, -0.60, 1.50), -138.0, 5.0),
}
_TAN_SERIES = (1 / 3, 2 / 15, 17 / 315, 62 / 2835)
"""Fisheye distortion under which the model draws like a pinhole, as these pictures are drawn."""


@dataclass(frozen=True)
class FrameName:
    """The identity of a frame."""

    scene: str
    """Folder name, "YYYYMMDD_HHMMSS" in local time."""
    camera: str
    """Camera name, such as "front_center"."""
    number: int
    """Frame number since the start of the drive, at about 30 per second."""
    recorded_us: int
    """Time of exposure, microseconds since 1970 UTC."""


def scene_start(scene: int, seed: int) -> datetime:
    """The start of a scene's drive, with its UTC offset; minute and second follow from the seed."""
    rng = np.random.default_rng([seed, scene, 1])
    minute, second = int(rng.integers(60)), int(rng.integers(60))
    return SCENES[scene].recorded.replace(minute=minute, second=second)


def frame_name(scene: int, position: int, camera: str, seed: int) -> FrameName:
    """The name of the frame at a position in a scene's sequence, counted from 0."""
    rng = np.random.default_rng([seed, scene, position, 2])
    seconds = 4.0 + 0.7 * position + 0.5 * float(rng.random())
    start = scene_start(scene, seed)
    recorded_us = int(start.timestamp()) * 1_000_000 + round(seconds * 1e6)
    return FrameName(
        start.strftime("%Y%m%d_%H%M%S"), camera, int(seconds * FRAMES_PER_SECOND), recorded_us
    )


def camera_json(name: FrameName) -> str:
    """The text of the JSON file beside a camera picture: indent 4, no final newline."""
    content = {
        "lidar_ids": _LIDAR_IDS,
        "cam_tstamp": name.recorded_us,
        "cam_name": name.camera,
    }
    return json.dumps(content, indent=4)


def calibration_json(reduced: int) -> str:
    """The text of cams_lidars.json, with the cameras that the pictures are drawn with.

    Args:
        reduced: What width and height of the pictures were divided by.
    """
    content = {
        "vehicle": {
            "view": _view((0.0, 0.0, 0.0), 0.0, 0.0),
            "ego-dimensions": {
                "x-range": [-1.1, 3.9],
                "y-range": [-0.95, 0.95],
                "z-range": [0.0, 1.5],
            },
        },
        "lidars": {name: {"view": _view(*mount)} for name, mount in _LIDARS.items()},
        "cameras": {name: _camera_entry(camera, reduced) for name, camera in CAMERAS.items()},
    }
    return json.dumps(content, indent=2) + "\n"


def _camera_entry(camera: Camera, reduced: int) -> dict[str, object]:
    """One camera of cams_lidars.json."""
    telecam = camera.name == "front_center"
    centre_x, centre_y = camera.centre_px
    focal = camera.focal_px / reduced
    matrix = [
        [focal, 0.0, centre_x / reduced],
        [0.0, focal, centre_y / reduced],
        [0.0, 0.0, 1.0],
    ]
    return {
        "tstamp_delay": 25_000,
        "view": _view(camera.position, camera.yaw_deg, camera.pitch_deg),
        "Lens": "Telecam" if telecam else "Fisheye",
        "CamMatrix": matrix,
        "CamMatrixOriginal": matrix,
        "Distortion": [[0.0] * 5 if telecam else list(_TAN_SERIES)],
        "Resolution": [WIDTH_PX // reduced, HEIGHT_PX // reduced],
    }


def _view(
    origin: tuple[float, float, float], yaw_deg: float, pitch_deg: float
) -> dict[str, list[float]]:
    """Origin and axes of a sensor: x along its line of sight, y to its left."""
    yaw, pitch = radians(yaw_deg), radians(pitch_deg)
    ahead = (cos(yaw) * cos(pitch), sin(yaw) * cos(pitch), -sin(pitch))
    left = (-sin(yaw), cos(yaw), 0.0)
    return {
        "origin": list(origin),
        "x-axis": [round(component, 12) + 0.0 for component in ahead],
        "y-axis": [round(component, 12) + 0.0 for component in left],
    }
