"""The lines of a job's log that have a text."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from api.services.jobs.logs import opened_log

MOST_LINES = 200
MOST_BYTES = 16 << 20
"""Of the log's end that is searched: 0.1 s of CPU."""

_LONGEST_LINE = 1 << 16


@dataclass(frozen=True)
class FoundLines:
    """The last lines of a log that have a text, in whatever case."""

    name: str
    """The log's."""
    lines: tuple[str, ...]
    """The last `MOST_LINES` of them."""
    count: int
    """How many there are in what was searched."""
    cut: bool
    """Whether the log is longer than what was searched, its last `MOST_BYTES`."""


def found_lines(folder: Path, name: str, text: str) -> FoundLines | None:
    """The lines of one of a job's logs that have a text: arguments and errors as of `log_end`."""
    with opened_log(folder, name) as opened:
        if opened is None:
            return None
        name, file = opened
        begin = max(0, file.seek(0, 2) - MOST_BYTES)
        file.seek(begin)
        last: deque[str] = deque(maxlen=MOST_LINES)
        count = 0
        for line in _lines(file):
            if text.lower() in line.lower():
                last.append(line)
                count += 1
        return FoundLines(name, tuple(last), count, begin > 0)


def _lines(file: BinaryIO) -> Iterator[str]:
    """Lines without their ends; one that is longer than others are is several."""
    remaining = MOST_BYTES
    while remaining > 0 and (line := file.readline(_LONGEST_LINE)):
        remaining -= len(line)
        yield line.decode(errors="replace").rstrip("\r\n")
