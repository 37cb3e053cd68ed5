"""How far a job is by its metrics, and one line on a terminal or in a notebook that says so.

Programs of users name metrics as they like, and may write anything under any name.
"""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_WIDTH = 24
_EVERY_S = 15.0


class ProgressLine:
    """Rewritten in place on a terminal and in a notebook; elsewhere a line every 15 seconds."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._in_place = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._last = ""
        self._written = time.monotonic()

    def show(self, job: Mapping[str, Any]) -> None:
        """Show where the job is."""
        text = f"{self._title}: {state_of(job)}"
        # What a server says must not act on the terminal.
        line = "".join(each if each.isprintable() else "?" for each in text)
        if self._in_place:
            sys.stderr.write("\r" + line.ljust(len(self._last)))
            self._last = line
        elif time.monotonic() - self._written >= _EVERY_S:
            self._written = time.monotonic()
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the line behind."""
        if self._last:
            sys.stderr.write("\n")


_MOST = 1e300
"""Numbers above are no measurement: they overflow where a program computes with them."""


def number_of(metrics: Mapping[str, Any], name: str) -> int | float | None:
    """The metric of that name; None where it is missing, or no number to compute with."""
    value = metrics.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= _MOST else None  # nor is NaN


def count_of(metrics: Mapping[str, Any], name: str) -> int | None:
    """A metric that counts; None where it is missing, or no count."""
    value = number_of(metrics, name)
    return int(value) if value is not None and 0 <= value < 1 << 63 else None


def list_of(metrics: Mapping[str, Any], name: str) -> list[Any]:
    """A metric that is a list; empty where it is missing, or none."""
    value = metrics.get(name)
    return value if isinstance(value, list) else []


@dataclass(frozen=True)
class Table:
    """A table that a job measured."""

    title: str
    columns: list[str]
    rows: list[list[str]]


_MOST_TABLES, _MOST_ROWS, _MOST_COLUMNS = 20, 2_000, 40


def tables_of(metrics: Mapping[str, Any]) -> list[Table]:
    """A job's tables; what is none is left out, and each cell is a text."""
    tables = []
    for each in list_of(metrics, "tables")[:_MOST_TABLES]:
        if not isinstance(each, Mapping):
            continue
        columns = [str(cell) for cell in list_of(each, "columns")[:_MOST_COLUMNS]]
        rows = [
            [str(cell) for cell in row]
            for row in list_of(each, "rows")[:_MOST_ROWS]
            if isinstance(row, list) and len(row) == len(columns)
        ]
        if columns and rows:
            tables.append(Table(str(each.get("title", "")), columns, rows))
    return tables


@dataclass(frozen=True)
class Progress:
    """How far a job is, as far as its metrics say it."""

    unit: str
    """What is counted: "step", "files" or "trainings"."""
    done: int
    """Of these so far."""
    total: int | None
    """Of these in all; None where nothing says it."""
    loss: int | float | None
    """The newest; None where there is none."""

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> "Progress":
        """By what a training, a staging, a scan or a program has measured so far."""
        unit, counts = "step", ("step", "max_steps")
        if number_of(metrics, "of_trainings") is not None:
            unit, counts = "trainings", ("trainings", "of_trainings")
        elif number_of(metrics, "max_steps") is None and number_of(metrics, "of_files") is not None:
            unit, counts = "files", ("files", "of_files")
        elif number_of(metrics, "max_steps") is None and number_of(metrics, "expected_files"):
            unit, counts = "files", ("files", "expected_files")
        done, total = (count_of(metrics, name) for name in counts)
        return cls(unit, done or 0, total or None, number_of(metrics, "loss"))

    @property
    def share(self) -> float | None:
        """Of all that is done, 0 to 1; None where nothing says how much that is."""
        return None if self.total is None else min(self.done / self.total, 1.0)

    def __str__(self) -> str:
        """The count and the loss, as far as they are known."""
        of = "" if self.total is None else f"/{self.total:,}"
        count = f"{self.unit} {self.done:,}{of}" if self.done or of else ""
        loss = "" if self.loss is None else f"loss {self.loss:.4g}"
        return " ".join(filter(None, (count, loss)))


def state_of(job: Mapping[str, Any]) -> str:
    """State, a bar where steps or files are counted, and the loss."""
    progress = Progress.of(job["metrics"])
    bar = ""
    if progress.share is not None:
        full = round(_WIDTH * progress.share)
        bar = f"[{'#' * full}{'-' * (_WIDTH - full)}]"
    return " ".join(filter(None, (str(job["state"]), bar, str(progress))))
