"""SQLite files where nothing can be written beside them: on a read-only disk, of another user.

SQLite reads a file in WAL mode only where it may write its log's index beside it, or finds one.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from catalog.errors import StorageError


@contextmanager
def readable(database: Path) -> Iterator[Path]:
    """The file, or for the block a copy of it and its log where it can be read otherwise not.

    Raises:
        StorageError: It cannot be read, or there is no room for the copy.
    """
    if not database.is_file() or os.access(database.parent, os.W_OK):
        yield database
        return
    with tempfile.TemporaryDirectory(prefix="framesift-read-") as scratch:
        copy = Path(scratch, database.name)
        try:
            for end in ("", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{database}{end}", f"{copy}{end}")
        except OSError as error:
            raise StorageError(
                f"{database}: cannot be copied to where it can be read: {error.strerror}",
                str(database),
            ) from error
        yield copy
