"""Random orders that a seed decides."""

import numpy as np
import pytest

from query.frames.sampling import first, random_keys

HASHES = np.random.default_rng(5).integers(0, 2**64, 200_000, dtype=np.uint64)


def _reference(value: int, seed: int) -> int:
    """One place, in Python's own whole numbers."""
    mask = 2**64 - 1

    def mixed(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    return mixed(value ^ mixed((0x9E3779B97F4A7C15 + seed) & mask))


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_a_place_is_splitmix(seed: int) -> None:
    """Every version must give the same place for a hash and a seed."""
    expected = [_reference(int(value), seed) for value in HASHES[:100]]
    assert random_keys(HASHES[:100], seed).tolist() == expected


def test_keys_are_even_and_seeds_are_independent() -> None:
    """A tenth of the keys lies in each tenth; two seeds' orders do not agree."""
    one, other = random_keys(HASHES, 1), random_keys(HASHES, 2)
    for order in (one, other):
        counts, _ = np.histogram(order / 2.0**64, bins=10, range=(0.0, 1.0))
        assert np.abs(counts - 20_000).max() < 6 * np.sqrt(20_000)
    assert abs(np.corrcoef(one.astype(float), other.astype(float))[0, 1]) < 0.02
    assert len({tuple(random_keys(HASHES[:4], seed)) for seed in (0, 2**64, 2**65, 2**64 + 1)}) == 4


@pytest.mark.parametrize("count", [0, 1, 7, 199_999, 200_000, 300_000])
def test_first(count: int) -> None:
    """What comes first, in order."""
    order = random_keys(HASHES, 3)
    assert first(order, count).tolist() == np.argsort(order, kind="stable")[:count].tolist()
