"""A tar archive as a source, wherever it lies, without unpacking it."""

import hashlib
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from catalog.errors import BadFile, UnreadableFile
from catalog.storage.file_version import listed_version
from catalog.values import File, Problem
from ingest.sources.exclude import Excluded
from ingest.sources.object_file import object_file
from ingest.sources.opened_file import OpenedFile, check_version, ranges
from ingest.sources.source_files import MAX_FILE_BYTES, ArchiveBytes, Unreadable
from ingest.sources.source_options import SourceOptions
from ingest.sources.tar_index import open_index

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (naive UTC, as every time in the catalog)


class TarReader:
    """Members of one archive, as FileReader. Works from many threads at once."""

    def __init__(
        self, archive: ArchiveBytes, find: Callable[[str], tuple[int, int] | None]
    ) -> None:
        """Read members of an archive.

        Args:
            find: Start and length [bytes] of a member; None where there is none of that key.
        """
        self.archive, self._find = archive, find

    def read(self, key: str) -> bytes:
        """A whole member; see FileReader.

        Raises:
            BadFile: It is larger than MAX_FILE_BYTES.
        """
        data, size = self._span(key)
        if size > MAX_FILE_BYTES:
            raise BadFile(f"has {size:,} bytes; at most {MAX_FILE_BYTES:,} are read", key)
        return self._read(data, size, key)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of a member; see FileReader and read."""
        data, size = self._span(key)
        return self._read(data + start, max(0, min(length, size - start)), key)

    def _span(self, key: str) -> tuple[int, int]:
        span = self._find(key)
        if span is None:
            raise UnreadableFile(f"is not in {self.archive.uri}", key)
        return span

    def _read(self, start: int, length: int, key: str) -> bytes:
        return self.archive.read_range(start, length, key) if length else b""


class TarSource(TarReader):
    """The members of one archive, as SourceFiles.

    Keys are the members' names as tar would extract them: leading "./" and "/" dropped, the last
    of several members of one name. Links, devices and sparse files are left out: see problems.

    Attributes:
        root: The archive's path or URI.
        index: Where the members lie; index.cost is what making it moved.
    """

    def __init__(
        self,
        archive: ArchiveBytes,
        index_folder: Path | None = None,
        exclude: Sequence[str] = (),
    ) -> None:
        """Open the archive and its index, which is made if it is not there.

        Args:
            index_folder: Where indexes are kept from one scan to the next; None keeps none.
            exclude: Patterns of members to leave out; see ingest.sources.exclude.
        """
        self.root = archive.uri
        self._excluded = Excluded(exclude)
        self._temporary = None
        if index_folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="framesift-tar-")
            index_folder = Path(self._temporary.name)
        name = hashlib.sha256(archive.uri.encode(errors="surrogateescape")).hexdigest()[:32]
        self.index = open_index(archive, index_folder / f"{name}.sqlite")
        super().__init__(archive, self.index.find)

    def list(self, below: str = "", _unreadable: Unreadable | None = None, /) -> Iterator[File]:
        """Every readable member in byte order of its key; see SourceFiles.

        A member changes with its size or time. Where an archive keeps no times (all 0), its own
        ETag or time stands in: a changed archive's members then all count as changed.
        """
        for key, size, mtime in self._members(below):
            if self._excluded(key):
                continue
            yield object_file(key, size, _time(mtime), self._etag(mtime))

    def _members(self, below: str) -> Iterator[tuple[str, int, float]]:
        if below and not below.endswith("/"):
            member = self.index.member(below)
            if member is not None:
                yield below, *member[1:]
            return
        yield from (member for member in self.index.members() if member[0].startswith(below))

    @contextmanager
    def open_file(
        self, key: str, version: str | None = None, start: int = 0, length: int | None = None
    ) -> Iterator[OpenedFile]:
        """A member, opened to be read; see ingest.sources.opened_file."""
        member = self.index.member(key)
        if member is None:
            raise UnreadableFile(f"is not in {self.archive.uri}", key)
        _, size, mtime = member
        present = listed_version(self._etag(mtime), _time(mtime))
        check_version(key, size, present, version)
        pieces = ranges(self, key, size, start, length)
        yield OpenedFile(size, present, pieces, in_ranges=True)

    def _etag(self, mtime: float) -> str:
        return self.archive.identity if mtime == 0 else ""

    def problems(self) -> Iterator[Problem]:
        """The members that cannot be read, each with its reason."""
        for key, reason in self.index.skipped():
            if not self._excluded(key):
                yield Problem("bad_file", key, reason)

    def spans(self, keys: Iterable[str], /) -> dict[str, tuple[int, int]]:
        """The spans of members; see SourceFiles."""
        return {key: self._span(key) for key in keys}


def open_members(
    archive: ArchiveBytes, options: SourceOptions, index_folder: Path | None
) -> TarSource:
    """The archive's members; see TarSource for what it raises."""
    return TarSource(archive, index_folder, options.exclude)


def _time(seconds: float) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=math.floor(seconds * 1e6))
    except (OverflowError, ValueError):  # a clock gone wrong must not end the scan
        return datetime.max if seconds > 0 else datetime.min  # noqa: DTZ901 (naive UTC)
