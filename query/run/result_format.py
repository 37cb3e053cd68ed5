"""Rows as bytes in the formats that clients ask for, batch by batch."""

import io
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, Literal

import pyarrow as pa

from catalog.errors import StorageError
from query.run.result_text import (
    csv_lines,
    csv_names,
    indented_json_objects,
    json_objects,
)
from query.run.value_text import plain

Format = Literal["csv", "csv-named", "json", "ndjson", "arrow", "arrow-stream", "parquet", "xlsx"]

MEDIA_TYPES: dict[str, Format] = {
    "text/csv": "csv",
    "application/json": "json",
    "application/x-ndjson": "ndjson",
    "application/vnd.apache.arrow.stream": "arrow-stream",
    "application/vnd.apache.arrow.file": "arrow",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
"""Media type -> format."""

_CHUNK = 1 << 20
"""Bytes of a finished file that are sent at once."""

_PIECE_VALUES = 100_000
"""Values that are written as text at once: 2 MB, which stay in the processor's cache. 16,384 rows
of 53 columns took twice as long.
"""


def encoded(
    format_: Format, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[bytes]:
    """The rows in a format.

    Where ``batches`` raises, so does this, and what came before is no complete document but in CSV
    and NDJSON, which have no end of their own.

    Args:
        format_: csv is Spectrum Discover's: no header, the row's number first; csv-named has a line
            of names, and no numbers.
    """
    return _ENCODERS[format_](schema, iter(batches))


def to_records(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as dictionaries of what JSON can hold."""
    return [{name: plain(value) for name, value in row.items()} for row in rows.to_pylist()]


def indented_json(
    about: Mapping[str, Any], name: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[bytes]:
    """A JSON document of two blanks' indentation whose last member are rows.

    Args:
        about: The members before.
        name: That member's.
    """
    text = json.dumps({**about, name: []}, indent=2, ensure_ascii=False)
    separator = ",\n"
    pieces = _without_first(
        separator, (indented_json_objects(rows, 4, separator) for rows in _pieces(batches))
    )
    first = next(pieces, None)
    if first is None:
        yield text.encode()
        return
    yield text.removesuffix("]\n}").encode() + b"\n" + first
    yield from pieces
    yield b"\n  ]\n}"


def _csv(_: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    number = 0
    for batch in _pieces(batches):
        yield csv_lines(batch, number)
        number += batch.num_rows


def _csv_named(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    yield csv_names(schema.names)
    for batch in _pieces(batches):
        yield csv_lines(batch)


def _json(_: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    separator = ", "
    pieces = _without_first(
        separator, (json_objects(rows, before=separator) for rows in _pieces(batches))
    )
    yield b"[" + next(pieces, b"")
    yield from pieces
    yield b"]"


def _ndjson(_: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in _pieces(batches):
        yield json_objects(batch, after="\n")


def _without_first(separator: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of text whose rows have a separator before them, which the first row needs not."""
    unwanted = len(separator.encode())
    for piece in pieces:
        yield piece[unwanted:]
        unwanted = 0


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows, so many at once as are written in one go."""
    for batch in batches:
        rows = max(1, _PIECE_VALUES // max(1, batch.num_columns))
        for first in range(0, batch.num_rows, rows):
            yield batch.slice(first, rows)


class _Written(io.RawIOBase):
    """A file that hands out the bytes written since they were last taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Keep the bytes."""
        piece = bytes(data)
        self._parts.append(piece)
        return len(piece)

    def take(self) -> bytes:
        """The bytes, once."""
        data, self._parts = b"".join(self._parts), []
        return data


def _arrow(open_writer: Any) -> "_Encoder":
    def encode(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        written = _Written()
        # Closed, which writes the end, only when every batch has been read.
        writer = open_writer(written, schema)
        for batch in batches:
            writer.write_batch(batch)
            yield written.take()
        writer.close()
        yield written.take()

    return encode


def _finished(write: "_Write") -> "_Encoder":
    """An encoder that sends a file when it is complete: its writer goes back and forth in it."""

    def encode(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        with tempfile.TemporaryFile() as file:
            try:
                write(file, schema, batches)
            except OSError as error:
                raise StorageError(
                    f"{tempfile.gettempdir()}: the answer cannot be written there: "
                    f"{error.strerror}",
                    tempfile.gettempdir(),
                ) from error
            file.seek(0)
            while chunk := file.read(_CHUNK):
                yield chunk

    return encode


def _write_parquet(file: IO[bytes], schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    import pyarrow.parquet as pq  # with its data sets, which no other format needs

    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in _row_groups(batches):
            writer.write_table(rows)


def _write_workbook(file: IO[bytes], schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    from query.run.workbook import write_workbook  # with Arrow's functions, as Parquet

    write_workbook(file, schema, batches)


def _row_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows as those groups in which Parquet's readers skip and decode."""
    gathered: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        gathered.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_batches(gathered)
            gathered, rows, size = [], 0, 0
    if gathered:
        yield pa.Table.from_batches(gathered)


_GROUP_ROWS, _GROUP_BYTES = 122_880, 64 << 20
"""Rows of a group, as DuckDB writes it, or fewer of so many bytes in memory."""

_Write = Callable[[IO[bytes], pa.Schema, Iterator[pa.RecordBatch]], None]
_Encoder = Callable[[pa.Schema, Iterator[pa.RecordBatch]], Iterator[bytes]]
_ENCODERS: dict[Format, _Encoder] = {
    "csv": _csv,
    "csv-named": _csv_named,
    "json": _json,
    "ndjson": _ndjson,
    "arrow": _arrow(pa.ipc.new_file),
    "arrow-stream": _arrow(pa.ipc.new_stream),
    "parquet": _finished(_write_parquet),
    "xlsx": _finished(_write_workbook),
}
