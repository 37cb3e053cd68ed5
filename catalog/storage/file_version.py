"""Versions of files, as a listing tells them without reading the files.

    etag:<ETag>          of an object: the store's mark of this content
    mtime:<microseconds> of a file: its last change since 1970, UTC
    size                 of an object where a file system shows it: it has no mark there

Beside it goes the size. This module is a leaf of the standard library.
"""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

SIZE_ALONE = "size"

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (naive UTC, as every time in the catalog)


def version_of(status: os.stat_result) -> str:
    """The version of a file of this machine, or of a file system mounted on it."""
    return f"mtime:{status.st_mtime_ns // 1000}"


Stamp = tuple[int, int, int, int] | None
"""What changes with a file, also where it is a link to another one; None where it is not there."""


def stamp_of(path: Path) -> Stamp:
    """A file's stamp now: of what a process reads again when it changes."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def listed_version(etag: str, modified: datetime) -> str:
    """The version of what a listing shows: its ETag where there is one, else its time.

    Args:
        etag: The store's mark, without quotes; empty where there is none.
        modified: Time of last change, naive UTC.
    """
    return f"etag:{etag}" if etag else f"mtime:{(modified - _EPOCH) // timedelta(microseconds=1)}"


def fits(status: os.stat_result, size: int, version: str | None) -> bool:
    """Return whether a file has that size [bytes] and version, as far as a version is known."""
    return status.st_size == size and version in (None, SIZE_ALONE, version_of(status))


def version_text(size: int, version: str | None) -> str:
    """Size and version for a message."""
    kind, _, value = (version or "").partition(":")
    if kind == "etag":
        return f"{size:,} bytes, ETag {value}"
    if kind == "mtime" and value.lstrip("-").isdigit():
        try:
            moment = datetime.fromtimestamp(int(value) / 1e6, UTC)
        except (OverflowError, ValueError, OSError):
            return f"{size:,} bytes"
        return f"{size:,} bytes, last changed {moment:%Y-%m-%d %H:%M:%S.%f} UTC"
    return f"{size:,} bytes"
