"""The catalog's store: everything that others need of it.

Readers see one committed snapshot and are locked down: they run SELECT only, reach no file outside
the catalog's data and change no setting, whatever statement gets this far. Writers hold the write
lock from BEGIN to COMMIT.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from catalog.errors import (
    EXPORT_AND_IMPORT,
    CatalogBusy,
    CatalogDamaged,
    NotFound,
    StorageError,
)
from catalog.frames.new_catalog import make_catalog
from catalog.lake import views as discover_views
from catalog.lake.connection import (
    DISCOVER,
    LAKE,
    METADATA,
    STORE_FAILS,
    Lake,
    close,
    one_line,
    one_thread,
    snapshot_of,
    translated,
)
from catalog.lake.layouts import JOINED
from catalog.lake.metadata import column_statistics
from catalog.lake.metadata.own_tables import (
    choose_row_groups,
    holds_file,
    is_made,
    newest_snapshot,
)
from catalog.lake.newest import NewestSnapshot
from catalog.lake.schema import FORMAT
from catalog.lake.snapshot import FactsOfSnapshots, Snapshot
from catalog.lake.snapshot_engines import SnapshotEngines, bytes_of
from catalog.lake.sql_guard import SelectOnly
from catalog.memory.no_memory import NoMemory
from catalog.storage.location import WRITE_LOCK, CatalogLocation
from catalog.storage.new_data_files import NewDataFiles

if TYPE_CHECKING:
    from catalog.memory.keeper import MemoryKeeper

__all__ = ["DISCOVER", "LAKE", "METADATA", "CatalogLocation", "CatalogStore", "snapshot_of"]

TIMEOUT_S = 600.0

_DATA_FILE_GONE = re.compile(r"([\w.-]+\.parquet)\b.*(No such file|404)")


class CatalogStore:
    """A catalog with every row, opened; made first where there is none: a WritableCatalog.

    Safe to use from several threads and processes at once.
    """

    def __init__(
        self,
        location: CatalogLocation,
        *,
        lock_wait_s: float = 60.0,
        memory_limit: str = "2GB",
        spill_limit: str = "32GB",
        threads: int | None = None,
        snapshot_memory_mb: int = 0,
        share_budget: bool = False,
        timeout_s: float = TIMEOUT_S,
        class_names: Callable[[], Mapping[str, str]] = dict,
        collection_column: Callable[[], str] = str,
    ) -> None:
        """Open the catalog.

        Args:
            lock_wait_s: How long a write waits for another one to finish.
            memory_limit: What one process's queries may take, as DuckDB spells it.
            spill_limit: What they may take on the disk when that is not enough.
            threads: Threads of one process's queries; all cores when None.
            snapshot_memory_mb: Memory to hold the newest snapshot in, for a process that answers
                many questions [MB]; 0 holds none.
            share_budget: Hold all engines of older snapshots together to the limits, for a process
                that answers many callers.
            timeout_s: How long a statement of a question may take [s].
            class_names: Gives the class name of each class tag, in class order; what has no name
                is no class.
            collection_column: Gives the value of the column `collection`; see Opened.
        """
        self.location = location
        self.lock_wait_s, self.timeout_s = lock_wait_s, timeout_s
        self.class_names, self.collection_column = class_names, collection_column
        self.facts = FactsOfSnapshots()
        self._limits = {"memory_limit": memory_limit, "max_temp_directory_size": spill_limit}
        if threads is not None:
            self._limits["threads"] = str(threads)
        self._newest_reader: Lake | None = None
        self.engines = SnapshotEngines(self._limits, share_budget=share_budget)
        self._answers_many, self._portions_lock = share_budget, threading.Lock()
        self._writer: Lake | None = None
        self._newest_cursor: duckdb.DuckDBPyConnection | None = None
        self._newest_lock = threading.Lock()
        self.memory = self._kept_in_memory(snapshot_memory_mb)
        self._reader_lock = threading.RLock()
        location.make_folders()
        if not is_made(location):
            self._make()
        self._check_format()
        self.memory.at(None)  # begins to load what is kept in memory

    def _kept_in_memory(self, budget_mb: int) -> "MemoryKeeper | NoMemory":
        if not budget_mb:
            return NoMemory(self)
        from catalog.memory.keeper import MemoryKeeper  # commands hold nothing, and go without it

        metadata = self.location.metadata
        newest = NewestSnapshot(self._newest, metadata if isinstance(metadata, Path) else None)
        return MemoryKeeper(self, newest, budget_mb, self._limits)

    def reading(self, at: int | None = None) -> AbstractContextManager[Snapshot]:
        """See Catalog."""
        return self.memory.reading(at)

    @contextmanager
    def reading_files(self, at: int | None = None) -> Iterator[Snapshot]:
        """See Catalog."""
        with self.inspecting(at) as cursor:
            yield Snapshot(SelectOnly(cursor), JOINED, self.facts.of, self, at)

    @contextmanager
    def reading_portions(self, at: int | None = None) -> Iterator[Snapshot]:
        """See Catalog.

        Two threads seldom find work for both, and their joins' tables are larger: of 20,480 frames
        they took 122 ms of CPU where one took 81, of 40,960 158 and 126.
        """
        with ExitStack() as stack:
            # One at a time: another would keep the one thread for what there was before.
            if not self._answers_many and self._portions_lock.acquire(blocking=False):
                stack.callback(self._portions_lock.release)
                # By a cursor without a transaction, which an error of the reader would abort.
                stack.enter_context(one_thread(stack.enter_context(self._cursor(at))))
            yield stack.enter_context(self.reading(at))

    @contextmanager
    def inspecting(self, at: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """See WritableCatalog."""
        with self._forgetting(at), self._cursor(at) as cursor:
            with translated(self.location), self.snapshot_known(at):
                cursor.execute(f"USE {LAKE}.{DISCOVER}")
            with self._begun(cursor, at):
                yield cursor

    @contextmanager
    def inspecting_alone(
        self, most_bytes: int | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """`inspecting` the newest snapshot, by an engine of its own that is closed with the block.

        It computes in the thread that asks it, with that thread's priority.

        Args:
            most_bytes: Memory beyond which it spills; as all queries when None, or with less.
        """
        limits = {**self._limits, "threads": "1"}
        if most_bytes is not None and most_bytes < bytes_of(limits["memory_limit"]):
            limits["memory_limit"] = f"{most_bytes}B"
        with translated(self.location):
            lake = Lake(self.location, limits, read_only=True)
        try:
            with translated(self.location):
                lake.connection.execute(f"USE {LAKE}.{DISCOVER}")
            with self._begun(lake.connection, None):
                yield lake.connection
        finally:
            lake.close()

    @contextmanager
    def cursor_at(self, number: int, limited_to: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor that uses the limited database of some rows of a snapshot's files.

        Args:
            limited_to: Which rows, as LimitedDatabases.using has it.
        """
        with (
            self._forgetting(number),
            self._cursor(number, limited_to) as cursor,
            self._begun(cursor, number),
        ):
            yield cursor

    @contextmanager
    def _begun(self, cursor: duckdb.DuckDBPyConnection, at: int | None) -> Iterator[None]:
        """A read transaction for the block, in which what ails the store is told so."""
        with translated(self.location), self.snapshot_known(at):
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            if at is not None:  # from here on it stays, even if it expires meanwhile
                snapshot_of(cursor)
        with translated(self.location, STORE_FAILS), self.compaction_noticed():
            yield

    @contextmanager
    def _forgetting(self, at: int | None) -> Iterator[None]:
        """Open the connection again where it was cut: that does not heal by itself."""
        try:
            yield
        except (StorageError, CatalogDamaged):
            self._forget(at)
            raise

    def _forget(self, at: int | None) -> None:
        if at is not None:
            self.engines.forget(at)
            return
        with self._reader_lock:
            # Not closed: that would end its cursors that are in use; it goes with the last one.
            self._newest_reader = None

    @contextmanager
    def _cursor(
        self, at: int | None, limited_to: str | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        if at is not None:
            with ExitStack() as stack:
                with translated(self.location), self.snapshot_known(at):
                    cursor = stack.enter_context(
                        self.engines.cursor(
                            at, lambda limits: self._open_at(at, limits), limited_to
                        )
                    )
                yield cursor
            return
        cursor = self._newest_reader_cursor()
        try:
            yield cursor
        finally:
            close(cursor)

    def _newest_reader_cursor(self) -> duckdb.DuckDBPyConnection:
        with self._reader_lock:
            if self._newest_reader is None:
                self._newest_reader = self._open(read_only=True)
            self._newest_reader.sign_in()
            return self._newest_reader.connection.cursor()

    @contextmanager
    def snapshot_known(self, at: int | None) -> Iterator[None]:
        """Turn the engine's complaint that there is no such snapshot into ours.

        Raises:
            NotFound: There never was such a snapshot, or it has expired.
        """
        if at is not None and not 1 <= at < 2**63:  # 0 is before the catalog's tables
            raise self._no_snapshot(at)
        try:
            yield
        except duckdb.InvalidInputException as error:
            if at is None or "No snapshot found" not in str(error):
                raise
            raise self._no_snapshot(at) from error

    def _no_snapshot(self, at: int) -> NotFound:
        with self.inspecting() as cursor:
            row = cursor.execute(
                f"SELECT min(snapshot_id), max(snapshot_id) FROM {LAKE}.snapshots() "
                "WHERE snapshot_id > 0"
            ).fetchone()
        lowest, highest = row or (0, 0)
        return NotFound(
            "snapshot",
            str(at),
            f"it never was or has expired; the oldest is {lowest}, the newest {highest}: "
            "framesift catalog log, on the server's machine, lists them",
        )

    @contextmanager
    def compaction_noticed(self) -> Iterator[None]:
        """Tell a data file that compaction deleted under a reader from one that is lost.

        Raises:
            CatalogBusy: It was compacted away.
            duckdb.IOException: It is lost.
        """
        try:
            yield
        except duckdb.IOException as error:
            match = _DATA_FILE_GONE.search(one_line(error))
            if match is None or self._holds(match[1]):
                raise
            raise CatalogBusy(
                "the catalog was compacted, and its old files deleted, while this was being read; "
                "ask again"
            ) from error

    def _holds(self, data_file: str) -> bool:
        """Return whether a file of that name belongs to a snapshot that there is."""
        with self.inspecting() as cursor:
            return holds_file(cursor, data_file)

    @contextmanager
    def writing(
        self, reason: str, author: str = "framesift"
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """See WritableCatalog."""
        with self.lock(WRITE_LOCK, "the catalog is being written") as still_held:
            # Kept for the next write: loading DuckDB's extensions takes longer than a commit. The
            # lock keeps this store's other threads out, too.
            lake, self._writer = self._writer or self._brought_forward(self._open()), None
            with translated(self.location):
                if column_statistics.may_be_unknown(lake.connection):
                    lake = self._with_statistics(lake)
            connection = lake.connection
            try:
                new_files = NewDataFiles(self.location.data)
                with translated(self.location):
                    lake.sign_in()
                    connection.execute(f"USE {LAKE}.main")
                    connection.execute("BEGIN TRANSACTION")
                with translated(self.location, STORE_FAILS):
                    yield connection
                with translated(self.location):
                    connection.execute(f"CALL {LAKE}.set_commit_message(?, ?)", [author, reason])
                new_files.to_disk()  # a commit must not name what a power cut takes away
                still_held()
                with translated(self.location, committing=True):
                    connection.execute("COMMIT")
                self._writer = lake
            finally:
                if self._writer is None:
                    lake.close()

    def restore_statistics(self) -> None:
        """Put right what DuckLake knows of the columns' least and greatest values."""
        with self.lock(WRITE_LOCK, "the catalog's statistics are being restored"):
            lake, self._writer = self._writer or self._open(), None
            with translated(self.location):
                self._writer = self._with_statistics(lake)

    def _brought_forward(self, lake: Lake) -> Lake:
        """The lake, whose views and data files are those of this release from here on."""
        with translated(self.location):
            choose_row_groups(lake.connection)
            if discover_views.are_former(lake.connection):
                discover_views.renew(lake.connection)
        return lake

    def _with_statistics(self, lake: Lake) -> Lake:
        """The lake with its statistics put right, opened again."""
        try:
            column_statistics.restore(lake.connection)
        finally:
            lake.close()
        return self._open()

    def lock(
        self, name: str, activity: str, wait_s: float | None = None
    ) -> AbstractContextManager[Callable[[], None]]:
        """See WritableCatalog."""
        return self.location.lock(name, self.lock_wait_s if wait_s is None else wait_s, activity)

    def quiesced(self, activity: str) -> AbstractContextManager[Callable[[], None]]:
        """See Catalog."""
        return self.location.quiesced(self.lock_wait_s, activity)

    def snapshot(self) -> int:
        """See Catalog."""
        with self.reading() as snapshot:
            return snapshot.number

    def _newest(self) -> int:
        """The number that `snapshot` gives, in 1 ms instead of 6: by a cursor that is kept."""
        with self._newest_lock:
            cursor, self._newest_cursor = self._newest_cursor, None
            if cursor is None:
                cursor = self._newest_reader_cursor()
            try:
                with translated(self.location):
                    number = newest_snapshot(cursor)
            except BaseException:
                close(cursor)
                self._forget(None)
                raise
            self._newest_cursor = cursor
            return number

    def close(self) -> None:
        """Close the files; the store can be used again and opens them again."""
        self.facts.forget()
        self.memory.close()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        with self._newest_lock:
            cursor, self._newest_cursor = self._newest_cursor, None
            if cursor is not None:
                close(cursor)
        with self._reader_lock:
            reader, self._newest_reader = self._newest_reader, None
            if reader is not None:
                reader.close()
        self.engines.close()

    def _open(self, *, read_only: bool = False) -> Lake:
        with translated(self.location):
            return Lake(self.location, self._limits, read_only=read_only)

    def _open_at(self, at: int, limits: dict[str, str]) -> Lake:
        with translated(self.location), self.snapshot_known(at):
            return Lake(self.location, limits, read_only=True, at=at)

    def _make(self) -> None:
        with self.lock(WRITE_LOCK, "the catalog is being made"):
            if not is_made(self.location):  # no other process made it while this one waited
                make_catalog(self.location, self._limits)

    def _check_format(self) -> None:
        version = self._format()
        if version != FORMAT:
            is_former = version is not None and 0 < version < FORMAT
            raise CatalogDamaged(
                f"{self.location.metadata}: catalog format {version or 'none'}, this version reads "
                f"{FORMAT}; "
                + (EXPORT_AND_IMPORT if is_former else "use the version of Framesift that wrote it")
            )

    def _format(self) -> int | None:
        with self.inspecting() as cursor, translated(self.location):
            row = cursor.execute(f"SELECT version FROM {LAKE}.main.catalog_format").fetchone()
        return None if row is None else int(row[0])
