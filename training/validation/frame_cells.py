"""Each frame's results in a shard: scores, and the few cells of its matrix that are not zero.

A frame has some 40 to 200 of the 1,444 cells of 38 classes. What a report says of scenes, cameras
and other slices adds these up, long after the pixels are gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from training.validation.intervals import PREDICTED, RIGHT, TRUTH

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FrameScore:
    """Scores of one frame; None where every pixel of its label is unknown."""

    fkey: str
    """The frame."""
    row: int
    """Its position in the split, from 0."""
    scene: str
    """That it is of."""
    camera: str
    """That took it."""
    pixels: int
    """Pixels with a known class."""
    ignored_pixels: int
    """Pixels without."""
    accuracy: float | None
    """Share of the known pixels that is right, 0 to 1."""
    loss: float | None
    """Mean cross-entropy at the network's size [nats]."""
    uncertainty: float | None
    """Mean entropy of the prediction at the network's size, 0 (sure) to 1; None where no
    probabilities are known, as of loss and margin.
    """
    margin: float | None
    """Mean distance between the two best classes' probabilities at the network's size, 0
    (undecided) to 1.
    """
    miou: float | None
    """Mean IoU over the classes in this frame's truth, 0 to 1."""
    disagreement: float | None = None
    """Share of the pixels that get another class in the mirrored image, 0 to 1; None where it was
    not asked for.
    """


_NAME = pa.dictionary(pa.int32(), pa.string())

FRAMES_SCHEMA = pa.schema(
    [
        ("fkey", pa.string()),
        ("row", pa.int64()),
        ("scene", _NAME),
        ("camera", _NAME),
        ("pixels", pa.int64()),
        ("ignored_pixels", pa.int64()),
        ("accuracy", pa.float64()),
        ("loss", pa.float64()),
        ("uncertainty", pa.float64()),
        ("margin", pa.float64()),
        ("miou", pa.float64()),
        ("disagreement", pa.float64()),
    ]
)


@dataclass(frozen=True)
class FrameCells:
    """Cells of frames' confusion matrices that have pixels, a row each."""

    frame: Int32
    """(n,) int32, the frame's position in its shard, from 0, ascending."""
    cell: Int32
    """(n,) int32, truth's class id times C, plus the predicted one."""
    pixels: Int32
    """(n,) int32, at least 1."""

    @classmethod
    def none(cls) -> "FrameCells":
        """The cells of no frame."""
        return cls(*(np.empty(0, np.int32) for _ in range(3)))

    @classmethod
    def of(cls, frames: Sequence[tuple[Int32, Int32]]) -> "FrameCells":
        """The cells of frames, each as `cells_of` gives them, in the shard's order."""
        if not frames:
            return cls.none()
        number = [len(cell) for cell, _ in frames]
        frame = np.repeat(np.arange(len(frames), dtype=np.int32), number)
        cell, pixels = (np.concatenate(arrays) for arrays in zip(*frames, strict=True))
        return cls(frame, cell, pixels)

    def add_to(self, sums: Int64, group: Int64) -> None:
        """Add the frames' matrices to those of their groups.

        Args:
            sums: (groups, C * C) int64 pixels, changed.
            group: (frames,) int64, the group of each frame of the shard.
        """
        np.add.at(sums, (group[self.frame], self.cell), self.pixels)

    def class_sums(self, group: Int64, groups: int, classes: int) -> Int64:
        """(groups, 3, C) pixels of each group of frames: training.validation.intervals.class_sums.

        Args:
            group: (frames,) int64, the group of each frame of the shard.
            groups: Their number.
            classes: C.
        """
        truth, predicted = np.divmod(self.cell, np.int32(classes))
        first, right = group[self.frame] * 3 * classes, truth == predicted
        sums = np.zeros(groups * 3 * classes, np.int64)
        # One index for each number: NumPy adds these much faster than by three.
        np.add.at(sums, (first + truth)[right] + RIGHT * classes, self.pixels[right])
        np.add.at(sums, first + truth + TRUTH * classes, self.pixels)
        np.add.at(sums, first + predicted + PREDICTED * classes, self.pixels)
        return sums.reshape(groups, 3, classes)


def cells_of(matrix: Int64) -> tuple[Int32, Int32]:
    """The cells of one frame's (C, C) matrix that are not zero, (n,) int32, and their pixels."""
    cell = np.flatnonzero(matrix)
    return cell.astype(np.int32), matrix.ravel()[cell].astype(np.int32)
