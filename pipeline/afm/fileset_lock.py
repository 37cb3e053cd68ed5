"""One command of ours at a time on an AFM fileset."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog.errors import StorageError
from pipeline.afm.target import Fileset


@contextmanager
def fileset_lock(folder: Path, fileset: Fileset) -> Iterator[None]:
    """Hold a fileset for the block; others of this folder wait.

    Args:
        folder: Of the lock's file, which all who use the fileset share.

    Raises:
        StorageError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{fileset.device}.{fileset.name}.lock").open("ab")
    except OSError as error:
        raise StorageError(f"list folder {folder}: {error.strerror}", str(folder)) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
