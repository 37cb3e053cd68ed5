"""Scores beside those of scikit-learn and torchmetrics on the same predictions.

scikit-learn computes in float64, as we do: its figures are equal bit for bit. torchmetrics computes
in float32: ours, rounded to that, are at most one last digit beside its own. We add up
probabilities in units of 2**-24.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.predictions import SAMPLE_FRAMES, drawn_pair, predicted, read_labels
from training.validation.metrics.calibration import BINS
from training.validation.metrics.metric import ScoredFrame
from training.validation.metrics.table import METRICS
from training.validation.scores import UInt8, confusion_matrix, iou, precision, recall

DEBIAN_TORCH = Path("/usr/lib/python3/dist-packages/torch")
DRAWN_CLASSES = 6

Pair = tuple[UInt8, UInt8]


def sample_pairs() -> tuple[list[Pair], int]:
    """Labels of two sample frames, every second pixel, and predictions of them; 38 classes."""
    labels, size = read_labels(SAMPLE_FRAMES, 2)
    halves = [label[::2, ::2] for label in labels]
    return [(label, predicted(label, size, seed)) for seed, label in enumerate(halves)], size


def drawn_pairs() -> tuple[list[Pair], int]:
    """Two classes without truth, of which one is predicted, and one that is never predicted."""
    return [drawn_pair(DRAWN_CLASSES, seed) for seed in range(3)], DRAWN_CLASSES


def known_pixels(pairs: Sequence[Pair], size: int) -> tuple[Any, Any]:
    """(N,) int64 each: truth and prediction of the pixels of a known class."""
    truth, prediction = (
        np.concatenate([pair[n].ravel() for pair in pairs]).astype(np.int64) for n in (0, 1)
    )
    known = truth < size
    return truth[known], prediction[known]


def confidences(pixels: int) -> Any:
    """(N,) float32 probabilities, 0.2 to 1, none on the border of two bins."""
    drawn = np.random.default_rng(4).beta(5, 2, pixels) * 0.8 + 0.2
    drawn[np.abs(drawn * BINS - np.rint(drawn * BINS)) < 1e-4] = 0.99
    return drawn.astype(np.float32)


def scored(pairs: Sequence[Pair], size: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The matrix of all pairs, and the results of a validation's scores and calibration."""
    parts = {name: METRICS[name].empty(size) for name in ("scores", "calibration")}
    total = np.zeros((size, size), np.int64)
    drawn = confidences(sum(truth.size for truth, _ in pairs))
    for truth, prediction in pairs:
        matrix, _ = confusion_matrix(truth, prediction, size)
        confidence, drawn = drawn[: truth.size].reshape(truth.shape), drawn[truth.size :]
        best = prediction.astype(np.int64)
        for part in parts.values():
            part.update(ScoredFrame(truth, prediction, matrix, truth, best, confidence))
        total += matrix
    return total, parts["scores"].result(), parts["calibration"].result()


@pytest.mark.wide
@pytest.mark.parametrize("pairs_of", [sample_pairs, drawn_pairs])
def test_scores_are_scikit_learns(pairs_of: Any) -> None:
    """Proves matrix, IoU, recall, precision, means, accuracy: equal bit for bit."""
    from sklearn import metrics

    pairs, size = pairs_of()
    truth, prediction = known_pixels(pairs, size)
    classes = np.arange(size)
    matrix, scores, _ = scored(pairs, size)
    assert np.array_equal(matrix, metrics.confusion_matrix(truth, prediction, labels=classes))
    occurring, guessed = matrix.any(axis=1), matrix.any(axis=0)
    assert (~occurring).sum() >= 2
    for ours, score, there in (
        (iou, metrics.jaccard_score, occurring | guessed),
        (recall, metrics.recall_score, occurring),
        (precision, metrics.precision_score, guessed),
    ):
        theirs = score(truth, prediction, labels=classes, average=None, zero_division=0)
        own = ours(matrix)
        assert np.array_equal(np.isnan(own), ~there)
        assert own[there].tolist() == theirs[there].tolist(), score.__name__
    with_truth = {"labels": classes[occurring], "zero_division": 0}
    assert scores == {
        "miou": metrics.jaccard_score(truth, prediction, average="macro", **with_truth),
        "frequency_weighted_iou": metrics.jaccard_score(
            truth, prediction, average="weighted", **with_truth
        ),
        "pixel_accuracy": metrics.accuracy_score(truth, prediction),
    }


@pytest.mark.parametrize("pairs_of", [sample_pairs, drawn_pairs])
def test_calibration_is_scikit_learns(pairs_of: Any) -> None:
    """Proves each bin's share of right pixels and its mean probability, to 2**-24."""
    from sklearn import calibration

    pairs, size = pairs_of()
    known = np.concatenate([truth.ravel() for truth, _ in pairs]) < size
    truth, prediction = known_pixels(pairs, size)
    confidence = confidences(known.size)[known].astype(np.float64)
    right, mean = calibration.calibration_curve(truth == prediction, confidence, n_bins=BINS)
    bins = [one for one in scored(pairs, size)[2]["bins"] if one["pixels"]]
    assert [one["accuracy"] for one in bins] == right.tolist()
    assert [one["confidence"] for one in bins] == pytest.approx(mean.tolist(), rel=0, abs=2**-24)


@pytest.mark.training  # CI has PyTorch by then
@pytest.mark.skipif(not DEBIAN_TORCH.is_dir(), reason="needs Debian's python3-torch")
@pytest.mark.parametrize("pairs_of", [sample_pairs, drawn_pairs])
def test_scores_are_torchmetrics(tmp_path: Path, pairs_of: Any) -> None:
    """Proves matrix, IoU, recall, precision, mean IoU, accuracy and ECE, in float32."""
    pairs, size = pairs_of()
    known = np.concatenate([truth.ravel() for truth, _ in pairs]) < size
    truth, prediction = known_pixels(pairs, size)
    confidence = confidences(known.size)[known]
    np.savez(tmp_path / "pixels.npz", truth=truth, prediction=prediction, confidence=confidence)
    (tmp_path / "torch").symlink_to(DEBIAN_TORCH)
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.training.torchmetrics_scores",
            tmp_path / "pixels.npz",
            str(size),
        ],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(ended.stdout)
    matrix, scores, calibrated = scored(pairs, size)
    occurring, guessed = matrix.any(axis=1), matrix.any(axis=0)
    assert theirs.pop("confusion_matrix") == matrix.tolist()
    for name, own, there in (
        ("iou", iou(matrix), occurring | guessed),
        ("recall", recall(matrix), occurring),
        ("precision", precision(matrix), guessed),
    ):
        assert last_digits(own[there], np.array(theirs.pop(name))[there]) <= 1, name
    assert last_digits(scores["pixel_accuracy"], theirs.pop("pixel_accuracy")) <= 1
    # These are float32 sums of many float32.
    assert scores["miou"] == pytest.approx(theirs.pop("miou"), rel=1e-6)
    assert calibrated["ece"] == pytest.approx(theirs.pop("ece"), rel=0, abs=2**-24)
    assert not theirs


def last_digits(ours: Any, theirs: Any) -> float:
    """How far float32 figures are apart at most, in steps of the last binary digit."""
    own, other = np.float32(ours), np.float32(theirs)
    return float(np.max(np.abs(own - other) / np.spacing(own)))
