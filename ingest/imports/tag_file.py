"""The table in a CSV or Parquet file of tags: its columns, and the rows that had no place in them.

A few kilobytes of Parquet may stand for any number of bytes. `most_bytes` bounds what its values
become; what its footer or pages only pretend ends where `ingest.imports.reader_process` sets the
limit.
"""

import codecs
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from catalog.errors import InvalidInput, StorageError
from ingest.imports.reader_process import read_in_process

MOST_COLUMNS = 512
"""Most columns of a file: each becomes a column of the catalog, which has a few thousand at
most."""

_BATCH_ROWS = 16_384
_BROKEN = b"broken"


def read_table(file: Path, most_bytes: int | None = None) -> tuple[pa.Table, list[tuple[int, str]]]:
    """A file's table, and line and reason of the rows with a wrong number of fields.

    Args:
        file: CSV (comma, semicolon or tab; UTF-8; a line of names first) or Parquet (.parquet).
        most_bytes: What the values of a Parquet file may take, once decoded [bytes]; None for any.

    Raises:
        InvalidInput: The file is no such file or too large.
        StorageError: It cannot be read.
    """
    try:
        if file.suffix.lower() in (".parquet", ".pq"):
            return _usable(_read_parquet(file, most_bytes)), []
        return _read_csv(file)
    except OSError as error:
        raise StorageError(
            f"{file}: cannot be read: {error.strerror or error}", str(file)
        ) from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InvalidInput(f"{file}: cannot be read as CSV or Parquet: {reason}") from error


def read_table_apart(
    file: Path, most_bytes: int, stopped: Callable[[], bool]
) -> tuple[pa.Table, list[tuple[int, str]]]:
    """`read_table` in a process of its own; see `ingest.imports.reader_process.read_in_process`."""
    options = {"most_bytes": most_bytes}
    table = read_in_process("ingest.imports.tag_file:_with_broken", file, options, stopped=stopped)
    broken = json.loads((table.schema.metadata or {})[_BROKEN])
    return table, [(int(line), str(reason)) for line, reason in broken]


def _with_broken(file: Path, most_bytes: int) -> pa.Table:
    table, broken = read_table(file, most_bytes)
    return table.replace_schema_metadata({_BROKEN: json.dumps(broken)})


def check_columns(file: Path, columns: int) -> None:
    """Refuse a file of too many columns.

    Raises:
        InvalidInput: It has more than MOST_COLUMNS.
    """
    if columns > MOST_COLUMNS:
        raise InvalidInput(
            f"{file}: has {columns:,} columns, at most {MOST_COLUMNS} are imported at once; "
            "send the others with another file"
        )


def _read_parquet(file: Path, most_bytes: int | None) -> pa.Table:
    import pyarrow.parquet as pq

    if most_bytes is None:
        return pq.read_table(file)
    parquet = pq.ParquetFile(file)
    schema, about = parquet.schema_arrow, parquet.metadata
    check_columns(file, len(schema))
    for group in range(about.num_row_groups):
        if about.row_group(group).total_byte_size > most_bytes:
            raise _too_large(file, most_bytes)
    # As dictionaries, columns take what they take in the file until their size is known.
    texts = [field.name for field in schema if _is_variable(file, field)]
    parquet = pq.ParquetFile(file, read_dictionary=texts, buffer_size=2**20, pre_buffer=False)
    batches, size = [], 0
    for batch in parquet.iter_batches(_BATCH_ROWS, use_threads=False):
        size += sum(_decoded_bytes(column) for column in batch.columns)
        if size > most_bytes:
            raise _too_large(file, most_bytes)
        batches.append(batch)
    return pa.Table.from_batches(batches, parquet.schema_arrow)


def _usable(table: pa.Table) -> pa.Table:
    """The table with null for NaN, and in types that DuckDB reads, without dictionaries.

    DuckDB (1.5.5) reads no float16, and no decimal of more than 38 digits.
    """
    import pyarrow.compute as pc

    columns = []
    for column in table.columns:
        kind = _values(column.type)
        if pa.types.is_float16(kind):
            kind = pa.float32()
        elif pa.types.is_decimal256(kind):
            kind = pa.float64()
        elif pa.types.is_null(kind) or pa.types.is_string_view(kind):
            kind = pa.string()
        plain = column if column.type == kind else column.cast(kind)
        is_float = pa.types.is_floating(kind)
        columns.append(pc.if_else(pc.is_nan(plain), None, plain) if is_float else plain)
    return pa.table(columns, table.column_names)


def _too_large(file: Path, most_bytes: int) -> InvalidInput:
    return InvalidInput(
        f"{file}: its values take more than {most_bytes:,} bytes; send them with several files"
    )


def _is_variable(file: Path, field: pa.Field) -> bool:
    """Return whether a column's values are texts or bytes of any length."""
    kind, types = _values(field.type), pa.types
    if types.is_nested(kind) or types.is_fixed_size_binary(kind):
        raise InvalidInput(
            f"{file}: column '{field.name}' is {kind}; expected numbers, texts or times"
        )
    return not (types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind))


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _decoded_bytes(column: pa.Array) -> int:
    """The bytes that a column takes without a dictionary."""
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes) + len(column)
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0) + 8 * len(column)


def _read_csv(file: Path) -> tuple[pa.Table, list[tuple[int, str]]]:
    """All columns as text, and line and reason of the rows with a wrong number of fields."""
    from pyarrow import csv

    content = file.read_bytes()
    # A CR beside an LF is no line end: CR CR LF is CRLF written as text once more, "0\r" is dirt.
    content = content.replace(b"\r", b"" if b"\n" in content else b"\n").rstrip(b"\n")
    if not content.strip():
        raise InvalidInput(f"{file}: is empty; expected a line of column names and rows")
    _check_encoding(file, content)
    header = content.partition(b"\n")[0].decode("utf-8-sig")
    delimiter = max(",;\t", key=header.count)
    names = next(iter(_names(header, delimiter)))
    broken: list[tuple[int, str]] = []

    def note(row: csv.InvalidRow) -> str:
        reason = f"has {row.actual_columns} fields, expected {row.expected_columns}"
        broken.append((row.number, reason))
        return "skip"

    table = csv.read_csv(
        pa.py_buffer(content + b"\n"),
        csv.ReadOptions(use_threads=False, block_size=1 << 24),
        csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            ignore_empty_lines=False,
            invalid_row_handler=note,
        ),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[],
            strings_can_be_null=False,
        ),
    )
    return table, broken


def _check_encoding(file: Path, content: bytes) -> None:
    """Refuse a file that is no UTF-8, with the line, and the encoding that it seems to have."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        begin = content.rfind(b"\n", 0, error.start) + 1
        near = content[max(begin, error.start - 40) : error.start + 40].partition(b"\n")[0]
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            name, evidence = "UTF-16", "its first bytes say so"
        else:
            name = "CP1252"
            text = near.decode("cp1252", "replace").strip()
            evidence = f"byte 0x{content[error.start]:02x}, '{text}' if it is Windows-1252"
        number = content.count(b"\n", 0, begin) + 1
        raise InvalidInput(
            f"{file}: cannot be read: line {number} is not UTF-8 ({evidence}); save the file as "
            f"UTF-8: iconv -f {name} -t UTF-8"
        ) from error


def _names(header: str, delimiter: str) -> "list[list[str]]":
    import csv

    return list(csv.reader([header], delimiter=delimiter))
