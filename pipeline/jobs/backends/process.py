"""Processes of this machine, told apart from later ones that reuse their number."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessId:
    """A process: its number, and when it started [clock ticks since boot]."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> "ProcessId":
        """The process that has the number now; start 0 when there is none."""
        return cls(pid, _start_ticks(pid))

    @classmethod
    def parse(cls, text: str) -> "ProcessId":
        """The process whose id ``str`` wrote."""
        pid, _, start = text.partition(":")
        return cls(int(pid or 0), int(start or 0))

    def __str__(self) -> str:
        return f"{self.pid}:{self.start_ticks}"

    def is_alive(self) -> bool:
        """Return whether that very process still runs."""
        return self.start_ticks != 0 and _start_ticks(self.pid) == self.start_ticks

    def signal(self, number: int) -> None:
        """Send it a signal; nothing happens when it has ended."""
        if self.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def workers_of(pid: int, command: Sequence[str]) -> set[int]:
    """The processes that do a command's work: below a launcher, its programs; else itself.

    A launcher, such as ``horovodrun -np 2 python -m training.main``, has the program's command line
    at the end of its own.

    Args:
        pid: The command's process.
        command: Its program and arguments.
    """
    parents, lines = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                number = int(entry.name)
                parents[number] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                lines[number] = (entry / "cmdline").read_bytes().decode(errors="replace")
    below = {pid}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    ends = {"\0".join(command[start:]) + "\0": start for start in range(len(command))}
    starts = {number: ends[lines[number]] for number in below if lines.get(number) in ends}
    innermost = max(starts.values(), default=0)
    return {number for number, start in starts.items() if start == innermost} or {pid}


def _start_ticks(pid: int) -> int:
    """Field 22 of /proc/PID/stat; 0 for no process or one that has ended (a zombie)."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if after_name[0] == "Z" else int(after_name[19])
