"""Runs of equal pairs of ids against NumPy's comparison of each pixel with its left neighbour."""

import numpy as np
import pytest

from training.validation.pair_runs import run_begins


@pytest.mark.parametrize("change", [0.0, 0.02, 0.5])
@pytest.mark.parametrize(
    "shape", [(0, 5), (1, 1), (3, 5), (100, 1), (7, 63), (7, 64), (2, 65), (5, 200), (1, 500)]
)
def test_begins_of_runs(shape: tuple[int, int], change: float) -> None:
    """Rows narrower and wider than a block; runs that either of both ends, and those over rows."""
    random = np.random.default_rng(3)
    first, second = (
        np.cumsum(random.random(shape) < change, axis=1).astype(np.uint8) for _ in range(2)
    )
    begins = np.ones(shape, np.bool_)
    begins[:, 1:] = (first[:, 1:] != first[:, :-1]) | (second[:, 1:] != second[:, :-1])
    expected = [*np.flatnonzero(begins).tolist(), first.size]
    assert run_begins(first, second).tolist() == expected
    transposed = first.T, second.T
    assert run_begins(*transposed)[-1] == first.size
