"""Scoring on the way: when a run scores its model of now, and what becomes of it."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from catalog.errors import FramesiftError, InvalidInput
from pipeline.manifest import Manifest
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.bad_frames import BadFrames
from pipeline.runs.run_length import Progress
from training.command import say
from training.input.dataset import open_reader, open_split
from training.input.skipped_frames import SkippedFrames
from training.input.trained_frames import ABOUT_TRAINED
from training.network.model_files import write_model
from training.run.evaluation import Scoring, keep_best, scored
from training.run.keep import ended, list_bad
from training.run.logs import Logs
from training.run.stop_signal import StopSignal
from training.run.training_run import Run
from training.run.workers import Workers
from training.run_settings import RunSettings


def scoring_of(
    settings: RunSettings,
    frames: Manifest,
    manifest: Path,
    classes: LabelClasses,
    workers: Workers,
    model: Any,
) -> Scoring | None:
    """The validation in between, where that was asked for."""
    if settings.exec_mode != "train_and_evaluate":
        return None
    split, _, dataset_classes = open_split(manifest, settings.evaluate_split, "validation")
    if not len(split.need_labels()) or split.frames.equals(frames.frames):
        raise InvalidInput(
            f"--evaluate_split {settings.evaluate_split} of {frames.header.name}: expected a split "
            "with frames that are not those trained on"
        )
    share = split.shard(workers.rank, workers.size)
    bad = skipped_of(settings, share, len(split), settings.evaluate_split)
    reader, _ = open_reader(
        share,
        dataset_classes,
        settings.height,
        settings.width,
        settings.cache_bytes // 4,
        classes=classes,
        bad=bad,
    )
    return Scoring(model, reader, len(share), len(classes), settings.threads, bad)


def skipped_of(
    settings: RunSettings, frames: Manifest, of_split: int, split: str
) -> SkippedFrames | None:
    """The bad frames among those that a worker reads, of so many in the split; None to fail."""
    bad = BadFrames.parse(settings.bad_frames)
    if not bad.skips:
        return None
    return SkippedFrames(frames.frames["fkey"].to_pylist(), bad.limit(of_split), split)


def is_evaluated(run: Run, progress: Progress) -> bool:
    """Return whether the model of now is scored on the split to validate on.

    That is after the last step, and where a step ended so many epochs.
    """
    each, each_step = len(run.frames) * run.settings.evaluate_every, run.examples_of_step
    is_epoch_over = progress.examples // each > (progress.examples - each_step) // each
    return run.scoring is not None and (is_epoch_over or progress.step == run.length.max_steps)


def lacks_score(run: Run, logs: Logs | None) -> bool:
    """Return whether the run continues from a step whose scoring was interrupted."""
    if not run.start.step or not is_evaluated(run, run.start):
        return False
    evaluations = logs.evaluations if logs else None
    return run.workers.any(evaluations is not None and not evaluations.has(run.start.step))


def evaluate(run: Run, logs: Logs | None, progress: Progress, stop: StopSignal) -> float:
    """Score the model of now, whose checkpoint is written; keep it if it is the best.

    Returns:
        The time that it took [s].

    Raises:
        BadFile: A frame cannot be read.
        JobFailed: One of another worker cannot, or the run was told to end.
    """
    scoring, step = run.scoring, progress.step
    assert scoring is not None  # or the model of now is not scored
    began_s = time.perf_counter()
    failure: FramesiftError | None = None
    matrix = None
    try:
        matrix = scoring.matrix(run.settings.batch_size, lambda: bool(stop.received))
    except FramesiftError as error:
        failure = error
    if run.workers.any(matrix is None) or matrix is None:
        raise ended(run, failure, stop.received, step)
    list_bad(run, logs)
    now = scored(step, run.workers.sum(matrix))
    if logs and logs.evaluations:
        if best := logs.evaluations.is_best(now):
            about = replace(run.about, step=step)
            keep_best(
                lambda folder: write_model(run.model, about, folder),
                run.settings.model_dir,
                ABOUT_TRAINED,
            )
        # After the model: a run that is killed between them scores this step again.
        logs.evaluations.record(now)
        logs.mlperf.evaluated(step, progress.examples / len(run.frames), now.miou)
        logs.metrics.evaluated(now, logs.evaluations.best or now, logs.mlperf.seconds_to_target)
        say(
            f"step {step}: mean IoU {100 * now.miou:.1f} % on {run.settings.evaluate_split}, pixel "
            f"accuracy {100 * now.pixel_accuracy:.1f} %{', the best so far' if best else ''}"
        )
    run.workers.broadcast_number(step)  # none goes on, or ends, while the first one writes
    return time.perf_counter() - began_s
