"""Writes files and folders to the disk, so that they survive a power cut."""

import os
from collections.abc import Iterator
from pathlib import Path


def to_disk(path: Path) -> None:
    """Have the system write a file's or a folder's content to the disk now.

    Raises:
        OSError: It cannot.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def tree_to_disk(path: Path) -> None:
    """Do as `to_disk`, with everything below it where it is a folder.

    Raises:
        OSError: It cannot.
    """
    if path.is_dir():
        for one in below(path):
            to_disk(Path(one))
    to_disk(path)


def below(folder: str | Path) -> Iterator[str]:
    """Every file and folder below a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry.path
            if entry.is_dir(follow_symlinks=False):
                yield from below(entry.path)
