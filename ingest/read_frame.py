"""One frame's files in, its record out: the unit of work of a scan."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from catalog.errors import BadFile, UnreadableFile
from catalog.lake_tables import POSITION_TAGS
from catalog.records import Frame, Problem
from ingest.frame_name import CAMERAS
from ingest.pair_frames import FrameFiles
from ingest.palette import Palette
from ingest.pixel_count import PixelCounts, count_pixels
from ingest.png_chunks import HEADER_BYTES, read_header
from ingest.source_files import SourceFiles

_T = TypeVar("_T")

_TAIL_BYTES = 4096


@dataclass(frozen=True)
class FrameRead:
    """What reading a frame gave.

    Attributes:
        frame: Its record; None where a file of it is bad.
        problems: The bad file, or colours that are in no class.
        bytes_read: Bytes read from the source.
    """

    frame: Frame | None
    problems: list[Problem]
    bytes_read: int


def read_frame(source: SourceFiles, files: FrameFiles, palette: Palette) -> FrameRead:
    """Count the label's pixels and check that label and camera image fit together.

    Of the camera image only the header and the end are read. A bad file is a result, not an
    exception: the scan goes on.
    """
    image, label = files.image, files.label
    if image is None or label is None:
        raise ValueError("read_frame needs a frame with image and label")
    try:
        png = source.read(label.key)
        counts = _in_file(label.key, lambda: count_pixels(png, palette))
        _in_file(image.key, lambda: _check_image(source, image.key, image.size, counts, label.key))
    except BadFile as error:
        kind = "unreadable" if isinstance(error, UnreadableFile) else "bad_file"
        return FrameRead(None, [Problem(kind, error.file, error.reason)], label.size)
    frame = Frame(
        image=image.key,
        label=label.key,
        lidar=files.lidar.key if files.lidar else None,
        camera_json=files.camera_json.key if files.camera_json else None,
        scene=files.id.scene,
        camera=files.id.camera,
        number=files.id.number,
        width=counts.width,
        height=counts.height,
        positions={tag: int(tag in CAMERAS[files.id.camera]) for tag in POSITION_TAGS},
        class_pixels=dict(zip(palette.tags, counts.counts.tolist(), strict=True)),
        unknown_pixels=counts.unknown,
    )
    problems = []
    if counts.unknown:
        some = ", ".join(f"{colour} {n:,}" for colour, n in counts.unknown_colours.items())
        reason = f"{counts.unknown:,} pixels in colours that are no class: {some}"
        problems.append(Problem("unknown_colours", label.key, reason))
    return FrameRead(frame, problems, len(png) + HEADER_BYTES + _TAIL_BYTES)


def _check_image(source: SourceFiles, key: str, size: int, counts: PixelCounts, label: str) -> None:
    header = read_header(source.read_range(key, 0, HEADER_BYTES))
    if b"IEND" not in source.read_range(key, max(0, size - _TAIL_BYTES), _TAIL_BYTES):
        raise BadFile(f"PNG is truncated: {size:,} bytes without an end")
    if (header.width, header.height) != (counts.width, counts.height):
        raise BadFile(
            f"label is {counts.width}x{counts.height} pixels, "
            f"its camera image {header.width}x{header.height}",
            label,
        )


def _in_file(key: str, work: Callable[[], _T]) -> _T:
    """Run ``work``; a BadFile that names no file gets ``key`` for its file."""
    try:
        return work()
    except BadFile as error:
        if error.file:
            raise
        raise BadFile(error.reason, key) from error
