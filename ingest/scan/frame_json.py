"""Frames and what was counted of them as JSON: lists of values, in units and in portions' files."""

from dataclasses import asdict, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from catalog.values import File, Problem
from ingest.labels.segments import Segments
from ingest.layouts.layout import FrameId
from ingest.scan.pair_frames import FrameFiles
from ingest.scan.read_frame import FrameCount

_FILE = tuple(field.name for field in fields(File))
_TIMES = tuple(_FILE.index(name) for name in ("mtime", "atime", "ctime"))
_values = attrgetter(*_FILE)


def file_json(file: File) -> list[Any]:
    """A file's values, in the order of its attributes; times as ISO 8601."""
    values = list(_values(file))
    for index in _TIMES:
        values[index] = values[index] and values[index].isoformat()
    return values


def file_from_json(values: list[Any]) -> File:
    """The file."""
    for index in _TIMES:
        values[index] = values[index] and datetime.fromisoformat(values[index])
    return File(*values)


def frame_json(frame: FrameFiles) -> list[Any]:
    """A frame's id, then its files; None for each that is not there; and its label's segments."""
    files = (frame.image, frame.label, frame.lidar, frame.camera_json)
    segments = frame.segments and [frame.segments.text, frame.segments.problem]
    return [frame.id, *(file and file_json(file) for file in files), segments]


def frame_from_json(values: list[Any]) -> FrameFiles:
    """The frame."""
    (*frame, tags), *files, segments = values
    return FrameFiles(
        FrameId._make([*frame, tuple(tags)]),
        *(file and file_from_json(file) for file in files),
        segments=segments and Segments.of_text(*segments),
    )


def count_json(count: FrameCount) -> list[Any]:
    """A frame's counts."""
    problems = [asdict(problem) for problem in count.problems]
    return [
        count.width, count.height, count.pixels, count.unknown_pixels, count.bytes_read, problems,
        count.digest, count.segments,
    ]  # fmt: skip


def count_from_json(values: list[Any]) -> FrameCount:
    """The counts."""
    width, height, pixels, unknown, bytes_read, problems, digest, segments = values
    return FrameCount(
        width, height, tuple(pixels), unknown, bytes_read,
        tuple(Problem(**problem) for problem in problems), digest, segments,
    )  # fmt: skip
