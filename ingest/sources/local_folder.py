"""A folder or a tar archive of this machine, or of a network file system mounted on it."""

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from catalog.errors import BadFile, FramesiftError, InvalidInput, StorageError, UnreadableFile
from catalog.storage.beneath import Folders, open_beneath, real_path, status_beneath
from catalog.storage.file_version import listed_version
from catalog.values import File, Problem
from ingest.sources.exclude import Excluded
from ingest.sources.opened_file import OpenedFile, changed_meanwhile, check_version, end_of
from ingest.sources.source_files import MAX_FILE_BYTES, Unreadable
from ingest.sources.source_options import NO_OPTIONS, SourceOptions

_SOURCE_FAILS = (
    errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH,
    errno.ENETDOWN, errno.ENETUNREACH, errno.ENODEV, errno.ENXIO,
)  # fmt: skip
"""Errors of a disk or mount that is gone: no fault of the file."""

_IN_INODE_BYTES = 4_096
"""Data of files so small may lie in the inode itself (Spectrum Scale, ext4), and take no block."""

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EXDEV, errno.ELOOP)
"""Removed, or made a link to elsewhere or nowhere, while it was listed."""

_NOT_ALLOWED = (errno.EACCES, errno.EPERM)
"""A folder of another user's, such as lost+found: the rest of the source can be listed."""

_PIECE_BYTES = 2**20
"""Read at once of a file that is fetched: it stays in the processor's cache for checksums."""

_FILES = (stat.S_IFREG, stat.S_IFLNK)
"""Kinds of files that are listed; a link among them leads out of the folder."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (naive UTC, as every time in the catalog)


def open_folder(uri: str, options: SourceOptions = NO_OPTIONS) -> "LocalFolder":
    """The folder at a path or a file: URI; see LocalFolder for what it raises."""
    return LocalFolder(Path(path_of(uri)), options)


def open_archive(uri: str, options: SourceOptions = NO_OPTIONS) -> "LocalArchive":
    """The archive at a path or a file: URI; see LocalArchive for what it raises."""
    return LocalArchive(Path(path_of(uri)), options.within)


def path_of(uri: str) -> str:
    """The path of a file: URI, or the path that it is.

    Raises:
        InvalidInput: It is of another host.
    """
    scheme, _, rest = uri.partition(":")
    if scheme.lower() != "file" or not rest.startswith("/"):
        return uri
    host, slash, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    if host not in ("", "localhost"):
        raise InvalidInput(
            f"source {uri}: '{host}' is taken for another host; "
            "expected three slashes, file:///folder"
        )
    return unquote(slash + path)


class LocalFolder:
    """A folder of this machine, or a network file system mounted on it.

    Nothing is read that lies elsewhere, whatever links are put into it: catalog.storage.beneath.
    """

    def __init__(self, root: Path, options: SourceOptions = NO_OPTIONS) -> None:
        """Find the folder, which may be reached by links.

        Args:
            options: A folder that it must lie below, and what is left out of it.

        Raises:
            StorageError: It is not there, not readable, or lies elsewhere by now.
        """
        self.folder = root
        self.root = str(root)
        self._real = real_path(root, options.within)
        self.excluded = Excluded(options.exclude)
        if root.is_file():
            raise StorageError(
                f"{root}: is a file: a source is a folder or an archive named .tar; give the "
                "folder that the file is in",
                str(root),
            )
        if not root.is_dir():
            raise StorageError(f"{root}: no such folder; is the source mounted?", str(root))
        if not os.access(root, os.R_OK | os.X_OK):
            raise StorageError(f"{root}: permission denied", str(root))

    def list(self, below: str = "", unreadable: Unreadable | None = None, /) -> Iterator[File]:
        """Every regular file; links to files count, links to folders are not followed.

        A link that leads out of the folder is listed as a link, which cannot be read.
        """
        root = self._root_identity()
        if self.excluded(below) or "\0" in below:  # no file's name has a zero byte
            pass
        elif below and not below.endswith("/"):
            yield from self._one(below, unreadable)
        else:
            yield from self._below(below, unreadable)
        # Unmounted meanwhile, what was left to list looked removed: that must not pass for a
        # complete listing.
        if self._root_identity() != root:
            raise StorageError(
                f"{self.folder}: was replaced or unmounted while it was listed; scan it again",
                self.root,
            )

    def _unreadable(self, key: str, error: OSError) -> FramesiftError:
        if error.errno in _SOURCE_FAILS:
            return StorageError(
                f"{self.folder / key}: {error.strerror}: the source fails; scan it again when it "
                "is back",
                self.root,
            )
        return UnreadableFile(f"cannot be read: {error.strerror}", key)

    def problems(self) -> Iterable[Problem]:
        """None: every file of a folder can be named and read, or fails when it is read."""
        return ()

    def _root_identity(self) -> tuple[int, int]:
        try:
            status = self.folder.stat()
        except OSError as error:
            raise _cannot_list(self.folder, error) from error
        return status.st_dev, status.st_ino

    def spans(self, _keys: Iterable[str], /) -> dict[str, tuple[int, int]]:
        """None: each is a file of its own."""
        return {}

    def _one(self, key: str, unreadable: Unreadable | None) -> Iterator[File]:
        try:
            status = status_beneath(self._real, key)
        except OSError as error:
            if error.errno in _GONE or _report(unreadable, key, error):
                return
            raise _cannot_list(self.folder / key, error) from error
        if stat.S_IFMT(status.st_mode) in _FILES:
            yield _file(key, status)

    def _below(self, below: str, unreadable: Unreadable | None) -> Iterator[File]:
        with Folders(self._real) as folders:
            # A stack, not recursion: folders may lie deeper than Python recurses.
            stack = [(below, iter(self._entries(folders, below, unreadable)))]
            while stack:
                folder, entries = stack[-1]
                name, is_link = next(entries, ("", False))
                if not name:
                    stack.pop()
                    continue
                key = folder + name.rstrip("/")
                if self.excluded(key):
                    continue
                try:
                    status = folders.status(folder, name.rstrip("/"))
                    if stat.S_ISDIR(status.st_mode):
                        inside = self._entries(folders, key + "/", unreadable)
                        stack.append((key + "/", iter(inside)))
                        continue
                    if stat.S_ISLNK(status.st_mode):
                        status = status_beneath(self._real, key)
                except OSError as error:
                    # A link that leads nowhere is passed over, too.
                    reported = is_link or _report(unreadable, folder + name, error)
                    if reported or error.errno in _GONE:
                        continue
                    raise _cannot_list(self.folder / key, error) from error
                if stat.S_IFMT(status.st_mode) in _FILES:
                    yield _file(key, status)

    def _entries(
        self, folders: Folders, below: str, unreadable: Unreadable | None
    ) -> Sequence[tuple[str, bool]]:
        try:
            entries = folders.entries(below)
            if entries and not folders.may_search(below):
                raise PermissionError(errno.EACCES, "its files may not be asked for")
        except OSError as error:
            if error.errno in _GONE and (below or error.errno == errno.EXDEV):
                return ()
            if below and _report(unreadable, below, error):
                return ()
            raise _cannot_list(self.folder / below, error) from error
        return entries

    def read(self, key: str) -> bytes:
        """A whole file, as one version; see SourceFiles."""
        # Not by open_file: ingest reads many small files, and 60 kB take 23 us so and 32 us by it.
        try:
            with open_beneath(self._real, key) as file:
                status = os.fstat(file.fileno())
                if status.st_size > MAX_FILE_BYTES:
                    raise BadFile(
                        f"has {status.st_size:,} bytes; at most {MAX_FILE_BYTES:,} are read", key
                    )
                content = file.read()
                _check_unchanged(file, status, key)
                return content
        except OSError as error:
            raise self._unreadable(key, error) from error

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of a file; see SourceFiles."""
        try:
            with open_beneath(self._real, key) as file:
                file.seek(start)
                return file.read(length)
        except OSError as error:
            raise self._unreadable(key, error) from error

    @contextmanager
    def open_file(
        self, key: str, version: str | None = None, start: int = 0, length: int | None = None
    ) -> Iterator[OpenedFile]:
        """A file, opened to be read; see ingest.sources.opened_file."""
        try:
            file = open_beneath(self._real, key)
        except OSError as error:
            raise self._unreadable(key, error) from error
        with file:
            status = os.fstat(file.fileno())
            # As the listing has it, for times beyond datetime's too.
            present = listed_version("", _utc(status.st_mtime_ns))
            check_version(key, status.st_size, present, version)
            pieces = self._pieces(file, status, key, start, length)
            is_whole = not start and length is None
            read_into = partial(self._read_into, file, status, key) if is_whole else None
            yield OpenedFile(status.st_size, present, pieces, read_into=read_into)

    def _read_into(
        self, file: BinaryIO, status: os.stat_result, key: str, buffer: memoryview
    ) -> int:
        with self._unchanged(file, status, key):
            size = 0
            while length := os.readv(file.fileno(), [buffer[size:]]):
                size += length
        return size

    def _pieces(
        self, file: BinaryIO, status: os.stat_result, key: str, start: int, length: int | None
    ) -> Iterator[bytes]:
        remaining = end_of(status.st_size, start, length) - start
        with self._unchanged(file, status, key):
            file.seek(start)
            while remaining > 0 and (piece := file.read(min(_PIECE_BYTES, remaining))):
                remaining -= len(piece)
                yield piece

    @contextmanager
    def _unchanged(self, file: BinaryIO, status: os.stat_result, key: str) -> Iterator[None]:
        try:
            yield
            _check_unchanged(file, status, key)
        except OSError as error:
            raise self._unreadable(key, error) from error


class LocalArchive:
    """An archive on this machine or a mounted network file system; see ArchiveBytes."""

    walks = 1

    def __init__(self, path: Path, within: str = "") -> None:
        """Ask for its size and time.

        Args:
            within: A folder that it must lie below, links followed; anywhere where empty.

        Raises:
            StorageError: It cannot be read, or lies elsewhere by now.
        """
        self.uri = str(path)
        # As it is found now: a link put in its place later leads nowhere else.
        self._folder, self._name = os.path.split(real_path(path, within))
        try:
            with open_beneath(self._folder, self._name) as file:
                status = os.fstat(file.fileno())
        except OSError as error:
            raise StorageError(f"{path}: cannot be read: {error.strerror}", str(path)) from error
        self.size, self._changed = status.st_size, status.st_mtime_ns
        self.identity = str(status.st_mtime_ns)

    def read_range(self, start: int, length: int, label: str = "") -> bytes:
        """A part of the file; see ArchiveBytes. Opened each time: it may have been replaced."""
        try:
            with open_beneath(self._folder, self._name) as file:
                status = os.fstat(file.fileno())
                if (status.st_size, status.st_mtime_ns) != (self.size, self._changed):
                    raise UnreadableFile(f"{self.uri} changed while it was read; scan again", label)
                file.seek(start)
                return file.read(length)
        except OSError as error:
            raise UnreadableFile(f"{self.uri} cannot be read: {error.strerror}", label) from error


def _check_unchanged(file: BinaryIO, status: os.stat_result, key: str) -> None:
    """Refuse what was read of a file that was written meanwhile.

    Raises:
        UnreadableFile: It was.
    """
    after = os.fstat(file.fileno())
    if (after.st_size, after.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
        raise changed_meanwhile(key)


def _report(unreadable: Unreadable | None, key: str, error: OSError) -> bool:
    """Report what may not be read; True where that was the cause, and a callback takes it."""
    if unreadable is None or error.errno not in _NOT_ALLOWED:
        return False
    unreadable(key, str(error.strerror))
    return True


def _cannot_list(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path}: cannot be listed: {error.strerror}", str(path))


def _file(key: str, status: os.stat_result) -> File:
    return File(
        key=key,
        size=status.st_size,
        mtime=_utc(status.st_mtime_ns),
        atime=_utc(status.st_atime_ns),
        ctime=_utc(status.st_ctime_ns),
        # Some file systems number with all 64 bits; the catalog's BIGINT has a sign.
        inode=status.st_ino - (status.st_ino >> 63 << 64),
        owner=_user(status.st_uid),
        group=_group(status.st_gid),
        uid=status.st_uid,
        gid=status.st_gid,
        permissions=stat.filemode(status.st_mode),
        size_consumed=status.st_blocks * 512,
        state=_state(status),
    )


def _state(status: os.stat_result) -> str:
    """The state of the file: its data are on this file system, or a stub stands for them.

    One that is on tape as well cannot be told from one that is not.
    """
    return "migrtd" if is_stub(status) else "resdnt"


def is_stub(status: os.stat_result) -> bool:
    """Return whether a file has a size and no data on this file system; of small files False."""
    return status.st_blocks == 0 and status.st_size > _IN_INODE_BYTES


def _utc(nanoseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:  # a clock gone wrong must not end the scan
        return datetime.max if nanoseconds > 0 else datetime.min  # noqa: DTZ901 (naive UTC)


@lru_cache
def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@lru_cache
def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
