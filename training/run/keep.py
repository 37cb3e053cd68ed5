"""Keeps what a run has after a step, and says why a run ends there."""

import hashlib
import json
import time

import numpy as np

from catalog.errors import FramesiftError, JobFailed
from pipeline.runs.run_length import Progress
from training.command import Interrupted, say
from training.input.skipped_frames import read_skipped_frames, write_skipped_frames
from training.run.checkpoint import Checkpoint
from training.run.logs import Logs
from training.run.training_run import Run, cannot_go_on


class CheckpointTimer:
    """Timer of the checkpoints that are due by time."""

    def __init__(self, minutes: float | None) -> None:
        """Start the timer.

        Args:
            minutes: Between two checkpoints; None where time does not matter.
        """
        self._every_s = None if minutes is None else 60 * minutes
        self.restart()

    @property
    def is_due(self) -> bool:
        """True where so much time has gone by since the last checkpoint."""
        return self._every_s is not None and time.monotonic() - self._since_s >= self._every_s

    def restart(self) -> None:
        """Count from now."""
        self._since_s = time.monotonic()


def save(run: Run, progress: Progress, rate: float) -> None:
    """Write a checkpoint, if all workers hold the same weights as they must.

    Raises:
        JobFailed: They do not, or the weights are not finite: the last checkpoint stays.
    """
    weights = run.model.get_weights()
    digest = hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest()
    if not run.workers.agree(digest):
        raise JobFailed("training", f"the workers' weights differ at step {progress.step}")
    if not all(np.isfinite(each).all() for each in weights):
        raise diverged(run, "a weight", progress.step, rate)
    if run.workers.is_first:
        Checkpoint(
            step=progress.step,
            examples=progress.examples,
            labels=run.frames.header.dataset_classes,
            class_map=run.classes.map,
            identity=run.identity,
            weights=weights,
            optimizer=[variable.numpy() for variable in run.state],
        ).write(run.settings.model_dir, run.settings.keep_checkpoints)
    # A launcher ends all workers once one has ended: none may end while the first one writes.
    run.workers.broadcast_number(progress.step)


def diverged(run: Run, what: str, step: int, rate: float) -> JobFailed:
    """Why a run ends whose numbers are no use any more, and what is kept of it."""
    if step == 1 and what == "the loss":  # of the weights that it begins with
        advice = f"look at what network {run.settings.model} computes"
        if run.parent:
            advice = f"begin with another model than {run.parent.dir}, or without one"
        return JobFailed("training", f"the loss is not finite at step 1: {advice}")
    checkpoint = Checkpoint.read(run.settings.model_dir)
    hint = f"the checkpoint of step {checkpoint.step} is kept, " if checkpoint else ""
    return JobFailed(
        "training",
        f"{what} is not finite at step {step}, with learning rate {rate:.3g}: {hint}begin a new "
        "run with a lower learning rate",
    )


def list_bad(run: Run, logs: Logs | None) -> None:
    """Share the bad frames of each worker with all; the first one writes the list."""
    recorded = read_skipped_frames(run.settings.model_dir) if logs and run.skipped else []
    for bad in run.skipped:
        bad.add(one for one in recorded if (one["split"] or run.settings.split) == bad.split)
        for text in run.workers.texts(json.dumps(bad.listed())):
            bad.add(json.loads(text))
    if logs and run.skipped:
        listed = [one for bad in run.skipped for one in bad.listed()]
        write_skipped_frames(run.settings.model_dir, listed)
        logs.metrics.skips(len(listed))
    for bad in run.skipped:
        bad.check()


def ended(run: Run, failure: FramesiftError | None, received: str, step: int) -> FramesiftError:
    """Why the run ends here, on this worker; its checkpoint is written."""
    unread = cannot_go_on(run.workers, failure)
    if unread and run.workers.is_first:
        say(f"the checkpoint of step {step} is kept")
    return unread or Interrupted(
        "training",
        f"ended by {received or 'another worker'} after step {step} of {run.length.max_steps}: "
        "its checkpoint is kept, and the same command goes on from it",
    )
