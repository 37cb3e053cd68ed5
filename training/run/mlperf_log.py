"""``mlperf.log`` in the model's folder: a training's events as MLPerf logs them.

A line each, ``:::MLLOG {...}``; a run that goes on adds to them. The time to a
target includes breaks.

Source: mlperf_logging 3.1, mllog/mllog.py and mllog/constants.py
"""

import json
import time
from pathlib import Path
from typing import Any

from catalog.errors import BadFile
from catalog.storage.bounded_file import parsed_json
from training.folder_file import read_folder_file

LOG_FILE = "mlperf.log"
_MARK = ":::MLLOG "
_MOST_BYTES = 64 << 20


class MlperfLog:
    """Writes the events of one run; only the first worker has one.

    Attributes:
        seconds_to_target: From the run's beginning until the target was reached first [s]; None
            before, or without one.
    """

    def __init__(self, model_dir: Path, step: int, target_miou: float | None = None) -> None:
        """Begin, or go on after ``step``.

        Args:
            step: The last that the run has made; without one an earlier run's log is replaced.
            target_miou: Mean IoU to reach, 0 to 1.
        """
        self._path, self._target = model_dir / LOG_FILE, target_miou
        self._began_ms: int | None = None
        self.seconds_to_target: float | None = None
        if step:
            self._read(model_dir)
        else:
            self._path.unlink(missing_ok=True)

    def begin(self, **facts: Any) -> None:
        """Write what the run is, and that it begins; a run that goes on has that already."""
        if self._began_ms is None:
            for key, value in facts.items():
                self._event("POINT_IN_TIME", key, value)
            if self._target is not None:
                self._event("POINT_IN_TIME", "target_miou", self._target)
            self._began_ms = self._event("INTERVAL_START", "run_start", None)

    def evaluated(self, step: int, epoch: float, miou: float) -> None:
        """Write a score; the first that reaches the target ends MLPerf's run, not the training."""
        at = {"step": step, "epoch_num": round(epoch, 3)}
        self._event("POINT_IN_TIME", "eval_accuracy", miou, **at)
        reached = self._target is not None and miou >= self._target
        if reached and self.seconds_to_target is None and self._began_ms is not None:
            stop_ms = self._event("INTERVAL_END", "run_stop", None, status="success", **at)
            self.seconds_to_target = (stop_ms - self._began_ms) / 1000

    def finish(self, step: int) -> None:
        """Write that the training has ended, where no target has ended MLPerf's run before."""
        if self.seconds_to_target is None:
            status = "success" if self._target is None else "aborted"
            self._event("INTERVAL_END", "run_stop", None, status=status, step=step)

    def _event(self, kind: str, key: str, value: Any, **metadata: Any) -> int:
        """Write one line; its time [ms since 1970]."""
        now_ms = time.time_ns() // 1_000_000
        line = {
            "namespace": "framesift", "time_ms": now_ms, "event_type": kind, "key": key,
            "value": value, "metadata": metadata,
        }  # fmt: skip
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{_MARK}{json.dumps(line)}\n")
        return now_ms

    def _read(self, model_dir: Path) -> None:
        """Take over when the run began, and when it reached its target."""
        try:
            text = read_folder_file(model_dir, LOG_FILE, _MOST_BYTES).decode(errors="replace")
        except (BadFile, FileNotFoundError):
            return
        for line in text.splitlines():
            try:
                event = parsed_json(line.removeprefix(_MARK).encode())
                key, time_ms = event["key"], int(event["time_ms"])
            except (ValueError, KeyError, TypeError):
                continue  # cut by a kill
            if key == "run_start":
                self._began_ms = time_ms
            elif key == "run_stop" and event.get("metadata", {}).get("status") == "success":
                self.seconds_to_target = (time_ms - (self._began_ms or time_ms)) / 1000
