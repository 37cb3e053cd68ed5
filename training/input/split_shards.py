"""The frames of a validation, divided into shards."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest.labels.class_list import ClassList
from ingest.labels.numbered_colours import NumberedColours
from pipeline.manifest import Manifest


@dataclass(frozen=True)
class FrameId:
    """Identity of a frame.

    Attributes:
        row: Its position in the split, from 0.
        fkey: The frame.
        scene: That it is of.
        camera: That took it.
    """

    row: int
    fkey: str
    scene: str
    camera: str


@dataclass(frozen=True)
class Split:
    """The frames of a validation.

    Attributes:
        frames: The manifest's rows of the split.
        name: The split's name.
        class_list: Of their labels.
        numbered: The labels' colours, where some number objects.
        shards: Number of shards.
    """

    frames: Manifest
    name: str
    class_list: ClassList
    numbered: NumberedColours | None
    shards: int

    def shard(self, number: int) -> "Shard":
        """The shard of that number, from 0."""
        frames = self.frames.shard(number, self.shards)
        rows = self.frames.shard_rows(number, self.shards).tolist()
        columns = (frames.frames[name].to_pylist() for name in ("fkey", "scene", "camera"))
        frame_ids = [FrameId(*one) for one in zip(rows, *columns, strict=True)]
        return Shard(self, number, frames, frame_ids)


@dataclass(frozen=True)
class Shard:
    """One shard of a split's frames.

    Attributes:
        split: The split.
        number: The shard's number, from 0.
        frames: Manifest of the shard's frames.
        frame_ids: Identity of each frame, in the same order.
    """

    split: Split
    number: int
    frames: Manifest
    frame_ids: Sequence[FrameId]

    def __str__(self) -> str:
        return f"shard {self.number} of {self.split.shards}"
