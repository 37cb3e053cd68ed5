"""Calibration: a model's confidence against how often it is right, and the expected error (ECE).

The pixels of the network's size are sorted into 15 bins of equal width by the probability that the
model gives its best class. In each bin the mean probability is compared with the share of pixels
that are right; ECE is the mean of the differences, weighted by pixels.

Source: Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, section 2.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from training.validation.metrics.metric import Float64, Int64, ScoredFrame, checked, share

BINS = 15

_UNIT = 2**24
"""A probability is added up as a whole number of 1/_UNIT, so that the sum has no rounding."""


class Calibration:
    """Pixels, right pixels and probabilities of each bin."""

    def __init__(self, pixels: Int64, right: Int64, probability: Int64) -> None:
        self._pixels, self._right, self._probability = pixels, right, probability

    @classmethod
    def empty(cls, n_classes: int) -> Self:  # noqa: ARG003 (every metric is made so)
        """The metric of no frame."""
        return cls(*(np.zeros(BINS, np.int64) for _ in range(3)))

    @classmethod
    def from_state(cls, state: Mapping[str, Int64], n_classes: int) -> Self:  # noqa: ARG003
        """The metric whose `state` this is."""
        return cls(*(checked(state, name, (BINS,)) for name in ("pixels", "right", "probability")))

    def update(self, frame: ScoredFrame) -> None:
        """Add a frame's pixels of a known class, where their probabilities are known."""
        if frame.confidence is None:
            return
        known = frame.small_truth < len(frame.matrix)
        confidence = frame.confidence[known].astype(np.float64)
        right = (frame.small_truth == frame.small_prediction)[known]
        # The upper edge belongs to a bin, as in the paper: (0, 1/15], (1/15, 2/15], ...
        bins = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
        units = np.rint(confidence * _UNIT)
        self._pixels += np.bincount(bins, minlength=BINS)
        self._right += np.bincount(bins[right], minlength=BINS)
        # Float64 sums of whole numbers below 2**53 are exact.
        self._probability += np.bincount(bins, units, minlength=BINS).astype(np.int64)

    def merge(self, other: Self) -> None:
        """Add another's frames."""
        self._pixels += other._pixels
        self._right += other._right
        self._probability += other._probability

    def state(self) -> dict[str, Int64]:
        """Sums of each bin."""
        return {"pixels": self._pixels, "right": self._right, "probability": self._probability}

    def result(self) -> dict[str, Any]:
        """`ece`, and of each bin its range, pixels, mean probability and share that is right."""
        total = int(self._pixels.sum())
        bins = []
        error = 0.0
        for n, (pixels, right, units) in enumerate(
            zip(
                self._pixels.tolist(), self._right.tolist(), self._probability.tolist(), strict=True
            )
        ):
            confidence = units / _UNIT / pixels if pixels else None
            accuracy = right / pixels if pixels else None
            if confidence is not None and accuracy is not None:
                error += pixels / total * abs(confidence - accuracy)
            bins.append(
                {
                    "above": n / BINS,
                    "up_to": (n + 1) / BINS,
                    "pixels": pixels,
                    "confidence": confidence,
                    "accuracy": accuracy,
                }
            )
        return {"ece": error if total else None, "bins": bins}

    @staticmethod
    def drawn(sums: Mapping[str, Float64], whole: Mapping[str, Float64]) -> dict[str, Float64]:  # noqa: ARG004
        """`ece` (D,), and `accuracy` (D, BINS)."""
        pixels = sums["pixels"]
        # Of a bin, its share of the pixels times the difference of the two means.
        apart = np.abs(sums["probability"] / _UNIT - sums["right"]).sum(axis=-1)
        return {"ece": share(apart, pixels.sum(axis=-1)), "accuracy": share(sums["right"], pixels)}
