"""The row of a file that has no inode, owner or permissions: an object, a tar's member."""

import hashlib
from datetime import datetime

from catalog.values import File


def object_file(
    key: str,
    size: int,
    modified: datetime,
    etag: str,
    state: str | None = None,
    tier: str | None = None,
) -> File:
    """A File of what such a listing shows; see File."""
    return File(
        key=key,
        size=size,
        mtime=modified,
        inode=number_of(key),
        size_consumed=size,
        etag=etag,
        state=state,
        tier=tier,
    )


def number_of(key: str) -> int:
    """A stable 63-bit number that stands in for an inode: from the key alone."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest()) >> 1
