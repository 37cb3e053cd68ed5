"""Why a command failed, by the end of its log."""

import os
import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.runs.exit_codes import may_go_on, signal_of

_LOG_END_BYTES = 65_536
_ROOM_BYTES = 16_384
_OF_LAUNCHERS = re.compile(r"(srun|slurmstepd\S*|scancel): (error: )?")
_OF_RANK = re.compile(r"\[[\d,]+\]<std(out|err)>:")
"""Pattern of what Horovod's launcher puts before a rank's line."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OF_HOROVOD = re.compile(
    r"Process \d+ exit with status code|Terminating remaining workers|Horovod detected that|"
    r"Process name: |Exit code: "
)
_MOST_CHARS = 200
_RANK_KILLED = re.compile(r"Exit code: (-9|-15|137|143)")
"""Pattern of the line in which horovodrun names the first rank that failed."""

_TORCHRUN_EXIT = re.compile(r"exitcode\s+: (-?\d+) \(pid: \d+\).*")
"""Pattern of the line in which torchrun says how a rank ended; the last one is of the first."""
_OF_TORCHRUN = re.compile(
    r"[WE]\d{4} .*torch/distributed/elastic/multiprocessing/api\.py.*\] (Sending process|failed)"
)
"""Pattern of the lines with which torchrun's own report begins."""


def heading(attempt: int) -> str:
    """The line that an attempt's output follows in a log."""
    return f"==> attempt {attempt} <=="


def why_failed(what: str, log: Path, attempt: int, code: int) -> str:
    """The program's own last error line, or how it ended and its last line, and where its log is.

    Where a launcher says that a rank was killed, that.

    Args:
        what: The command, for people.
        log: Its output.
        attempt: The job's; what stands above its heading is of earlier ones.
        code: Exit code; negative for a signal.
    """
    full, lines = full_disk(log.parent), [*_own_lines(log, attempt)]
    if signal_of(_of_torchrun(lines)) == signal.SIGKILL:
        return f"a worker of {what} {_killed(signal.SIGKILL)}; see {log}{full}"
    for line in lines:
        match = _RANK_KILLED.fullmatch(line.strip())
        if match and (number := signal_of(int(match[1]))) == signal.SIGKILL:
            # Errors above are those of ranks that waited for it in vain.
            return f"a worker of {what} {_killed(number)}; see {log}{full}"
        _, marker, message = line.partition("error: ")
        if marker and not _OF_LAUNCHERS.match(line):
            return f"{message.strip()} ({what}, log {log}){full}"
    number = signal_of(code)
    if number in (signal.SIGKILL, signal.SIGTERM):  # its last line is of its work
        return f"{what} {_killed(number)}; see {log}{full}"
    how = f"ended with exit code {code}" if number is None else _killed(number)
    reports = [index for index, line in enumerate(lines) if _OF_TORCHRUN.match(line)]
    own = lines[reports[-1] + 1 :] if reports else lines
    last = next(filter(None, map(_shown, own)), "")
    return f"{what} {how}{last and f': {last}'}; see {log}{full}"


def _shown(line: str) -> str:
    """A line of a log for people; empty where it is a launcher's, or has nothing to read."""
    text = _OF_RANK.sub("", _COLOUR.sub("", line))
    if _OF_LAUNCHERS.match(text) or _OF_HOROVOD.match(text):
        return ""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:_MOST_CHARS]


def _killed(number: int) -> str:
    why = " (out of memory?)" if number == signal.SIGKILL else ""
    return f"was killed by signal {number}{why}"


def full_disk(folder: Path) -> str:
    """The end of an error where the disk of a job's folder is full; else empty."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return ""
    # Disks without a fixed number of files say that there are none.
    if disk.f_bavail * disk.f_frsize >= _ROOM_BYTES and (disk.f_favail or not disk.f_files):
        return ""
    return f"; the disk of {folder} is full: make room, then resume the job"


def was_killed(log: Path, attempt: int, code: int) -> bool:
    """Return whether a command, or by its launcher's word a rank, died, or says that it goes on.

    Args:
        log: Its output.
        attempt: The job's; what stands above its heading is of earlier ones.
        code: Exit code; negative for a signal.
    """
    lines = [*_own_lines(log, attempt)]
    return (
        may_go_on(code)
        or may_go_on(_of_torchrun(lines))
        or any(_RANK_KILLED.fullmatch(line.strip()) for line in lines)
    )


def _of_torchrun(lines: Sequence[str]) -> int:
    """The exit code of the rank that torchrun says failed first; 0 where it says none.

    Args:
        lines: Of the log, the last one first.
    """
    exits = (_TORCHRUN_EXIT.fullmatch(line.strip()) for line in lines)
    return next((int(match[1]) for match in exits if match), 0)


def _own_lines(log: Path, attempt: int) -> Iterator[str]:
    """The last lines of an attempt, the last one first."""
    for line in reversed(_last_lines(log)):
        if attempt > 1 and line == heading(attempt):
            return
        yield line


def _last_lines(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LOG_END_BYTES))
            return file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return []
