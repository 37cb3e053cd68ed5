"""What a dataset's record and header say of its rows, counted portion by portion."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.datasets.content_digest import ContentDigest

_COUNTED_ROWS = 65_536


class RowCounts:
    """Counts of a dataset's rows, and the dataset's id.

    Attributes:
        frames: Number of rows.
        splits: Rows of each split.
        class_pixels: (classes,) int64: pixels of each class.
        class_frames: (classes,) int64: frames with each class.
    """

    def __init__(self, question: Mapping[str, object], snapshot: int, classes: int) -> None:
        """Have no row yet.

        Args:
            question: Part of the id, as the snapshot is.
        """
        self.frames, self.splits = 0, Counter[str]()
        self.class_pixels = np.zeros(classes, np.int64)
        self.class_frames = np.zeros(classes, np.int64)
        self._digest = ContentDigest(question, snapshot)

    @property
    def id(self) -> str:
        """The dataset's id: a hash of its content."""
        return self._digest.hexdigest()

    def add(self, rows: pa.Table) -> None:
        """Count the next rows, of FRAMES_SCHEMA."""
        self.frames += rows.num_rows
        splits = rows["split"].value_counts()
        for split, count in zip(*(splits.field(n).to_pylist() for n in (0, 1)), strict=True):
            self.splits[split] += count
        pixels, frames = class_sums(rows, len(self.class_pixels))
        self.class_pixels += pixels
        self.class_frames += frames
        self._digest.update(rows)


def class_sums(rows: pa.Table, classes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pixels of each class in a manifest's rows, and the number of frames with each."""
    pixels, frames = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    for batch in rows.select(["class_pixels"]).to_batches(_COUNTED_ROWS):
        matrix = np.asarray(batch.column(0).flatten()).reshape(-1, classes)
        pixels += matrix.sum(axis=0, dtype=np.int64)
        frames += np.count_nonzero(matrix > 0, axis=0)
    return pixels, frames


def class_matrix(rows: pa.Table, classes: int) -> npt.NDArray[np.int64]:
    """Pixels of each class (columns) in each of a manifest's rows, 0 where it has no label."""
    pixels = rows["class_pixels"].combine_chunks()
    matrix = np.zeros((rows.num_rows, classes), np.int64)
    matrix[np.asarray(pixels.is_valid())] = np.asarray(pixels.flatten()).reshape(-1, classes)
    return matrix
