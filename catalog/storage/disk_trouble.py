"""Why a local disk refuses: databases say "disk I/O error" and "unable to open" for all of it."""

import os
from collections.abc import Iterable
from pathlib import Path

_SQLITE_NEEDS_BYTES = 2**20


def disk_trouble(places: Iterable[Path]) -> tuple[Path, str] | None:
    """The first folder whose disk has no room or may not be written, and what to do about it.

    Args:
        places: Folders to look at; those that are not there are left out.

    Returns:
        None where nothing is wrong with any.
    """
    for place in places:
        try:
            found = os.statvfs(place)
        except OSError:
            continue
        if found.f_flag & os.ST_RDONLY:
            return place, (
                "is mounted read-only; SQLite writes beside its file to read it, too: mount it "
                "writable, or copy it to where it may be written"
            )
        if found.f_bavail * found.f_frsize < _SQLITE_NEEDS_BYTES:
            return place, "the disk is full; free some space and run it again"
        if found.f_files and not found.f_favail:
            return place, (
                "the disk is full: it has no inodes left for more files; delete some and run it "
                "again"
            )
        if not os.access(place, os.W_OK):
            return place, "this user may not write there"
    return None
