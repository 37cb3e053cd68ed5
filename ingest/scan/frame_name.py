"""Parses A2D2 file names: scene, camera, kind and number of the frame that a file belongs to."""

import re
from dataclasses import dataclass

from catalog.text.scene_name import SCENE

CAMERAS: dict[str, tuple[str, ...]] = {
    "front_center": ("front", "center"),
    "front_left": ("front", "left_"),
    "front_right": ("front", "right_"),
    "side_left": ("side", "left_"),
    "side_right": ("side", "right_"),
    "rear_center": ("rear", "center"),
}
"""Camera name -> the position tags (catalog.lake.schema.POSITION_TAGS) that it has."""

# A camera file is an image (png) or its description (json).
_FILE = re.compile(
    rf"""
    (?P<prefix>(?:.*/)?)
    (?P<scene>{SCENE})/
    (?P<kind>camera|label|lidar|label3D)/
    cam_(?P<camera>[a-z]+_[a-z]+)/
    (?P<stamp>\d{{14}})_(?P=kind)_(?P<token>[a-z]+)_(?P<number>\d{{9}})
    \.(?P<extension>png|json|npz)
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)


@dataclass(frozen=True, order=True, slots=True)
class FrameId:
    """The identity of a frame, which its files have in common."""

    prefix: str
    """Path before the scene folder, empty or ending in a slash."""
    scene: str
    """Scene folder, "YYYYMMDD_hhmmss" in the recording's local time."""
    camera: str
    """Camera name, a key of CAMERAS."""
    stamp: str
    """The file name's "YYYYMMDDhhmmss"."""
    number: int
    """Frame number within the scene; about 30 a second, not exact."""

    @property
    def folder(self) -> str:
        """Path of the scene folder."""
        return self.prefix + self.scene

    @property
    def identity(self) -> tuple[str, str, int]:
        """Scene, camera and number: the frame, in whichever tree its files lie."""
        return self.scene, self.camera, self.number


@dataclass(frozen=True, slots=True)
class FrameName:
    """The parts of a file's name: frame, kind ("camera", "label"...), extension."""

    frame: FrameId
    kind: str
    extension: str


def parse(key: str) -> FrameName | None:
    """The frame and kind in the path, or None where it is no frame's file by A2D2's naming rules.

    >>> parse("20180807_145028/label/cam_front_center/"
    ...       "20180807145028_label_frontcenter_000006882.png").frame.camera
    'front_center'

    Source: A2D2 README-SemSeg. Folders write the camera with an underscore, file names without.
    """
    match = _FILE.fullmatch(key)
    if match is None:
        return None
    camera = match["camera"]
    if camera not in CAMERAS or match["token"] != camera.replace("_", ""):
        return None
    frame = FrameId(match["prefix"], match["scene"], camera, match["stamp"], int(match["number"]))
    return FrameName(frame, match["kind"], match["extension"])


def looks_like_label(key: str) -> bool:
    """Return whether the file lies in a label folder: there a name must parse."""
    return "/label/" in f"/{key}" and key.endswith(".png")
