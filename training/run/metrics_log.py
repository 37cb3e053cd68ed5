"""The metrics of a training run, for people and programs that watch it.

In the model's folder: ``metrics.jsonl``, one line per log; ``metrics.json``, the summary so far;
``tensorboard/``, the same as TensorBoard event files.
"""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json
from pipeline.runs.run_length import Progress, RunLength
from training.folder_file import read_folder_file
from training.strict_json import strict_json

if TYPE_CHECKING:
    from training.run.evaluated import Evaluated  # with TensorFlow, which a merge does without

LINES_FILE = "metrics.jsonl"
SUMMARY_FILE = "metrics.json"
TENSORBOARD_FOLDER = "tensorboard"
_MOST_BYTES = 256 << 20
_MOST_LOSS = 1e300


class MetricsLog:
    """Writes the metrics of one run; only the first worker has one.

    Attributes:
        first_loss: Loss of step 1, over all workers; None where an earlier run's line is lost.
    """

    def __init__(
        self,
        model_dir: Path,
        length: RunLength,
        warnings: Sequence[str],
        start: Progress,
        prepared: str | None = None,
        report: Callable[[int, Mapping[str, float]], None] = lambda _step, _figures: None,
    ) -> None:
        """Go on where the run has begun: lines of later steps, which a kill made void, are dropped.

        Args:
            prepared: Name of the prepared form that frames are read from; None without one.
            report: Called with the step and its figures.
        """
        import tensorflow as tf

        self._model_dir = model_dir
        self._length, self._warnings, self._prepared = length, list(warnings), prepared
        self._summary, self._report = tf.summary, report
        self._scores: dict[str, float] = {}
        self._bad_frames = 0
        lines = [line for line in read_metrics(model_dir) if line["step"] <= start.step]
        self.first_loss: float | None = (
            lines[0]["loss"] if lines and lines[0]["step"] == 1 else None
        )
        self._last: Mapping[str, Any] | None = None
        if lines and _is_rate(lines[-1].get("images_per_s")):  # it may be scored before a step
            progress = self._progress(start.examples, lines[-1]["images_per_s"])
            self._last = {**lines[-1], "step": start.step, **progress}
        text = "".join(json.dumps(line) + "\n" for line in lines)
        atomic_write(model_dir / LINES_FILE, text, parents=True)
        self._events = tf.summary.create_file_writer(str(model_dir / TENSORBOARD_FOLDER))

    def record(
        self, step: int, examples: int, loss: float, learning_rate: float, images_per_s: float
    ) -> str:
        """Write one line; what it says, for people.

        Args:
            step: The last step it covers.
            loss: Mean since the line before, over all workers.
            images_per_s: Of all workers together, since the line before.
        """
        if step == 1:
            self.first_loss = loss
        line = {
            "step": step,
            "loss": loss,
            "learning_rate": learning_rate,
            "images_per_s": images_per_s,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        with (self._model_dir / LINES_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())  # the summary below is of these lines
        figures = {"loss": loss, "learning_rate": learning_rate, "images_per_s": images_per_s}
        self._show(step, figures)
        self._events.flush()
        progress = self._progress(examples, images_per_s)
        self._last = line | progress
        atomic_write(self._model_dir / SUMMARY_FILE, strict_json(self._summary_of(self._last)))
        return (
            f"step {step}/{self._length.max_steps} epoch {progress['epoch']:.2f}/"
            f"{self._length.epochs:.2f} loss {loss:.4f} learning_rate {learning_rate:.2g} "
            f"{images_per_s:.1f} images/s, {timedelta(seconds=progress['seconds_left'])} left"
        )

    def note_scores(
        self, last: "Evaluated", best: "Evaluated", seconds_to_target: float | None
    ) -> None:
        """Note the scores that the run has, as `evaluated`, for the next summary alone."""
        self._scores = {"miou": last.miou, "best_miou": best.miou, "best_step": best.step}
        if seconds_to_target is not None:
            self._scores["seconds_to_target"] = seconds_to_target

    def evaluated(
        self, now: "Evaluated", best: "Evaluated", seconds_to_target: float | None = None
    ) -> None:
        """Note the score of now, and the best so far, for TensorBoard and the summary.

        Args:
            seconds_to_target: Until the target was reached [s]; None before, or without one.
        """
        self.note_scores(now, best, seconds_to_target)
        accuracy = now.pixel_accuracy
        self._show(now.step, {"validation_miou": now.miou, "validation_pixel_accuracy": accuracy})
        self._write_summary()

    def skips(self, bad_frames: int) -> None:
        """Note how many frames the run goes on without, for the next summary, too."""
        if bad_frames != self._bad_frames:
            self._bad_frames = bad_frames
            self._write_summary()

    def _progress(self, examples: int, images_per_s: float) -> dict[str, Any]:
        left_s = max(0, self._length.examples - examples) / images_per_s
        return {"epoch": round(examples / self._length.frames, 3), "seconds_left": int(left_s)}

    def _show(self, step: int, figures: Mapping[str, float]) -> None:
        with self._events.as_default(step=step):
            for name, value in figures.items():
                self._summary.scalar(name, value)
        self._report(step, figures)

    def _write_summary(self) -> None:
        if self._last is not None:
            atomic_write(self._model_dir / SUMMARY_FILE, strict_json(self._summary_of(self._last)))

    def _summary_of(self, line: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "step": line["step"],
            "max_steps": self._length.max_steps,
            "epoch": line["epoch"],
            "epochs": round(self._length.epochs, 3),
            "seconds_left": line["seconds_left"],
            "frames": self._length.frames,
            "frames_seen": self._length.frames_seen,
            "first_loss": self.first_loss,
            "loss": line["loss"],
            "images_per_s": line["images_per_s"],
            "prepared": self._prepared,
            "bad_frames": self._bad_frames,
            "warnings": self._warnings,
            **self._scores,
        }


def read_metrics(model_dir: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl; none where the file is missing or too large.

    A cut last line is left out, and so is one whose step and loss are no numbers.
    """
    try:
        content = read_folder_file(model_dir, LINES_FILE, _MOST_BYTES)
    except BadFile:
        return []
    metrics = []
    for line in content.splitlines():
        try:
            values = parsed_json(line)
        except ValueError:
            continue
        if isinstance(values, dict) and type(values.get("step")) is int and _is_finite(values):
            metrics.append(values)
    return metrics


def _is_rate(value: Any) -> bool:
    return isinstance(value, float) and 0 < value < math.inf


def _is_finite(values: Mapping[str, Any]) -> bool:
    loss = values.get("loss")
    return isinstance(loss, int | float) and abs(loss) < _MOST_LOSS and 0 < values["step"] < 2**63
