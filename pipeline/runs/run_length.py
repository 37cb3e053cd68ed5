"""The length of a training run, and the share of its split that it sees."""

from dataclasses import dataclass, replace

DEFAULT_STEPS = 300


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    step: int = 0
    """Steps made."""
    examples: int = 0
    """Examples that all workers have read together (pipeline.example_order)."""


@dataclass(frozen=True)
class RunLength:
    """The length of a run."""

    max_steps: int
    """Steps of all workers together."""
    epochs: float
    """Frames that its steps take, by frames of the split."""
    frames_seen: int
    """Frames of the split that are trained on at least once."""
    frames: int
    """Frames of the split."""
    examples: int
    """Frames that its steps take, each as often as it comes."""

    @property
    def share_seen(self) -> float:
        """Share of the split that is trained on, 0 to 1."""
        return self.frames_seen / self.frames

    def __str__(self) -> str:
        """The words of the start line."""
        if self.frames_seen == self.frames:
            coverage = "every frame of the split"
        else:
            coverage = f"{self.frames_seen:,} of the split's {self.frames:,} frames"
            coverage += f" ({100 * self.share_seen:.2g} percent)"
        epochs = f"{self.epochs:.3g}"
        return f"{epochs} {'epoch' if epochs == '1' else 'epochs'}, {coverage}"


def run_length(
    frames: int, workers: int, batch_size: int, max_steps: int | None, epochs: int | None
) -> RunLength:
    """The length of a run, by steps or by epochs.

    Without either it is DEFAULT_STEPS, or one whole epoch where that is more.

    Args:
        frames: Of the split, at least 1.
        workers: That share them.
        batch_size: Frames per step and worker.
        max_steps: Steps, where they were asked for.
        epochs: Epochs, where they were asked for.

    >>> str(run_length(33_004, 2, 4, 300, None))
    "0.0727 epochs, 2,400 of the split's 33,004 frames (7.3 percent)"
    >>> run_length(33_004, 2, 4, None, None).max_steps, run_length(90, 2, 4, None, 2).max_steps
    (4126, 23)
    """
    each_step = workers * batch_size
    steps = max_steps
    if steps is None:
        epoch_steps = -(-frames * (epochs or 1) // each_step)
        steps = epoch_steps if epochs else max(DEFAULT_STEPS, epoch_steps)
    examples = steps * each_step
    return RunLength(steps, examples / frames, min(frames, examples), frames, examples)


def length_from(
    length: RunLength, workers: int, batch_size: int, progress: "Progress"
) -> RunLength:
    """The length of a run that goes on, with as many workers as before or another number.

    The examples stay those that the run was begun with; the steps that are left follow from them.

    Args:
        length: Of the run with the workers that it began with.
        workers: That share the rest.
        batch_size: Frames per step and worker.
        begun: How far it is.

    >>> length_from(run_length(100, 2, 5, None, 3), 1, 5, Progress(step=10, examples=100)).max_steps
    50
    """
    remaining_steps = -(-(length.examples - progress.examples) // (workers * batch_size))
    return replace(length, max_steps=progress.step + max(0, remaining_steps))
