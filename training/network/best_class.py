"""The best class of each pixel at full size, without the logits at full size.

Logits (h, w, C) float32 of a network are interpolated bilinearly to (H, W) and the largest taken.
Interpolated as a whole they are H x W x C numbers, 353 MB for a frame of 1920x1208 and 38 classes.
But between four neighbours of the network's grid every pixel is a weighted mean of these four:

    - a class that is best at all four, by more than rounding can make, is best in the whole block;
    - a class that one other class beats at all four is best nowhere in it.

So most blocks are filled with one class, and in the others two or three classes are interpolated.
Measured (benchmarks/validation_frames.py), logits 152x240 of 38 classes, one thread: areas of
8 pixels 14 ms, of 20 pixels 8 ms, noise 73 ms; TensorFlow 64, 65 and 130 ms.

The arithmetic is TensorFlow's to the last bit: float32, half-pixel centres, first along a row.
Source: tensorflow/core/kernels/image/resize_bilinear_op.cc, `compute_lerp`, and
image_resizer_state.h, `HalfPixelScaler`.
"""

import numba as nb
import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile

Float32 = npt.NDArray[np.float32]
UInt8 = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]

_ROUNDING = np.float32(2**-18)
"""Share of the largest logit by which three interpolations in float32 cannot err (2**-24 each
step)."""


class BestClass:
    """The best class of each pixel of a frame, at the network's size and at any other.

    Attributes:
        ids: (h, w) int64 [class id], of equal logits the smaller one.
        lead: (h, w) float32, by how much its logit is above the second largest.
    """

    def __init__(self, logits: Float32) -> None:
        """Rank the classes of logits (h, w, C) float32, C at most 256.

        Raises:
            BadFile: A logit is no finite number.
        """
        self._logits = logits
        self._largest = np.abs(logits).max(initial=0)
        if not np.isfinite(self._largest):
            raise BadFile("the model's output is not finite (NaN or infinite logits)")
        self.ids: Int64
        self.lead: Float32
        self.ids, self.lead = _best_two(logits)

    def at_size(self, height_px: int, width_px: int) -> UInt8:
        """(height_px, width_px) uint8 [class id]; of equal logits the smaller id."""
        if self.ids.shape == (height_px, width_px):  # every weight would be 0
            return self.ids.astype(np.uint8)
        rows = _Neighbours(self._logits.shape[0], height_px)
        columns = _Neighbours(self._logits.shape[1], width_px)
        result = np.empty((height_px, width_px), np.uint8)
        _fill(
            self._logits,
            self.ids,
            self.lead,
            np.float32(self._largest * _ROUNDING),
            (rows.lower, rows.upper, rows.weight, rows.block),
            (columns.lower, columns.upper, columns.weight, columns.block),
            result,
        )
        return result


class _Neighbours:
    """Neighbours of each pixel of the large side on the small side.

    Attributes:
        lower: (n,) int64, the pixel before it.
        upper: (n,) int64, the pixel behind it.
        weight: (n,) float32, of the one behind.
        block: (blocks + 1,) int64, where runs of the same two pixels begin, and n.
    """

    def __init__(self, small_px: int, large_px: int) -> None:
        scale = np.float32(small_px) / np.float32(large_px)
        half = np.float32(0.5)
        position = (np.arange(large_px, dtype=np.float32) + half) * scale - half
        floor = np.floor(position)
        self.lower: Int64 = np.maximum(floor.astype(np.int64), 0)
        self.upper: Int64 = np.minimum(np.ceil(position).astype(np.int64), small_px - 1)
        self.weight: Float32 = position - floor
        changed = (np.diff(self.lower) != 0) | (np.diff(self.upper) != 0)
        self.block: Int64 = np.concatenate(([0], np.flatnonzero(changed) + 1, [large_px]))


@nb.njit(nogil=True, cache=True)
def _fill(logits, best, margin, rounding, rows, columns, result):  # type: ignore[no-untyped-def]
    row_lower, row_upper, row_weight, row_block = rows
    column_lower, column_upper, column_weight, column_block = columns
    n_classes = logits.shape[2]
    candidates = np.empty(n_classes, np.int64)
    largest = np.empty(result.shape[1], np.float32)
    corners = np.empty((4, n_classes), np.float32)
    for i in range(len(row_block) - 1):
        top, bottom = row_block[i], row_block[i + 1]
        y0, y1 = row_lower[top], row_upper[top]
        for j in range(len(column_block) - 1):
            left, right = column_block[j], column_block[j + 1]
            x0, x1 = column_lower[left], column_upper[left]
            one = best[y0, x0]
            sure = min(min(margin[y0, x0], margin[y0, x1]), min(margin[y1, x0], margin[y1, x1]))
            same = one == best[y0, x1] and one == best[y1, x0] and one == best[y1, x1]
            if same and sure > rounding:
                result[top:bottom, left:right] = one
                continue
            corners[0] = logits[y0, x0]
            corners[1] = logits[y0, x1]
            corners[2] = logits[y1, x0]
            corners[3] = logits[y1, x1]
            rivals = (one, best[y0, x1], best[y1, x0], best[y1, x1])
            n = _not_beaten(corners, rivals, rounding, candidates)
            for y in range(top, bottom):
                _interpolate(
                    corners,
                    candidates[:n],
                    row_weight[y],
                    column_weight[left:right],
                    largest[left:right],
                    result[y, left:right],
                )


@nb.njit(nogil=True, cache=True)
def _best_two(logits):  # type: ignore[no-untyped-def]
    """The class of the largest logit, first of equal ones, and its distance to the second."""
    height, width, n_classes = logits.shape
    best = np.empty((height, width), np.int64)
    lead = np.empty((height, width), np.float32)
    for y in range(height):
        for x in range(width):
            values = logits[y, x]
            at, first, second = 0, values[0], np.float32(-np.inf)
            for c in range(1, n_classes):
                value = values[c]
                if value > first:
                    at, first, second = c, value, first
                elif value > second:
                    second = value
            best[y, x], lead[y, x] = at, first - second
    return best, lead


@nb.njit(nogil=True, cache=True)
def _not_beaten(corners, rivals, rounding, candidates):  # type: ignore[no-untyped-def]
    """Write the classes that no rival beats at all four corners; answer how many they are."""
    n = 0
    for c in range(corners.shape[1]):
        beaten = False
        for rival in rivals:
            beats = True
            for corner in range(4):
                beats &= corners[corner, rival] - corners[corner, c] > rounding
            beaten |= beats
        if not beaten:
            candidates[n] = c
            n += 1
    return n


@nb.njit(nogil=True, cache=True)
def _interpolate(corners, candidates, down, across, largest, result):  # type: ignore[no-untyped-def]
    """Write the best candidate of each pixel of a row in a block.

    Args:
        corners: (4, C) float32: top left, top right, bottom left, bottom right.
        candidates: (n,) int64, ascending.
        down: Weight of the bottom corners.
        across: (px,) float32, weights of the right corners.
        largest: (px,) float32, written.
        result: (px,) uint8, written.
    """
    largest[:] = -np.inf
    for c in candidates:
        top_left, bottom_left = corners[0, c], corners[2, c]
        top_step = corners[1, c] - top_left
        bottom_step = corners[3, c] - bottom_left
        for x in range(len(result)):
            top = top_left + top_step * across[x]
            bottom = bottom_left + bottom_step * across[x]
            value = top + (bottom - top) * down
            if value > largest[x]:
                largest[x] = value
                result[x] = c
