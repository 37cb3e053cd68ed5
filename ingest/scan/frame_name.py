"""What an A2D2 file name says: scene, camera, kind and number of the frame it belongs to."""

import re
from dataclasses import dataclass

KINDS = ("camera", "label", "lidar", "label3D")
"""Kinds of file in a scene; a camera file is an image (png) or its description (json)."""

CAMERAS: dict[str, tuple[str, ...]] = {
    "front_center": ("front", "center"),
    "front_left": ("front", "left_"),
    "front_right": ("front", "right_"),
    "side_left": ("side", "left_"),
    "side_right": ("side", "right_"),
    "rear_center": ("rear", "center"),
}
"""Camera name -> the position tags (catalog.lake.schema.POSITION_TAGS) that it has."""

_FILE = re.compile(
    r"""
    (?P<prefix>(?:.*/)?)
    (?P<scene>\d{8}_\d{6})/
    (?P<kind>camera|label|lidar|label3D)/
    cam_(?P<camera>[a-z]+_[a-z]+)/
    (?P<stamp>\d{14})_(?P=kind)_(?P<token>[a-z]+)_(?P<number>\d{9})
    \.(?P<extension>png|json|npz)
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)


@dataclass(frozen=True, order=True, slots=True)
class FrameId:
    """What the files of one frame have in common.

    Attributes:
        prefix: Path before the scene folder, empty or ending in a slash.
        scene: Scene folder, "YYYYMMDD_hhmmss" in the recording's local time.
        camera: Camera name, a key of CAMERAS.
        stamp: The file name's "YYYYMMDDhhmmss".
        number: Frame number within the scene; about 30 a second, not exact.
    """

    prefix: str
    scene: str
    camera: str
    stamp: str
    number: int

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
    """What a file's name says: which frame, which kind ("camera", "label"...), which extension."""

    frame: FrameId
    kind: str
    extension: str


def parse(key: str) -> FrameName | None:
    """What the path says, or None where it is not a frame's file by A2D2's naming rules.

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
    """Whether the file lies in a label folder, so that a name that does not parse is an error."""
    return "/label/" in f"/{key}" and key.endswith(".png")
