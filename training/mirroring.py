"""Mirroring of examples left to right: half of them, by seed, epoch and place."""

import numpy as np

from pipeline.example_order import Example

_MIRRORING = 1
"""Keeps these numbers apart from those of the order, which has seed and epoch alone."""


def is_mirrored(example: Example, seed: int) -> bool:
    """True where an example is mirrored, whichever rank reads it."""
    random = np.random.default_rng([seed, example.epoch, example.position, _MIRRORING])
    return bool(random.random() < 0.5)
