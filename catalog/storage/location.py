"""Where a catalog lies: its metadata in SQLite or PostgreSQL, its data in a folder or in S3."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from catalog.errors import InvalidInput, StorageError
from catalog.storage.postgres import Postgres
from catalog.storage.private_files import make_private_folder
from catalog.storage.s3_prefix import S3Prefix
from catalog.storage.write_lock import quiescing_lock, write_lock


@dataclass(frozen=True, slots=True)
class CatalogLocation:
    """Location of a catalog: its metadata and its data."""

    metadata: Path | Postgres
    """SQLite file or PostgreSQL database of DuckLake's metadata."""
    data: Path | S3Prefix
    """Folder or S3 prefix of the Parquet files."""

    @classmethod
    def in_folder(cls, folder: Path) -> "CatalogLocation":
        """A catalog that lies whole in one folder."""
        return cls(folder / "catalog.sqlite", folder / "data")

    def lock(
        self, name: str, wait_s: float, activity: str
    ) -> AbstractContextManager[Callable[[], None]]:
        """A lock that every process on this catalog sees, held for the block.

        Args:
            name: Its name; the one that writers hold is WRITE_LOCK.

        Yields:
            A check that raises StorageError where the lock was lost meanwhile.
        """
        if isinstance(self.metadata, Postgres):
            return self.metadata.lock(name, wait_s, activity)
        return write_lock(self.metadata.with_name(f"{name}.lock"), wait_s, activity)

    def quiesced(self, wait_s: float, activity: str) -> AbstractContextManager[Callable[[], None]]:
        """`lock` of WRITE_LOCK for a block that writes nothing, on a read-only file system too."""
        if isinstance(self.metadata, Postgres):
            return self.metadata.lock(WRITE_LOCK, wait_s, activity)
        return quiescing_lock(self.metadata.with_name(f"{WRITE_LOCK}.lock"), wait_s, activity)

    def make_folders(self) -> None:
        """Make the folders that metadata and data lie in, where they are local.

        Raises:
            StorageError: One cannot be made.
            InvalidInput: The data's path is one that DuckLake changes.
        """
        if isinstance(self.data, Path) and "\\" in str(self.data):
            raise InvalidInput(
                f"{self.data}: its path has a backslash, which DuckLake takes for a slash; choose "
                "a folder without"
            )
        folders = [path for path in (self.data,) if isinstance(path, Path)]
        if isinstance(self.metadata, Path):
            folders.insert(0, self.metadata.parent)
        for folder in folders:
            try:
                make_private_folder(folder)
            except OSError as error:
                raise _refused(error, "the catalog's folder cannot be made") from error

    def holds_files(self, folder: str) -> bool:
        """Return whether a folder below the data, or any where it is "", holds Parquet files."""
        if isinstance(self.data, Path):
            return any((self.data / folder).glob("*.parquet" if folder else "**/*.parquet"))
        slash = "/" if folder else ""
        below = replace(self.data, prefix=f"{self.data.prefix}{folder}{slash}")
        return next(below.objects(), None) is not None

    def parquet_files(self) -> dict[str, int]:
        """Size of every Parquet file of the data, by its path below it [bytes].

        Listed name by name: to DuckDB a path is a pattern, which other folders may match.

        Raises:
            StorageError: A folder cannot be listed, or S3 refuses or cannot be reached.
        """
        if isinstance(self.data, S3Prefix):
            start = len(self.data.prefix)
            files = {key[start:]: size for key, size in self.data.objects()}
        else:
            try:
                files = dict(_files_below(self.data, ""))
            except OSError as error:
                raise _refused(error, "the catalog's folder cannot be listed") from error
        return {name: size for name, size in files.items() if name.endswith(".parquet")}

    def delete(self, names: Sequence[str]) -> None:
        """Delete files of the data by their paths below it; those that are gone count as deleted.

        Raises:
            StorageError: The disk or S3 refuses, or S3 cannot be reached.
        """
        if isinstance(self.data, S3Prefix):
            self.data.delete(names)
            return
        for name in names:
            try:
                (self.data / name).unlink(missing_ok=True)
            except OSError as error:
                raise _refused(error, "cannot be deleted") from error

    def clean(self, text: str) -> str:
        """The text without passwords and keys, should a foreign message hold one."""
        if isinstance(self.metadata, Postgres):
            text = self.metadata.clean(text)
        if isinstance(self.data, S3Prefix):
            _, *secrets = self.data.keys()
            for secret in filter(None, secrets):
                text = text.replace(secret, "***")
        return text


def _files_below(folder: Path, above: str) -> Iterator[tuple[str, int]]:
    """Path and size [bytes] of each file below a folder; a link to a folder leads out of it."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            name = f"{above}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from _files_below(folder / entry.name, f"{name}/")
            elif entry.is_file():
                yield name, entry.stat().st_size


def _refused(error: OSError, what: str) -> StorageError:
    return StorageError(f"{error.filename}: {what}: {error.strerror}", str(error.filename))


WRITE_LOCK = "catalog"
"""Name of the lock that every write holds from BEGIN to COMMIT."""
