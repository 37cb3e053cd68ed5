"""A backup's files: a folder, or a tar file where its name ends in ".tar"; hashed on the way.

They are their owner's alone, as those of a home are: among them are the records.
"""

import hashlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from catalog.errors import BadFile, StorageError
from catalog.storage.atomic_write import atomic_path
from catalog.storage.private_files import make_private_folder

_CHUNK_BYTES = 2**20

Digests = dict[str, tuple[int, str]]
"""Size [bytes] and SHA-256 of each file, by its name in the backup."""


class BackupWriter:
    """Puts files into a backup.

    Attributes:
        files: What has been put there.
    """

    def __init__(self, target: Path | tarfile.TarFile) -> None:
        self.files: Digests = {}
        self._place = target

    def add(self, name: str, path: Path) -> None:
        """Put a file there under a name."""
        with path.open("rb") as opened:
            content = _Hashed(opened)
            if isinstance(self._place, tarfile.TarFile):
                entry = tarfile.TarInfo(name)
                entry.size = path.stat().st_size
                entry.mtime = int(path.stat().st_mtime)
                self._place.addfile(entry, content)
            else:
                _write(content, self._place / name)
        self.files[name] = (content.size, content.digest.hexdigest())


@contextmanager
def writing_backup(target: Path) -> Iterator[BackupWriter]:
    """A writer of what becomes ``target`` at the end of the block, whole or not at all."""
    if target.suffix == ".tar":
        with atomic_path(target, mode=0o600) as partial, tarfile.open(partial, mode="w") as archive:
            yield BackupWriter(archive)
    else:
        with atomic_path(target, is_folder=True, mode=0o700) as partial:
            yield BackupWriter(partial)


def unpack(source: Path, folder: Path) -> Digests:
    """Copy a backup's files into a folder; what they are now.

    Raises:
        BadFile: It cannot be read as a backup.
    """
    digests: Digests = {}
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.is_file():
                name = path.relative_to(source).as_posix()
                with path.open("rb") as content:
                    digests[name] = _write(_Hashed(content), folder / name)
        return digests
    try:
        with tarfile.open(source) as archive:
            for entry in archive:
                opened = archive.extractfile(entry) if entry.isreg() else None
                name = entry.name
                if opened is None or {"..", "/"} & set(PurePosixPath(name).parts):
                    raise BadFile(f"'{name}' in it is no file of a backup", str(source))
                digests[name] = _write(_Hashed(opened), folder / name)
    except (tarfile.TarError, EOFError) as error:
        raise BadFile(f"cannot be read as a tar file: {error}", str(source)) from error
    return digests


@contextmanager
def cleared(path: Path) -> Iterator[None]:
    """No file or folder at ``path`` before the block, and none left behind by it."""
    _remove(path)
    try:
        yield
    finally:
        _remove(path)


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turn the disk's refusals into ours."""
    try:
        yield
    except OSError as error:
        where = str(error.filename or path)
        raise StorageError(f"{where}: {error.strerror or error}", where) from error


class _Hashed:
    """A file that is hashed while it is read."""

    def __init__(self, content: IO[bytes]) -> None:
        self.digest = hashlib.sha256()
        self.size = 0
        self._content = content

    def read(self, size: int = _CHUNK_BYTES) -> bytes:
        chunk = self._content.read(size)
        self.digest.update(chunk)
        self.size += len(chunk)
        return chunk


def _write(content: _Hashed, path: Path) -> tuple[int, str]:
    make_private_folder(path.parent)
    with _private(path) as out:
        while chunk := content.read():
            out.write(chunk)
    return content.size, content.digest.hexdigest()


def _private(path: Path) -> BinaryIO:
    """A new file for its owner alone, opened for writing."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
