"""Settings of a training, as users give them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainSettings:
    """Settings of a training.

    Attributes:
        workers: Horovod processes.
        batch_size: Frames per worker and step.
        max_steps: Steps; None where the length is given in epochs, or left to the program: 300
            steps, or one epoch where that is more.
        epochs: The length in whole epochs, each every frame of the split once; None where it is
            given in steps, or not given.
        learning_rate: Learning rate of one worker; the program's own default when None.
        height: Network input height [pixels]; the program's own default when None.
        width: Network input width [pixels]; the program's own default when None.
        seed: Seed of weights and order.
        split: Split to train on; None for "train", or for all frames of a dataset not divided.
        continue_from: The model to begin with: a training job's name or a folder; None for new
            weights.
    """

    workers: int = 2
    batch_size: int = 4
    max_steps: int | None = None
    epochs: int | None = None
    learning_rate: float | None = None
    height: int | None = None
    width: int | None = None
    seed: int = 0
    split: str | None = None
    continue_from: str | None = None
