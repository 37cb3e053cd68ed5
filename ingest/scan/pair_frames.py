"""Pairs the files of a frame: camera image, label, lidar and camera JSON."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from catalog.values import File, Problem
from ingest.scan.frame_name import FrameId, FrameName, looks_like_label
from ingest.scan.listing_diff import ScannedFile


@dataclass
class FrameFiles:
    """The files of one frame."""

    id: FrameId
    image: File | None = None
    label: File | None = None
    lidar: File | None = None
    camera_json: File | None = None

    @property
    def files(self) -> list[File]:
        """The files that are there."""
        files = (self.image, self.label, self.lidar, self.camera_json)
        return [file for file in files if file is not None]

    @property
    def label_key(self) -> str:
        """Key of the label; empty where there is none."""
        return self.label.key if self.label else ""

    def to_read(self, *, image: bool) -> "FrameFiles":
        """The files of the frame to read: its label, and with ``image`` its camera image.

        An image that an archive holds is left to the scan after it is brought back: to read a few
        bytes of each would have all of them recalled, one after the other.
        """
        opened = None if self.image is None or self.image.is_archived else self.image
        return FrameFiles(self.id, opened if image else None, self.label)


@dataclass
class SceneFiles:
    """The files of one scene folder, or those that belong to no scene."""

    files: list[ScannedFile] = field(default_factory=list)
    scene: str = ""
    """Path of the scene folder; empty for files of no scene."""
    frames: list[FrameFiles] = field(default_factory=list)
    """Frames with a label, in order of camera and number. Where the scene has camera images at all,
    only those that have theirs: labels alone are enough, but a label whose image is missing
    among others is an orphan.
    """
    unlabelled: list[FrameFiles] = field(default_factory=list)
    """Frames with a camera image and no label, in the same order."""
    alone: list[FrameFiles] = field(default_factory=list)
    """Frames that have a label and no camera image, whether they are in ``frames`` or not."""
    images: list[File] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Orphans and names that do not parse."""


LOOSE_FILES = 1_000
"""Files of no scene that are handed on together."""

_PARTS = {
    ("camera", "png"): "image",
    ("camera", "json"): "camera_json",
    ("label", "png"): "label",
    ("lidar", "npz"): "lidar",
}


def is_camera_image(name: FrameName | None) -> bool:
    """Return whether a file is a frame's camera image, by its name."""
    return name is not None and _PARTS.get((name.kind, name.extension)) == "image"


def pair_frames(files: Iterable[ScannedFile]) -> Iterator[SceneFiles]:
    """Group a listing's files by scene and pair those of each frame.

    A scene's files must come together in the listing, as they do where folders are listed in
    sorted order; only one scene is held at a time, and a handful of the files of no scene.
    """
    scene: list[ScannedFile] = []
    loose: list[ScannedFile] = []
    scene_folder = ""
    for file in files:
        if file.name is None:
            loose.append(file)
            if len(loose) == LOOSE_FILES:
                yield _pair(loose)
                loose = []
            continue
        folder = file.name.frame.folder
        if scene and folder != scene_folder:
            yield _pair(scene, scene_folder)
            scene = []
        scene_folder = folder
        scene.append(file)
    if scene:
        yield _pair(scene, scene_folder)
    if loose:
        yield _pair(loose)


def _pair(files: list[ScannedFile], folder: str = "") -> SceneFiles:
    scene = SceneFiles(files, folder)
    frames: dict[FrameId, FrameFiles] = {}
    for file in files:
        name = file.name
        if name is None:
            if looks_like_label(file.key):
                reason = (
                    "name does not follow <scene>/label/cam_<camera>/"
                    "<YYYYMMDDhhmmss>_label_<camera>_<9 digits>.png"
                )
                scene.problems.append(Problem("bad_file", file.key, reason))
            continue
        attribute = _PARTS.get((name.kind, name.extension))
        if attribute is not None:
            frame = frames.setdefault(name.frame, FrameFiles(name.frame))
            setattr(frame, attribute, file.file)
    scene.images = [frame.image for frame in frames.values() if frame.image is not None]
    for _, frame in sorted(frames.items()):
        if frame.label is not None and frame.image is None:
            scene.alone.append(frame)
        reason = _missing_partner(frame, has_images=bool(scene.images))
        if reason:
            scene.problems.append(Problem("orphan", frame.files[0].key, reason))
        elif frame.label is not None:
            scene.frames.append(frame)
        else:
            scene.unlabelled.append(frame)
    return scene


def _missing_partner(frame: FrameFiles, *, has_images: bool) -> str:
    """The partner that the frame lacks; empty where it is complete."""
    if frame.image is not None:
        return ""
    if frame.label is None:
        return "neither camera image nor label beside it"
    return "label without camera image" if has_images else ""
