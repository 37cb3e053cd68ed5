"""The rate at which ranks read files, all at once, past what the kernel holds of them."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 256 << 20
"""Of each rank and place."""
LONGEST_S = 10.0
_PIECE_BYTES = 1 << 20
_MOST_FILES = 4096


@dataclass(frozen=True)
class Read:
    """What one rank read."""

    files: int
    n_bytes: int
    seconds: float
    error: str = ""
    """Why a file could not be read; empty where all could."""


def files_below(folder: Path, most: int = _MOST_FILES) -> list[str]:
    """The first files below a folder that are not empty, by name: the same on all ranks.

    Raises:
        OSError: It cannot be listed.
    """
    next(folder.iterdir(), None)  # os.walk says nothing of a folder that is not there
    paths: list[str] = []
    for path in _walk(folder):
        paths.append(path)
        if len(paths) == most:
            break
    return paths


def read_files(paths: Sequence[str], rank: int, ranks: int) -> Read:
    """Read a rank's part of files, to the end of its list, MOST_BYTES or LONGEST_S.

    The kernel forgets each before, where nothing else holds it: the figure is the storage's.

    Args:
        paths: Of all ranks.
        rank: Reads each ``ranks``-th of them.
        ranks: All.
    """
    buffer = bytearray(_PIECE_BYTES)
    begun, n_bytes, files = time.perf_counter(), 0, 0
    try:
        for path in paths[rank::ranks]:
            if n_bytes >= MOST_BYTES or time.perf_counter() - begun >= LONGEST_S:
                break
            with Path(path).open("rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while size := file.readinto(buffer):
                    n_bytes += size
            files += 1
    except OSError as error:
        seconds = time.perf_counter() - begun
        return Read(files, n_bytes, seconds, f"{error.filename}: {error.strerror}")
    return Read(files, n_bytes, time.perf_counter() - begun)


def rate_mb_per_s(reads: Sequence[Read]) -> float:
    """The rate of all ranks together [MB/s]: their bytes by the longest time; 0 for no bytes."""
    longest_s = max((each.seconds for each in reads), default=0.0)
    total = sum(each.n_bytes for each in reads)
    return total / longest_s / 1e6 if total and longest_s else 0.0


def _walk(folder: Path) -> Iterator[str]:
    for at, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(at) / name
            if not path.is_symlink() and path.stat().st_size:
                yield str(path)
