"""A bar of what a command has done, on the error output."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from api.cli.terminal import stderr, stderr_console
from catalog.text.visible_text import visible

if TYPE_CHECKING:  # commands that wait for nothing do without Rich
    from rich.progress import Progress

_LINE_EVERY_S = 15.0


@contextmanager
def progress_bar(title: str, *, quiet: bool) -> Iterator["Bar"]:
    """A bar on a terminal's error output; elsewhere a line there every 15 seconds."""
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        console=stderr_console(),
        transient=True,
        disable=quiet or not stderr.is_terminal,
    )
    with progress:
        yield Bar(progress, visible(title), lines=not quiet and not stderr.is_terminal)


class Bar:
    """A bar that is told where things stand."""

    def __init__(self, progress: "Progress", title: str, *, lines: bool) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None, note="")
        self._title = title
        self._lines = lines
        self._printed = time.monotonic()

    def show(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show ``done`` of ``total`` (unknown when None), with a note beside the bar."""
        note = visible(note)
        self._progress.update(self._task, completed=done, total=total, note=note)
        if self._lines and time.monotonic() - self._printed >= _LINE_EVERY_S:
            self._printed = time.monotonic()
            stderr.print(f"{self._title}: {note}")
