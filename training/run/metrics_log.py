"""How a training run goes, for people and programs that watch it.

In the model's folder: ``metrics.jsonl``, one line per log; ``metrics.json``, the summary so far;
``tensorboard/``, the same as TensorBoard event files.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json
from training.folder_file import read_folder_file
from training.run.run_length import RunLength
from training.strict_json import strict_json

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
        step: int,
        prepared: str | None = None,
    ) -> None:
        """Go on after ``step``: lines of later steps, which a kill made void, are dropped.

        Args:
            model_dir: Where they lie.
            length: Of the run.
            warnings: For the summary.
            step: The last that the run has made.
            prepared: Name of the prepared form that frames are read from; None without one.

        Raises:
            StorageError: The disk refuses.
        """
        import tensorflow as tf

        self._model_dir = model_dir
        self._length, self._warnings, self._prepared = length, list(warnings), prepared
        self._summary = tf.summary
        kept = [line for line in read_metrics(model_dir) if line["step"] <= step]
        self.first_loss: float | None = kept[0]["loss"] if kept and kept[0]["step"] == 1 else None
        text = "".join(json.dumps(line) + "\n" for line in kept)
        atomic_write(model_dir / LINES_FILE, text, parents=True)
        self._events = tf.summary.create_file_writer(str(model_dir / TENSORBOARD_FOLDER))

    def record(self, step: int, loss: float, learning_rate: float, images_per_s: float) -> None:
        """Write one line.

        Args:
            step: The last step it covers.
            loss: Mean since the line before, over all workers.
            learning_rate: Of that step.
            images_per_s: Of all workers together, since the line before.

        Raises:
            OSError: The disk refuses.
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
        with self._events.as_default(step=step):
            for name in ("loss", "learning_rate", "images_per_s"):
                self._summary.scalar(name, line[name])
        self._events.flush()
        atomic_write(self._model_dir / SUMMARY_FILE, strict_json(self._summary_of(line)))

    def _summary_of(self, line: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "step": line["step"],
            "max_steps": self._length.max_steps,
            "epochs": round(self._length.epochs, 3),
            "frames": self._length.frames,
            "frames_seen": self._length.frames_seen,
            "first_loss": self.first_loss,
            "loss": line["loss"],
            "images_per_s": line["images_per_s"],
            "prepared": self._prepared,
            "warnings": self._warnings,
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


def _is_finite(values: Mapping[str, Any]) -> bool:
    loss = values.get("loss")
    return isinstance(loss, int | float) and abs(loss) < _MOST_LOSS and 0 < values["step"] < 2**63
