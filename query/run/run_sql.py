"""A Db2 statement in, its rows out: parse, check, rewrite, run."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from catalog.errors import SqlError
from catalog.lake.catalog import Catalog
from catalog.lake.schema import CONFUSION_CELLS
from catalog.lake.snapshot import Snapshot
from catalog.lake.statement_watch import Cancellation, StatementWatch, current
from query.db2.errors import in_db2s_words
from query.db2.row_width import TOO_WIDE
from query.run.kept_rows import KeptRows
from query.run.preparation import preparing
from query.run.prepared import prepare
from query.run.wide_statements import wide_slot

MAX_ROWS = 1_000_000

_FETCHED_ROWS = 1_024
"""Rows that DuckDB hands over at once: of row_width.MAX_ROW bytes each they are _BATCH_BYTES."""

_BATCH_ROWS = 10_000
"""Rows of a batch: of metaocean_view with 38 classes some 15 MB."""

_BATCH_BYTES = 32 << 20
"""Bytes of a batch, and of what its last fetch adds."""

_ENCODED_ROWS = 122_880
"""Rows whose texts are in memory at once while they are encoded."""


@dataclass(frozen=True)
class SqlResult:
    """The rows of a statement."""

    rows: pa.Table
    """The rows, columns named in lower case."""
    snapshot: int
    truncated: bool
    """Whether there were more than the row limit."""


@dataclass
class SqlStream:
    """The rows of a statement as they come."""

    schema: pa.Schema
    """The columns, named in lower case."""
    batches: Iterator[pa.RecordBatch]
    """The rows, to be read once. Raises SqlError where the statement fails on the way."""
    snapshot: int
    truncated: bool = False
    """Whether there are more than the row limit; known when ``batches`` has ended."""


def run_sql(
    store: Catalog,
    text: str,
    *,
    at: int | None = None,
    max_rows: int = MAX_ROWS,
    timeout_s: float | None = None,
) -> SqlResult:
    """The rows of one SELECT in Db2's SQL over the Discover-shaped views.

    Args:
        max_rows: Rows beyond these are left out.
        timeout_s: When to give up; when the catalog does, if None.
    """
    with stream_sql(store, text, at=at, max_rows=max_rows, timeout_s=timeout_s) as stream:
        rows = pa.Table.from_batches(stream.batches, stream.schema)
        return SqlResult(rows, stream.snapshot, stream.truncated)


@contextmanager
def stream_sql(
    store: Catalog,
    text: str,
    *,
    at: int | None = None,
    max_rows: int = MAX_ROWS,
    timeout_s: float | None = None,
    cancellation: Cancellation | None = None,
    began: float | None = None,
) -> Iterator[SqlStream]:
    """`run_sql` in bounded memory: what is not read yet is not computed yet, but for a little.

    Args:
        timeout_s: When to give up, the time in which it is prepared and the rows are read included;
            when the catalog does, if None.
        cancellation: Ends it earlier; statement_watch.current() when None.
        began: From when the time counts [s of time.monotonic]; from now when None.
    """
    reading = store.reading_files if CONFUSION_CELLS in text.lower() else store.reading
    with (
        reading(at) as snapshot,
        stream_on(
            snapshot,
            text,
            max_rows=max_rows,
            timeout_s=timeout_s,
            cancellation=cancellation,
            began=began,
        ) as stream,
    ):
        yield stream


@contextmanager
def stream_on(
    snapshot: Snapshot,
    text: str,
    *,
    max_rows: int = MAX_ROWS,
    timeout_s: float | None = None,
    cancellation: Cancellation | None = None,
    began: float | None = None,
) -> Iterator[SqlStream]:
    """`stream_sql` of a snapshot that is being read: several statements see the same."""
    cancellation = cancellation or current()
    began = time.monotonic() if began is None else began
    timeout_s = snapshot.timeout_s if timeout_s is None else timeout_s
    with preparing(timeout_s, lambda: cancellation.cancelled, began):
        statement = prepare(snapshot, text)

    def go_on() -> None:
        if cancellation.cancelled:
            raise SqlError.ended("on request")
        if time.monotonic() > began + timeout_s:
            raise SqlError.ended(f"after {timeout_s:g} s")

    with ExitStack() as stack:
        if TOO_WIDE in statement:  # its rows may be wide
            stack.enter_context(wide_slot(go_on))
        watch = stack.enter_context(snapshot.watched(timeout_s, cancellation, began))
        with in_db2s_words(), watch.errors():
            reader = snapshot.execute(statement).to_arrow_reader(_FETCHED_ROWS)
        names = _db2_names(reader.schema.names)
        schema = pa.schema(
            field.with_name(name) for field, name in zip(reader.schema, names, strict=True)
        )
        stream = SqlStream(schema, iter(()), snapshot.number)
        batches = _read(watch, reader, lambda: snapshot.has_few_rows(statement))
        stream.batches = _limited(_gathered(batches), names, max_rows, stream)
        yield stream


def _read(
    watch: StatementWatch, reader: pa.RecordBatchReader, tell_few: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    """The batches; ``tell_few`` is called at their end where they were one or none."""
    fetches = 0
    with in_db2s_words():
        for batch in watch.read(reader):
            yield batch
            fetches += 1
        if fetches <= 1:
            tell_few()


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in batches that are large, but not too large; the first ones at once."""
    yield from islice(batches, 1)
    gathered: list[pa.RecordBatch] = []
    rows = weight = 0
    for batch in batches:
        if gathered and (
            rows + batch.num_rows > _BATCH_ROWS or weight + batch.nbytes > _BATCH_BYTES
        ):
            yield pa.concat_batches(gathered)
            gathered, rows, weight = [], 0, 0
        gathered.append(batch)
        rows, weight = rows + batch.num_rows, weight + batch.nbytes
    if gathered:
        yield pa.concat_batches(gathered)


def _limited(
    batches: Iterator[pa.RecordBatch], names: list[str], max_rows: int, stream: SqlStream
) -> Iterator[pa.RecordBatch]:
    # Not by a LIMIT around the statement: above 10,000 rows DuckDB runs such a one on one core.
    remaining = max_rows
    for batch in batches:
        if batch.num_rows > remaining:
            stream.truncated = True
        if remaining and batch.num_rows:
            yield batch.slice(0, remaining).rename_columns(names)
        remaining -= min(remaining, batch.num_rows)
        if stream.truncated:
            return


def _db2_names(names: list[str]) -> list[str]:
    """Columns' names as Db2 gives them, each once: one without a name has its number, from 1."""
    unique: dict[str, None] = {}
    uses: dict[str, int] = {}
    for name in names:
        prefix, _, number = name.rpartition("_")
        plain = str(int(number) + 1) if prefix == "_col" and number.isdigit() else name
        candidate = plain
        while candidate in unique:  # a second one of a name: name_1
            uses[plain] = uses.get(plain, 0) + 1
            candidate = f"{plain}_{uses[plain]}"
        unique[candidate] = None
    return list(unique)


def execute(snapshot: Snapshot, statement: str, values: Sequence[object] = ()) -> pa.Table:
    """All rows of a statement that is known to only read."""
    with in_db2s_words():
        return snapshot.table(statement, values)


def execute_kept(snapshot: Snapshot, statement: str, values: Sequence[object] = ()) -> KeptRows:
    """`execute` in bounded memory."""
    with in_db2s_words(), snapshot.watched() as watch:
        with watch.errors():
            reader = snapshot.execute(statement, [*values] or None).to_arrow_reader(_BATCH_ROWS)
        return KeptRows(reader.schema, watch.read(reader))


def execute_encoded(snapshot: Snapshot, statement: str, values: Sequence[object] = ()) -> pa.Table:
    """`execute` with text columns as dictionaries: a few bytes a row, also on the way."""
    with in_db2s_words(), snapshot.watched() as watch:
        with watch.errors():
            reader = snapshot.execute(statement, [*values] or None).to_arrow_reader(_ENCODED_ROWS)
        schema = pa.schema(
            field.with_type(pa.dictionary(pa.int32(), field.type))
            if pa.types.is_string(field.type)
            else field
            for field in reader.schema
        )
        encoded = [
            pa.RecordBatch.from_arrays(
                [
                    column.dictionary_encode() if pa.types.is_string(column.type) else column
                    for column in batch.columns
                ],
                schema=schema,
            )
            for batch in watch.read(reader)
        ]
        return pa.Table.from_batches(encoded, schema).unify_dictionaries()
