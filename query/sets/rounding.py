"""Shares of a whole in whole numbers."""

from typing import cast

import numpy as np
import numpy.typing as npt

from query.frames.sampling import random_keys

Counts = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


def largest_remainder(
    weights: Weights, total: int, capacity: Counts, ties: npt.NDArray[np.uint64] | None = None
) -> Counts:
    """Divide ``total`` in proportion to ``weights``, none getting more than its capacity.

    Each gets its quota rounded down; the rest goes one each to the largest remainders (Hamilton's
    method). What exceeds a capacity is divided among the others in the same way.

    Args:
        weights: 0 or more, not all 0.
        total: What is divided; at most the capacity of all together is given out.
        ties: Who comes first where remainders are equal, smallest first; by position when None.

    Returns:
        The whole numbers, in the order of the weights.
    """
    order = np.arange(len(weights)) if ties is None else ties
    divided = np.zeros(len(weights), np.int64)
    remaining = min(total, int(capacity.sum()))
    while remaining > 0:
        open_ = np.flatnonzero(divided < capacity)
        share = weights[open_]
        if not share.sum():
            share = (capacity - divided)[open_].astype(np.float64)
        # Quotas are rounded so that 0.3 of 10 is 3 and not a little less.
        quota = np.round(share / share.sum() * remaining, 9)
        add = np.floor(quota).astype(np.int64)
        rest = remaining - int(add.sum())
        first = np.lexsort((order[open_], -np.round(quota - add, 9)))
        add[first[:rest]] += 1
        add = np.minimum(add, (capacity - divided)[open_])
        divided[open_] += add
        remaining -= int(add.sum())
    return divided


def systematic(quotas: Weights, total: int, seed: int) -> Counts:
    """Whole numbers, each its quota rounded down or up, that sum to ``total``.

    A number is rounded up with a probability that is its fraction. Neighbours share their
    roundings, so any run of neighbours is off by less than one, too.

    Args:
        quotas: 0 or more; they sum to ``total``.
    """
    start = (int(random_keys(np.zeros(1, np.uint64), seed)[0]) + 1) / (2.0**64 + 2)
    ends = np.floor(np.round(np.cumsum(quotas), 6) + start)
    ends[-1] = total
    return cast(Counts, np.diff(ends, prepend=0).clip(0).astype(np.int64))
