"""A sample with so many frames of each stratum."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from catalog.errors import InvalidInput
from query.frames.sampling import Hashes, random_keys
from query.sets.rounding import Counts, largest_remainder, systematic
from query.sets.strata import Codes, Strata

Allocation = Literal["proportional", "equal"] | Mapping[str, Fraction]
"""Frames of each stratum: as many as it has, equally many, or shares by label. A stratum's label is
its labels joined by "/", such as front_center/0:1000."""

_FULL = 2.0**64
_BLOCK = 16_384


def allocate(strata: Strata, total: int, allocation: Allocation, seed: int) -> Counts:
    """Allocate frames to strata by largest remainders, never more than a stratum has.

    Where a proportional sample has fewer frames than there are strata, largest remainders would
    take all of them of the largest ones: then a stratum gets its frame with a probability that is
    its quota, and the values of the first stratifiers get theirs to within one.
    """
    sizes = strata.sizes
    if allocation == "proportional":
        weights = sizes.astype(np.float64)
        if 0 < total < len(sizes):
            return systematic(weights * (total / weights.sum()), total, seed)
    elif allocation == "equal":
        weights = np.ones(len(sizes))
    else:
        weights = _shares_of(strata, allocation)
    # Small strata often tie: the seed decides, not the alphabet.
    ties = random_keys(np.arange(len(sizes), dtype=np.uint64), seed)
    usable = np.where(weights > 0, sizes, 0)
    return largest_remainder(weights, total, usable, ties)


def _shares_of(strata: Strata, shares: Mapping[str, Fraction]) -> npt.NDArray[np.float64]:
    labels = {"/".join(label): code for code, label in enumerate(strata.labels)}
    weights = np.zeros(len(labels))
    for label, share in shares.items():
        if label not in labels:
            known = ", ".join(list(labels)[:12])
            raise InvalidInput(f"allocation: no frame is of stratum '{label}'; there are {known}")
        weights[labels[label]] = float(share)
    return weights


def draw(hashes: Hashes, codes: Codes, counts: Counts, seed: int) -> npt.NDArray[np.int64]:
    """Positions of the first ``counts`` frames of each stratum in the order that the seed decides.

    Only the frames whose place is below a threshold are ranked, those that a stratum needs and
    some more; a stratum that this leaves short is ranked whole.

    Args:
        codes: Stratum of each frame, below ``len(counts)``.
        counts: Frames to take of each stratum, no more than it has.

    Returns:
        Positions, rising.
    """
    sizes = np.bincount(codes, minlength=len(counts))
    rate = (counts + 6 * np.sqrt(counts) + 4) / np.maximum(sizes, 1)
    threshold = np.where(rate < 1, rate * _FULL, np.inf)
    threshold[counts == 0] = -1.0
    chosen, order = _below(hashes, codes, threshold, seed)
    short = np.bincount(codes[chosen], minlength=len(counts)) < counts
    if short.any():
        threshold[short] = np.inf
        chosen, order = _below(hashes, codes, threshold, seed)
    chosen = chosen[np.lexsort((order, codes[chosen]))]
    of_stratum = codes[chosen]
    starts = np.concatenate(([0], np.cumsum(np.bincount(of_stratum, minlength=len(counts)))[:-1]))
    rank = np.arange(len(chosen)) - starts[of_stratum]
    return cast(npt.NDArray[np.int64], np.sort(chosen[rank < counts[of_stratum]]))


def _below(
    hashes: Hashes, codes: Codes, threshold: npt.NDArray[np.float64], seed: int
) -> tuple[npt.NDArray[np.int64], Hashes]:
    """Positions of the frames whose key is below their stratum's threshold, and those keys.

    In blocks that stay in the processor's cache: half the time.
    """
    positions: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    of_found: list[Hashes] = [np.empty(0, np.uint64)]
    for start in range(0, len(hashes), _BLOCK):
        block = slice(start, start + _BLOCK)
        order = random_keys(hashes[block], seed)
        below = np.flatnonzero(order < threshold[codes[block]])
        positions.append(below + start)
        of_found.append(order[below])
    return np.concatenate(positions), np.concatenate(of_found)
