"""Which frames a worker trains on, and in what order."""

from collections.abc import Iterator

import numpy as np


def own_rows(frames: int, rank: int, size: int) -> list[int]:
    """The rows of the manifest that a worker trains on.

    Every ``size``-th row from the ``rank``-th: workers share the frames out without overlap, and
    each decodes only its own. A worker that gets none (fewer frames than workers) repeats one
    of the others', because all workers must make the same number of steps.

    >>> own_rows(5, 0, 2), own_rows(5, 1, 2), own_rows(1, 1, 2)
    ([0, 2, 4], [1, 3], [0])
    """
    return list(range(rank, frames, size)) or [rank % frames]


def examples(rows: list[int], seed: int, rank: int, skip: int = 0) -> Iterator[tuple[int, bool]]:
    """Rows without end, each epoch once through all of them in a new order.

    Args:
        rows: The worker's own rows.
        seed: Of the run; the same seed gives the same order.
        rank: Of the worker.
        skip: Examples already used: a run that continues goes on where it stopped.

    Yields:
        A row, and whether to mirror that frame left to right this time.
    """
    epoch, offset = divmod(skip, len(rows))
    while True:
        random = np.random.default_rng([seed, rank, epoch])
        order = random.permutation(len(rows))
        mirrored = random.random(len(rows)) < 0.5
        for position in range(offset, len(rows)):
            yield rows[order[position]], bool(mirrored[position])
        epoch, offset = epoch + 1, 0
