"""The frames of a validation, divided into shards."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.numbered_colours import NumberedColours
from pipeline.manifest import Manifest


@dataclass(frozen=True)
class FrameId:
    """Identity of a frame."""

    row: int
    """Its position in the split, from 0."""
    fkey: str
    """The frame."""
    scene: str
    """That it is of."""
    camera: str
    """That took it."""


@dataclass(frozen=True)
class Split:
    """The frames of a validation."""

    frames: Manifest
    """The manifest's rows of the split."""
    name: str
    """The split's name."""
    classes: DatasetClasses
    """Of their labels."""
    numbered: NumberedColours | None
    """The labels' colours, where some number objects."""
    shards: int
    """Number of shards."""

    def shard(self, number: int) -> "Shard":
        """The shard of that number, from 0."""
        frames = self.frames.shard(number, self.shards)
        rows = self.frames.shard_rows(number, self.shards).tolist()
        columns = (frames.frames[name].to_pylist() for name in ("fkey", "scene", "camera"))
        frame_ids = [FrameId(*one) for one in zip(rows, *columns, strict=True)]
        return Shard(self, number, frames, frame_ids)


@dataclass(frozen=True)
class Shard:
    """One shard of a split's frames."""

    split: Split
    """The split."""
    number: int
    """The shard's number, from 0."""
    frames: Manifest
    """Manifest of the shard's frames."""
    frame_ids: Sequence[FrameId]
    """Identity of each frame, in the same order."""

    def __str__(self) -> str:
        return f"shard {self.number} of {self.split.shards}"
