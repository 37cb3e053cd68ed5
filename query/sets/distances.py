"""Distances of one distribution from another."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Distance:
    """Distances between two distributions over the same categories."""

    total_variation: float
    """Half the sum of absolute differences, 0 to 1: the part of one that would have to be changed
    to make the other.
    """
    jensen_shannon: float
    """Root of the Jensen-Shannon divergence to base 2, 0 to 1."""
    largest_difference: float
    """Largest absolute difference of one category's share."""

    def to_json(self) -> dict[str, float]:
        """The distances as a mapping, rounded to six places."""
        return {name: round(value, 6) for name, value in asdict(self).items()}


def distance(one: Sequence[float], other: Sequence[float]) -> Distance:
    """Distances between two distributions, each scaled to sum to 1 first."""
    p, q = _scaled(np.asarray(one, np.float64)), _scaled(np.asarray(other, np.float64))
    difference = np.abs(p - q)
    middle = (p + q) / 2
    divergence = (_relative_entropy(p, middle) + _relative_entropy(q, middle)) / 2
    return Distance(
        float(difference.sum() / 2),
        float(np.sqrt(max(divergence, 0.0))),
        float(difference.max(initial=0.0)),
    )


def _scaled(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    total = values.sum()
    return values / total if total else values


def _relative_entropy(p: npt.NDArray[np.float64], q: npt.NDArray[np.float64]) -> float:
    some = p > 0
    return float((p[some] * np.log2(p[some] / q[some])).sum())
