"""Checksums of a cache's entries as they came: CACHE/.checksums/<staging>.jsonl.

A line is a JSON list of checksum, size [bytes] and the entry's path below the cache. A checksum is
"md5:<hex>" where the source told an MD5 that was held against it, and else "crc32:<hex>", which
takes a tenth of the CPU. It tells damage, and nothing else.

A staging appends to a file of its own before it gives an entry its name, so hosts need no lock.
Lines of entries that never came, or are gone, do no harm; a line that a power cut took leaves an
entry without a checksum, which is judged by those that its content carries. An entry with several
lines may have the content of any: each was checked when it came.
"""

import json
import os
import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from catalog.errors import StorageError
from catalog.storage.atomic_write import atomic_write
from pipeline.cache.stager import PARTS

FOLDER = ".checksums"
MD5, CRC32 = "md5:", "crc32:"

MOST_FILES = 16
"""Files of stagings that have ended; more of them are joined."""


def crc32_text(crc32: int) -> str:
    """A CRC-32 as it is recorded."""
    return f"{CRC32}{crc32:08x}"


class Checksums:
    """The file of one staging, made when the first entry comes."""

    def __init__(self, cache: Path, name: str) -> None:
        self._path = cache / FOLDER / f"{name}.jsonl"
        self._lock = threading.Lock()
        self._file: int | None = None

    def record(self, entry: str, checksum: str, size: int) -> None:
        """Append a line."""
        line = json.dumps([checksum, size, entry]).encode() + b"\n"
        with self._lock:
            if self._file is None:
                self._path.parent.mkdir(exist_ok=True)
                flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o666)
            while line:  # a disk that is full takes a part of it first
                line = line[os.write(self._file, line) :]

    def to_disk(self) -> None:
        """Have the lines on the disk."""
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

    Where many stagings have ended by then, their files are joined.

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
        with suppress(OSError, StorageError):  # the next one does it
            _compact(cache)


def recorded_checksums(cache: Path) -> dict[str, set[str]]:
    """The checksums that the content of each entry may have, by its path below the cache."""
    while True:
        checksums: dict[str, set[str]] = defaultdict(set)
        try:
            for path in (cache / FOLDER).glob("*.jsonl"):
                for checksum, _, entry in _lines(path):
                    checksums[entry].add(checksum)
        except FileNotFoundError:
            continue  # its lines are in another file by now
        return checksums


def _lines(path: Path) -> Iterator[tuple[str, int, str]]:
    with path.open("rb") as lines:
        for line in lines:
            try:
                checksum, size, entry = json.loads(line)
            except (ValueError, TypeError):
                continue  # cut by a crash
            yield checksum, size, entry


def _compact(cache: Path) -> None:
    """Join the files of stagings that have ended, where there are many; without lines of no use.

    Whoever is killed meanwhile leaves lines twice, which is no harm, and so do two at once.
    """
    folder = cache / FOLDER
    ended = [path for path in folder.glob("*.jsonl") if not (cache / PARTS / path.stem).exists()]
    if len(ended) <= MOST_FILES:
        return
    lines: dict[str, None] = {}
    for path in ended:
        with suppress(FileNotFoundError):  # another one joins them, too, and has its lines
            for line in _lines(path):
                if (cache / line[2]).exists():
                    lines[json.dumps(line)] = None
    atomic_write(folder / f"{uuid.uuid4().hex}.jsonl", "".join(f"{line}\n" for line in lines))
    for path in ended:
        path.unlink(missing_ok=True)
