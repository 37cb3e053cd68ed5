"""One version of a source's file, whole or a part, and never mixed with another."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from catalog.errors import OtherVersion, StorageError, UnreadableFile
from catalog.storage.file_version import listed_version, version_text
from ingest.sources.source_files import FileReader, SourceFiles

PIECE_BYTES = 8 * 2**20
"""Bytes of one ranged read: images of 3 MB take one request."""


@dataclass(frozen=True)
class OpenedFile:
    """A file that is about to be read."""

    size: int
    """Of the whole file [bytes]."""
    version: str
    """Which version it is (catalog.storage.file_version)."""
    pieces: Iterator[bytes]
    """Its bytes of the part that was asked for, in order. After the last one it is certain that all
    were of this version; else the iterator raises UnreadableFile, OtherVersion or StorageError.
    """
    check_md5: Callable[[str], None] | None = None
    """Told the MD5 of the whole file, in hex, raises StorageError where the source has another;
    None where it has none.
    """
    read_into: Callable[[memoryview], int] | None = None
    """Reads all into memory in place of `pieces`, says how many bytes, and raises what `pieces`
    does; None where that saves nothing.
    """
    in_ranges: bool = False
    """Whether each of `pieces` takes a request of its own."""


@runtime_checkable
class OpensFiles(Protocol):
    """A source that opens a version of a file by itself; others are read by their ranges."""

    def open_file(
        self, key: str, version: str | None = None, start: int = 0, length: int | None = None
    ) -> AbstractContextManager[OpenedFile]:
        """A file, opened; see `open_file`."""
        ...


def open_file(
    files: SourceFiles,
    key: str,
    version: str | None = None,
    start: int = 0,
    length: int | None = None,
) -> AbstractContextManager[OpenedFile]:
    """A file of a source, opened to be read.

    Args:
        version: Which version it must be (catalog.storage.file_version); None for any.
        start: Read from this byte on.
        length: Read so many bytes, one or more, fewer at the file's end; all when None.

    Raises:
        OtherVersion: Another version is there.
        UnreadableFile: It cannot be read, or vanished.
        BadFile: The archive that it is in changed since it was opened.
        StorageError: The source itself fails.
    """
    if isinstance(files, OpensFiles):
        return files.open_file(key, version, start, length)
    return _by_ranges(files, key, version, start, length)


def end_of(size: int, start: int, length: int | None) -> int:
    """The end of a part of a file of ``size`` bytes; see `open_file`."""
    return size if length is None else min(size, start + length)


def check_version(key: str, size: int, present: str, expected: str | None) -> None:
    """Refuse another version than the one that is wanted.

    Raises:
        OtherVersion: It is another one.
    """
    if expected not in (None, present):
        raise OtherVersion(f"another version is there: {version_text(size, present)}", key)


def changed_meanwhile(key: str) -> UnreadableFile:
    """The error where a file was written while it was read."""
    return UnreadableFile("was written while it was read; do it again when its writer is done", key)


@contextmanager
def _by_ranges(
    files: SourceFiles, key: str, version: str | None, start: int, length: int | None
) -> Iterator[OpenedFile]:
    size, present = _listed(files, key)
    check_version(key, size, present, version)

    def pieces() -> Iterator[bytes]:
        yield from ranges(files, key, size, start, length)
        if _listed(files, key) != (size, present):
            raise changed_meanwhile(key)

    yield OpenedFile(size, present, pieces(), in_ranges=True)


def ranges(
    files: FileReader, key: str, size: int, start: int, length: int | None = None
) -> Iterator[bytes]:
    """A part of a file of ``size`` bytes, range by range; see `open_file`.

    Raises:
        StorageError: A range came short.
    """
    end = end_of(size, start, length)
    for at in range(start, end, PIECE_BYTES):
        most = min(PIECE_BYTES, end - at)
        piece = files.read_range(key, at, most)
        if len(piece) != most:
            raise StorageError(f"{key}: {len(piece):,} bytes came from byte {at:,}, not {most:,}")
        yield piece


def _listed(files: SourceFiles, key: str) -> tuple[int, str]:
    entry = next(iter(files.list(key)), None)
    if entry is None:
        raise UnreadableFile("cannot be read: it is not in its source", key)
    return entry.size, listed_version(entry.etag, entry.mtime)
