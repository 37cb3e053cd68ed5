"""The score of a model during its training. Needs no TensorFlow, for reports read it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Evaluated:
    """Score of a model after a step of its training."""

    step: int
    """After which step."""
    miou: float
    """Mean IoU over the classes with truth, 0 to 1."""
    pixel_accuracy: float
    """Share of the known pixels that is right, 0 to 1."""
