"""Pairs the files of a frame: camera image, label, lidar and camera JSON."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from catalog.values import File, Problem
from ingest.labels.segments import Segments
from ingest.layouts.layout import FrameId, FrameName, Layout
from ingest.scan.listing_diff import ScannedFile
from ingest.scan.sorted_files import FrameSorter


@dataclass
class FrameFiles:
    """The files of one frame."""

    id: FrameId
    image: File | None = None
    label: File | None = None
    lidar: File | None = None
    camera_json: File | None = None
    segments: Segments | None = field(default=None, kw_only=True)
    """Of a panoptic label that is to be read."""

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
    """The files of one scene, or of some of its frames, or those that belong to no scene."""

    files: list[ScannedFile] = field(default_factory=list)
    group: str = ""
    """FrameId.group of the scene; empty for files of no scene."""
    has_images: bool = False
    """True where the scene has camera images at all."""
    frames: list[FrameFiles] = field(default_factory=list)
    """Frames with a label, in order of camera and number. Where the scene has camera images at all,
    only those that have theirs: labels alone are enough, but a label whose image is missing
    among others is an orphan.
    """
    unlabelled: list[FrameFiles] = field(default_factory=list)
    """Frames with a camera image and no label, in the same order."""
    alone: list[FrameFiles] = field(default_factory=list)
    """Frames that have a label and no camera image, whether they are in ``frames`` or not."""
    problems: list[Problem] = field(default_factory=list)
    """Orphans, names that do not parse, files of which a frame has one already."""


LOOSE_FILES = 1_000
"""Files of no scene that are handed on together."""

SCENE_FRAMES = 1_000
"""Frames of a scene that are handed on together, where files are sorted by frames."""

_PARTS = ("image", "label", "lidar", "camera_json")
"""Kinds of files that a frame is made of; others are catalogued, and extractors read them."""


def is_camera_image(name: FrameName | None) -> bool:
    """Return whether a file is a frame's camera image, by its name."""
    return name is not None and name.kind == "image"


def pair_frames(files: Iterable[ScannedFile], layout: Layout) -> Iterator[SceneFiles]:
    """Group a listing's files by scene and pair those of each frame.

    Where a scene's files come together in the listing, in one folder, a scene is held at a time,
    and a handful of the files of no scene. Otherwise the files are sorted first, so that nothing
    of a scene comes before the listing's end.
    """
    loose: list[ScannedFile] = []
    if layout.is_listed_by_scene:
        yield from _as_listed(files, layout, loose)
    else:
        yield from _sorted(files, layout, loose)
    if loose:
        yield _pair(loose, layout)


def _as_listed(
    files: Iterable[ScannedFile], layout: Layout, loose: list[ScannedFile]
) -> Iterator[SceneFiles]:
    scene: list[ScannedFile] = []
    group = ""
    for file in files:
        if file.name is None:
            yield from _with_loose(file, layout, loose)
            continue
        if scene and file.name.frame.group != group:
            yield _pair(scene, layout, group, has_images=_have_images(scene))
            scene = []
        group = file.name.frame.group
        scene.append(file)
    if scene:
        yield _pair(scene, layout, group, has_images=_have_images(scene))


def _sorted(
    files: Iterable[ScannedFile], layout: Layout, loose: list[ScannedFile]
) -> Iterator[SceneFiles]:
    with_images = set[str]()
    with FrameSorter() as sorter:
        for file in files:
            if file.name is None:
                yield from _with_loose(file, layout, loose)
                continue
            sorter.add(file, file.name)
            if is_camera_image(file.name):
                with_images.add(file.name.frame.group)
        scene: list[ScannedFile] = []
        frames, group = 0, ""
        for frame, of_frame in groupby(sorter.files(), itemgetter(0)):
            if scene and (frame.group != group or frames == SCENE_FRAMES):
                yield _pair(scene, layout, group, has_images=group in with_images)
                scene, frames = [], 0
            scene += [file for _, file in of_frame]
            frames, group = frames + 1, frame.group
        if scene:
            yield _pair(scene, layout, group, has_images=group in with_images)


def _with_loose(
    file: ScannedFile, layout: Layout, loose: list[ScannedFile]
) -> Iterator[SceneFiles]:
    loose.append(file)
    if len(loose) == LOOSE_FILES:
        yield _pair(loose.copy(), layout)
        loose.clear()


def _have_images(files: Iterable[ScannedFile]) -> bool:
    return any(is_camera_image(file.name) for file in files)


def _pair(
    files: list[ScannedFile], layout: Layout, group: str = "", *, has_images: bool = False
) -> SceneFiles:
    scene = SceneFiles(files, group, has_images)
    frames: dict[FrameId, FrameFiles] = {}
    for file in files:
        name = file.name
        if name is None:
            if layout.looks_like_label(file.key):
                pattern = dict(layout.patterns)["label"].text
                reason = f"name does not follow {pattern}"
                scene.problems.append(Problem("bad_file", file.key, reason))
        elif name.kind in _PARTS:
            frame = frames.setdefault(name.frame, FrameFiles(name.frame))
            first: File | None = getattr(frame, name.kind)
            if first is None:
                setattr(frame, name.kind, file.file)
            else:
                reason = f"its frame has {first.key} as its {name.kind} already; keep one"
                scene.problems.append(Problem("bad_file", file.key, reason))
    for _, frame in sorted(frames.items()):
        if frame.label is not None and frame.image is None:
            scene.alone.append(frame)
        reason = _missing_partner(frame, has_images=has_images)
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
