"""Pixels and class ids of inflated 8-bit RGB rows, their filters undone on the way.

A camera's rows have filter Paeth, whose guess needs the pixel before: the three channels are undone
side by side, so that the processor has three chains of additions to work on and not one. A label's
rows have filter None or Sub and are runs of one colour (ingest.labels.run_kernel): a run is one
table look-up and one fill.

Compiled by Numba without Python's lock, so that threads decode in parallel.

Source: PNG specification, section 9.2.
"""

from typing import Any

import numba as nb
import numpy as np

from ingest.labels.run_kernel import _colour, _none_run_end, _plus, _sub_run_end


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
    stride = 1 + 3 * width
    above, here = np.zeros(3 * width, np.uint8), np.zeros(3 * width, np.uint8)
    known = True  # whether `above` holds the row before
    for row in range(height):
        start = row * stride + 1
        filter_type = raw[start - 1]
        if filter_type <= 1:
            _class_runs(raw, start, start + 3 * width, filter_type, class_of, ids[row])
            known = False
            continue
        if not known:
            _row_of_runs(raw, row - 1, stride, above)
        if not _undo(filter_type, raw[start : start + 3 * width], above, here):
            return row
        for x in range(width):
            ids[row, x] = class_of[_colour(here, 3 * x)]
        above, here = here, above
        known = True
    return height


@nb.njit(nogil=True, cache=True)
def _class_runs(raw: Any, at: int, end: int, filter_type: int, class_of: Any, ids: Any) -> None:
    """Write a row with filter None or Sub, a run at a time."""
    x = 0
    colour = _colour(raw, at)
    while True:
        if filter_type == 1:
            stop = _sub_run_end(raw, at + 3, end)
        else:
            stop = _none_run_end(raw, at + 3, end)
        pixels = (stop - at) // 3
        ids[x : x + pixels] = class_of[colour]
        x += pixels
        at += 3 * pixels
        if at >= end:
            return
        colour = _plus(colour, raw, at) if filter_type == 1 else _colour(raw, at)


@nb.njit(nogil=True, cache=True)
def _row_of_runs(raw: Any, row: int, stride: int, pixels: Any) -> None:
    """Write the bytes of a row with filter None or Sub."""
    start = row * stride + 1
    _undo(raw[start - 1], raw[start : start - 1 + stride], pixels, pixels)


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
