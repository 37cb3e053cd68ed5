"""In which order the readers of a job read the frames of a split, and who reads which.

A training's readers are its ranks, which share one endless row of examples
(pipeline.example_order); a validation's are its shards, each a process, which together read every
frame of the split once. Either way *position* numbers what the whole job reads, and positions are
dealt to readers in turn, `batch_size` at a time.
"""

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from framesift.data.epoch_order import epoch_order

NEVER = sys.maxsize
"""A position that is not read."""

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ReadingOrder:
    """The row that a job reads at each position, and the reader that does."""

    frames: int
    """Of the split, at least 1; where `rows` says which, as many as those."""
    seed: int | None = None
    """Of a training; None for a validation, which reads the split once."""
    batch_size: int = 1
    """Positions that a reader takes in its turn."""
    readers: int = 1
    """Of the whole job."""
    here: Collection[int] | None = None
    """Those that read from this cache; None for all. Others have caches of their own."""
    begin: int = 0
    """Where the job begins, as a training does that goes on from a checkpoint."""
    end: int | None = None
    """Where it ends; None where that is not known."""
    dealt: Positions | None = field(default=None, repr=False, compare=False)
    """A validation's rows as they are dealt to its readers (pipeline.runs.shard_order); None for
    the split's order.
    """
    rows: Positions | None = field(default=None, repr=False, compare=False)
    """(frames,): the rows of the split that the job reads; None for all."""
    _epochs: dict[int, tuple[Positions, Positions]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def last(self) -> int:
        """The position behind the last one; NEVER where the job goes on without end."""
        if self.seed is None:
            return self.frames if self.end is None else min(self.end, self.frames)
        return NEVER if self.end is None else self.end

    def row(self, position: int) -> int:
        """The row of the split that is read at a position."""
        epoch, index = divmod(position, self.frames)
        return int(self._epoch(epoch)[0][index])

    def turn(self, position: int) -> tuple[int, int]:
        """The reader of a position, and as how many-th of its own it reads it, from 0."""
        step, within = divmod(position - self.begin, self.batch_size * self.readers)
        reader, offset = divmod(within, self.batch_size)
        return reader, step * self.batch_size + offset

    def position(self, reader: int, index: int) -> int:
        """The position that a reader reads as its `index`-th."""
        step, offset = divmod(index, self.batch_size)
        return self.begin + (step * self.readers + reader) * self.batch_size + offset

    def is_here(self, position: int) -> bool:
        """True where a reader of this cache reads a position."""
        return self.here is None or self.turn(position)[0] in self.here

    def next_readings(self, rows: Positions, low: int, read: Sequence[int]) -> Positions:
        """The position at which each of some rows is read next from this cache; NEVER for none.

        Looked for until the end of the epoch after that of `low`: what is not read until then is
        taken for read at the end of the one behind it.

        Args:
            rows: (n,) int64.
            low: Nothing before it is still to be read.
            read: How many of its own positions each reader has read, by its number.
        """
        epoch = low // self.frames
        next_positions = np.full(len(rows), min(self.last, (epoch + 3) * self.frames), np.int64)
        for later in (epoch + 1, epoch):
            indexes, known = self._indexes(later, rows)
            positions = later * self.frames + indexes
            step, within = np.divmod(positions - self.begin, self.batch_size * self.readers)
            reader, offset = np.divmod(within, self.batch_size)
            still = step * self.batch_size + offset >= np.asarray(read, np.int64)[reader]
            still &= (positions >= max(low, self.begin)) & known
            if self.here is not None:
                still &= np.isin(reader, list(self.here))
            next_positions = np.where(still, positions, next_positions)
            next_positions[~known] = NEVER
        next_positions[next_positions >= self.last] = NEVER
        return next_positions

    def _indexes(self, epoch: int, rows: Positions) -> tuple[Positions, npt.NDArray[np.bool_]]:
        """The index of each of some rows in an epoch, and whether it has one."""
        indexes = self._epoch(epoch)[1]
        is_known = rows < len(indexes)
        of_rows = np.where(is_known, indexes[np.minimum(rows, len(indexes) - 1)], -1)
        return of_rows, of_rows >= 0

    def _epoch(self, epoch: int) -> tuple[Positions, Positions]:
        """Rows by index in an epoch, and indexes by row; -1 of one that is not read."""
        if epoch not in self._epochs:
            rows = np.arange(self.frames) if self.dealt is None else self.dealt
            if self.seed is not None:
                rows = epoch_order(self.frames, self.seed, epoch)
            if self.rows is not None:
                rows = self.rows[rows]
            indexes = np.full(int(rows.max()) + 1, -1, np.int64)
            indexes[rows] = np.arange(self.frames)
            for old in [known for known in self._epochs if known < epoch - 2]:
                del self._epochs[old]
            self._epochs[epoch] = rows, indexes
        return self._epochs[epoch]
