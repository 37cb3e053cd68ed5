"""Where pairs of ids change: runs of pixels that have the same truth and the same prediction.

A label of 1920x1208 pixels and its prediction have some 40,000 runs. Both are looked through 64
pixels at a time, and what a run begins with is written without a branch for each.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ingest.labels.sample_kernel import bits_set, differs_from_left, lowest_bit
from ingest.labels.words import checksum_of, compiled

Int32 = npt.NDArray[np.int32]
UInt8 = npt.NDArray[np.uint8]

_BLOCK = 64
"""Pixels looked at together."""

_AT_ONCE = 2
"""Begins of a block that are written without asking how many there are."""


def run_begins(first: UInt8, second: UInt8) -> Int32:
    """Where the runs of equal pairs begin, and last where the pixels end.

    Args:
        first: (H, W) uint8.
        second: (H, W) uint8.

    Returns:
        (n + 1,) int32, positions among the H * W pixels, ascending: pixels whose pair is not that
        of the pixel on their left, each row's first, and H * W.
    """
    pixels, width = first.size, first.shape[-1]
    begins = np.empty(pixels + _BLOCK, np.int32)
    flat = (np.ascontiguousarray(ids, np.uint8).reshape(-1) for ids in (first, second))
    return begins[: _write_begins(*flat, width, begins) + 1].copy()


def _compiled(sources: int) -> Any:
    """The kernel, with the checksum of the files that it is compiled from."""

    @compiled(cache=True)
    def write_begins(first: Any, second: Any, width: int, begins: Any) -> Any:
        """Write what `run_begins` returns; how many runs there are."""
        size, at = len(first), 1
        row: Any = width
        if sources < 0:
            return 0
        begins[0] = 0
        many = np.uint64(min(size, 1))
        while at + _BLOCK <= size:
            mask = differs_from_left(first, at) | differs_from_left(second, at)
            while row < at + _BLOCK:
                mask |= np.uint64(1) << np.uint64(row - at)
                row += width
            behind = many + bits_set(mask)
            for _ in range(_AT_ONCE):
                begins[many] = at + lowest_bit(mask)
                many += np.uint64(1)
                mask &= mask - np.uint64(1)
            while mask != 0:
                begins[many] = at + lowest_bit(mask)
                many += np.uint64(1)
                mask &= mask - np.uint64(1)
            many = behind
            at += _BLOCK
        while at < size:
            if at == row or first[at] != first[at - 1] or second[at] != second[at - 1]:
                begins[many] = at
                many += np.uint64(1)
            row += width * np.int64(at == row)
            at += 1
        begins[many] = size
        return np.int64(many)

    return write_begins


_write_begins = _compiled(checksum_of("sample_kernel.py", "words.py"))
