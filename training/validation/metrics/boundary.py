"""Boundary IoU, the fit of outlines: it counts only the pixels near a class's outline.

IoU says little about the outline of a large thing: a car that is found two pixels too wide has an
IoU near 1. Boundary IoU is the IoU of the pixels that lie within d of the outline of their class,
d being 2 % of the image's diagonal (here of the network's size, at which it is computed). A pixel
lies there when a square of 2 d + 1 pixels around it holds another class, or leaves the image.

Source: Cheng et al., "Boundary IoU: Improving Object-Centric Image Segmentation Evaluation",
CVPR 2021, section 4; the square is that of the erosions in its published code.
"""

import math
from collections.abc import Mapping
from typing import Any, Self

import numba as nb
import numpy as np
import numpy.typing as npt

from training.validation.metrics.metric import (
    Float64,
    Int64,
    ScoredFrame,
    UInt8,
    checked,
    class_mean,
    share,
)
from training.validation.scores import number_or_none

DISTANCE = 0.02
"""Width of the boundary as a share of the image's diagonal."""


class BoundaryIou:
    """Boundary pixels of each class: of both, of the truth, of the prediction."""

    def __init__(self, both: Int64, truth: Int64, prediction: Int64) -> None:
        self._both, self._truth, self._prediction = both, truth, prediction

    @classmethod
    def empty(cls, n_classes: int) -> Self:
        """The metric of no frame."""
        return cls(*(np.zeros(n_classes, np.int64) for _ in range(3)))

    @classmethod
    def from_state(cls, state: Mapping[str, Int64], n_classes: int) -> Self:
        """The metric whose `state` this is."""
        names = ("both", "truth", "prediction")
        return cls(*(checked(state, name, (n_classes,)) for name in names))

    def update(self, frame: ScoredFrame) -> None:
        """Add a frame; a pixel whose class is not known is left out."""
        truth, prediction = frame.small_truth, frame.small_prediction.astype(np.uint8)
        distance = max(1, round(DISTANCE * math.hypot(*truth.shape)))
        near = (near_outline(truth, distance), near_outline(prediction, distance))
        _count(truth, prediction, *near, self._both, self._truth, self._prediction)

    def merge(self, other: Self) -> None:
        """Add another's frames."""
        self._both += other._both
        self._truth += other._truth
        self._prediction += other._prediction

    def state(self) -> dict[str, Int64]:
        """Pixels of each class."""
        return {"both": self._both, "truth": self._truth, "prediction": self._prediction}

    def result(self) -> dict[str, Any]:
        """`mean` over the classes with truth, and `per_class` in the order of their ids."""
        either = self._truth + self._prediction - self._both
        values = np.full(len(either), np.nan)
        np.divide(self._both, either, out=values, where=either > 0)
        with_truth = values[self._truth > 0]
        return {
            "mean": float(with_truth.mean()) if len(with_truth) else None,
            "per_class": [number_or_none(value) for value in values.tolist()],
        }

    @staticmethod
    def drawn(sums: Mapping[str, Float64], whole: Mapping[str, Float64]) -> dict[str, Float64]:
        """`mean` (D,) and `per_class` (D, C): a class counts where a draw has truth of it."""
        per_class = np.where(sums["truth"] > 0, _iou(sums), np.nan)
        mean = class_mean(per_class, _iou(whole), whole["truth"] > 0)
        return {"mean": mean, "per_class": per_class}


def _iou(sums: Mapping[str, Float64]) -> Float64:
    return share(sums["both"], sums["truth"] + sums["prediction"] - sums["both"])


def near_outline(ids: UInt8 | Int64, distance: int) -> npt.NDArray[np.bool_]:
    """(h, w) bool: whether a square around a pixel holds another class or leaves the image.

    Args:
        ids: (h, w) [class id].
        distance: From the pixel to the square's side [pixels], at least 1.
    """
    near = np.zeros(ids.shape, np.bool_)
    _mark_outline(np.ascontiguousarray(ids, np.uint8), near)
    # Whatever is within d of another class is within d - 1 of a pixel with one among its eight
    # neighbours, so that one picture of the outlines serves all classes.
    if distance > 1:
        _widen(near, distance - 1)
    return near


@nb.njit(nogil=True, cache=True)
def _mark_outline(ids, outline):  # type: ignore[no-untyped-def]
    """Mark pixels with another class among their eight neighbours, and those at the edge."""
    height, width = ids.shape
    for y in range(height):
        for x in range(width):
            if y == 0 or x == 0 or y == height - 1 or x == width - 1:
                outline[y, x] = True
                continue
            here = ids[y, x]
            differs = False
            for row in range(y - 1, y + 2):
                differs |= ids[row, x - 1] != here
                differs |= ids[row, x] != here
                differs |= ids[row, x + 1] != here
            outline[y, x] = differs


@nb.njit(nogil=True, cache=True)
def _widen(mask, distance):  # type: ignore[no-untyped-def]
    """Mark what lies in the square of so many pixels to each side around a mark."""
    height, width = mask.shape
    across = np.zeros((height, width), np.bool_)
    for y in range(height):
        ahead = behind = distance + 1  # pixels since the last mark
        for x in range(width):
            ahead = 0 if mask[y, x] else ahead + 1
            across[y, x] |= ahead <= distance
            last = width - 1 - x
            behind = 0 if mask[y, last] else behind + 1
            across[y, last] |= behind <= distance
    down, up = np.full(width, distance + 1), np.full(width, distance + 1)
    mask[:] = False
    for y in range(height):
        last = height - 1 - y
        for x in range(width):
            down[x] = 0 if across[y, x] else down[x] + 1
            mask[y, x] |= down[x] <= distance
            up[x] = 0 if across[last, x] else up[x] + 1
            mask[last, x] |= up[x] <= distance


@nb.njit(nogil=True, cache=True)
def _count(truth, prediction, near_truth, near_prediction, both, of_truth, of_prediction):  # type: ignore[no-untyped-def]
    """Add the pixels of known classes that lie near an outline."""
    n_classes = len(both)
    for y in range(truth.shape[0]):
        for x in range(truth.shape[1]):
            true, predicted = truth[y, x], prediction[y, x]
            if true >= n_classes:
                continue
            if near_truth[y, x]:
                of_truth[true] += 1
                if near_prediction[y, x] and true == predicted:
                    both[true] += 1
            if near_prediction[y, x]:
                of_prediction[predicted] += 1
