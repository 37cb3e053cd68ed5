"""The catalog's store: DuckLake tables in Parquet, read and written through DuckDB.

The only file that knows DuckLake. Readers see one committed snapshot and are locked down: they run
SELECT only, reach no file outside the data folder and change no setting, whatever statement gets
this far. Writers hold the write lock from BEGIN to COMMIT.
"""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import duckdb

from catalog import discover_views
from catalog.errors import (
    CatalogBusy,
    CatalogDamaged,
    FramesiftError,
    InvalidInput,
    StorageError,
)
from catalog.lake_tables import (
    CLASS_PIXELS,
    CLASS_PIXELS_COLUMNS,
    FILES,
    FILES_COLUMNS,
    FORMAT,
    FRAME_TAGS,
    FRAME_TAGS_COLUMNS,
    INTERNAL_FILES_COLUMNS,
)
from catalog.select_only import SelectOnly
from catalog.write_lock import write_lock

LAKE = "lake"
DISCOVER = "bluadmin"
"""Schema of the Discover-shaped views, which a Db2 client knows as BLUADMIN."""

_SAFE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_unsigned_extensions": "false",
    "allow_community_extensions": "false",
}


_SQLITE_NEEDS_BYTES = 2**20

# What DuckDB raises when the store fails, and not the statement.
_STORE_FAILS = (
    duckdb.IOException,
    duckdb.SerializationException,
    duckdb.InternalException,
    duckdb.FatalException,
    duckdb.TransactionException,
)


@dataclass(frozen=True)
class CatalogLocation:
    """Where a catalog lies.

    Attributes:
        metadata: SQLite file of DuckLake's metadata.
        data: Folder of the Parquet files.
    """

    metadata: Path
    data: Path

    @classmethod
    def in_folder(cls, folder: Path) -> "CatalogLocation":
        """A catalog that lies whole in one folder."""
        return cls(folder / "catalog.sqlite", folder / "data")


class CatalogStore:
    """A catalog, opened; made first where there is none.

    Safe to use from several threads and processes at once.
    """

    def __init__(
        self,
        location: CatalogLocation,
        *,
        lock_wait_s: float = 60.0,
        memory_limit: str = "2GB",
        threads: int | None = None,
    ) -> None:
        """Open the catalog.

        Args:
            location: Where it lies.
            lock_wait_s: How long a write waits for another one to finish.
            memory_limit: What one process's queries may take, as DuckDB spells it.
            threads: Threads of one process's queries; all cores when None.

        Raises:
            InvalidInput: A limit is none that DuckDB knows.
            StorageError: The folder cannot be made or written.
            CatalogBusy: Another process is making it and does not finish.
            CatalogDamaged: What lies there is no catalog, or one of a later version.
        """
        self.location = location
        self.lock_wait_s = lock_wait_s
        self._limits = {"memory_limit": memory_limit}
        if threads is not None:
            self._limits["threads"] = str(threads)
        self._reader: duckdb.DuckDBPyConnection | None = None
        self._writer: duckdb.DuckDBPyConnection | None = None
        self._reader_lock = threading.Lock()
        try:
            location.metadata.parent.mkdir(parents=True, exist_ok=True)
            location.data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"{error.filename}: the catalog's folder cannot be made: {error.strerror}",
                str(error.filename),
            ) from error
        if not location.metadata.exists():
            self._make_tables()
        self._check_format()

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A locked-down cursor inside one read transaction: everything it sees is one snapshot.

        It executes SELECT and nothing else; see catalog.select_only.

        Raises:
            StorageError: The catalog's files cannot be read.
            CatalogDamaged: They do not fit together.
        """
        with self._reader_lock:
            if self._reader is None:
                self._reader = self._open_reader()
            cursor = self._reader.cursor()
        try:
            with _translated(self.location):
                cursor.execute(f"USE {LAKE}.{DISCOVER}")
                cursor.execute("BEGIN TRANSACTION READ ONLY")
            with _translated(self.location, _STORE_FAILS):
                # The cast: DuckDB's own class cannot be derived from.
                yield cast(duckdb.DuckDBPyConnection, SelectOnly(cursor))
        finally:
            cursor.close()

    @contextmanager
    def writing(
        self, reason: str, author: str = "framesift"
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection inside the one write transaction; commits at the end, or undoes it all.

        Args:
            reason: What the snapshot is for; kept with it.
            author: Who makes it; kept with it.

        Raises:
            CatalogBusy: The write lock was not free in time.
            StorageError: The commit could not be written.
        """
        with write_lock(self.location.metadata.with_suffix(".lock"), self.lock_wait_s):
            # Kept for the next write: loading DuckDB's extensions takes longer than a commit. The
            # lock keeps this store's other threads out, too.
            connection, self._writer = self._writer or self._open_writer(), None
            try:
                with _translated(self.location):
                    connection.execute(f"USE {LAKE}.main")
                    connection.execute("BEGIN TRANSACTION")
                with _translated(self.location, _STORE_FAILS):
                    yield connection
                with _translated(self.location):
                    connection.execute(f"CALL {LAKE}.set_commit_message(?, ?)", [author, reason])
                    connection.execute("COMMIT")
                self._writer = connection
            finally:
                if self._writer is None:
                    connection.close()  # without COMMIT this rolls back

    def snapshot(self) -> int:
        """Number of the newest committed snapshot."""
        with self.reading() as cursor:
            return snapshot_of(cursor)

    def close(self) -> None:
        """Close the files; the store can be used again and opens them anew."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        with self._reader_lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _connect(self) -> duckdb.DuckDBPyConnection:
        try:
            connection = duckdb.connect(":memory:", config={**_SAFE, **self._limits})
        except duckdb.Error as error:
            raise InvalidInput(f"catalog limits {self._limits}: {_one_line(error)}") from error
        for name in ("sqlite_scanner", "ducklake"):
            connection.execute(f"LOAD '{_extension(name)}'")
        return connection

    def _attach(
        self, connection: duckdb.DuckDBPyConnection, metadata: Path, *, read_only: bool = False
    ) -> None:
        # No data inlining: with schema changes it made queries on wide tables 13 times slower.
        # The data path is given anew each time, so that a catalog's folder can be moved.
        # WAL: in SQLite's default journal mode a reader's open snapshot makes every commit fail.
        mode = "READ_ONLY" if read_only else "META_JOURNAL_MODE 'WAL'"
        connection.execute(
            f"ATTACH 'ducklake:sqlite:{_quoted(metadata)}' AS {LAKE} "
            f"(DATA_PATH '{_quoted(self.location.data)}/', OVERRIDE_DATA_PATH true, "
            f"DATA_INLINING_ROW_LIMIT 0, {mode})"
        )

    def _open_reader(self) -> duckdb.DuckDBPyConnection:
        with _translated(self.location):
            connection = self._connect()
            self._attach(connection, self.location.metadata, read_only=True)
            connection.execute(f"SET allowed_directories = ['{_quoted(self.location.data)}/']")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            return connection

    def _open_writer(self) -> duckdb.DuckDBPyConnection:
        with _translated(self.location):
            connection = self._connect()
            self._attach(connection, self.location.metadata)
            return connection

    def _make_tables(self) -> None:
        with write_lock(self.location.metadata.with_suffix(".lock"), self.lock_wait_s):
            if self.location.metadata.exists():
                return  # another process made it while this one waited
            if any((self.location.data / "main" / FILES).glob("*.parquet")):
                raise CatalogDamaged(
                    f"{self.location.metadata}: missing, but {self.location.data} holds the files "
                    "of a catalog; restore it from a backup, or move the folder away"
                )
            part = self.location.metadata.with_suffix(".part")
            for left_over in part.parent.glob(f"{part.name}*"):
                left_over.unlink(missing_ok=True)
            connection = self._connect()
            try:
                with _translated(self.location):
                    self._attach(connection, part)
                    connection.execute(f"USE {LAKE}.main")
                    connection.execute("BEGIN TRANSACTION")
                    _create_tables(connection)
                    connection.execute(
                        f"CALL {LAKE}.set_commit_message('framesift', 'catalog created')"
                    )
                    connection.execute("COMMIT")
            finally:
                connection.close()
            part.rename(self.location.metadata)

    def _check_format(self) -> None:
        with self.reading() as cursor, _translated(self.location):
            row = cursor.execute(f"SELECT version FROM {LAKE}.main.catalog_format").fetchone()
        if row is None or row[0] != FORMAT:
            found = "none" if row is None else row[0]
            raise CatalogDamaged(
                f"{self.location.metadata}: catalog format {found}, this version reads {FORMAT}; "
                "use the release of Framesift that wrote it"
            )


def snapshot_of(cursor: duckdb.DuckDBPyConnection) -> int:
    """Number of the snapshot that the cursor's transaction reads."""
    row = cursor.execute(f"SELECT id FROM {LAKE}.current_snapshot()").fetchone()
    return int(row[0]) if row else 0


def _create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    for table, columns in (
        (FILES, FILES_COLUMNS | INTERNAL_FILES_COLUMNS),
        (CLASS_PIXELS, CLASS_PIXELS_COLUMNS),
        (FRAME_TAGS, FRAME_TAGS_COLUMNS),
    ):
        body = ", ".join(
            f'"{name}" {kind}{" NOT NULL" if name == "fkey" else ""}'
            for name, kind in columns.items()
        )
        connection.execute(f"CREATE TABLE {table} ({body})")
    connection.execute("CREATE TABLE catalog_format (version INTEGER NOT NULL)")
    connection.execute("INSERT INTO catalog_format VALUES (?)", [FORMAT])
    connection.execute(f"CREATE SCHEMA {LAKE}.{DISCOVER}")
    discover_views.create(connection)


def _extension(name: str) -> str:
    package = files(f"duckdb_extension_{name}")
    path = package / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    if not path.is_file():
        raise StorageError(
            f"DuckDB's extension {name} for version {duckdb.__version__} is not installed: "
            "run 'make setup' again",
            str(path),
        )
    return _quoted(path)


def _quoted(path: Any) -> str:
    return str(path).replace("'", "''")


@contextmanager
def _translated(
    location: CatalogLocation, kinds: tuple[type[duckdb.Error], ...] = (duckdb.Error,)
) -> Iterator[None]:
    """Turn DuckDB's complaints about the store itself into ours."""
    try:
        yield
    except kinds as error:
        raise _ours(location, _one_line(error)) from error


def _ours(location: CatalogLocation, reason: str) -> FramesiftError:
    if "No space left" in reason or "disk is full" in reason or _is_full(location, reason):
        return StorageError(
            f"{location.data}: the disk is full; nothing of this change was kept. "
            "Free some space and run it again",
            str(location.data),
        )
    if "database is locked" in reason:
        return CatalogBusy(f"{location.metadata}: busy: {reason}. Try again")
    refusals = ("ermission denied", "readonly database", "unable to open", "disk I/O error")
    if any(words in reason for words in refusals):
        return StorageError(
            f"{location.metadata}: cannot be read or written: {reason}", str(location.metadata)
        )
    return CatalogDamaged(
        f"{location.metadata}: the catalog cannot be used: {reason}. "
        "Restore its folder from a backup, or move it away and ingest again"
    )


def _is_full(location: CatalogLocation, reason: str) -> bool:
    """Whether SQLite's "disk I/O error" is one for lack of space: it does not say."""
    if "disk I/O error" not in reason:
        return False
    return shutil.disk_usage(location.metadata.parent).free < _SQLITE_NEEDS_BYTES


def _one_line(error: duckdb.Error) -> str:
    return " ".join(str(error).split())[:400]
