"""Room on the disk for what a run will write."""

import os
from pathlib import Path

from catalog.errors import StorageError


def need_room(folder: Path, wanted_bytes: int) -> None:
    """Go on where a folder, which may not be there yet, has room for so many bytes more.

    Raises:
        StorageError: It has not.
    """
    there = folder.resolve()
    while not there.exists() and there != there.parent:
        there = there.parent
    disk = os.statvfs(there)
    free_bytes = disk.f_bavail * disk.f_frsize
    if free_bytes < wanted_bytes:
        raise StorageError(
            f"{folder}: {free_bytes / 1e6:,.0f} MB are free, and checkpoints and model of this run "
            f"take {wanted_bytes / 1e6:,.0f} MB more: make room, or keep fewer "
            "(--keep_checkpoints)",
            str(folder),
        )
