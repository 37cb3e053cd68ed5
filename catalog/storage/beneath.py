"""Opening files that must lie below a folder, wherever links lead.

Whoever may write into a source's folder could otherwise put a link to any file there that this
process may read, after a scan as well as before it. No path is checked and then opened, as it may
be changed in between: what was opened is asked where it lies.

``real`` is the folder without a link on its way, as `real_path` gives it.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from catalog.errors import StorageError

_ELSEWHERE = "is a link that leads out of the source's folder, or lies behind one"


def real_path(path: Path, within: str) -> str:
    """Where a folder or archive lies, links followed.

    Raises:
        StorageError: Not below ``within``, where that is not empty.
    """
    real = os.path.realpath(path)
    if within and not Path(real).is_relative_to(os.path.realpath(within)):
        raise StorageError(
            f"{path}: leads out of {within} now, below which it lay when the source was added; "
            "an admin may add it again",
            str(path),
        )
    return real


def open_beneath(real: str, key: str) -> BinaryIO:
    """A regular file below a folder, opened for reading; links that stay below it are followed.

    Args:
        key: The file's path below it.

    Raises:
        OSError: It cannot be opened, is no regular file (EINVAL), or lies elsewhere (EXDEV).
    """
    path = f"{real}/{key}"
    # O_PATH opens nothing yet: no pipe waits for a writer, no device notices.
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _check(handle, real, path)
        return os.fdopen(os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC), "rb")
    except OSError as error:
        error.filename = path  # not the one in /proc
        raise
    finally:
        os.close(handle)


def status_beneath(real: str, key: str) -> os.stat_result:
    """The status of what a path leads to; a link's own where that is a file elsewhere.

    Raises:
        OSError: Nothing is there, a link leads nowhere, or it lies behind a link (EXDEV).
    """
    path = f"{real}/{key}"
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if _lies_below(handle, real) or not stat.S_ISREG(status.st_mode):
            return status
    finally:
        os.close(handle)
    folder, _, name = key.rpartition("/")
    with Folders(real) as folders:
        own = folders.status(folder and folder + "/", name)
    if not stat.S_ISLNK(own.st_mode):
        raise OSError(errno.EXDEV, _ELSEWHERE, path)
    return own


class Folders:
    """Looks into folders below a folder; the last one that it looked into stays open.

    What is asked for by name is asked of the open folder, so that nobody can put a link into its
    place in between. Folders are named by paths that are empty or end in a slash.
    """

    def __init__(self, real: str) -> None:
        self._real = real
        self._open: tuple[str, int] | None = None

    def __enter__(self) -> "Folders":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """Names of what is in a folder in byte order, folders with a slash; whether it is a link.

        Raises:
            OSError: It cannot be read, or lies elsewhere (EXDEV).
        """
        with os.scandir(self._handle_of(folder)) as entries:
            return sorted(
                (
                    entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name,
                    entry.is_symlink(),
                )
                for entry in entries
            )

    def status(self, folder: str, name: str) -> os.stat_result:
        """The status of one entry of a folder; of a link its own.

        Raises:
            OSError: It is not there, or the folder lies elsewhere (EXDEV).
        """
        return os.stat(name, dir_fd=self._handle_of(folder), follow_symlinks=False)

    def may_search(self, folder: str) -> bool:
        """Return whether a folder's content may be asked for at all: it has the x permission."""
        try:
            self.status(folder, ".")
        except PermissionError:
            return False
        return True

    def _handle_of(self, folder: str) -> int:
        if self._open is None or self._open[0] != folder:
            self._close()
            self._open = (folder, _open_folder(self._real, folder))
        return self._open[1]

    def _close(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None


def _open_folder(real: str, below: str) -> int:
    """A descriptor of a folder below a folder, which the caller closes."""
    path = f"{real}/{below}"
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if _lies_below(handle, real):
        return handle
    os.close(handle)
    raise OSError(errno.EXDEV, _ELSEWHERE, path)


def _check(handle: int, real: str, path: str) -> None:
    if not _lies_below(handle, real):
        raise OSError(errno.EXDEV, _ELSEWHERE, path)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise OSError(errno.EINVAL, "is no regular file", path)


def _lies_below(handle: int, real: str) -> bool:
    target = os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 (a link of its own kind)
    return target == real or target.startswith(real.rstrip("/") + "/")
