"""A file that says that its process lives: touched every few seconds, told by its time alone.

Hosts that share a file system need not agree on the time: whether a beat goes on is seen by its
time changing, and how long it has not changed is measured by the watcher's own steady clock. A
process of the watcher's own host is looked up as well, so that nobody waits for one that was
killed here.
"""

import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

BEAT_S = 5.0
"""How often a living process touches its file [s]."""

EXPIRES_S = 60.0
"""Without a beat for so long, a process counts as dead [s]."""


@contextmanager
def beating(path: Path) -> Iterator[None]:
    """Keep a file's time fresh while the block runs; it stays, and its folder's owner removes it.

    Raises:
        OSError: It cannot be written.
    """
    path.write_text(json.dumps({"host": _host(), "process": _process(os.getpid())}))
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


class Watch:
    """Tells which processes have died; it must be asked again and again, as their beats stop."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[int, float]] = {}

    def is_dead(self, path: Path) -> bool:
        """Whether the process is dead whose beat this is, as far as has been seen by now."""
        try:
            beat = path.stat().st_mtime_ns
        except OSError:
            return True
        now = time.monotonic()
        last, since = self._seen.get(path, (beat, now))
        if last != beat:
            since = now
        self._seen[path] = (beat, since)
        return now - since > EXPIRES_S or _ended_here(path)


def _ended_here(path: Path) -> bool:
    """Whether it was a process of this host, and is there no more."""
    try:
        said = json.loads(path.read_text())
        pid = int(said["process"].partition(":")[0])
        return bool(said["host"] == _host() and _process(pid) != said["process"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False  # being written


@cache
def _host() -> str:
    """This boot of this machine, and the namespace that numbers of processes count in."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    with suppress(OSError):
        return f"{platform.node()} {boot.read_text().strip()} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115
    return f"{platform.node()} {os.getpid()}"


def _process(pid: int) -> str:
    """A process that a later one of its number is told from: number and start [clock ticks]."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return f"{pid}:0"
    return f"{pid}:{0 if after_name[0] == 'Z' else after_name[19]}"
