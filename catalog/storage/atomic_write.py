"""Files and folders that are there whole or not at all, whenever their writer is killed.

They are written beside their target, as TARGET.<32 hex digits>.part, and take its name once they
are on the disk. The writer holds a lock on the part, which the kernel frees when the writer dies,
however it dies: a part whose lock is free belongs to nobody. A leaf, standard library only:
training imports it.
"""

import glob
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from catalog.errors import StorageError
from catalog.storage.file_lock import open_locked
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
        content: Its bytes, or its text, which is encoded as UTF-8.
        mode: Its permissions, less the process's umask.
        fsync: Wait until file and name are on the disk; else a power cut may leave it empty.
        clear: As of `atomic_path`.

    Raises:
        StorageError: The disk refuses; an earlier file is as it was.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with atomic_path(target, mode=mode, fsync=fsync, parents=parents, clear=clear) as partial:
        partial.write_bytes(data)


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
        with part_of(target, is_folder=is_folder, mode=mode, clear=clear) as partial:
            yield partial
            if fsync:
                tree_to_disk(partial)
            partial.replace(target)
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
    partial, handle = _new_partial(target, is_folder, mode)
    try:
        yield partial
    finally:
        with suppress(OSError):
            _remove(partial)
        if handle is not None:
            os.close(handle)


def clear_parts(paths: Iterable[Path]) -> None:
    """Remove those parts that no living process writes."""
    for partial in paths:
        try:
            handle = open_locked(partial, os.O_RDONLY, wait_s=0)
        except OSError:
            continue  # somebody has just renamed it, or it is another user's
        if handle is not None:
            with suppress(OSError):
                _remove(partial)
            os.close(handle)


def _new_partial(target: Path, is_folder: bool, mode: int | None) -> tuple[Path, int | None]:
    while True:
        partial = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
        if is_folder:
            partial.mkdir(_FOLDER_MODE if mode is None else mode)
        else:
            partial.touch(_FILE_MODE if mode is None else mode, exist_ok=False)
        try:
            handle = open_locked(partial, os.O_RDONLY, wait_s=0)
        except FileNotFoundError:
            continue  # a process that clears removed it in that moment
        except OSError:
            return partial, None  # a file system without locks: nobody else can clear it either
        if handle is not None:
            return partial, handle


def _remove(partial: Path) -> None:
    if partial.is_dir():
        shutil.rmtree(partial, ignore_errors=True)
    else:
        partial.unlink(missing_ok=True)
