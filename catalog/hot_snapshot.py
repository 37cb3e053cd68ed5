"""The newest snapshot's tables held in memory, for a process that answers many questions.

A DuckDB of its own under the same names (catalog.wide_tables), so that every statement runs on it
as on the catalog: no metadata is asked and no Parquet is decoded. Loaded in the background, and
brought up to what was committed since (catalog.wide_refresh); meanwhile questions go to the catalog
itself.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from copy import copy

import duckdb

from catalog import discover_views, wide_tables
from catalog.class_matrix import ClassMatrix, class_pixels
from catalog.ducklake import DISCOVER, LAKE, SAFE, snapshot_of
from catalog.errors import FramesiftError
from catalog.lake_tables import CLASS_PIXELS, FILES, POSITION_TAGS
from catalog.select_only import SelectOnly
from catalog.spill_folder import new_spill_folder
from catalog.wide_refresh import MustLoad, refresh
from catalog.wide_tables import Layout

_LOG = logging.getLogger(__name__)

_MOST_IDLE = 8
"""Cursors kept for later questions."""

_REST = 3.0
"""After a long load the next one waits for so many times as long: where commits come faster than
snapshots are loaded, loading takes a quarter of the time and not all of it."""

_LONG_LOAD_S = 1.0

_MOST_CHANGED = 4
"""When one of so many files has changed since all were loaded, all are loaded again: rows that went
keep their memory, and rows that came lie uncompressed."""

_FEW = 1_000
"""So many may always have changed."""

_LARGE = 200_000
"""Where there are so many files, questions wait for a refresh: of 1,000,000 frames it takes 0.4 s
of CPU, which a question to Parquet takes, too; many of these would leave the refresh none."""

_PATIENCE_S = 5.0

_LOOK_S = 0.05

Inspecting = Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]]


class TooLarge(Exception):
    """The tables do not fit into the budget."""


class HotSnapshot:
    """One snapshot in memory, locked down.

    Attributes:
        number: Its number.
        table_bytes: Memory that its tables take.
        classes: Its class pixels as an array; None where that does not fit into the budget.
        files: Files that it had when it was loaded.
    """

    def __init__(
        self, source: duckdb.DuckDBPyConnection, budget_mb: int, limits: dict[str, str]
    ) -> None:
        """Load the snapshot that ``source`` reads.

        Args:
            source: A cursor of CatalogStore.inspecting.
            budget_mb: Memory that the tables may take [MB].
            limits: DuckDB's settings of memory and threads for questions.

        Raises:
            TooLarge: They take more.
        """
        self.number = snapshot_of(source)
        self._idle: deque[SelectOnly] = deque()
        self._most_idle = _MOST_IDLE
        self.classes: ClassMatrix | None = None
        # Without a folder to spill into, what is too large fails instead of going to disk.
        threads = {name: value for name, value in limits.items() if name == "threads"}
        loading = {"memory_limit": f"{budget_mb}MB", "temp_directory": "", **threads}
        self._connection = duckdb.connect(":memory:", config={**SAFE, **loading})
        try:
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
        with closing(self._cursor()) as cursor:
            self.classes = self._class_matrix(cursor, self._budget - self.table_bytes)
            self.files = _row_count(cursor)
        self._may_change = max(_FEW, self.files // _MOST_CHANGED)

    def _load(self, source: duckdb.DuckDBPyConnection) -> Layout:
        connection = self._connection
        layout = wide_tables.load(source, connection)
        connection.execute(f"CREATE SCHEMA {LAKE}.{DISCOVER}")
        _number(connection, self.number)
        discover_views.create(connection, anew=True)
        return layout

    def _class_matrix(self, cursor: duckdb.DuckDBPyConnection, budget: int) -> ClassMatrix | None:
        tags = [
            column.tag
            for column in self._layout.tags
            if column.table == CLASS_PIXELS and column.tag not in POSITION_TAGS
        ]
        row = cursor.execute(f"SELECT count(*) FROM {LAKE}.main.{CLASS_PIXELS}").fetchone()
        if row is None or ClassMatrix.bytes_for(len(tags), row[0]) > budget:
            return None
        return ClassMatrix(tags, class_pixels(cursor, tags))

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
        connection.execute("SET lock_configuration = true")

    def refreshed(self, source: duckdb.DuckDBPyConnection) -> "HotSnapshot":
        """The snapshot that ``source`` reads, in the same tables; this one stays while it is read.

        Args:
            source: A cursor of CatalogStore.inspecting.

        Raises:
            MustLoad: It has to be loaded as a whole.
            duckdb.Error: It failed; the tables are as they were.
        """
        later = copy(self)
        later.number, later._idle = snapshot_of(source), deque()
        classes = self.classes.tags if self.classes is not None else ()
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(f"USE {LAKE}.main")
            cursor.execute("BEGIN TRANSACTION")  # undone with its cursor where something fails
            _number(cursor, later.number)
            exchanged = refresh(
                source, cursor, self._layout, self.number, later.number, self._may_change, classes
            )
            cursor.execute("COMMIT")
        later._may_change -= exchanged.files
        if self.classes is not None:
            later.classes = self.classes.exchanged(exchanged.gone, exchanged.come)
        later.table_bytes = self._held_bytes()
        if later.table_bytes > self._budget:
            raise MustLoad(f"the tables have grown to {later.table_bytes // 10**6} MB")
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
        """
        try:
            cursor = self._idle.pop()
        except IndexError:
            cursor = SelectOnly(self._cursor(), self.number, self.classes)
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
        return cursor


def _number(connection: duckdb.DuckDBPyConnection, number: int) -> None:
    connection.execute(
        f"CREATE OR REPLACE MACRO {LAKE}.main.current_snapshot() AS TABLE SELECT {number} AS id"
    )


def _row_count(cursor: duckdb.DuckDBPyConnection) -> int:
    row = cursor.execute(f"SELECT count(*) FROM {LAKE}.main.{FILES}").fetchone()
    return int(row[0]) if row else 0


class HotSnapshots:
    """Keeps the newest snapshot in memory, as far as it fits.

    Attributes:
        tried: Whether a load has ended, well or not: answers are as fast as they will be.
    """

    def __init__(
        self,
        newest: Callable[[], int],
        inspecting: Inspecting,
        budget_mb: int,
        limits: dict[str, str],
    ) -> None:
        """Nothing is loaded before the first question.

        Args:
            newest: Number of the newest snapshot.
            inspecting: CatalogStore.inspecting.
            budget_mb: Memory that the tables may take [MB].
            limits: DuckDB's settings of memory and threads for questions.
        """
        self._newest, self._inspecting = newest, inspecting
        self._budget_mb, self._limits = budget_mb, limits
        self._held: HotSnapshot | None = None
        self._state = threading.Condition()
        self._working = self._refreshing = False
        self._not_before = 0.0
        self._refused = -1
        self.tried = False

    def at(self, number: int | None) -> HotSnapshot | None:
        """The snapshot of that number, or the newest, if it is in memory; else it may be soon.

        Waits for a large one that is being brought up to what was committed.
        """
        held = self._held
        if number is not None:
            return held if held is not None and held.number == number else None
        newest = self._newest()
        if held is not None and held.number >= newest:
            return held
        waits = held is not None and held.files >= _LARGE
        del held  # who waits must not keep it
        until = time.monotonic() + _PATIENCE_S
        with self._state:
            self._begin(newest)
            while waits and self._refreshing and self._state.wait(until - time.monotonic()):
                if self._held is not None and self._held.number >= newest:
                    return self._held
                self._begin(newest)
        return None

    def _begin(self, newest: int) -> None:
        """Begin to bring the newest snapshot into memory, if nothing speaks against it."""
        if self._working or newest == self._refused or time.monotonic() < self._not_before:
            return
        self._working, self._refreshing = True, self._held is not None
        threading.Thread(
            target=self._load, args=(newest,), name="hot-snapshot", daemon=True
        ).start()

    @property
    def held_bytes(self) -> int:
        """Memory that the tables of the snapshot that is held take; 0 while there is none."""
        held = self._held
        return 0 if held is None else held.table_bytes

    def wait(self, seconds: float) -> bool:
        """Wait until the newest snapshot is in memory, or cannot be; whether it is."""
        until = time.monotonic() + seconds
        while self.at(None) is None:
            if self._refused == self._newest() or time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)
        return True

    def drop(self) -> None:
        """Hold nothing any more."""
        self._held = None

    def _load(self, wanted: int) -> None:
        try:
            with self._inspecting() as cursor:
                if not self._refresh(cursor):
                    self._tell(working=True)
                    self._load_all(cursor)
        except TooLarge:
            self._refused = wanted
            _LOG.warning(
                "snapshot %s does not fit into the %s MB of FRAMESIFT_HOT_MEMORY_MB; questions "
                "go to the catalog itself", wanted, self._budget_mb,
            )  # fmt: skip
        except (FramesiftError, duckdb.Error) as error:
            _LOG.warning("snapshot %s was not loaded into memory: %s", wanted, error)
        finally:
            self.tried = True
            self._tell(working=False)

    def _tell(self, *, working: bool) -> None:
        """Let those who wait for a refresh look again."""
        with self._state:
            self._working, self._refreshing = working, False
            self._state.notify_all()

    def _refresh(self, cursor: duckdb.DuckDBPyConnection) -> bool:
        """Bring what is held up to the cursor's snapshot; whether that could be done."""
        held = self._held
        if held is None:
            return False
        try:
            self._held = held.refreshed(cursor)
        except (MustLoad, duckdb.Error) as reason:
            _LOG.info("snapshot %s in memory is not refreshed but loaded: %s", held.number, reason)
            return False
        held.retire()
        return True

    def _load_all(self, cursor: duckdb.DuckDBPyConnection) -> None:
        began = time.monotonic()
        # The old one goes first: two of them would be twice the budget.
        self._held = None
        try:
            self._held = HotSnapshot(cursor, self._budget_mb, self._limits)
        finally:
            ended = time.monotonic()
            if ended - began > _LONG_LOAD_S:
                self._not_before = ended + _REST * (ended - began)
