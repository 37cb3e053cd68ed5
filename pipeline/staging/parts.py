"""Where a staging's unfinished copies lie, and clearing what a killed one left there.

    CACHE/.parts/lock            held for a moment, to make or to clear folders
    CACHE/.parts/<one staging>/  its unfinished copies, and the lock it holds while it runs

The kernel frees a staging's lock when it dies, however it dies; a folder whose lock is free
belongs to nobody.
"""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog.errors import StorageError

FOLDER = ".parts"
_LOCK = "lock"


@contextmanager
def part_folder(cache: Path) -> Iterator[Path]:
    """A folder for one staging's unfinished copies, gone afterwards; leftovers are cleared first.

    Raises:
        StorageError: It cannot be made.
    """
    parts = cache / FOLDER
    own = parts / uuid.uuid4().hex
    handle = -1
    try:
        parts.mkdir(parents=True, exist_ok=True)
        together = _lock(parts / _LOCK, fcntl.LOCK_EX)
        try:
            _clear(parts)
            own.mkdir()
            handle = _lock(own / _LOCK, fcntl.LOCK_EX)
        finally:
            os.close(together)
    except OSError as error:
        raise StorageError(f"{own}: cannot be made: {error.strerror}", str(own)) from error
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        os.close(handle)


def _clear(parts: Path) -> None:
    for folder in parts.iterdir():
        if not folder.is_dir():
            continue
        try:
            handle = _lock(folder / _LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its staging runs, or it is another user's
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
