"""The confusion matrix, and the scores that follow from it."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from training.validation.metrics.metric import Int64, ScoredFrame, checked
from training.validation.scores import (
    frequency_weighted_iou,
    mean_iou,
    number_or_none,
    pixel_accuracy,
)


class Confusion:
    """The matrix of all frames, and in how many frames each class is true.

    Attributes:
        matrix: (C, C) int64 pixels, rows truth, columns prediction.
        frames_with_class: (C,) int64 frames whose truth has the class.
    """

    def __init__(self, matrix: Int64, frames_with_class: Int64) -> None:
        self.matrix, self.frames_with_class = matrix, frames_with_class

    @classmethod
    def empty(cls, n_classes: int) -> Self:
        """The metric of no frame."""
        return cls(np.zeros((n_classes, n_classes), np.int64), np.zeros(n_classes, np.int64))

    @classmethod
    def from_state(cls, state: Mapping[str, Int64], n_classes: int) -> Self:
        """The metric whose `state` this is."""
        return cls(
            checked(state, "matrix", (n_classes, n_classes)),
            checked(state, "frames_with_class", (n_classes,)),
        )

    def update(self, frame: ScoredFrame) -> None:
        """Add a frame."""
        self.matrix += frame.matrix
        self.frames_with_class += frame.matrix.any(axis=1)

    def merge(self, other: Self) -> None:
        """Add another's frames."""
        self.matrix += other.matrix
        self.frames_with_class += other.frames_with_class

    def state(self) -> dict[str, Int64]:
        """Both arrays."""
        return {"matrix": self.matrix, "frames_with_class": self.frames_with_class}

    def result(self) -> dict[str, Any]:
        """Mean IoU over the classes with truth, IoU weighted by truth, pixel accuracy."""
        return {
            "miou": number_or_none(mean_iou(self.matrix)),
            "frequency_weighted_iou": number_or_none(frequency_weighted_iou(self.matrix)),
            "pixel_accuracy": number_or_none(pixel_accuracy(self.matrix)),
        }
