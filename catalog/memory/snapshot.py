"""A snapshot's tables held in memory, for a process that answers many questions.

A DuckDB of its own under the same names (catalog.memory.wide_tables), so that every statement runs
on it as on the catalog: no metadata is asked and no Parquet is decoded.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy

import duckdb

from catalog.lake import stream_buffer
from catalog.lake import views as discover_views
from catalog.lake.connection import DISCOVER, LAKE, SAFE, UTC, snapshot_of
from catalog.lake.limited_databases import LakeNames, LimitedDatabases, SelectLimited
from catalog.lake.schema import FILES
from catalog.lake.snapshot import Facts
from catalog.lake.sql_guard import SelectOnly
from catalog.memory import limited_tables, wide_tables
from catalog.memory.giving_way import giving_way
from catalog.memory.interruptible import Interruptible
from catalog.memory.refresh import ReloadNeeded, refresh
from catalog.memory.wide_tables import Layout
from catalog.storage.spill_folder import new_spill_folder

_LOG = logging.getLogger(__name__)

_MOST_IDLE, _MOST_IDLE_LIMITED = 8, 2
"""Cursors kept for later questions, of those who see every row and of each limited database."""

_MOST_LIMITED = 64
"""Limited databases kept: at 1,000,000 frames a process grows by 1.3 MB with each of one scene."""

_MOST_CHANGED = 4
"""Share of changed files, as one in so many, from which all files are loaded again: rows that went
keep their memory, and rows that came lie uncompressed."""

_FEW = 1_000
"""So many may always have changed."""


_LATE_ROWS, _LATE_FILES = 2_000, 250_000
"""Up to so many first rows of an order are found by the columns of the order alone, and the others
are read of these rows only: of snapshots with at least so many files. In smaller ones the wanted
rows lie in most of DuckDB's vectors, which are then read twice (a range of 41,277 frames: 17 ms of
CPU, 11 by DuckDB's own bound of 50 rows)."""


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
        self._idle = _IdleCursors()
        self._changing, self._to_compact = threading.Lock(), threading.Event()
        # Without a folder to spill into, what is too large fails instead of going to disk.
        while_loading = {"memory_limit": f"{budget_mb}MB", "temp_directory": "", "threads": "1"}
        self._connection = duckdb.connect(":memory:", config={**SAFE, **while_loading})
        try:
            self._connection.execute(UTC)
            with loading.using(self._connection):
                self._layout = giving_way(lambda: self._load(source))
        except duckdb.OutOfMemoryException as error:
            self._connection.close()
            raise TooLarge from error
        except BaseException:
            self._connection.close()
            raise
        self._budget = budget_mb * 10**6
        self.table_bytes = self._held_bytes()
        _LOG.info("snapshot %s is held in memory: %s MB", self.number, self.table_bytes // 10**6)
        self.files = _row_count(self._connection)
        self._lock_down(limits)
        with closing(self._cursor()) as cursor, loading.using(cursor):
            self._names = LakeNames.of(cursor)
        self._may_change = max(_FEW, self.files // _MOST_CHANGED)
        self._limited = LimitedDatabases(
            self._make_limited, self._drop_limited, self._most_limited, self._changing
        )
        self._marked: set[str] = set()

    def _most_limited(self) -> int:
        # A mark takes a byte a row, and memory_limit has a quarter of the tables to spare.
        return min(_MOST_LIMITED, max(2, self.table_bytes // 4 // max(1, self.files)))

    def _make_limited(self, name: str, condition: str) -> None:
        with closing(self._connection.cursor()) as cursor:
            limited_tables.make(cursor, self._layout, self._names, name, condition)
            # An idle cursor's transaction keeps the table from before the marks, and while one is
            # open that is older than these, DuckDB does not store them again.
            self._idle.renew()
            self._compact(cursor)

    def _compact(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Store marks again, or have that done once the questions under way have ended."""
        if limited_tables.compact(cursor):
            self._to_compact.clear()
        else:
            self._to_compact.set()

    def _drop_limited(self, name: str) -> None:
        self._idle.close(name)
        with closing(self._connection.cursor()) as cursor:
            limited_tables.drop(cursor, name)

    def _load(self, source: duckdb.DuckDBPyConnection) -> Layout:
        connection = self._connection
        layout = wide_tables.load(source, connection)
        connection.execute(f"CREATE SCHEMA {LAKE}.{DISCOVER}")
        _number(connection, self.number)
        discover_views.create(connection, anew=True)
        return layout

    def _held_bytes(self) -> int:
        # fetchone() would leave a transaction open, and old rows with it, until the next statement.
        ((held_bytes,),) = self._connection.execute(
            "SELECT sum(memory_usage_bytes) FROM duckdb_memory()"
        ).fetchall()
        return int(held_bytes)

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
        threads = limits.get("threads")
        # DuckDB's threads have the priority of the one that starts them.
        connection.execute("RESET threads" if threads is None else f"SET threads = {threads}")
        if (spill := limits.get("max_temp_directory_size")) is not None:
            connection.execute(f"SET max_temp_directory_size = '{spill}'")
        if self.files >= _LATE_FILES:
            connection.execute(f"SET GLOBAL late_materialization_max_rows = {_LATE_ROWS}")
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
        later.number, later.facts = snapshot_of(source), Facts()
        later._marked = set()
        with (
            self._changing,
            closing(self._connection.cursor()) as cursor,
            loading.using(cursor),
        ):
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
        self._idle.renew()

    @contextmanager
    def reading(self, limited_to: str | None = None) -> Iterator[SelectOnly]:
        """A cursor on it; the tables stay as long as one is in use.

        One that served well serves again: to make it and to begin its transaction takes 0.3 ms, and
        it keeps the plans of statements that come again.

        Args:
            limited_to: Which rows, as LimitedDatabases.using has it; every row when None.

        Raises:
            SnapshotReplaced: The tables have been refreshed, and it is there no more.
            CollectionFails: ``limited_to`` cannot be evaluated.
        """
        if limited_to is None:
            with self._used(LAKE) as cursor:
                yield cursor
            return
        with self._limited.using(limited_to) as name:
            self._mark(name, limited_to)
            with self._used(name) as cursor:
                yield cursor

    def _mark(self, name: str, condition: str) -> None:
        """Have the rows that a refresh put in marked."""
        if name in self._marked:
            return
        with self._changing:
            if name not in self._marked:
                with closing(self._connection.cursor()) as cursor:
                    limited_tables.mark_new(cursor, name, condition)
                self._marked.add(name)

    @contextmanager
    def _used(self, database: str) -> Iterator[SelectOnly]:
        """A cursor that uses a database, whether one that served or a new one."""
        generation = self._idle.generation
        cursor = self._idle.take(self.number, database) or self._select_only(database)
        try:
            yield cursor
        except BaseException:
            cursor.close()
            raise
        is_old = self._idle.give_back(self.number, database, cursor, generation)
        if is_old and self._to_compact.is_set() and self._changing.acquire(blocking=False):
            try:
                with closing(self._connection.cursor()) as at:
                    self._compact(at)
            finally:
                self._changing.release()

    def _select_only(self, database: str) -> SelectOnly:
        cursor = self._cursor(database)
        if database == LAKE:
            return SelectOnly(cursor, plans=True)
        databases = database, limited_tables.without_barrier(database)
        return SelectLimited(cursor, plans=True, databases=databases)

    def _cursor(self, database: str = LAKE) -> duckdb.DuckDBPyConnection:
        cursor = self._connection.cursor()
        cursor.execute(f"USE {database}.{DISCOVER}")
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        # What a transaction sees is decided with its first look.
        if snapshot_of(cursor) != self.number:
            cursor.close()
            raise SnapshotReplaced
        return cursor


class _IdleCursors:
    """Cursors that served well, by the snapshot and the database that they use. Safe for threads.

    Attributes:
        generation: Grows whenever all are closed.
    """

    def __init__(self) -> None:
        self.generation = 0
        self._idle: dict[tuple[int, str], list[SelectOnly]] = {}
        self._lock = threading.Lock()

    def take(self, snapshot: int, database: str) -> SelectOnly | None:
        """One of them, which is then no more idle; None where there is none."""
        with self._lock:
            idle = self._idle.get((snapshot, database))
            return idle.pop() if idle else None

    def give_back(self, snapshot: int, database: str, cursor: SelectOnly, generation: int) -> bool:
        """Keep one for later, or close it; whether it is older than the last renewal.

        Args:
            generation: That of the time when it was taken or made.
        """
        with self._lock:
            idle = self._idle.setdefault((snapshot, database), [])
            most = _MOST_IDLE if database == LAKE else _MOST_IDLE_LIMITED
            is_old = generation != self.generation
            if not is_old and len(idle) < most:
                idle.append(cursor)
                return False
        cursor.close()
        return is_old

    def close(self, database: str) -> None:
        """Close those of a database."""
        self._close([key for key in [*self._idle] if key[1] == database])

    def renew(self) -> None:
        """Close all, and those that are in use when they are given back."""
        with self._lock:
            self.generation += 1
        self._close([*self._idle])

    def _close(self, keys: Sequence[tuple[int, str]]) -> None:
        with self._lock:
            cursors = [cursor for key in keys for cursor in self._idle.pop(key, [])]
        for cursor in cursors:
            cursor.close()


def _number(connection: duckdb.DuckDBPyConnection, number: int) -> None:
    connection.execute(
        f"CREATE OR REPLACE MACRO {LAKE}.main.current_snapshot() AS TABLE SELECT {number} AS id"
    )


def _row_count(cursor: duckdb.DuckDBPyConnection) -> int:
    row = cursor.execute(f"SELECT count(*) FROM {LAKE}.main.{FILES}").fetchone()
    return int(row[0]) if row else 0
