"""Logs of a job: their sizes, their text, the end of one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from catalog.errors import InvalidInput, NotFound, UnknownName
from pipeline.jobs.workflow.task_paths import POSITIONS, RUN, step_paths

_CHUNK = 1 << 20


@dataclass(frozen=True)
class _Log:
    path: Path
    size: int
    written: int
    """Time of the last change [ns]."""


@dataclass(frozen=True)
class LogEnd:
    """The end of a log."""

    name: str
    """The command's, such as "train-0"."""
    text: str
    """The end."""
    cut: bool
    """Whether something stands before it."""


def log_end(folder: Path, name: str, most_bytes: int) -> LogEnd | None:
    """The end of one of a job's logs; None where the job has none yet.

    Args:
        folder: The job's.
        name: The log's; the one written last where that is empty.
        most_bytes: At most so much of it.

    Raises:
        UnknownName: The job has no such log.
        NotFound: It was removed meanwhile.
    """
    with opened_log(folder, name) as opened:
        if opened is None:
            return None
        name, file = opened
        begin = max(0, file.seek(0, 2) - most_bytes)
        file.seek(begin)
        return LogEnd(name, file.read(most_bytes).decode(errors="replace"), begin > 0)


@contextmanager
def opened_log(folder: Path, name: str) -> Iterator[tuple[str, BinaryIO] | None]:
    """One of a job's logs, with its name; None where the job has none yet: as of `log_end`."""
    logs = _logs(folder)
    if not name and not logs:
        yield None
        return
    name = name or max(logs, key=lambda each: logs[each].written)
    path = _named(logs, name).path
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise NotFound("log", name, "the job was removed, or begins again") from error
    with file:
        yield name, file


def log_sizes(folder: Path) -> dict[str, int]:
    """Bytes of each of a job's logs, by name, in the order in which they are shown."""
    return {name: log.size for name, log in _logs(folder).items()}


def joined_logs(folder: Path, command: str | None, offset: int) -> tuple[int, Iterator[bytes]]:
    """Bytes of a job's logs as they are now: how many, and those.

    Args:
        folder: The job's.
        command: Only this one, without ".log"; else all, each under a heading.
        offset: Bytes of that one that are passed over.

    Raises:
        UnknownName: The job has no such log.
        InvalidInput: The log is shorter than the offset.
    """
    logs = _logs(folder)
    # The sizes of now: what is printed meanwhile belongs to the next answer.
    if command is None:
        parts = [(f"==> {name}.log <==\n".encode(), log, 0) for name, log in logs.items()]
    else:
        log = _named(logs, command)
        if offset > log.size:
            raise InvalidInput(f"offset {offset}: the log has {log.size:,} bytes")
        parts = [(b"", log, offset)]
    return sum(len(head) + log.size - start for head, log, start in parts), _bytes(parts)


def _named(logs: dict[str, _Log], name: str) -> _Log:
    if name not in logs:
        raise UnknownName("log", name, logs)
    return logs[name]


def _logs(folder: Path) -> dict[str, _Log]:
    """The logs in a job's folder, by name: those of its steps, and of its commands among them."""
    logs: dict[str, _Log] = {}
    for step in sorted(POSITIONS, key=POSITIONS.__getitem__):
        paths = step_paths(folder, step)
        if step == RUN:
            names = [path.stem for path in paths.logs.glob("*.log")]
            of_step = {name: paths.logs / f"{name}.log" for name in sorted(names, key=_by_number)}
        else:
            of_step = {step: paths.log(step, 0)}
        logs |= {name: log for name, path in of_step.items() if (log := _log_at(path)) is not None}
    return logs


def _log_at(path: Path) -> _Log | None:
    """The log of that path; None where there is none, or a link or folder in its place."""
    try:
        stat = os.lstat(path)
    except OSError:
        return None
    return _Log(path, stat.st_size, stat.st_mtime_ns) if S_ISREG(stat.st_mode) else None


def _by_number(name: str) -> tuple[str, int, str]:
    """Orders train-2 before train-10."""
    title, _, number = name.rpartition("-")
    return (title, int(number), name) if number.isdecimal() else (name, 0, name)


def _bytes(parts: list[tuple[bytes, _Log, int]]) -> Iterator[bytes]:
    for head, log, start in parts:
        if head:
            yield head
        with log.path.open("rb") as file:
            file.seek(start)
            remaining_bytes = log.size - start
            while remaining_bytes and (chunk := file.read(min(remaining_bytes, _CHUNK))):
                remaining_bytes -= len(chunk)
                yield chunk
