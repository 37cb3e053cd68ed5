"""One command of ours at a time on an AFM fileset."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog.errors import StorageError
from catalog.storage.file_lock import open_locked, unlock
from pipeline.afm.target import Fileset


@contextmanager
def fileset_lock(folder: Path, fileset: Fileset) -> Iterator[None]:
    """Hold a fileset for the block; others of this folder wait.

    Args:
        folder: Of the lock's file, which all who use the fileset share.
        fileset: The fileset.

    Raises:
        StorageError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open_locked(folder / f"{fileset.device}.{fileset.name}.lock")
    except OSError as error:
        raise StorageError(f"list folder {folder}: {error.strerror}", str(folder)) from error
    try:
        yield
    finally:
        unlock(lock)
