"""Lists of files for commands of storage systems: one absolute path a line.

The storage node reads a list at the path that this machine wrote it to, so its folder must be one
that both have, such as one of the shared file system.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from catalog.errors import InvalidInput, StorageError

_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")


def needs_escapes(paths: Sequence[str]) -> bool:
    """Return whether paths hold what a line of such a list cannot show as it is."""
    return any("\n" in path or "\\" in path for path in paths)


def escaped(path: str) -> str:
    """A path as policies of Spectrum Scale write it: line breaks and backslashes by backslashes."""
    return path.replace("\\", "\\\\").replace("\n", "\\n")


def check_plain(path: str, what: str, advice: str) -> None:
    """Refuse a path that means something to a shell, which a command that goes through ssh meets.

    Raises:
        InvalidInput: It does.
    """
    if not _PLAIN.fullmatch(path):
        raise InvalidInput(
            f"{what}: expected letters, digits, '.', '_', '-' and '/' alone; {advice}"
        )


@contextmanager
def list_file(folder: Path, lines: Sequence[str]) -> Iterator[Path]:
    """A file with a line for each path, for the block; other users may read it.

    Raises:
        InvalidInput: The folder's name means something to a shell, which a command that goes
            through ssh meets.
        StorageError: It cannot be written.
    """
    check_plain(str(folder), f"list folder {folder}", "set FRAMESIFT_LIST_FOLDER")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="list-", suffix=".txt", dir=folder)
    except OSError as error:
        raise _cannot(folder, error) from error
    path = Path(name)
    try:
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(os.fsencode(line) + b"\n" for line in lines)
                file.flush()
                os.fchmod(handle, 0o644)  # the storage node's user is another one
                os.fsync(handle)
        except OSError as error:
            raise _cannot(folder, error) from error
        yield path
    finally:
        path.unlink(missing_ok=True)


def _cannot(folder: Path, error: OSError) -> StorageError:
    return StorageError(
        f"list folder {folder}: {error.strerror}; set FRAMESIFT_LIST_FOLDER to one that this "
        "machine and the storage node have at the same path",
        str(folder),
    )
