"""The interface of engines, which scans use."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ingest.labels.class_list import ClassList
from ingest.scan.count_unit import UnitSource, write_unit
from ingest.scan.pair_frames import FrameFiles
from ingest.scan.portions import Portion
from ingest.scan.read_frame import FrameCount
from ingest.scan.segment_tables import SegmentTables
from ingest.sources.source_files import SourceFiles

Counted = tuple[Portion, list[FrameCount]]
"""A portion and what counting its frames gave, in their order."""


@dataclass(frozen=True)
class CountTask:
    """Source, classes and checks that all portions of one scan share."""

    source: UnitSource
    """The source, as another process opens it."""
    files: SourceFiles
    class_list: ClassList
    check_images: bool
    """Open camera images to see that they fit their labels."""
    segments: SegmentTables | None = None
    """Those of the labels; None where they have none."""

    def to_read(self, portion: Portion) -> list[FrameFiles]:
        """The files of the portion's frames that are read."""
        frames = [frame.to_read(image=self.check_images) for frame in portion.frames]
        if self.segments is not None:
            for frame in frames:
                frame.segments = self.segments.of(frame.label_key)
        return frames

    def unit(self, portion: Portion) -> bytes:
        """The portion's frames as a unit for another process."""
        frames = self.to_read(portion)
        keys = [file.key for frame in frames for file in frame.files]
        return write_unit(self.source, frames, self.files.spans(keys))


class Engine(Protocol):
    """Counts the frames of portions."""

    frames_each: int
    """Frames that a portion should have for it."""

    def count(self, task: CountTask, portions: Iterable[Portion]) -> Iterator[Counted]:
        """Every portion with its counts, in order; takes a bounded number of them ahead.

        Raises:
            StorageError: The source fails.
            EngineFailed: The workers do.
        """
        ...
