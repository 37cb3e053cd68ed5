"""Scores against a slow, obviously right computation."""

import numpy as np
import pytest

from ingest.labels.class_list import UNKNOWN_CLASS
from training.validation.scores import (
    UInt8,
    confusion_matrix,
    iou,
    majority_baseline,
    mean_iou,
    pixel_accuracy,
    precision,
    recall,
)

CLASSES = 5
Labels = tuple[UInt8, UInt8]


@pytest.fixture
def labels() -> Labels:
    """Truth with unknown pixels and without class 4; a prediction without class 3."""
    random = np.random.default_rng(5)
    truth = random.integers(0, 4, (13, 17), dtype=np.uint8)
    truth[random.random(truth.shape) < 0.2] = UNKNOWN_CLASS
    prediction = random.integers(0, 3, truth.shape, dtype=np.uint8)
    return truth, prediction


def test_matrix_counts_each_known_pixel(
    labels: Labels,
) -> None:
    """Proves rows are truth, columns prediction, and unknown pixels are counted apart."""
    truth, prediction = labels
    slow = [[0] * CLASSES for _ in range(CLASSES)]
    left_out = 0
    for t, p in zip(truth.ravel().tolist(), prediction.ravel().tolist(), strict=True):
        if t == UNKNOWN_CLASS:
            left_out += 1
        else:
            slow[t][p] += 1
    matrix, ignored = confusion_matrix(truth, prediction, CLASSES)
    assert matrix.dtype == np.int64
    assert matrix.tolist() == slow
    assert ignored == left_out > 0


def test_scores_pixel_by_pixel(
    labels: Labels,
) -> None:
    """Proves IoU, recall, precision, mean and accuracy by sets of pixels."""
    truth, prediction = labels
    matrix, _ = confusion_matrix(truth, prediction, CLASSES)
    known = [(y, x) for y in range(13) for x in range(17) if truth[y, x] != UNKNOWN_CLASS]
    values = []
    for c in range(CLASSES):
        real = {at for at in known if truth[at] == c}
        guessed = {at for at in known if prediction[at] == c}
        both, either = len(real & guessed), len(real | guessed)
        if either:
            values.append(both / either)
            assert iou(matrix)[c] == pytest.approx(both / either)
        else:
            assert np.isnan(iou(matrix)[c])
        for score, whole in ((recall(matrix)[c], real), (precision(matrix)[c], guessed)):
            assert score == pytest.approx(both / len(whole)) if whole else np.isnan(score)
    assert len(values) == 4
    assert mean_iou(matrix) == pytest.approx(sum(values) / len(values))
    right = sum(truth[at] == prediction[at] for at in known)
    assert pixel_accuracy(matrix) == pytest.approx(right / len(known))


def test_majority_baseline(
    labels: Labels,
) -> None:
    """Proves the baseline is what predicting the most frequent class everywhere scores."""
    truth, prediction = labels
    matrix, _ = confusion_matrix(truth, prediction, CLASSES)
    baseline = majority_baseline(matrix)
    assert baseline
    assert baseline.class_id == np.bincount(truth[truth != UNKNOWN_CLASS]).argmax()
    always, _ = confusion_matrix(truth, np.full_like(truth, baseline.class_id), CLASSES)
    assert baseline.miou == pytest.approx(mean_iou(always))
    assert baseline.pixel_accuracy == pytest.approx(pixel_accuracy(always))


def test_nothing_to_score() -> None:
    """Proves that no known pixel gives no score instead of a division by zero."""
    unknown = np.full((2, 3), UNKNOWN_CLASS, np.uint8)
    matrix, ignored = confusion_matrix(unknown, np.zeros_like(unknown), CLASSES)
    assert ignored == 6
    assert np.isnan(mean_iou(matrix))
    assert np.isnan(pixel_accuracy(matrix))
    assert majority_baseline(matrix) is None
