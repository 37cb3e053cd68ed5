"""Scores of a segmentation from its confusion matrix.

A confusion matrix here is (C, C) int64 pixels, rows truth, columns prediction. Pixels whose truth
is unknown are not in it.

    IoU of a class   pixels of it that were found / pixels that are it or were taken for it;
                     none for a class in neither truth nor prediction
    mean IoU         mean over the classes that have truth: a class without is not scored, and what
                     was taken for it counts against the classes that it was
    frequency-       mean over these classes, weighted by their truth pixels
    weighted IoU
    pixel accuracy   pixels on the diagonal / all pixels

Source: Everingham et al., "The Pascal Visual Object Classes Challenge", IJCV 2015, section 4.4.2.
"""

import math
from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from training.validation.pair_runs import run_begins

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
UInt8 = npt.NDArray[np.uint8]


def confusion_matrix(truth: UInt8, prediction: UInt8, n_classes: int) -> tuple[Int64, int]:
    """The confusion matrix of one label, and how many of its pixels are left out.

    Args:
        truth: (H, W) uint8 [class id]; ids that are no class (UNKNOWN_CLASS) are left out.
        prediction: (H, W) uint8 [class id], all below n_classes.

    Returns:
        (C, C) int64, rows truth, columns prediction; and the pixels left out.
    """
    matrix = np.zeros((n_classes, n_classes), np.int64)
    true, predicted = (
        np.ascontiguousarray(ids, np.uint8).reshape(-1) for ids in (truth, prediction)
    )
    _count_runs(true, predicted, run_begins(truth, prediction), matrix)
    return matrix, int(truth.size - matrix.sum())


@nb.njit(nogil=True, cache=True)
def _count_runs(truth, prediction, begins, matrix):  # type: ignore[no-untyped-def]
    """Count pairs of class ids by the runs of equal ones."""
    for run in range(len(begins) - 1):
        begin = begins[run]
        true = truth[begin]
        if true < len(matrix):
            matrix[true, prediction[begin]] += begins[run + 1] - begin


def iou(matrix: Int64) -> Float64:
    """(C,) float64 IoU of each class, 0 to 1; NaN where it is in neither truth nor prediction."""
    correct = np.diag(matrix)
    return _ratio(correct, matrix.sum(axis=0) + matrix.sum(axis=1) - correct)


def recall(matrix: Int64) -> Float64:
    """(C,) float64 share of a class's truth that was found; NaN without truth."""
    return _ratio(np.diag(matrix), matrix.sum(axis=1))


def precision(matrix: Int64) -> Float64:
    """(C,) float64 share of a class's prediction that is right; NaN where it was not predicted."""
    return _ratio(np.diag(matrix), matrix.sum(axis=0))


def mean_iou(matrix: Int64) -> float:
    """Mean IoU over the classes with truth, 0 to 1; NaN without any pixel."""
    values = iou(matrix)[matrix.any(axis=1)]
    return float(values.mean()) if len(values) else float("nan")


def frequency_weighted_iou(matrix: Int64) -> float:
    """Mean IoU over the classes with truth, weighted by their pixels, 0 to 1; NaN without any.

    Source: Long et al., "Fully Convolutional Networks for Semantic Segmentation", CVPR 2015,
    section 5.
    """
    truth = matrix.sum(axis=1)
    occurring = truth > 0
    if not occurring.any():
        return float("nan")
    return float(np.average(iou(matrix)[occurring], weights=truth[occurring]))


def pixel_accuracy(matrix: Int64) -> float:
    """Share of pixels that are right, 0 to 1; NaN without any pixel."""
    return float(np.trace(matrix) / matrix.sum()) if matrix.any() else float("nan")


@dataclass(frozen=True)
class Baseline:
    """The score of always predicting one class: the least a model must beat."""

    class_id: int
    """The class with the most truth pixels."""
    miou: float
    """0 to 1, the same definition as the model's."""
    pixel_accuracy: float
    """0 to 1."""


def majority_baseline(matrix: Int64) -> Baseline | None:
    """The baseline for the truth in a confusion matrix; None without any pixel."""
    truth = matrix.sum(axis=1)
    if not truth.any():
        return None
    class_id = int(truth.argmax())
    guesses = np.zeros_like(matrix)
    guesses[:, class_id] = truth
    return Baseline(class_id, mean_iou(guesses), pixel_accuracy(guesses))


def share_correlation(ious: Float64, pixels: Float64) -> Float64:
    """(...) Spearman's rank correlation of IoU and pixels (..., C), over the classes with pixels.

    NaN for fewer than three of them, and where all have the same rank.

    Source: Spearman, "The proof and measurement of association between two things", 1904; equal
    values have the mean of their ranks.
    """
    counts = pixels > 0
    number = counts.sum(axis=-1)
    ious_apart, pixels_apart = (_ranks_apart(values, counts) for values in (ious, pixels))
    both = np.sqrt((ious_apart**2).sum(axis=-1) * (pixels_apart**2).sum(axis=-1))
    result = np.full(number.shape, np.nan)
    scored = (number >= _LEAST_CLASSES) & (both > 0)
    np.divide((ious_apart * pixels_apart).sum(axis=-1), both, out=result, where=scored)
    return result


_LEAST_CLASSES = 3


def _ranks_apart(values: Float64, counts: npt.NDArray[np.bool_]) -> Float64:
    """(..., C) the ranks of values less their mean; 0 for what does not count."""
    ours, others = values[..., :, np.newaxis], values[..., np.newaxis, :]
    which = counts[..., np.newaxis, :]
    less, equal = ((of & which).sum(axis=-1) for of in (others < ours, others == ours))
    number = counts.sum(axis=-1, keepdims=True)
    apart: Float64 = np.where(counts, less + (equal - number) / 2, 0.0)
    return apart


def number_or_none(value: float) -> float | None:
    """A score as JSON holds it: None for NaN."""
    return None if math.isnan(value) else value


def _ratio(numerator: Int64, denominator: Int64) -> Float64:
    result = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result
