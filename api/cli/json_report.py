"""What a command with --json, and a job that is the home's own work, says as it goes."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from api.cli.terminal import emit_text
from pipeline.jobs.request import write_json

if TYPE_CHECKING:  # commands that ask a server do without what opens sources
    from pipeline.staging.fetch import FailedFile

_EVERY_S = 2.0
_MOST_FAILURES = 1_000

MOST_PROBLEMS = 1_000
"""Bad files of an extraction that its JSON names."""


class JsonReport:
    """Lines of JSON on the error output."""

    def __init__(self, file: Path | None = None) -> None:
        """Nothing yet.

        Args:
            file: Where the last line of progress is written, too.
        """
        self._file = file
        self._reported = time.monotonic()

    def progress(self, data: object, *, is_last: bool = False) -> None:
        """Report how far the work is: every two seconds, and at its end."""
        if not is_last and time.monotonic() - self._reported < _EVERY_S:
            return
        self._reported = time.monotonic()
        if self._file is not None:
            write_json(self._file, data)
        _emit(data)


def failures(*, as_json: bool) -> "Callable[[FailedFile], None]":
    """Prints each file that cannot be had, up to a thousand."""
    printed = 0

    def show(failure: "FailedFile") -> None:
        nonlocal printed
        printed += 1
        if printed > _MOST_FAILURES:
            return
        if as_json:
            _emit({"failed": failure.origin, "reason": failure.reason})
        else:
            emit_text(f"failed: {failure}", err=True, end="\n")

    return show


def _emit(data: object) -> None:
    emit_text(json.dumps(data, ensure_ascii=False), err=True, end="\n")
