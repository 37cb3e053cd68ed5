"""How to train, as it is asked for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainSettings:
    """How to train.

    Attributes:
        workers: Horovod processes.
        batch_size: Frames per worker and step.
        max_steps: Steps.
        learning_rate: Learning rate of one worker; the program's own default when None.
        height: Network input height [pixels]; the program's own default when None.
        width: Network input width [pixels]; the program's own default when None.
        seed: Seed of weights and order.
        split: Split to train on.
    """

    workers: int = 2
    batch_size: int = 4
    max_steps: int = 300
    learning_rate: float | None = None
    height: int | None = None
    width: int | None = None
    seed: int = 0
    split: str = "train"
