"""In which order a training job reads its frames: one permutation for each epoch, dealt to ranks.

The whole job reads one endless row of examples: the frames of epoch 0 in their order, those of
epoch 1 in another, and so on. A step takes the next `batch_size` examples for rank 0, then as many
for rank 1, until each has its batch; where an epoch ends within a step, the step goes on with the
next. So each frame comes once in an epoch, whatever the number of ranks, and the number of examples
that the job has read says where it goes on, with another number of ranks too.

Training deals by it, and staging fetches by it. A leaf: standard library and NumPy.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from framesift.data.epoch_order import epoch_order


@dataclass(frozen=True)
class Example:
    """One reading of a frame."""

    row: int
    """The frame's row in the split."""
    epoch: int
    """From 0."""
    position: int
    """In the order of that epoch, from 0."""


def examples(
    frames: int, seed: int, batch_size: int, *, rank: int = 0, ranks: int = 1, begin: int = 0
) -> Iterator[Example]:
    """The examples that one rank reads, without end.

    Args:
        frames: Of the split, at least 1.
        batch_size: Examples of a rank in a step.
        rank: From 0.
        begin: Examples that the whole job has read before.

    >>> of_rank_1 = examples(6, 1, 1, rank=1, ranks=2)
    >>> [next(of_rank_1).row for _ in range(3)], epoch_order(6, 1, 0).tolist()
    ([0, 1, 3], [4, 0, 2, 1, 5, 3])
    """
    known, order = -1, np.empty(0, np.int64)
    first = begin + rank * batch_size
    while True:
        for position in range(first, first + batch_size):
            epoch, index = divmod(position, frames)
            if epoch != known:
                known, order = epoch, epoch_order(frames, seed, epoch)
            yield Example(int(order[index]), epoch, index)
        first += batch_size * ranks
