"""A commit's data files, given to the disk before the commit names them.

DuckLake writes a commit's Parquet files without fsync, and its metadata with it. A power cut then
left a catalog whose metadata named files of 0 bytes (ext4 puts off where a file's bytes go for up
to half a minute).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog.errors import StorageError
from catalog.storage.s3_prefix import S3Prefix
from catalog.storage.to_disk import below, to_disk


class NewDataFiles:
    """The data files that come after this was made, for one who holds the write lock.

    Told by their names: an open transaction does not show its files, and clocks jump. Two listings
    take 0.04 s of CPU at 10,000 files, and nothing at the hundred that compaction leaves.
    """

    def __init__(self, data: Path | S3Prefix) -> None:
        """Those that are there now are not new.

        Args:
            data: The catalog's data; in S3 a file that is there is on the disk.
        """
        self._data = data if isinstance(data, Path) else None
        self._before: frozenset[str] = frozenset()
        if self._data is not None:
            with _reported(self._data):
                self._before = frozenset(below(self._data))

    def to_disk(self) -> None:
        """Have the new files, and the folders that name them, written to the disk."""
        if self._data is None:
            return
        with _reported(self._data):
            new = [Path(path) for path in below(self._data) if path not in self._before]
            for path in (*new, *{path.parent for path in new}):
                to_disk(path)


@contextmanager
def _reported(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        path = str(error.filename or folder)
        raise StorageError(
            f"{path}: cannot be written to the disk: {error.strerror}; "
            "nothing of this change was kept",
            path,
        ) from error
