"""The score of a model during its training. Needs no TensorFlow, for reports read it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Evaluated:
    """Score of a model after a step of its training.

    Attributes:
        step: After which step.
        miou: Mean IoU over the classes with truth, 0 to 1.
        pixel_accuracy: Share of the known pixels that is right, 0 to 1.
    """

    step: int
    miou: float
    pixel_accuracy: float
