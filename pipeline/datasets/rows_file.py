"""Rows of a new manifest in a file without a name, which is gone with its last reader."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import StorageError
from pipeline.manifest import ManifestHeader, write_manifest
from pipeline.manifest_rows import FRAMES_SCHEMA


class RowsFile:
    """Rows of a manifest on disk, of which memory holds a portion at a time."""

    def __init__(self, portions: Iterable[pa.Table]) -> None:
        """Write the rows.

        Args:
            portions: Of FRAMES_SCHEMA.

        Raises:
            StorageError: The system's temporary folder cannot be written.
        """
        try:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this
            with pq.ParquetWriter(self._file, FRAMES_SCHEMA, compression="zstd") as writer:
                for rows in portions:
                    writer.write_table(rows)
                    del rows
                    # Arrow keeps what a portion took, 40 to 60 MB, while DuckDB reads the next.
                    pa.default_memory_pool().release_unused()
            self._file.flush()
        except OSError as error:
            folder = tempfile.gettempdir()
            raise StorageError(
                f"{folder}: the rows of a dataset cannot be written: {error.strerror or error}",
                folder,
            ) from error

    def table(self) -> pa.Table:
        """All rows, in memory."""
        self._file.seek(0)
        return pq.read_table(self._file).cast(FRAMES_SCHEMA)

    def portions(self) -> Iterator[pa.Table]:
        """The rows as they were written, portion by portion."""
        self._file.seek(0)
        parquet = pq.ParquetFile(self._file)
        for number in range(parquet.num_row_groups):
            yield parquet.read_row_group(number).cast(FRAMES_SCHEMA)

    def copy(self, path: Path) -> None:
        """Write the rows as a manifest's frames.parquet."""
        self._file.seek(0)
        with path.open("wb") as file:
            shutil.copyfileobj(self._file, file, 1 << 20)


class StoredRows:
    """A manifest of rows on disk, about to be written."""

    def __init__(self, header: ManifestHeader, rows: RowsFile) -> None:
        """Write nothing yet."""
        self.header, self._rows = header, rows

    def write(self, folder: Path) -> None:
        """Write both files into ``folder``: see Manifest.write."""
        write_manifest(folder, self.header, self._rows.copy)
