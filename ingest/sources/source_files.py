"""Where the files of a source come from: list them, read one, read a part of one."""

import errno
import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from catalog.errors import (
    BadFile,
    FramesiftError,
    InvalidInput,
    StorageError,
    UnreadableFile,
)
from catalog.storage.beneath import (
    Folders,
    open_beneath,
    real_place,
    status_beneath,
)
from catalog.values import File, Problem
from ingest.sources.exclude import Excluded
from ingest.sources.source_options import NO_OPTIONS, SourceOptions

MAX_FILE_BYTES = 256 * 2**20
"""Label files larger than this are refused unread: A2D2's have 30 to 105 kB."""


_SOURCE_FAILS = (
    errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH,
    errno.ENETDOWN, errno.ENETUNREACH, errno.ENODEV, errno.ENXIO,
)  # fmt: skip
"""What a disk or mount that is gone answers: no fault of the file."""

_IN_INODE_BYTES = 4_096
"""Data of files so small may lie in the inode itself (Spectrum Scale, ext4), and take no block."""

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EXDEV, errno.ELOOP)
"""Removed, or made a link to elsewhere or nowhere, while it was listed."""

_NOT_ALLOWED = (errno.EACCES, errno.EPERM)
"""A folder of another user's, such as lost+found: the rest of the source can be listed."""

_FILES = (stat.S_IFREG, stat.S_IFLNK)
"""What is listed; a link among them is one that leads elsewhere."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (naive UTC, as every time in the catalog)


Unreadable = Callable[[str, str], None]
"""Told the key of a folder (ends in a slash) or file that may not be looked at, and the reason."""


class FileReader(Protocol):
    """Reads files of a source by key. Keys use slashes and never leave the root."""

    def read(self, key: str) -> bytes:
        """A whole file.

        Raises:
            UnreadableFile: It cannot be read, or vanished.
            BadFile: It is larger than MAX_FILE_BYTES.
            StorageError: The source itself fails.
        """
        ...

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``; fewer at the file's end.

        Raises:
            UnreadableFile: It cannot be read, or vanished.
            StorageError: The source itself fails.
        """
        ...


class SourceFiles(FileReader, Protocol):
    """The files below a source's root."""

    root: str

    def list(self, below: str = "", unreadable: Unreadable | None = None, /) -> Iterator[File]:
        """Every file but those left out, in byte order of the keys: a scene's come together.

        Args:
            below: Only what lies in this folder (ends in a slash), or this one file; nothing
                where it is not there.
            unreadable: Told of a folder that may not be read, before what follows it is listed;
                where None, that ends the listing.

        Raises:
            StorageError: The source fails, or a folder may not be read.
        """
        ...

    def problems(self) -> Iterable[Problem]:
        """What of the source cannot be listed as files, such as a tar archive's links."""
        ...

    def spans(self, keys: Iterable[str], /) -> dict[str, tuple[int, int]]:
        """Where files lie in the one file that the source is: start and length [bytes] by key.

        Empty where each is a file of its own. With them another process reads the files without
        an index.
        """
        ...


class LocalFolder:
    """A folder of this machine, or a network file system mounted on it.

    Nothing is read that lies elsewhere, whatever links are put into it: catalog.storage.beneath.
    """

    def __init__(self, root: Path, options: SourceOptions = NO_OPTIONS) -> None:
        """Find the folder, which may be reached by links.

        Args:
            root: The folder.
            options: A folder that it must lie below, and what is left out of it.

        Raises:
            StorageError: It is not there, not readable, or lies elsewhere by now.
        """
        self.folder = root
        self.root = str(root)
        self._real = real_place(root, options.within)
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
        if self.excluded(below):
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
            if error.errno in _GONE or _told(unreadable, key, error):
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
                    told = is_link or _told(unreadable, folder + name, error)
                    if told or error.errno in _GONE:
                        continue
                    raise _cannot_list(self.folder / key, error) from error
                if stat.S_IFMT(status.st_mode) in _FILES:
                    yield _file(key, status)

    def _entries(
        self, folders: Folders, below: str, unreadable: Unreadable | None
    ) -> Sequence[tuple[str, bool]]:
        try:
            found = folders.entries(below)
            if found and not folders.may_search(below):
                raise PermissionError(errno.EACCES, "its files may not be asked for")
        except OSError as error:
            if error.errno in _GONE and (below or error.errno == errno.EXDEV):
                return ()
            if below and _told(unreadable, below, error):
                return ()
            raise _cannot_list(self.folder / below, error) from error
        return found

    def read(self, key: str) -> bytes:
        """A whole file; see SourceFiles."""
        try:
            with open_beneath(self._real, key) as file:
                size = os.fstat(file.fileno()).st_size
                if size > MAX_FILE_BYTES:
                    raise BadFile(f"has {size:,} bytes; at most {MAX_FILE_BYTES:,} are read", key)
                return file.read()
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


def open_source(
    uri: str, options: SourceOptions = NO_OPTIONS, index_folder: Path | None = None
) -> SourceFiles:
    """The files below a URI: a path, file:// or s3:// URI of a folder or of a .tar archive.

    Args:
        uri: Where they are.
        options: How an object store is reached.
        index_folder: Where the indexes of tar archives are kept; None keeps none.

    Raises:
        InvalidInput: No URI, one of another host, a scheme that is not supported, a compressed
            archive, or options that do not fit.
        BadFile: The archive is damaged or truncated.
        StorageError: The folder, archive or bucket is not there or cannot be reached.
    """
    scheme, separator, rest = uri.partition(":")
    if separator and scheme.lower() == "file" and rest.startswith("/"):
        return _open_path(path_of(uri), options, index_folder)
    if uri.lower().startswith("s3://"):
        return _open_s3(uri, options, index_folder)
    if "://" in uri:
        raise InvalidInput(
            f"source {uri}: scheme '{scheme}' is not supported; "
            "expected a folder's path, file:///... or s3://bucket/prefix"
        )
    if not uri:
        raise InvalidInput("the source's URI is empty; expected a folder's path or file:///...")
    return _open_path(uri, options, index_folder)


def open_reader(
    uri: str, options: SourceOptions, spans: Mapping[str, tuple[int, int]]
) -> FileReader:
    """Read a source's files without listing it, as a worker on another machine does.

    Args:
        uri: As open_source takes it.
        options: How an object store is reached.
        spans: What SourceFiles.spans gave for the files that will be read.

    Raises:
        InvalidInput, StorageError: As open_source.
    """
    if not spans:
        return open_source(uri, options)
    from ingest.sources.tar_source import open_spans

    return open_spans(path_of(uri) if uri[:5].lower() == "file:" else uri, spans, options)


# Both import late: boto3 takes 0.3 s, and a folder needs neither.
def _open_s3(uri: str, options: SourceOptions, index_folder: Path | None) -> SourceFiles:
    try:
        from ingest.sources.s3_source import S3Folder
    except ImportError as error:
        raise InvalidInput(
            f"source {uri}: {error.name} is not installed; install framesift with the extra 's3'"
        ) from error
    from ingest.sources.tar_source import is_tar, open_tar

    return open_tar(uri, options, index_folder) if is_tar(uri) else S3Folder(uri, options)


def _open_path(path: str, options: SourceOptions, index_folder: Path | None) -> SourceFiles:
    from ingest.sources.tar_source import is_tar, open_tar

    if not Path(path).is_dir() and is_tar(path):
        return open_tar(path, options, index_folder)
    return LocalFolder(Path(path), options)


def path_of(uri: str) -> str:
    """The path of a file: URI.

    Raises:
        InvalidInput: It is of another host.
    """
    rest = uri.partition(":")[2]
    host, slash, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    if host not in ("", "localhost"):
        raise InvalidInput(
            f"source {uri}: '{host}' is taken for another host; "
            "expected three slashes, file:///folder"
        )
    return unquote(slash + path)


def _told(unreadable: Unreadable | None, key: str, error: OSError) -> bool:
    """Tell of what may not be looked at; whether that was it, and somebody listens."""
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
    """Whether the file's data are on this file system, or a stub stands for them.

    One that is on tape as well cannot be told from one that is not.
    """
    is_stub = status.st_blocks == 0 and status.st_size > _IN_INODE_BYTES
    return "migrtd" if is_stub else "resdnt"


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
