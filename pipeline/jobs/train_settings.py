"""Settings of a training, as users give them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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
        continue_from: The model to begin with: a training job's name, with @STEP or @best too, or a
            folder; None for new weights.
        prepare: Whether the job first decodes the frames of a staged dataset once, where that was
            not done yet; None where that is to be done if it pays.
        classes: Name of a class map, or its JSON (pipeline.runs.class_map); None for all label
            classes.
        augment: Names of what is done to examples (pipeline.runs.augmentations), none for an empty
            one; None for the usual.
        checkpoint_every: Steps between checkpoints; the program's own default when None.
        checkpoint_minutes: Minutes after which a checkpoint is due, too; None for steps alone.
        keep_checkpoints: Checkpoints kept, the newest among them; the program's own default when
            None.
        bad_frames: What becomes of frames that cannot be read (pipeline.runs.bad_frames); the run
            fails when None.
        evaluate_every: Epochs after each of which a split is scored, and the best model kept; None
            for no scores on the way.
        evaluate_split: That split; None for "validation".
        target_miou: Mean IoU of these scores whose time is taken, above 0 to 1; None for none.
        horovod: How workers exchange gradients, by name (pipeline.runs.exchange); None for the
            usual.
        model: Name of the network, or the user's own, "module:function"; None for the usual.
        backbone_weights: File with weights of the network's backbone; None for none.
        precision: That layers compute in (pipeline.runs.precision); None for "auto".
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
    prepare: bool | None = None
    classes: str | Mapping[str, Any] | None = None
    augment: Sequence[str] | None = None
    checkpoint_every: int | None = None
    checkpoint_minutes: float | None = None
    keep_checkpoints: int | None = None
    bad_frames: str | None = None
    evaluate_every: int | None = None
    evaluate_split: str | None = None
    target_miou: float | None = None
    horovod: Mapping[str, Any] | None = None
    model: str | None = None
    backbone_weights: str | None = None
    precision: str | None = None
