"""A snapshot's tables held in memory, for a process that answers many questions.

A DuckDB of its own under the same names (catalog.memory.wide_tables), so that every statement runs
on it as on the catalog: no metadata is asked and no Parquet is decoded.
"""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from copy import copy

import duckdb

from catalog.lake import stream_buffer
from catalog.lake import views as discover_views
from catalog.lake.connection import DISCOVER, LAKE, SAFE, UTC, snapshot_of
from catalog.lake.schema import FILES
from catalog.lake.snapshot import Facts
from catalog.lake.sql_guard import SelectOnly
from catalog.memory import wide_tables
from catalog.memory.interruptible import Interruptible
from catalog.memory.refresh import ReloadNeeded, refresh
from catalog.memory.wide_tables import Layout
from catalog.storage.spill_folder import new_spill_folder

_LOG = logging.getLogger(__name__)

_MOST_IDLE = 8
"""Cursors kept for later questions."""

_MOST_CHANGED = 4
"""Share of changed files, as one in so many, from which all files are loaded again: rows that went
keep their memory, and rows that came lie uncompressed."""

_FEW = 1_000
"""So many may always have changed."""


_LATE_ROWS = 2_000
"""Up to so many first rows of an order are found by the columns of the order alone, and the others
are read of these rows only; DuckDB's own bound is 50."""


class SnapshotReplaced(Exception):
    """A refresh has put a later snapshot into the tables."""


class TooLarge(Exception):
    """The tables do not fit into the budget."""


class SnapshotInMemory:
    """One snapshot in memory, locked down.

    Attributes:
        number: Its number.
        table_bytes: Memory that its tables take.
        facts: What is known of it.
        files: Files that it had when it was loaded.
    """

    def __init__(
        self,
        source: duckdb.DuckDBPyConnection,
        budget_mb: int,
        limits: dict[str, str],
        loading: Interruptible,
    ) -> None:
        """Load the snapshot that ``source`` reads.

        Args:
            source: A cursor of WritableCatalog.inspecting.
            budget_mb: Memory that the tables may take [MB].
            limits: DuckDB's settings of memory and threads for questions.

        Raises:
            TooLarge: They take more.
            duckdb.Error: It failed, or was ended.
        """
        self.number, self.facts = snapshot_of(source), Facts()
        self._idle: deque[SelectOnly] = deque()
        self._most_idle = _MOST_IDLE
        # Without a folder to spill into, what is too large fails instead of going to disk.
        threads = {name: value for name, value in limits.items() if name == "threads"}
        while_loading = {"memory_limit": f"{budget_mb}MB", "temp_directory": "", **threads}
        self._connection = duckdb.connect(":memory:", config={**SAFE, **while_loading})
        try:
            self._connection.execute(UTC)
            self._connection.execute(f"SET GLOBAL late_materialization_max_rows = {_LATE_ROWS}")
            with loading.using(self._connection):
                self._layout = self._load(source)
        except duckdb.OutOfMemoryException as error:
            self._connection.close()
            raise TooLarge from error
        except BaseException:
            self._connection.close()
            raise
        self._budget = budget_mb * 10**6
        self.table_bytes = self._held_bytes()
        _LOG.info("snapshot %s is held in memory: %s MB", self.number, self.table_bytes // 10**6)
        self._lock_down(limits)
        with closing(self._cursor()) as cursor, loading.using(cursor):
            self.files = _row_count(cursor)
        self._may_change = max(_FEW, self.files // _MOST_CHANGED)

    def _load(self, source: duckdb.DuckDBPyConnection) -> Layout:
        connection = self._connection
        layout = wide_tables.load(source, connection)
        connection.execute(f"CREATE SCHEMA {LAKE}.{DISCOVER}")
        _number(connection, self.number)
        discover_views.create(connection, anew=True)
        return layout

    def _held_bytes(self) -> int:
        row = self._connection.execute(
            "SELECT sum(memory_usage_bytes) FROM duckdb_memory()"
        ).fetchone()
        return int(row[0]) if row else 0

    def _lock_down(self, limits: dict[str, str]) -> None:
        connection = self._connection
        row = connection.execute(
            "SELECT parse_formatted_bytes(?)", [limits["memory_limit"]]
        ).fetchone()
        # The tables count, with what they may grow by: a limit for questions alone could be less
        # than is held already.
        tables = max(self.table_bytes, min(self._budget, self.table_bytes * 5 // 4))
        connection.execute(f"SET memory_limit = '{tables + int(row[0] if row else 0)}B'")
        connection.execute(f"SET temp_directory = '{new_spill_folder()}'")
        if (spill := limits.get("max_temp_directory_size")) is not None:
            connection.execute(f"SET max_temp_directory_size = '{spill}'")
        connection.execute("SET enable_external_access = false")
        stream_buffer.allow(connection)
        connection.execute("SET lock_configuration = true")

    def refreshed(
        self, source: duckdb.DuckDBPyConnection, loading: Interruptible
    ) -> "SnapshotInMemory":
        """The snapshot that ``source`` reads, in the same tables; this one stays while it is read.

        Args:
            source: A cursor of WritableCatalog.inspecting.

        Raises:
            ReloadNeeded: It has to be loaded as a whole.
            duckdb.Error: It failed, or was ended; the tables are as they were.
        """
        later = copy(self)
        later.number, later._idle, later.facts = snapshot_of(source), deque(), Facts()
        with closing(self._connection.cursor()) as cursor, loading.using(cursor):
            cursor.execute(f"USE {LAKE}.main")
            cursor.execute("BEGIN TRANSACTION")  # undone with its cursor where something fails
            _number(cursor, later.number)
            exchanged = refresh(
                source, cursor, self._layout, self.number, later.number, self._may_change
            )
            cursor.execute("COMMIT")
        later._may_change -= exchanged
        later.table_bytes = self._held_bytes()
        if later.table_bytes > self._budget:
            raise ReloadNeeded(f"the tables have grown to {later.table_bytes // 10**6} MB")
        return later

    def retire(self) -> None:
        """Keep no cursor for later questions: each holds on to the rows of this snapshot."""
        self._most_idle = 0
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def reading(self) -> Iterator[SelectOnly]:
        """A cursor on it; the tables stay as long as one is in use.

        One that served well serves again: to make it and to begin its transaction takes 0.3 ms, and
        it keeps the plans of long statements.

        Raises:
            SnapshotReplaced: The tables have been refreshed, and it is there no more.
        """
        try:
            cursor = self._idle.pop()
        except IndexError:
            cursor = SelectOnly(self._cursor(), plans=True)
        try:
            yield cursor
        except BaseException:
            cursor.close()
            raise
        if len(self._idle) < self._most_idle:
            self._idle.append(cursor)
        else:
            cursor.close()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._connection.cursor()
        cursor.execute(f"USE {LAKE}.{DISCOVER}")
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        # What a transaction sees is decided with its first look.
        if snapshot_of(cursor) != self.number:
            cursor.close()
            raise SnapshotReplaced
        return cursor


def _number(connection: duckdb.DuckDBPyConnection, number: int) -> None:
    connection.execute(
        f"CREATE OR REPLACE MACRO {LAKE}.main.current_snapshot() AS TABLE SELECT {number} AS id"
    )


def _row_count(cursor: duckdb.DuckDBPyConnection) -> int:
    row = cursor.execute(f"SELECT count(*) FROM {LAKE}.main.{FILES}").fetchone()
    return int(row[0]) if row else 0
