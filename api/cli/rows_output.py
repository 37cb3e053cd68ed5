"""Rows on the terminal or in a file, for the commands that answer with rows."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from api.cli.tables.table import emit_table
from api.cli.terminal import emit_text, stderr
from catalog.errors import InvalidInput
from catalog.storage.atomic_write import atomic_path

if TYPE_CHECKING:
    import pyarrow as pa

    from query.run import result_format

Format = Literal["table", "csv", "csv-named", "json", "ndjson", "parquet", "arrow", "xlsx"]

_BINARY = ("parquet", "arrow", "xlsx")


def need_file_format(out: Path | None, to_terminal: bool, format_: Format) -> None:
    """Refuse a file where the answer would go to the terminal all the same.

    Raises:
        InvalidInput: ``out`` is given with a format for the terminal.
    """
    if out is not None and (to_terminal or format_ == "table"):
        raise InvalidInput(
            f"--out {out}: a file needs --format csv, json, ndjson, parquet, arrow or "
            "xlsx, without --json"
        )


def emit_rows(
    schema: "pa.Schema", batches: "Iterable[pa.RecordBatch]", format_: Format, out: Path | None
) -> None:
    """Print the rows or write them to a file, which is there complete or not at all.

    Raises:
        InvalidInput: A binary format without a file.
    """
    if format_ in _BINARY and out is None:
        raise InvalidInput(f"format {format_} is binary: give a file with --out FILE")
    # The commands' help needs no Arrow.
    import pyarrow as pa

    from query.run.result_format import encoded

    if format_ == "table":
        _emit_table(pa.Table.from_batches(batches, schema))
        return
    chunks = encoded(cast("result_format.Format", format_), schema, batches)
    if out is not None:
        with atomic_path(out) as temporary, temporary.open("wb") as file:
            file.writelines(chunks)
        return
    for chunk in chunks:
        emit_text(chunk)
    if format_ == "json":
        emit_text("\n")


class Counted:
    """Rows on their way, and how many have passed.

    Attributes:
        rows: So many.
    """

    def __init__(self, batches: "Iterable[pa.RecordBatch]") -> None:
        self._batches, self.rows = batches, 0

    def __iter__(self) -> "Iterator[pa.RecordBatch]":
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


SHOWN = 1_000
"""Rows of a table that nobody asked for as one."""


def emit_first_rows(schema: "pa.Schema", batches: "Iterable[pa.RecordBatch]") -> None:
    """Print a table of the first rows, and that there are more where there are."""
    import pyarrow as pa

    first, count = [], 0
    for batch in batches:
        first.append(batch)
        count += batch.num_rows
        if count > SHOWN:
            break
    _emit_table(pa.Table.from_batches(first, schema)[:SHOWN])
    if count > SHOWN:
        stderr.print(f"only the first {SHOWN:,} rows; --format csv-named has all of them")


def _emit_table(rows: "pa.Table") -> None:
    """The rows with every digit that they have, as in CSV."""
    from query.run.result_format import to_records

    def text(value: object) -> object:
        return str(value) if isinstance(value, int | float) else value

    emit_table(rows.schema.names, [[*map(text, one.values())] for one in to_records(rows)])
