"""Frames with lidar, boxes, bus and camera JSON made for a test of extractors."""

import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ingest.sources.local_folder import LocalFolder
from tests.ingest.scene_folders import SCENE, Home, frame_key, put

STAMP = SCENE.replace("_", "")
START_US = 1_533_646_228_000_000
"""cam_tstamp of frame 0; frames come every 33,333 us."""


def time_us(number: int) -> int:
    """cam_tstamp [us] of a frame."""
    return START_US + 33_333 * number


def put_camera_json(root: Path, number: int, camera: str = "front_center") -> None:
    """A camera JSON with the frame's cam_tstamp."""
    content = {"cam_tstamp": time_us(number), "cam_name": camera}
    put(root, frame_key("camera", number, "json", camera), json.dumps(content).encode())


def put_bus(root: Path, content: object) -> Path:
    """The scene's bus file."""
    return put(root, f"{SCENE}/bus/{STAMP}_bus_signals.json", json.dumps(content).encode())


def npz(arrays: Mapping[str, npt.ArrayLike]) -> bytes:
    """An npz file of the arrays."""
    file = io.BytesIO()
    np.savez_compressed(file, **{name: np.asarray(array) for name, array in arrays.items()})
    return file.getvalue()


def box(kind: str, center: list[float], **marks: object) -> dict[str, object]:
    """A box of label3D, 4 x 2 x 1.5 m, not turned."""
    plain = {"size": [4.0, 2.0, 1.5], "axis": [0.0, 0.0, 1.0], "rot_angle": 0.0}
    return {"class": kind, "center": center, "occlusion": 0.0, "truncation": 0.0, **plain, **marks}


def tags_of(home: Home, family: str, *tags: str) -> dict[int, tuple[object, ...]]:
    """Frame number -> values of the family's tags."""
    listed = "".join(f', t."{tag}"' for tag in tags)
    rows = home.rows(
        f"SELECT frame_number{listed} FROM lake.main.tags_{family} AS t "
        "JOIN lake.main.tags_frame USING (fkey) ORDER BY fkey"
    )
    return {int(str(number)): tuple(values) for number, *values in rows}


def folder(root: Path) -> LocalFolder:
    """The files below a root."""
    return LocalFolder(root)
