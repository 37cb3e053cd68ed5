"""Which content of a file is meant: its version, as a listing tells it without reading the file.

    etag:<ETag>          of an object: the store's mark of this content
    mtime:<microseconds> of a file: its last change since 1970, UTC

Beside it goes the size. This module is a leaf of the standard library.
"""

import hashlib
import os
from datetime import UTC, datetime

_MARK_CHARACTERS = 12


def version_of(status: os.stat_result) -> str:
    """The version of a file of this machine, or of a file system mounted on it."""
    return f"mtime:{status.st_mtime_ns // 1000}"


def fits(status: os.stat_result, size: int, version: str | None) -> bool:
    """Whether a file has that size [bytes] and that version, as far as a version is known."""
    return status.st_size == size and version in (None, version_of(status))


def shown(size: int, version: str | None) -> str:
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


def kept_key(key: str, size: int, version: str) -> str:
    """Where one version of a file lies below its source's folder in a cache.

    Versions of one file lie beside each other, so that staging one dataset changes no other's.
    """
    folder, slash, name = key.rpartition("/")
    stem, dot, kind = name.rpartition(".")
    mark = hashlib.sha256(f"{size} {version}".encode()).hexdigest()[:_MARK_CHARACTERS]
    return f"{folder}{slash}{stem}~{mark}.{kind}" if dot else f"{folder}{slash}{name}~{mark}"
