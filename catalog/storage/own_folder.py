"""A folder that is one process's own for a while, and clearing those that killed ones left.

    PARENT/lock         held for a moment, to make or to clear folders
    PARENT/<one user>/  its files, and the lock it holds

The kernel frees a lock when its holder dies, however it dies; a folder whose lock is free belongs
to nobody.
"""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog.storage.file_lock import locked, open_locked, unlock

_LOCK = "lock"


@contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    """A new folder below ``parent`` for the block; what killed processes left there goes first.

    Raises:
        OSError: It cannot be made.
    """
    own, file = _new_folder(parent)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        unlock(file)


def _new_folder(parent: Path) -> tuple[Path, int | None]:
    parent.mkdir(parents=True, exist_ok=True)
    own = parent / uuid.uuid4().hex
    with locked(parent / _LOCK):
        _clear(parent)
        own.mkdir()
        return own, open_locked(own / _LOCK)


def _clear(parent: Path) -> None:
    for folder in parent.iterdir():
        if not folder.is_dir():
            continue
        try:
            file = open_locked(folder / _LOCK, wait_s=0)
        except OSError:
            continue  # it is another user's
        if file is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(file)
