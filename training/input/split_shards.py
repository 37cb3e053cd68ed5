"""The frames of a validation, divided into shards: who each frame is, and where it is read."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest.labels.palette import Palette
from pipeline.manifest import Manifest
from training.input.numbered_colours import NumberedColours


@dataclass(frozen=True)
class Place:
    """The frame's identity.

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
        frames: They themselves.
        name: The split's.
        palette: Of their labels.
        numbered: The labels' colours, where some number objects.
        shards: Into how many parts they are divided.
    """

    frames: Manifest
    name: str
    palette: Palette
    numbered: NumberedColours | None
    shards: int

    def shard(self, number: int) -> "Shard":
        """One of the parts."""
        frames = self.frames.shard(number, self.shards)
        rows = self.frames.shard_rows(number, self.shards).tolist()
        columns = (frames.frames[name].to_pylist() for name in ("fkey", "scene", "camera"))
        places = [Place(*one) for one in zip(rows, *columns, strict=True)]
        return Shard(self, number, frames, places)


@dataclass(frozen=True)
class Shard:
    """One shard of a split's frames.

    Attributes:
        split: The split.
        number: The shard's number, from 0.
        frames: Manifest of the shard's frames.
        places: Identity of each frame, in the same order.
    """

    split: Split
    number: int
    frames: Manifest
    places: Sequence[Place]

    def __str__(self) -> str:
        return f"shard {self.number} of {self.split.shards}"
