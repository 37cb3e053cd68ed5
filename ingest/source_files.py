"""Where the files of a source come from: list them, read one, read a part of one."""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from catalog.errors import BadFile, InvalidInput, StorageError
from catalog.records import File

MAX_FILE_BYTES = 256 * 2**20
"""Label files larger than this are refused unread: A2D2's have 30 to 105 kB."""


class SourceFiles(Protocol):
    """The files below a source's root. Keys use slashes and never leave the root."""

    root: str

    def list(self) -> Iterator[File]:
        """Every file, folders in sorted order, so that a folder's files come together.

        Raises:
            StorageError: A folder cannot be read.
        """
        ...

    def read(self, key: str) -> bytes:
        """A whole file.

        Raises:
            BadFile: It cannot be read, vanished, or is larger than MAX_FILE_BYTES.
        """
        ...

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``; fewer at the file's end.

        Raises:
            BadFile: It cannot be read or vanished.
        """
        ...


class LocalFolder:
    """A folder of this machine, or a network file system mounted on it."""

    def __init__(self, root: Path) -> None:
        """Raises StorageError when the folder is not there or not readable."""
        self.folder = root
        self.root = str(root)
        if not root.is_dir():
            raise StorageError(f"{root}: no such folder; is the source mounted?", str(root))
        if not os.access(root, os.R_OK | os.X_OK):
            raise StorageError(f"{root}: permission denied", str(root))

    def list(self) -> Iterator[File]:
        """Every regular file; links to files count, links to folders are not followed."""
        yield from self._walk("")

    def _walk(self, below: str) -> Iterator[File]:
        folder = self.folder / below
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            raise StorageError(
                f"{folder}: cannot be listed: {error.strerror}", str(folder)
            ) from error
        for entry in found:
            key = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk(key + "/")
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue  # removed while we listed, or a dangling link
            if stat.S_ISREG(status.st_mode):
                yield _file(key, status)

    def read(self, key: str) -> bytes:
        """A whole file; see SourceFiles."""
        try:
            with (self.folder / key).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size > MAX_FILE_BYTES:
                    raise BadFile(f"has {size:,} bytes; at most {MAX_FILE_BYTES:,} are read", key)
                return file.read()
        except OSError as error:
            raise BadFile(f"cannot be read: {error.strerror}", key) from error

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of a file; see SourceFiles."""
        try:
            with (self.folder / key).open("rb") as file:
                file.seek(start)
                return file.read(length)
        except OSError as error:
            raise BadFile(f"cannot be read: {error.strerror}", key) from error


def open_source(uri: str) -> SourceFiles:
    """The files below a URI: a path or a file:// URI.

    Raises:
        InvalidInput: A scheme that is not supported.
        StorageError: The folder is not there.
    """
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return LocalFolder(Path(unquote(parts.path)))
    if "://" in uri:
        raise InvalidInput(
            f"source {uri}: scheme '{parts.scheme}' is not supported; "
            "expected a folder's path or file:///..."
        )
    return LocalFolder(Path(uri))


def _file(key: str, status: os.stat_result) -> File:
    return File(
        key=key,
        size=status.st_size,
        mtime=_utc(status.st_mtime_ns),
        atime=_utc(status.st_atime_ns),
        ctime=_utc(status.st_ctime_ns),
        inode=status.st_ino,
        owner=_user(status.st_uid),
        group=_group(status.st_gid),
        uid=status.st_uid,
        gid=status.st_gid,
        permissions=stat.filemode(status.st_mode),
        size_consumed=status.st_blocks * 512,
    )


def _utc(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds // 1000 / 1e6, UTC).replace(tzinfo=None)


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
