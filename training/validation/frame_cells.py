"""The confusion matrix of each frame, as the few cells of it that are not zero.

A frame has some 40 to 200 of the 1,444 cells of 38 classes. What a report says of scenes, cameras
and other slices adds these up, long after the pixels are gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FrameCells:
    """Cells of frames, a row each.

    Attributes:
        frame: (n,) int32, the frame's position in its shard, from 0, ascending.
        cell: (n,) int32, truth's class id times C, plus the predicted one.
        pixels: (n,) int32, at least 1.
    """

    frame: Int32
    cell: Int32
    pixels: Int32

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


def cells_of(matrix: Int64) -> tuple[Int32, Int32]:
    """The cells of one frame's (C, C) matrix that are not zero, (n,) int32, and their pixels."""
    cell = np.flatnonzero(matrix)
    return cell.astype(np.int32), matrix.ravel()[cell].astype(np.int32)
