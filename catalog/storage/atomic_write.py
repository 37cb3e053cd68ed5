"""Files and folders that are there whole or not at all, whenever their writer is killed.

They are written beside their target, as TARGET.<32 hex digits>.part, and take its name once they
are on the disk. The writer holds a lock on the part, which the kernel frees when the writer dies,
however it dies: a part whose lock is free belongs to nobody. A leaf, standard library only:
training imports it.
"""

import fcntl
import glob
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from catalog.errors import StorageError
from catalog.storage.to_disk import to_disk, tree_to_disk

_HEX = "[0-9a-f]" * 32
_FILE_MODE, _FOLDER_MODE = 0o666, 0o777


def atomic_write(
    target: Path,
    content: bytes | str,
    *,
    mode: int = _FILE_MODE,
    fsync: bool = True,
    parents: bool = False,
    clear: bool = True,
) -> None:
    """Write a file whole, in place of an earlier one.

    Args:
        target: The file.
        content: Its bytes, or its text, which is encoded as UTF-8.
        mode: Its permissions, less the process's umask.
        fsync: Wait until file and name are on the disk; else a power cut may leave it empty.
        parents: Make the folders above it that are missing.
        clear: As of `atomic_path`.

    Raises:
        StorageError: The disk refuses; an earlier file is as it was.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with atomic_path(target, mode=mode, fsync=fsync, parents=parents, clear=clear) as aside:
        aside.write_bytes(data)


@contextmanager
def atomic_path(
    target: Path,
    *,
    is_folder: bool = False,
    mode: int | None = None,
    fsync: bool = True,
    parents: bool = False,
    clear: bool = True,
) -> Iterator[Path]:
    """An empty file or folder beside ``target`` that takes its name at the end of the block.

    Args:
        target: The file, which may be there, or the folder, which must be missing or empty.
        mode: Its permissions, less the process's umask; 0o666 for a file, 0o777 for a folder.
        fsync: Wait until all of it is on the disk.
        clear: Remove first what killed writers of ``target`` left. This lists its folder: where
            thousands of files are written one by one, call `clear_parts` once instead.

    Raises:
        StorageError: The disk refuses, to the block too; what was at ``target`` is as it was.
    """
    try:
        if parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        with part_of(target, is_folder=is_folder, mode=mode, clear=clear) as aside:
            yield aside
            if fsync:
                tree_to_disk(aside)
            aside.replace(target)
            if fsync:
                to_disk(target.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.filename and not str(error.filename).startswith(str(target)):
            reason = f"{error.filename}: {reason}"
        raise StorageError(f"{target}: cannot be written: {reason}", str(target)) from error


@contextmanager
def part_of(
    target: Path, *, is_folder: bool = False, mode: int | None = None, clear: bool = True
) -> Iterator[Path]:
    """An empty file or folder beside ``target``, gone after the block unless it was renamed.

    For what `atomic_path` does not do: several files renamed together, or none where another came
    first. The arguments are those of `atomic_path`.

    Raises:
        OSError: It cannot be made.
    """
    if clear:
        clear_parts(target.parent.glob(f"{glob.escape(target.name)}.{_HEX}.part"))
    aside, handle = _new_aside(target, is_folder, mode)
    try:
        yield aside
    finally:
        with suppress(OSError):
            _remove(aside)
        if handle is not None:
            os.close(handle)


def clear_parts(paths: Iterable[Path]) -> None:
    """Remove those parts that no living process writes."""
    for aside in paths:
        try:
            handle = _locked(aside)
        except OSError:
            continue  # somebody writes it or has just renamed it, or it is another user's
        with suppress(OSError):
            _remove(aside)
        os.close(handle)


def _new_aside(target: Path, is_folder: bool, mode: int | None) -> tuple[Path, int | None]:
    while True:
        aside = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
        if is_folder:
            aside.mkdir(_FOLDER_MODE if mode is None else mode)
        else:
            aside.touch(_FILE_MODE if mode is None else mode, exist_ok=False)
        try:
            handle = _locked(aside)
        except (BlockingIOError, FileNotFoundError):
            continue  # somebody who clears took it in that moment
        except OSError:
            return aside, None  # a file system without locks: nobody else can clear it either
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), aside.stat()):
                return aside, handle
        os.close(handle)


def _locked(aside: Path) -> int:
    handle = os.open(aside, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _remove(aside: Path) -> None:
    if aside.is_dir():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink(missing_ok=True)
