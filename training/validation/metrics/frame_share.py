"""The base of metrics with one share a frame: its mean and its distribution over frames."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from training.validation.metrics.metric import Int64, ScoredFrame, checked

BINS = 20

_UNIT = 2**24
"""A share is added up as a whole number of 1/_UNIT, so that the sum has no rounding."""


class FrameShare:
    """Frames by their shares, and the sum of these."""

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
