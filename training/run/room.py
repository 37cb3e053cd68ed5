"""Disk space for what a run writes."""

import os
from pathlib import Path

from catalog.errors import StorageError


def need_room(folder: Path, needed_bytes: int) -> None:
    """Go on where a folder, which may not be there yet, has room for so many bytes more.

    Raises:
        StorageError: It has not.
    """
    existing = folder.resolve()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    disk = os.statvfs(existing)
    free_bytes = disk.f_bavail * disk.f_frsize
    if free_bytes < needed_bytes:
        raise StorageError(
            f"{folder}: {free_bytes / 1e6:,.0f} MB are free, and checkpoints and model of this run "
            f"take {needed_bytes / 1e6:,.0f} MB more: make room, or keep fewer "
            "(--keep_checkpoints)",
            str(folder),
        )
