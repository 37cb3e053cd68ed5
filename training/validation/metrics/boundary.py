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

import numpy as np
import numpy.typing as npt

from training.validation.metrics.metric import Int64, ScoredFrame, UInt8, checked
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
        n_classes = len(self._both)
        truth, prediction = frame.small_truth, frame.small_prediction
        distance = max(1, round(DISTANCE * math.hypot(*truth.shape)))
        known = truth < n_classes
        near_truth = near_outline(truth, distance) & known
        near_prediction = near_outline(prediction, distance) & known
        both = near_truth & near_prediction & (truth == prediction)
        self._both += np.bincount(truth[both], minlength=n_classes)
        self._truth += np.bincount(truth[near_truth], minlength=n_classes)
        self._prediction += np.bincount(prediction[near_prediction], minlength=n_classes)

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


def near_outline(ids: UInt8 | Int64, distance: int) -> npt.NDArray[np.bool_]:
    """(h, w) bool: whether a square around a pixel holds another class or leaves the image.

    Args:
        ids: (h, w) [class id].
        distance: From the pixel to the square's side [pixels], at least 1.
    """
    outline = np.zeros(ids.shape, np.bool_)
    # A pixel with another class among its eight neighbours. Whatever is within d of another class
    # is within d - 1 of such a pixel, so that one picture of the outlines serves all classes.
    for one, other in _NEIGHBOURS:
        differs = ids[one] != ids[other]
        outline[one] |= differs
        outline[other] |= differs
    outline[[0, -1], :] = True
    outline[:, [0, -1]] = True
    return _widened(_widened(outline, distance - 1).T, distance - 1).T


_ALL, _BEFORE, _BEHIND = slice(None), slice(None, -1), slice(1, None)
_NEIGHBOURS = (
    ((_ALL, _BEFORE), (_ALL, _BEHIND)),
    ((_BEFORE, _ALL), (_BEHIND, _ALL)),
    ((_BEFORE, _BEFORE), (_BEHIND, _BEHIND)),
    ((_BEFORE, _BEHIND), (_BEHIND, _BEFORE)),
)


def _widened(mask: npt.NDArray[np.bool_], distance: int) -> npt.NDArray[np.bool_]:
    """True where a row of the mask (h, w) has a True at most so many pixels to the side."""
    sums = np.zeros((mask.shape[0], mask.shape[1] + 2 * distance + 1), np.int32)
    np.cumsum(
        mask, axis=1, dtype=np.int32, out=sums[:, distance + 1 : distance + 1 + mask.shape[1]]
    )
    sums[:, distance + 1 + mask.shape[1] :] = sums[:, [distance + mask.shape[1]]]
    return sums[:, 2 * distance + 1 :] > sums[:, : mask.shape[1]]
