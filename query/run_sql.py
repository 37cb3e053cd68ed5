"""A Db2 statement in, its rows out: parse, check, rewrite, run."""

import threading
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from catalog.store import CatalogStore
from query.db2_errors import translated
from query.prepared import prepare

MAX_ROWS = 1_000_000
TIMEOUT_S = 600.0


@dataclass(frozen=True)
class SqlResult:
    """The rows of a statement.

    Attributes:
        rows: The rows, columns named in lower case.
        snapshot: The catalog snapshot they are from.
        truncated: Whether there were more than the row limit.
    """

    rows: pa.Table
    snapshot: int
    truncated: bool


def run_sql(
    store: CatalogStore,
    text: str,
    *,
    at: int | None = None,
    max_rows: int = MAX_ROWS,
    timeout_s: float = TIMEOUT_S,
) -> SqlResult:
    """The rows of one SELECT in Db2's SQL over the Discover-shaped views.

    Args:
        store: The catalog.
        text: The statement.
        at: The snapshot to ask; the newest when None.
        max_rows: Rows beyond these are left out.
        timeout_s: When to give up.

    Raises:
        SqlError: The statement is refused, wrong, fails on the data, or takes too long.
        NotFound: There is no snapshot ``at``.
    """
    with store.reading(at) as cursor:
        statement, snapshot = prepare(store, cursor, text)
        # One row more than allowed tells whether there were more.
        table = execute(cursor, f"SELECT * FROM ({statement}) LIMIT {max_rows + 1}", timeout_s)
        table = table.rename_columns([_db2_name(name) for name in table.column_names])
        return SqlResult(table.slice(0, max_rows), snapshot, table.num_rows > max_rows)


def _db2_name(name: str) -> str:
    """A column's name as Db2 gives it: one without a name has its number, from 1."""
    prefix, _, number = name.rpartition("_")
    return str(int(number) + 1) if prefix == "_col" and number.isdigit() else name


def execute(
    cursor: duckdb.DuckDBPyConnection,
    statement: str,
    timeout_s: float,
    values: list[object] | None = None,
) -> pa.Table:
    """All rows of a statement that is known to only read.

    Raises:
        SqlError: It fails on the data or takes longer than ``timeout_s``.
        duckdb.IOException: A file of the store cannot be read; the store knows what that means.
    """
    timer = threading.Timer(timeout_s, cursor.interrupt)
    timer.start()
    try:
        return cursor.execute(statement, values).to_arrow_table()
    except duckdb.IOException:
        raise
    except duckdb.Error as error:
        raise translated(error, timeout_s) from error
    finally:
        timer.cancel()
