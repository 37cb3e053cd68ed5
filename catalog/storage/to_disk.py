"""Writes files and folders to the disk, so that they survive a power cut."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
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
    """Do as `to_disk`, with the files and folders below it where it is a folder.

    Raises:
        OSError: It cannot.
    """
    if path.is_dir():
        for one in below(path):
            if _is_content(one):
                to_disk(Path(one))
    to_disk(path)


def living_tree_to_disk(path: Path) -> None:
    """Do as `tree_to_disk`, in a folder that others write: what is gone, or not ours, stays out.

    Raises:
        OSError: The disk refuses.
    """
    for folder, _, names in os.walk(path):
        for one in (*(Path(folder, name) for name in names), Path(folder)):
            with suppress(FileNotFoundError, PermissionError):
                if _is_content(one):
                    to_disk(one)


def _is_content(path: str | Path) -> bool:
    """True for a file or a folder: a link names what lies elsewhere, and a pipe waits."""
    mode = os.lstat(path).st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def below(folder: str | Path) -> Iterator[str]:
    """Every file and folder below a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry.path
            if entry.is_dir(follow_symlinks=False):
                yield from below(entry.path)
