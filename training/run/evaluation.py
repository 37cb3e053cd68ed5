"""Validation in between: a training's score on another split, and its best model so far.

In the model's folder: ``evaluations.jsonl``, one line each time; ``best/``, the model with the best
mean IoU, a model folder like any other. Scores are at the network's size, where a validation
compares at the labels' own: they tell a run's checkpoints apart, and are no report.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from catalog.errors import BadFile, StorageError
from catalog.storage.atomic_write import atomic_write, part_of
from catalog.storage.bounded_file import parsed_json
from catalog.storage.to_disk import to_disk, tree_to_disk
from pipeline.runs.checkpoint_steps import BEST
from training.folder_file import read_folder_file
from training.input.frame_reader import FrameReader
from training.input.skipped_frames import SkippedFrames
from training.run.evaluated import Evaluated
from training.validation.scores import confusion_matrix, mean_iou, pixel_accuracy

EVALUATIONS_FILE = "evaluations.jsonl"
_MOST_BYTES = 64 << 20


class Evaluations:
    """The scores of a run, on its first worker.

    Attributes:
        best: The best so far; None before the first.
        last: The newest; likewise.
    """

    def __init__(self, model_dir: Path, step: int) -> None:
        """Go on after ``step``: later lines, which a kill made void, are dropped."""
        self._path = model_dir / EVALUATIONS_FILE
        self._lines = [line for line in _read(model_dir) if line["step"] <= step]
        text = "".join(json.dumps(line) + "\n" for line in self._lines)
        atomic_write(self._path, text, parents=True)
        of_lines = [Evaluated(e["step"], e["miou"], e["pixel_accuracy"]) for e in self._lines]
        self.best = max(of_lines, key=lambda one: one.miou, default=None)
        self.last = of_lines[-1] if of_lines else None

    def has(self, step: int) -> bool:
        """Return whether the model of that step, which the run goes on from, was scored."""
        return any(line["step"] == step for line in self._lines)

    def is_best(self, scored: Evaluated) -> bool:
        """Return whether a score is above all that are recorded."""
        return self.best is None or scored.miou > self.best.miou

    def record(self, scored: Evaluated) -> None:
        """Write a line."""
        line = {
            "step": scored.step,
            "miou": scored.miou,
            "pixel_accuracy": scored.pixel_accuracy,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.last = scored
        if self.is_best(scored):
            self.best = scored


def keep_best(write: Callable[[Path], object], model_dir: Path, files: Sequence[str]) -> None:
    """Have the model of now written to ``best/``, with copies of files of the run's folder.

    The folder is replaced whole: a kill leaves the model before, or none, and never parts of two.

    Raises:
        StorageError: The disk refuses.
    """
    best = model_dir / BEST
    try:
        with (
            part_of(best, is_folder=True) as partial,
            part_of(best, is_folder=True, clear=False) as former,
        ):
            for name in files:
                if (model_dir / name).exists():  # where its parent has no list, it has none
                    shutil.copyfile(model_dir / name, partial / name)
            write(partial)
            tree_to_disk(partial)
            if best.exists():
                best.replace(former)
            partial.replace(best)
            to_disk(model_dir)
    except OSError as error:
        raise StorageError(f"{best}: cannot be written: {error.strerror}", str(best)) from error


class Scoring:
    """Runs a model that is being trained over a worker's share of a split.

    Attributes:
        bad: Frames that it goes on without; None where one ends it.
    """

    def __init__(
        self,
        model: Any,
        reader: FrameReader,
        frames: int,
        n_classes: int,
        threads: int,
        bad: SkippedFrames | None = None,
    ) -> None:
        """Prepare to score."""
        self.bad = bad
        self._reader, self._frames, self._n_classes = reader, frames, n_classes
        self._threads = threads
        self._best = tf.function(
            lambda images: tf.cast(tf.argmax(model(images, training=False), axis=-1), tf.uint8),
            reduce_retracing=True,
        )

    def look_for_files(self) -> None:
        """Go on where every file of these frames is there."""
        self._reader.look_for_files()

    def matrix(
        self, batch_size: int, should_stop: Callable[[], bool]
    ) -> npt.NDArray[np.int64] | None:
        """The confusion matrix (C, C) int64 of these frames, at the network's size.

        Args:
            should_stop: Called before each batch.

        Returns:
            The matrix; None where it stopped before the last batch.
        """
        total = np.zeros((self._n_classes, self._n_classes), np.int64)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="evaluate") as pool:
            for rows in _batches(self._frames, batch_size):
                if should_stop():
                    return None
                pairs = list(pool.map(self._reader.small, rows))
                predicted = self._best(np.stack([image for image, _ in pairs])).numpy()
                for (_, label), ids in zip(pairs, predicted, strict=True):
                    total += confusion_matrix(np.ascontiguousarray(label), ids, self._n_classes)[0]
        return total


def scored(step: int, matrix: npt.NDArray[np.int64]) -> Evaluated:
    """The scores of a confusion matrix of all workers; 0 where no pixel is known."""
    if not matrix.any():
        return Evaluated(step, 0.0, 0.0)
    return Evaluated(step, mean_iou(matrix), pixel_accuracy(matrix))


def _batches(frames: int, batch_size: int) -> Iterator[Sequence[int]]:
    return (range(first, min(frames, first + batch_size)) for first in range(0, frames, batch_size))


def _read(model_dir: Path) -> list[dict[str, Any]]:
    try:
        content = read_folder_file(model_dir, EVALUATIONS_FILE, _MOST_BYTES)
    except BadFile:
        return []
    lines = []
    for text in content.splitlines():
        try:
            line = parsed_json(text)
            lines.append({**line, "step": int(line["step"]), "miou": float(line["miou"])})
        except (ValueError, KeyError, TypeError):
            continue  # cut by a kill
    return lines
