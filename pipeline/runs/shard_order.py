"""The frames of a split that each shard of a validation reads: lists of rows, balanced by bytes.

A shard's time is that of decoding its files. So frames are dealt by their sizes: those of about one
size go, one each, to all shards, the largest to the shard that has least. Every shard has as many
frames as the others, or one less, and its rows in the split's order.

Validation reads by it, and staging fetches by it. A leaf: standard library and NumPy.
"""

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


def shard_order(size_bytes: Int64, shards: int) -> Int64:
    """(frames,) int64: the rows in the order in which they are dealt to the shards in turn.

    Shard n has those at n, n + shards, n + 2 * shards and so on, ascending.

    Args:
        size_bytes: (frames,) int64, of each frame's files.
        shards: Number of shards, at least 1.

    >>> order = shard_order(np.array([1, 9, 2, 8, 3, 7]), 2)
    >>> order[0::2].tolist(), order[1::2].tolist()
    ([1, 2, 4], [0, 3, 5])
    """
    frames = len(size_bytes)
    if shards == 1 or not frames:
        return np.arange(frames)
    by_size = np.argsort(-size_bytes, kind="stable")
    loads = np.zeros(shards, np.int64)
    shard_of = np.empty(frames, np.int64)
    for begin in range(0, frames, shards):
        rows = by_size[begin : begin + shards]
        # The last ones may be fewer: the first shards get them, so that positions have no gap.
        lightest = np.argsort(loads[: len(rows)], kind="stable")
        shard_of[rows] = lightest
        loads[lightest] += size_bytes[rows]
    order = np.empty(frames, np.int64)
    for shard in range(min(shards, frames)):
        order[shard::shards] = np.flatnonzero(shard_of == shard)
    return order


def shard_rows(size_bytes: Int64, index: int, shards: int) -> Int64:
    """(n,) int64, ascending: the rows of one shard."""
    return shard_order(size_bytes, shards)[index::shards]
