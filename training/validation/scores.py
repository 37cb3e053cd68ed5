"""Scores of a segmentation from its confusion matrix.

A confusion matrix here is (C, C) int64 pixels, rows truth, columns prediction. Pixels whose truth
is unknown are not in it.

    IoU of a class   pixels of it that were found / pixels that are it or were taken for it;
                     none for a class in neither truth nor prediction
    mean IoU         mean over the classes that have one
    pixel accuracy   pixels on the diagonal / all pixels

Source: Everingham et al., "The Pascal Visual Object Classes Challenge", IJCV 2015, section 4.4.2.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
UInt8 = npt.NDArray[np.uint8]


def confusion_matrix(truth: UInt8, prediction: UInt8, n_classes: int) -> tuple[Int64, int]:
    """The confusion matrix of one label, and how many of its pixels are left out.

    Args:
        truth: (H, W) uint8 [class id]; ids that are no class (UNKNOWN_CLASS) are left out.
        prediction: (H, W) uint8 [class id], all below n_classes.
        n_classes: C.

    Returns:
        (C, C) int64, rows truth, columns prediction; and the pixels left out.
    """
    known = truth < n_classes
    pairs = truth[known].astype(np.int64) * n_classes + prediction[known]
    matrix = np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)
    return matrix.astype(np.int64), int(truth.size - pairs.size)


def iou(matrix: Int64) -> Float64:
    """(C,) float64 IoU of each class, 0 to 1; NaN where it is in neither truth nor prediction."""
    found = np.diag(matrix)
    return _ratio(found, matrix.sum(axis=0) + matrix.sum(axis=1) - found)


def recall(matrix: Int64) -> Float64:
    """(C,) float64 share of a class's truth that was found; NaN without truth."""
    return _ratio(np.diag(matrix), matrix.sum(axis=1))


def precision(matrix: Int64) -> Float64:
    """(C,) float64 share of a class's prediction that is right; NaN where it was not predicted."""
    return _ratio(np.diag(matrix), matrix.sum(axis=0))


def mean_iou(matrix: Int64) -> float:
    """Mean IoU over the classes in truth or prediction, 0 to 1; NaN without any pixel."""
    values = iou(matrix)
    occurring = ~np.isnan(values)
    return float(values[occurring].mean()) if occurring.any() else float("nan")


def pixel_accuracy(matrix: Int64) -> float:
    """Share of pixels that are right, 0 to 1; NaN without any pixel."""
    return float(np.trace(matrix) / matrix.sum()) if matrix.any() else float("nan")


@dataclass(frozen=True)
class Baseline:
    """What always predicting one class scores: the least a model must beat.

    Attributes:
        class_id: The class with the most truth pixels.
        miou: 0 to 1, the same definition as the model's.
        pixel_accuracy: 0 to 1.
    """

    class_id: int
    miou: float
    pixel_accuracy: float


def majority_baseline(matrix: Int64) -> Baseline | None:
    """The baseline for the truth in a confusion matrix; None without any pixel."""
    truth = matrix.sum(axis=1)
    if not truth.any():
        return None
    class_id = int(truth.argmax())
    guesses = np.zeros_like(matrix)
    guesses[:, class_id] = truth
    return Baseline(class_id, mean_iou(guesses), pixel_accuracy(guesses))


def _ratio(part: Int64, whole: Int64) -> Float64:
    result = np.full(len(part), np.nan)
    np.divide(part, whole, out=result, where=whole > 0)
    return result
