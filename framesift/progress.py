"""One line on a terminal or in a notebook that says how far a job is."""

import sys
import time
from collections.abc import Mapping
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
        said = f"{self._title}: {state_of(job)}"
        # What a server says must not act on the terminal.
        line = "".join(each if each.isprintable() else "?" for each in said)
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


def state_of(job: Mapping[str, Any]) -> str:
    """State, a bar where steps are counted, and the loss."""
    metrics = job["metrics"]
    step, steps = metrics.get("step"), metrics.get("max_steps")
    if not step or not steps:
        return str(job["state"])
    full = round(_WIDTH * min(step / steps, 1))
    bar = "#" * full + "-" * (_WIDTH - full)
    loss = f" loss {metrics['loss']:.3f}" if "loss" in metrics else ""
    return f"{job['state']} [{bar}] step {step:,}/{steps:,}{loss}"
