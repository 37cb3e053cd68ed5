"""One frame's files in, its pixel counts out: the unit of work of a scan."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from catalog.errors import BadFile, UnreadableFile
from catalog.values import Frame, Problem
from ingest.images.image_check import check_image
from ingest.labels.class_list import ClassList
from ingest.labels.pixel_count import count_pixels
from ingest.layouts.layout import Layout
from ingest.scan.pair_frames import FrameFiles
from ingest.sources.listed_read import use_listed
from ingest.sources.source_files import FileReader

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FrameCount:
    """Counts and problems from reading a frame."""

    width: int
    """Image width [pixels]; 0 where a file of the frame is bad."""
    height: int
    pixels: tuple[int, ...]
    """Pixels of each class, in the class list's order; empty where a file is bad."""
    unknown_pixels: int
    """Pixels in colours that are no class."""
    bytes_read: int
    problems: tuple[Problem, ...] = ()
    """The bad file, or the colours that are no class."""
    digest: str = ""
    """PixelCounts.digest of the label; empty where a file is bad."""
    segments: str | None = None
    """Of a panoptic label, by which it was counted; None of others."""


def read_frame(source: FileReader, frame: FrameFiles, class_list: ClassList) -> FrameCount:
    """Count the label's pixels and check that label and camera image fit together.

    Of the camera image, where the frame has one, only the header and the end are read. A bad file
    is a result, not an exception: the scan goes on.

    Args:
        frame: What is read, as FrameFiles.to_read gives it; it has a label.
    """
    label, image = frame.label, frame.image
    if label is None:
        raise ValueError("a frame that is to be counted needs a label")
    segments = frame.segments
    try:
        if segments is not None and segments.problem:
            # What the JSON file lacks now may come: nothing of the label would show it.
            raise UnreadableFile(segments.problem, label.key)
        counts, png = _in_file(
            label.key,
            lambda: use_listed(source, label, lambda png: count_pixels(png, class_list, segments)),
        )
        image_bytes = 0
        if image is not None:
            size = counts.width, counts.height
            image_bytes = _in_file(image.key, lambda: check_image(source, image, label, size))
    except BadFile as error:
        kind = "unreadable" if isinstance(error, UnreadableFile) else "bad_file"
        problem = Problem(kind, error.file, error.reason)
        return FrameCount(0, 0, (), 0, label.size, (problem,))
    problems = []
    if unknown := counts.unknown - counts.void:
        some = ", ".join(f"{key} ({n:,})" for key, n in counts.unknown_keys.items())
        what = "colours" if class_list.encoding.is_colour else "ids"
        reason = f"{unknown:,} pixels in {what} that are no class: {some}"
        problems.append(Problem("unknown_colours", label.key, reason))
    return FrameCount(
        counts.width,
        counts.height,
        tuple(counts.counts.tolist()),
        counts.unknown,
        len(png) + image_bytes,
        tuple(problems),
        counts.digest,
        None if segments is None else segments.text,
    )


def frame_record(
    files: FrameFiles, count: FrameCount, class_list: ClassList, layout: Layout
) -> Frame | None:
    """The frame as it is catalogued; None where a file of it is bad.

    The camera image's row carries the tags; the label's own where there is no camera image.
    """
    if not count.width:
        return None
    return replace(
        unlabelled_record(files, layout),
        label=files.label_key,
        width=count.width,
        height=count.height,
        class_pixels=dict(zip(class_list.tags, count.pixels, strict=True)),
        unknown_pixels=count.unknown_pixels,
        label_digest=count.digest,
        label_segments=count.segments,
    )


def unlabelled_record(files: FrameFiles, layout: Layout) -> Frame:
    """The frame as it is catalogued without a label."""
    carrier = files.image or files.label
    if carrier is None:
        raise ValueError("a frame needs a camera image or a label")
    return Frame(
        image=carrier.key,
        label=None,
        lidar=files.lidar.key if files.lidar else None,
        camera_json=files.camera_json.key if files.camera_json else None,
        scene=files.id.scene,
        camera=files.id.camera,
        number=files.id.number,
        width=None,
        height=None,
        positions=layout.positions(files.id.camera),
        tags=dict(zip(layout.tags, files.id.tags, strict=True)),
        class_pixels={},
        unknown_pixels=None,
    )


def _in_file(key: str, work: Callable[[], _T]) -> _T:
    """Run ``work``; a BadFile that names no file gets ``key`` for its file."""
    try:
        return work()
    except BadFile as error:
        if error.file:
            raise
        raise BadFile(error.reason, key) from error
