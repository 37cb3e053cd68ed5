"""What the content of each entry of a cache was when it came: CACHE/.checksums/<staging>.jsonl.

A line is a JSON list of SHA-256, size [bytes] and the entry's path below the cache. A staging
appends to a file of its own before it gives an entry its name, so hosts need no lock. Lines of
entries that never came, or are gone, do no harm; a line that a power cut took leaves an entry
without a checksum, which is judged by those that its content carries. An entry with several lines
may have the content of any: each was checked when it came.
"""

import json
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog.errors import StorageError

FOLDER = ".checksums"


class Checksums:
    """The file of one staging, made when the first entry comes."""

    def __init__(self, cache: Path, name: str) -> None:
        self._path = cache / FOLDER / f"{name}.jsonl"
        self._lock = threading.Lock()
        self._file: int | None = None

    def record(self, entry: str, sha256: str, size: int) -> None:
        """Append a line.

        Raises:
            OSError: It cannot be written.
        """
        line = json.dumps([sha256, size, entry]).encode() + b"\n"
        with self._lock:
            if self._file is None:
                self._path.parent.mkdir(exist_ok=True)
                flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o666)
            os.write(self._file, line)

    def to_disk(self) -> None:
        """Have the lines on the disk.

        Raises:
            OSError: They cannot be written.
        """
        if self._file is not None:
            os.fsync(self._file)

    def close(self) -> None:
        """End."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextmanager
def recording(cache: Path, name: str) -> Iterator[Checksums]:
    """The file of the staging of that name, for the block; its lines are on the disk afterwards.

    Raises:
        StorageError: They cannot be written there.
    """
    checksums = Checksums(cache, name)
    try:
        yield checksums
        try:
            checksums.to_disk()
        except OSError as error:
            raise StorageError(f"{cache}: {error.strerror} (checksums)", str(cache)) from error
    finally:
        checksums.close()


def recorded_checksums(cache: Path) -> dict[str, set[str]]:
    """The SHA-256 that the content of each entry may have, by its path below the cache.

    Raises:
        OSError: They cannot be read.
    """
    found: dict[str, set[str]] = defaultdict(set)
    folder = cache / FOLDER
    if not folder.is_dir():
        return found
    for path in folder.glob("*.jsonl"):
        with path.open("rb") as lines:
            for line in lines:
                try:
                    sha256, _, entry = json.loads(line)
                except ValueError:
                    continue  # cut by a crash
                found[entry].add(sha256)
    return found
