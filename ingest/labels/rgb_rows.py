"""Pixels and class ids of inflated rows of 8-bit samples, their filters undone on the way.

A camera's rows have filter Paeth, whose guess needs the pixel before: the three channels are undone
side by side, so that the processor has three chains of additions to work on and not one. A label's
rows are runs of one colour (ingest.labels.run_kernel): a run is one table look-up and one fill.

Compiled by Numba without Python's lock, so that threads decode in parallel.

Source: PNG specification, section 9.2.
"""

from typing import Any

import numba as nb
import numpy as np

from ingest.labels.run_kernel import colour_of_pixel, row_runs
from ingest.labels.words import checksum_of


@nb.njit(nogil=True, cache=True)
def rgb_of_rows(raw: Any, pixels: Any) -> Any:
    """Write the pixels of an image.

    Args:
        raw: (H * (1 + 3 * W),) uint8, inflated rows with their filter bytes.
        pixels: (H, W, 3) uint8 [RGB], written.

    Returns:
        Rows undone: H, or the first row with a filter that PNG does not know.
    """
    height, width, _ = pixels.shape
    above = np.zeros(3 * width, np.uint8)
    for row in range(height):
        start = row * (1 + 3 * width)
        here = pixels[row].reshape(3 * width)
        if not _undo(raw[start], raw[start + 1 : start + 1 + 3 * width], above, here):
            return row
        above = here
    return height


def _compiled(sources: int) -> Any:
    """`class_ids_of_rows` with the checksum of the file that its runs come from."""

    @nb.njit(nogil=True, cache=True)
    def class_ids_of_rows(raw: Any, class_of: Any, ids: Any) -> Any:
        """Write the class ids of a label.

        Args:
            raw: (H * (1 + 3 * W),) uint8, inflated rows with their filter bytes.
            class_of: (2**24,) uint8 [class id] by colour.
            ids: (H, W) uint8 [class id], written.

        Returns:
            Rows undone: H, or the first row with a filter that PNG does not know.
        """
        height, width = ids.shape
        row_bytes = 3 * width
        if sources < 0:
            return 0
        ends, values = np.empty(width, np.int64), np.empty(width, np.uint64)
        ends_above, above = np.empty(width, np.int64), np.empty(width, np.uint64)
        ends_above[0], above[0] = width, 0
        for row in range(height):
            at = row * (1 + row_bytes) + 1
            many = row_runs(raw, at, at + row_bytes, 3, ends_above, above, ends, values)
            if many < 0:
                return row
            x = 0
            for run in range(many):
                ids[row, x : ends[run]] = class_of[colour_of_pixel(values[run])]
                x = ends[run]
            ends, ends_above = ends_above, ends
            values, above = above, values
        return height

    return class_ids_of_rows


class_ids_of_rows = _compiled(checksum_of("run_kernel.py"))


@nb.njit(nogil=True, cache=True)
def sum_rows(rows: Any) -> None:
    """Add to each row of (H, n) uint8 the one above, from the second on, modulo 256."""
    height, row_bytes = rows.shape
    for row in range(1, height):
        for at in range(row_bytes):
            rows[row, at] += rows[row - 1, at]


@nb.njit(nogil=True, cache=True)
def _undo(filter_type: int, filtered: Any, above: Any, pixels: Any) -> bool:
    """Write a row's bytes; whether its filter is known."""
    if filter_type == 0:
        pixels[:] = filtered
    elif filter_type == 1:
        pixels[:3] = filtered[:3]
        for at in range(3, len(filtered)):
            pixels[at] = filtered[at] + pixels[at - 3]
    elif filter_type == 2:
        for at in range(len(filtered)):
            pixels[at] = filtered[at] + above[at]
    elif filter_type == 3:
        for at in range(3):
            pixels[at] = filtered[at] + above[at] // 2
        for at in range(3, len(filtered)):
            guess = (np.int32(pixels[at - 3]) + np.int32(above[at])) // 2
            pixels[at] = filtered[at] + np.uint8(guess)
    elif filter_type == 4:
        _undo_paeth(filtered, above, pixels)
    else:
        return False
    return True


@nb.njit(nogil=True, cache=True)
def _undo_paeth(filtered: Any, above: Any, pixels: Any) -> None:
    left_r = left_g = left_b = np.int32(0)
    corner_r = corner_g = corner_b = np.int32(0)
    for at in range(0, len(filtered), 3):
        above_r = np.int32(above[at])
        above_g = np.int32(above[at + 1])
        above_b = np.int32(above[at + 2])
        left_r = (np.int32(filtered[at]) + _guess(left_r, above_r, corner_r)) & np.int32(255)
        left_g = (np.int32(filtered[at + 1]) + _guess(left_g, above_g, corner_g)) & np.int32(255)
        left_b = (np.int32(filtered[at + 2]) + _guess(left_b, above_b, corner_b)) & np.int32(255)
        pixels[at] = left_r
        pixels[at + 1] = left_g
        pixels[at + 2] = left_b
        corner_r, corner_g, corner_b = above_r, above_g, above_b


@nb.njit(nogil=True, inline="always")
def _guess(left: Any, above: Any, corner: Any) -> Any:
    """Paeth's guess without a branch: which of the three it is, a camera's noise decides."""
    by_left, by_above = above - corner, left - corner
    by_corner = abs(by_left + by_above)
    by_left, by_above = abs(by_left), abs(by_above)
    takes_above = -np.int32(by_above <= by_corner)
    takes_left = -np.int32((by_left <= by_above) & (by_left <= by_corner))
    other = corner ^ ((above ^ corner) & takes_above)
    return other ^ ((left ^ other) & takes_left)
