"""One version of a source's file, opened to be fetched whole, and never mixed with another."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from catalog.errors import OtherVersion, StorageError, UnreadableFile
from catalog.storage.file_version import listed_version, shown
from ingest.sources.source_files import SourceFiles

PIECE_BYTES = 8 * 2**20
"""Of a file that is read in ranges: 3 MB images take one request."""


@dataclass(frozen=True)
class OpenedFile:
    """A file that is about to be read.

    Attributes:
        size: Of the whole file [bytes].
        version: Which version it is (catalog.storage.file_version).
        pieces: Its bytes from where it was opened, in order. After the last one it is certain that
            all were of this version; else the iterator raises UnreadableFile, OtherVersion or
            StorageError.
    """

    size: int
    version: str
    pieces: Iterator[bytes]


@runtime_checkable
class OpensFiles(Protocol):
    """A source that opens a version of a file by itself; others are read by their ranges."""

    def open_file(
        self, key: str, version: str | None = None, start: int = 0
    ) -> AbstractContextManager[OpenedFile]:
        """A file, opened; see `open_file`."""
        ...


def open_file(
    files: SourceFiles, key: str, version: str | None = None, start: int = 0
) -> AbstractContextManager[OpenedFile]:
    """A file of a source, opened to be fetched.

    Args:
        files: The source.
        key: The file.
        version: Which version it must be (catalog.storage.file_version); None for any.
        start: Read from this byte on.

    Raises:
        OtherVersion: Another version is there.
        UnreadableFile: It cannot be read, or vanished.
        BadFile: The archive that it is in changed since it was opened.
        StorageError: The source itself fails.
    """
    if isinstance(files, OpensFiles):
        return files.open_file(key, version, start)
    return _by_ranges(files, key, version, start)


def check_version(key: str, size: int, present: str, expected: str | None) -> None:
    """Refuse another version than the one that is wanted.

    Raises:
        OtherVersion: It is another one.
    """
    if expected not in (None, present):
        raise OtherVersion(f"another version is there: {shown(size, present)}", key)


def changed_meanwhile(key: str) -> UnreadableFile:
    """The error where a file was written while it was read."""
    return UnreadableFile("was written while it was read; do it again when its writer is done", key)


@contextmanager
def _by_ranges(
    files: SourceFiles, key: str, version: str | None, start: int
) -> Iterator[OpenedFile]:
    size, present = _listed(files, key)
    check_version(key, size, present, version)

    def pieces() -> Iterator[bytes]:
        yield from ranges(files, key, size, start)
        if _listed(files, key) != (size, present):
            raise changed_meanwhile(key)

    yield OpenedFile(size, present, pieces())


def ranges(files: SourceFiles, key: str, size: int, start: int) -> Iterator[bytes]:
    """A file's bytes from ``start`` on, range by range.

    Raises:
        StorageError: A range came short.
    """
    for at in range(start, size, PIECE_BYTES):
        length = min(PIECE_BYTES, size - at)
        piece = files.read_range(key, at, length)
        if len(piece) != length:
            raise StorageError(f"{key}: {len(piece):,} bytes came from byte {at:,}, not {length:,}")
        yield piece


def _listed(files: SourceFiles, key: str) -> tuple[int, str]:
    entry = next(iter(files.list(key)), None)
    if entry is None:
        raise UnreadableFile("cannot be read: it is not in its source", key)
    return entry.size, listed_version(entry.etag, entry.mtime)
