"""Locks on files, which the kernel frees when the last process that has them open ends.

A leaf, standard library only: training imports it. Python opens files so that programs which a
process starts do not inherit them, nor the lock.
"""

import fcntl
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_POLL_S = 0.02
_CREATE = os.O_RDWR | os.O_CREAT


def lock(
    file: int | IO[bytes],
    *,
    shared: bool = False,
    wait_s: float = math.inf,
    is_optional: bool = False,
) -> bool:
    """Lock an open file until it is closed; False where another process holds it.

    Args:
        file: The file.
        shared: Share the lock with others that share it.
        wait_s: How long to wait for another process [s].
        is_optional: True, in place of an error, where the file system has no locks.

    Raises:
        OSError: The file system has no locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(file, kind if wait_s == math.inf else kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
        except OSError:
            if not is_optional:
                raise
            return True
        else:
            return True
        time.sleep(_POLL_S)


def open_locked(
    path: Path,
    flags: int = _CREATE,
    *,
    mode: int = 0o666,
    wait_s: float = math.inf,
    is_optional: bool = False,
) -> int | None:
    """An open file that is locked until it is closed; None where another process holds it.

    Where the file was removed or replaced meanwhile, the one in its place is opened.

    Args:
        path: The file, made where it is missing and ``flags`` say so.
        flags: Of `os.open`.
        mode: Permissions of a new file, less the process's umask.
        wait_s: See `lock`; so is the next.
        is_optional: A file system without locks does.

    Raises:
        OSError: It cannot be opened, or has no locks.
    """
    while True:
        file = os.open(path, flags, mode)
        try:
            if not lock(file, wait_s=wait_s, is_optional=is_optional):
                os.close(file)
                return None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


@contextmanager
def locked(path: Path, *, mode: int = 0o666) -> Iterator[None]:
    """Hold a file's lock for the block, once others that hold it have ended.

    Raises:
        OSError: It cannot be opened, or has no locks.
    """
    file = open_locked(path, mode=mode)
    try:
        yield
    finally:
        unlock(file)


def unlock(file: int | None) -> None:
    """Free the lock and close the file; a forked process that has it open does not hold it on."""
    if file is not None:
        fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock of a file; False where there is no such file."""
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not lock(file, shared=True, wait_s=0, is_optional=True)
    finally:
        os.close(file)
