"""Reading entries of a cache again: whether each has the content that it came with."""

import hashlib
from pathlib import Path

from pipeline.cache.png_check import png_fault


def fault_of(
    path: Path, size: int, recorded: set[str], digest: str | None = None
) -> tuple[str, str]:
    """What is wrong with an entry, and the SHA-256 of its content; empty where nothing is.

    Args:
        path: The entry.
        size: That it must have [bytes].
        recorded: The SHA-256 that it may have; where there is none, what it carries itself decides.
        digest: Of its content, "sha256:<hex>", where the dataset says it.

    Raises:
        OSError: It is there and cannot be read.
    """
    try:
        found = path.stat().st_size
        if found != size:
            return f"has {found:,} bytes, not {size:,}", ""
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return "is gone", ""
    if digest not in (None, f"sha256:{sha256}"):
        return "has another digest than the dataset says", sha256
    if recorded and sha256 not in recorded:
        return "has another content than it came with", sha256
    return ("" if recorded or digest else png_fault(path)), sha256
