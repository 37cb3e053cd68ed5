"""The rows of an answer, which may be more than memory should hold."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import pyarrow as pa

from catalog.errors import StorageError

_HELD = 32 << 20
"""Bytes of rows that are held in memory; more lie in a file."""


class KeptRows:
    """Rows that are read as often as wanted, batch by batch.

    Attributes:
        schema: Their columns.
    """

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Read the batches to their end.

        Raises:
            StorageError: They do not fit into the temporary folder.
        """
        self.schema = schema
        self._rows = 0
        self._held: list[pa.RecordBatch] = []
        self._file: IO[bytes] | None = None
        try:
            self._keep(batches)
        except OSError as error:
            folder = tempfile.gettempdir()
            raise StorageError(
                f"{folder}: the answer cannot be written there: {error.strerror}", folder
            ) from error

    @staticmethod
    def of(table: pa.Table) -> "KeptRows":
        """Those of a table, which is in memory."""
        rows = KeptRows(table.schema, ())
        rows._held, rows._rows = table.to_batches(), table.num_rows
        return rows

    def __len__(self) -> int:
        """Number of rows."""
        return self._rows

    def batches(self, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """The rows; some columns, or all where none is named."""
        for batch in self._batches():
            yield batch.select(columns) if columns else batch

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self._batches(), self.schema)

    def _keep(self, batches: Iterable[pa.RecordBatch]) -> None:
        size = 0
        writer: pa.RecordBatchStreamWriter | None = None
        for batch in batches:
            self._rows += batch.num_rows
            size += batch.nbytes
            self._held.append(batch)
            if size <= _HELD:
                continue
            if writer is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - read later, as often as wanted
                writer = pa.ipc.new_stream(self._file, self.schema)
            for held in self._held:
                writer.write_batch(held)
            self._held.clear()
        if writer is not None:
            writer.close()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._file is None:
            yield from self._held
            return
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)
