"""Locks of processes on one file system; a team's are in its database: catalog.storage.postgres.

DuckLake's SQLite metadata does not survive concurrent writers by itself (150 of 350 commits
failed; with this lock 0 of 200), so every write holds an flock from BEGIN to COMMIT. The kernel
frees it when the process dies, however it dies. Writers get it in the order in which they came:
catalog.storage.waiting_line.
"""

import errno
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from catalog.errors import CatalogBusy, StorageError
from catalog.storage.file_lock import lock
from catalog.storage.waiting_line import WaitingLine

_POLL_S = 0.02


@contextmanager
def write_lock(
    path: Path, wait_s: float, activity: str = "the catalog is being written"
) -> Iterator[Callable[[], None]]:
    """Hold the lock file's exclusive lock for the block.

    Args:
        path: The lock file; made where there is none, never removed.
        wait_s: How long to wait for another holder.
        activity: What another holder is doing, for the message.

    Yields:
        A check that it is still held, which it is: the kernel takes no flock away.

    Raises:
        StorageError: The lock file cannot be opened.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StorageError(f"{path}: cannot be opened: {error.strerror}", str(path)) from error
    try:
        _acquire(handle, path, wait_s, activity)
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with suppress(OSError):  # on a full disk the lock still holds, only unnamed
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(holder).encode(), 0)
        yield lambda: None
    finally:
        os.close(handle)


@contextmanager
def quiescing_lock(path: Path, wait_s: float, activity: str) -> Iterator[Callable[[], None]]:
    """Keep writers out for a block that writes nothing; `write_lock`, where that can be had.

    Where the lock file cannot be written, as on a read-only file system, its shared lock keeps out
    those who can write it. Where it is missing there, nobody has written, and nobody is kept out.

    Raises:
        CatalogBusy: Another process held it for longer than ``wait_s``.
        StorageError: The lock file cannot be opened.
    """
    if _can_be_written(path):
        with write_lock(path, wait_s, activity) as still_held:
            yield still_held
        return
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield lambda: None
        return
    except OSError as error:
        raise StorageError(f"{path}: cannot be opened: {error.strerror}", str(path)) from error
    try:
        if not lock(handle, shared=True, wait_s=wait_s):
            raise _busy(handle, path, wait_s, activity)
        yield lambda: None
    finally:
        os.close(handle)


def _can_be_written(path: Path) -> bool:
    """Return whether it can be opened to write, made where it is missing."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
    except OSError as error:
        return error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM)
    return True


def _acquire(handle: int, path: Path, wait_s: float, activity: str) -> None:
    line = WaitingLine(path)
    # Without a wait the only try is made at once; else only where nobody would be overtaken.
    if (wait_s <= 0 or line.is_empty()) and lock(handle, wait_s=0):
        return
    deadline = time.monotonic() + wait_s
    if wait_s > 0:
        with line.ticket() as ticket:
            while time.monotonic() < deadline:
                if line.is_turn(ticket) and lock(handle, wait_s=0):
                    return
                time.sleep(_POLL_S)
    raise _busy(handle, path, wait_s, activity)


def _busy(handle: int, path: Path, wait_s: float, activity: str) -> CatalogBusy:
    return CatalogBusy(
        f"{activity} by {_holder(handle)}; waited {wait_s:g} s. "
        f"Try again when it has finished (lock: {path})"
    )


def _holder(handle: int) -> str:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
        return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
