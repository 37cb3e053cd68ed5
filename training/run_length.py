"""How long a training run is, and what of its split it sees."""

from dataclasses import dataclass

DEFAULT_STEPS = 300


@dataclass(frozen=True)
class RunLength:
    """The length of a run.

    Attributes:
        max_steps: Steps of all workers together.
        epochs: Frames that its steps take, by frames of the split.
        frames_seen: Frames of the split that are trained on at least once.
        frames: Frames of the split.
    """

    max_steps: int
    epochs: float
    frames_seen: int
    frames: int

    @property
    def share_seen(self) -> float:
        """Share of the split that is trained on, 0 to 1."""
        return self.frames_seen / self.frames

    def __str__(self) -> str:
        """As the start line says it."""
        if self.frames_seen == self.frames:
            seen = "every frame of the split"
        else:
            seen = f"{self.frames_seen:,} of the split's {self.frames:,} frames"
            seen += f" ({100 * self.share_seen:.2g} percent)"
        epochs = f"{self.epochs:.3g}"
        return f"{epochs} {'epoch' if epochs == '1' else 'epochs'}, {seen}"


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
    # As training.example_order.own_rows deals them out: the first worker owns the most.
    owned = [len(range(rank, frames, workers)) for rank in range(min(workers, frames))]
    steps = max_steps
    if steps is None:
        whole = -(-owned[0] * (epochs or 1) // batch_size)
        steps = whole if epochs else max(DEFAULT_STEPS, whole)
    seen = sum(min(rows, steps * batch_size) for rows in owned)
    return RunLength(steps, steps * batch_size * workers / frames, seen, frames)
