"""A folder that is one process's own for a while, and clearing those that killed ones left.

    PARENT/lock         held for a moment, to make or to clear folders
    PARENT/<one user>/  its files, and the lock it holds

The kernel frees a lock when its holder dies, however it dies; a folder whose lock is free belongs
to nobody.
"""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = "lock"


@contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    """A new folder below ``parent`` for the block; what killed processes left there goes first.

    Raises:
        OSError: It cannot be made.
    """
    own, handle = _new_folder(parent)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        os.close(handle)


def _new_folder(parent: Path) -> tuple[Path, int]:
    parent.mkdir(parents=True, exist_ok=True)
    own = parent / uuid.uuid4().hex
    together = _lock(parent / _LOCK, fcntl.LOCK_EX)
    try:
        _clear(parent)
        own.mkdir()
        return own, _lock(own / _LOCK, fcntl.LOCK_EX)
    finally:
        os.close(together)


def _clear(parent: Path) -> None:
    for folder in parent.iterdir():
        if not folder.is_dir():
            continue
        try:
            handle = _lock(folder / _LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # somebody uses it, or it is another user's
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _lock(path: Path, how: int) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, how)
    except OSError:
        os.close(handle)
        raise
    return handle
