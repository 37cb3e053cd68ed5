"""Metrics with one share a frame: its mean and its distribution over frames."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from training.validation.metrics.metric import Float64, Int64, ScoredFrame, checked
from training.validation.metrics.metric import share as quotient

BINS = 20

_UNIT = 2**24
"""A share is added up as a whole number of 1/_UNIT, so that the sum has no rounding."""


class FrameShare:
    """Base of these metrics: frames by their shares, and the sum of the shares."""

    def __init__(self, frames: Int64, units: Int64) -> None:
        self._frames, self._units = frames, units

    @staticmethod
    def share(frame: ScoredFrame) -> float | None:
        """The share of a frame, 0 to 1; None for one that is left out."""
        raise NotImplementedError

    @classmethod
    def empty(cls, n_classes: int) -> Self:  # noqa: ARG003 (every metric is made so)
        """The metric of no frame."""
        return cls(np.zeros(BINS, np.int64), np.zeros(1, np.int64))

    @classmethod
    def from_state(cls, state: Mapping[str, Int64], n_classes: int) -> Self:  # noqa: ARG003
        """The metric whose `state` this is."""
        return cls(checked(state, "frames", (BINS,)), checked(state, "units", (1,)))

    def update(self, frame: ScoredFrame) -> None:
        """Add a frame."""
        share = self.share(frame)
        if share is not None:
            self._frames[min(int(share * BINS), BINS - 1)] += 1
            self._units[0] += round(share * _UNIT)

    def merge(self, other: Self) -> None:
        """Add another's frames."""
        self._frames += other._frames
        self._units += other._units

    def state(self) -> dict[str, Int64]:
        """Frames of each bin, and the sum of all."""
        return {"frames": self._frames, "units": self._units}

    def result(self) -> dict[str, Any]:
        """`mean` over frames, None of none; and how many frames each twentieth of 0 to 1 has."""
        number = int(self._frames.sum())
        return {
            "mean": int(self._units[0]) / _UNIT / number if number else None,
            "frames": self._frames.tolist(),
        }

    @staticmethod
    def drawn(sums: Mapping[str, Float64], whole: Mapping[str, Float64]) -> dict[str, Float64]:  # noqa: ARG004
        """`mean` (D,)."""
        return {"mean": quotient(sums["units"][..., 0] / _UNIT, sums["frames"].sum(axis=-1))}


class Entropy(FrameShare):
    """Uncertainty: the entropy of a prediction, over frames.

    Of a frame it is the mean over the pixels of the network's size, as a share of the largest
    possible: 0 where the model is sure of every pixel, 1 where it knows nothing.

    Source: Shannon, "A Mathematical Theory of Communication", 1948, section 6.
    """

    @staticmethod
    def share(frame: ScoredFrame) -> float | None:
        """The score of a frame, 0 to 1; None where no probabilities are known."""
        return frame.uncertainty


class Margin(FrameShare):
    """Margin: by how much a model prefers the best class to the second best, over frames.

    Of a frame it is the mean, over the pixels of the network's size, of the distance between the
    two largest probabilities: 0 where the model is undecided everywhere, 1 where it is sure.

    Source: Scheffer et al., "Active Hidden Markov Models for Information Extraction", IDA 2001.
    """

    @staticmethod
    def share(frame: ScoredFrame) -> float | None:
        """The score of a frame, 0 to 1; None where no probabilities are known."""
        return frame.margin


class Disagreement(FrameShare):
    """Disagreement under test-time augmentation: pixels that get another class when mirrored.

    The image is mirrored, put through the model, and what comes back mirrored again. Where the two
    predictions differ the model has no reason to be believed, also where nobody has labelled
    anything. Only where it was asked for (`--augment-test mirror`): each frame goes through the
    model twice.

    Source: Ayhan and Berens, "Test-time Data Augmentation for Estimation of Heteroscedastic
    Aleatoric Uncertainty in Deep Neural Networks", MIDL 2018.
    """

    @staticmethod
    def share(frame: ScoredFrame) -> float | None:
        """The score of a frame, 0 to 1; None where the option is off."""
        return frame.disagreement
