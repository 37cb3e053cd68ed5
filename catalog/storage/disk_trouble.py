"""Why a local disk refuses: databases say "disk I/O error" and "unable to open" for all of it."""

import os
from collections.abc import Iterable
from pathlib import Path

_SQLITE_NEEDS_BYTES = 2**20


def disk_trouble(folders: Iterable[Path]) -> tuple[Path, str] | None:
    """The first folder whose disk has no room or may not be written, and what to do about it.

    Args:
        folders: Folders to look at; those that are not there are left out.

    Returns:
        None where nothing is wrong with any.
    """
    for folder in folders:
        try:
            disk = os.statvfs(folder)
        except OSError:
            continue
        if disk.f_flag & os.ST_RDONLY:
            return folder, (
                "is mounted read-only; SQLite writes beside its file to read it, too: mount it "
                "writable, or copy it to where it may be written"
            )
        if disk.f_bavail * disk.f_frsize < _SQLITE_NEEDS_BYTES:
            return folder, "the disk is full; free some space and run it again"
        if disk.f_files and not disk.f_favail:
            return folder, (
                "the disk is full: it has no inodes left for more files; delete some and run it "
                "again"
            )
        if not os.access(folder, os.W_OK):
            return folder, "this user may not write there"
    return None
