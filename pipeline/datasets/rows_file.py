"""Rows of a new manifest in a file without a name, which is gone with its last reader."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import StorageError
from pipeline.manifest import ManifestHeader, write_manifest
from pipeline.manifest_rows import FRAMES_PARQUET, FRAMES_SCHEMA

# Arrow's threads would each keep memory of what they packed.
_PACKED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_UNPACKED = pa.ipc.IpcReadOptions(use_threads=False)


class UndividedRows:
    """Rows of a manifest on disk whose splits are not known yet.

    Not as Parquet, which takes 2.4 times as long to write and five times to read.
    """

    def __init__(self, portions: Iterable[pa.Table]) -> None:
        """Write the rows.

        Args:
            portions: Of FRAMES_SCHEMA.

        Raises:
            StorageError: The system's temporary folder cannot be written.
        """
        with _temporary():
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this
            with pa.ipc.new_stream(self._file, FRAMES_SCHEMA, options=_PACKED) as writer:
                for rows in portions:
                    writer.write_table(rows.combine_chunks())
                    del rows
                    pa.default_memory_pool().release_unused()

    def portions(self) -> Iterator[pa.Table]:
        """The rows as they were written, portion by portion."""
        self._file.seek(0)
        for batch in pa.ipc.open_stream(self._file, options=_UNPACKED):
            yield pa.Table.from_batches([batch])
            del batch  # before the next is read


class RowsFile:
    """Rows of a manifest on disk, of which memory holds a portion at a time."""

    def __init__(self, portions: Iterable[pa.Table]) -> None:
        """Write the rows.

        Args:
            portions: Of FRAMES_SCHEMA.

        Raises:
            StorageError: The system's temporary folder cannot be written.
        """
        with _temporary():
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this
            with pq.ParquetWriter(self._file, FRAMES_SCHEMA, **FRAMES_PARQUET) as writer:
                for rows in portions:
                    writer.write_table(rows)
                    del rows
                    # Arrow keeps what a portion took, 40 to 60 MB, while DuckDB reads the next.
                    pa.default_memory_pool().release_unused()
            self._file.flush()

    def table(self) -> pa.Table:
        """All rows, in memory."""
        self._file.seek(0)
        return pq.read_table(self._file).cast(FRAMES_SCHEMA)

    def copy(self, path: Path) -> None:
        """Write the rows as a manifest's frames.parquet."""
        self._file.seek(0)
        with path.open("wb") as file:
            shutil.copyfileobj(self._file, file, 1 << 20)


@contextmanager
def _temporary() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        folder = tempfile.gettempdir()
        raise StorageError(
            f"{folder}: the rows of a dataset cannot be written: {error.strerror or error}", folder
        ) from error


class StoredRows:
    """A manifest of rows on disk, about to be written."""

    def __init__(self, header: ManifestHeader, rows: RowsFile) -> None:
        """Write nothing yet."""
        self.header, self._rows = header, rows

    def write(self, folder: Path) -> None:
        """Write both files into ``folder``: see Manifest.write."""
        write_manifest(folder, self.header, self._rows.copy)
