"""Cursors run statements and give rows: DuckDB's connections, cursors, snapshots being read."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


_ROWS_AT_ONCE = 8_192
"""Rows of a batch of a table. DuckDB makes room for a whole batch first: of 1,000,000 rows of 53
columns that took 3 ms of an answer of 26 rows.
"""


class Rows(Protocol):
    """The rows of the last statement."""

    @property
    def description(self) -> list[Any]:
        """Name and type of each column, and nothing else."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last one."""

    def fetchmany(self, size: int = 1, /) -> list[tuple[Any, ...]]:
        """The next rows, at most so many."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""

    def to_arrow_table(self, batch_size: int = ..., /) -> "pa.Table":
        """The rows that are left, in batches of at most so many."""

    def to_arrow_reader(self, batch_size: int = 1_000_000, /) -> "pa.RecordBatchReader":
        """The rows that are left, in batches of at most so many."""


class Cursor(Rows, Protocol):
    """Runs statements."""

    def execute(self, query: str, parameters: Any = None, /) -> Rows:
        """Run one statement with its parameters."""


class CursorRows:
    """The rows of a cursor's last statement, and nothing else of the cursor."""

    _cursor: Rows

    @property
    def description(self) -> list[Any]:
        """Name and type of each column of the rows, and nothing else."""
        return self._cursor.description

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last one."""
        return self._cursor.fetchone()

    def fetchmany(self, size: int = 1, /) -> list[tuple[Any, ...]]:
        """The next rows, at most so many."""
        return self._cursor.fetchmany(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        return self._cursor.fetchall()

    def to_arrow_table(self, batch_size: int = _ROWS_AT_ONCE, /) -> "pa.Table":
        """The rows that are left, in batches of at most so many."""
        return self._cursor.to_arrow_table(batch_size)

    def to_arrow_reader(self, batch_size: int = 1_000_000, /) -> "pa.RecordBatchReader":
        """The rows that are left, in batches of at most so many."""
        return self._cursor.to_arrow_reader(batch_size)
