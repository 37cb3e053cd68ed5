"""A file that says that its process lives: touched every few seconds, told by its time alone.

Hosts that share a file system need not agree on the time: whether a beat goes on is seen by its
time changing, and how long it has not changed is measured by the watcher's own steady clock. A
process of the watcher's own host is looked up as well, so that nobody waits for one that was
killed here.
"""

import hashlib
import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

BEAT_S = 5.0
"""Interval at which a living process touches its file [s]."""

EXPIRES_S = 60.0
"""Without a beat for so long, a process counts as dead [s]."""


@contextmanager
def beating(path: Path) -> Iterator[None]:
    """Keep a file's time fresh during the block; it stays, and its folder's owner removes it."""
    first_beat(path)
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(BEAT_S):
            with suppress(OSError):  # a share may be away for a while
                os.utime(path)

    thread = threading.Thread(target=beat, name="beat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def first_beat(path: Path) -> None:
    """Begin to beat; who does so without `beating` touches the file every `BEAT_S`."""
    path.write_text(json.dumps({"host": _host(), "process": _process(os.getpid())}))


def own_name() -> str:
    """A new name for what this process makes in a cache; it says the process, for `Watch`."""
    return f"{uuid.uuid4().hex}-{_host_mark()}-{_process(os.getpid()).replace(':', '-')}"


class Watch:
    """Detector of dead processes: their beats stop, so it must be asked repeatedly."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[int, float]] = {}
        self._first: dict[Path, int] = {}

    def is_dead(self, path: Path) -> bool:
        """True where the process is dead whose beat this is, as far as has been seen by now."""
        try:
            beat = path.stat().st_mtime_ns
        except OSError:
            return True
        now = time.monotonic()
        last, since = self._seen.get(path, (beat, now))
        if last != beat:
            since = now
        self._seen[path] = (beat, since)
        return now - since > EXPIRES_S or _runs_here(path) is False

    def is_alive(self, path: Path) -> bool:
        """True where the process is known to live: its beat went on, or it is one of this host.

        One that is neither dead nor known to live is known within `EXPIRES_S`.
        """
        first = self._first.get(path)
        if self.is_dead(path):
            return False
        if first is None:
            self._first[path] = self._seen[path][0]
        return (first is not None and self._seen[path][0] != first) or _runs_here(path) is True


def _runs_here(path: Path) -> bool | None:
    """True for a process of this host that runs; None for others, and where nothing says."""
    try:
        if path.is_dir():  # its maker had no time for a beat: its name says whose it is
            _, mark, pid, start = path.name.split("-")
            host, process = mark == _host_mark(), f"{pid}:{start}"
        else:
            record = json.loads(path.read_text())
            host, process = record["host"] == _host(), record["process"]
        return _process(int(process.partition(":")[0])) == process if host else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # being written


@cache
def _host() -> str:
    """This boot of this machine, and the namespace that numbers of processes count in."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    with suppress(OSError):
        return f"{platform.node()} {boot.read_text().strip()} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115
    return f"{platform.node()} {os.getpid()}"


def _host_mark() -> str:
    return hashlib.sha256(_host().encode()).hexdigest()[:12]


def _process(pid: int) -> str:
    """A process that a later one of its number is told from: number and start [clock ticks]."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return f"{pid}:0"
    return f"{pid}:{0 if after_name[0] == 'Z' else after_name[19]}"
