"""The protocol of a validation's metrics: updated frame by frame, merged, stored, shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ScoredFrame:
    """A frame whose prediction is compared with its label."""

    truth: UInt8
    """(H, W) uint8 [class id]; ids that are no class are left out of every metric."""
    prediction: UInt8
    """(H, W) uint8 [class id]."""
    matrix: Int64
    """(C, C) int64 pixels of the two, rows truth, columns prediction."""
    small_truth: UInt8
    """(h, w) uint8 [class id], the label at the network's size."""
    small_prediction: Int64
    """(h, w) int64 [class id], the best class at the network's size."""
    confidence: Float32 | None
    """(h, w) float32, the probability of the best class, 0 to 1; None where no probabilities are
    known, as of uncertainty and margin.
    """
    uncertainty: float | None = 0.0
    """Mean entropy of the prediction at the network's size, 0 (sure) to 1."""
    margin: float | None = 0.0
    """Mean distance between the two best classes' probabilities there, 0 to 1."""
    disagreement: float | None = None
    """Share of the pixels there that get another class in the mirrored image; None where nobody
    asked.
    """
    colours: UInt8 | None = None
    """(H, W) uint8 [number of the label's colour]; None where they are not known."""
    numbered: UInt8 = field(default_factory=lambda: np.full(256, 255, np.uint8))
    """(256,) uint8 [class id] of each colour that numbers objects of a class, else 255."""


class Metric(Protocol):
    """An accumulator. Its sums are integers, so that no order and no sharding changes a digit.

    The states of parts add up, array by array, to the state of the whole: so are shards merged.
    """

    @classmethod
    def empty(cls, n_classes: int) -> Self:
        """The metric of no frame, for class ids below n_classes."""
        ...

    @classmethod
    def from_state(cls, state: Mapping[str, Int64], n_classes: int) -> Self:
        """The metric whose `state` this is.

        Raises:
            KeyError, ValueError: An array is missing, or has another shape.
        """
        ...

    def update(self, frame: ScoredFrame) -> None:
        """Add a frame."""
        ...

    def merge(self, other: Self) -> None:
        """Add the frames of another one of this kind."""
        ...

    def state(self) -> dict[str, Int64]:
        """Everything that it knows, as int64 arrays by name."""
        ...

    def result(self) -> dict[str, Any]:
        """Its part of report.json: scores 0 to 1, or None where there is nothing to score."""
        ...


class DrawnMetric(Metric, Protocol):
    """A metric whose scores have intervals, by drawing scenes."""

    @staticmethod
    def drawn(sums: Mapping[str, Float64], whole: Mapping[str, Float64]) -> dict[str, Float64]:
        """The scores of some draws of scenes.

        Args:
            sums: The `state` of the scenes of each draw, (D, ...) each.
            whole: That of all scenes, which has an axis less or one of length 1.

        Returns:
            (D, ...) of each score, by its name; NaN where there is nothing to score.
        """
        ...


def share(numerator: Float64, denominator: Float64) -> Float64:
    """The quotient of two arrays; NaN where the denominator is zero."""
    result = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def class_mean(scores: Float64, whole: Float64, has_truth: npt.NDArray[np.bool_]) -> Float64:
    """(D,) the mean over classes of their scores in draws, (D, C).

    Args:
        scores: NaN where a draw lacks a class.
        whole: (C,) or (D, C) the scores of all scenes, which such a class keeps in that draw.
        has_truth: Like `whole`: the classes that count.
    """
    known = np.where(np.isnan(scores), whole, scores)
    number = np.broadcast_to(has_truth.sum(axis=-1, dtype=np.float64), known.shape[:-1])
    return share(np.where(has_truth, known, 0).sum(axis=-1), number)


def checked(state: Mapping[str, Int64], name: str, shape: tuple[int, ...]) -> Int64:
    """An array of a stored state.

    Raises:
        KeyError: It is missing.
        ValueError: It has another shape.
    """
    array = state[name].astype(np.int64)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
    return array
