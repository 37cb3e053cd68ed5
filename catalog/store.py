"""The catalog's store: DuckLake tables in Parquet, read and written through DuckDB.

The only file that knows DuckLake. Readers see one committed snapshot and are locked down: no file
outside the data folder can be reached and no setting changed, whatever statement gets this far.
Writers hold the write lock from BEGIN to COMMIT.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb

from catalog import discover_views
from catalog.errors import CatalogDamaged, StorageError
from catalog.lake_tables import (
    CLASS_PIXELS,
    CLASS_PIXELS_COLUMNS,
    FILES,
    FILES_COLUMNS,
    FORMAT,
    FRAME_TAGS,
    FRAME_TAGS_COLUMNS,
)
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
        """A locked-down cursor inside one read transaction: everything it sees is one snapshot."""
        with self._reader_lock:
            if self._reader is None:
                self._reader = self._open_reader()
            cursor = self._reader.cursor()
        try:
            with _translated(self.location):
                cursor.execute(f"USE {LAKE}.{DISCOVER}")
                cursor.execute("BEGIN TRANSACTION READ ONLY")
            yield cursor
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
            connection = self._connect()
            try:
                with _translated(self.location):
                    self._attach(connection, self.location.metadata)
                    connection.execute(f"USE {LAKE}.main")
                    connection.execute("BEGIN TRANSACTION")
                yield connection
                with _translated(self.location):
                    connection.execute(f"CALL {LAKE}.set_commit_message(?, ?)", [author, reason])
                    connection.execute("COMMIT")
            finally:
                # Closing without COMMIT rolls back.
                connection.close()

    def snapshot(self) -> int:
        """Number of the newest committed snapshot."""
        with self.reading() as cursor:
            return snapshot_of(cursor)

    def close(self) -> None:
        """Close the readers; the store can be used again and opens new ones."""
        with self._reader_lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _connect(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(":memory:", config={**_SAFE, **self._limits})
        for name in ("sqlite_scanner", "ducklake"):
            connection.execute(f"LOAD '{_extension(name)}'")
        return connection

    def _attach(
        self, connection: duckdb.DuckDBPyConnection, metadata: Path, *, read_only: bool = False
    ) -> None:
        # No data inlining: with schema changes it made queries on wide tables 13 times slower.
        # The data path is given anew each time, so that a catalog's folder can be moved.
        connection.execute(
            f"ATTACH 'ducklake:sqlite:{_quoted(metadata)}' AS {LAKE} "
            f"(DATA_PATH '{_quoted(self.location.data)}/', OVERRIDE_DATA_PATH true, "
            f"DATA_INLINING_ROW_LIMIT 0"
            f"{', READ_ONLY' if read_only else ''})"
        )

    def _open_reader(self) -> duckdb.DuckDBPyConnection:
        with _translated(self.location):
            connection = self._connect()
            self._attach(connection, self.location.metadata, read_only=True)
            connection.execute(f"SET allowed_directories = ['{_quoted(self.location.data)}/']")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            return connection

    def _make_tables(self) -> None:
        with write_lock(self.location.metadata.with_suffix(".lock"), self.lock_wait_s):
            if self.location.metadata.exists():
                return  # another process made it while this one waited
            part = self.location.metadata.with_suffix(".part")
            part.unlink(missing_ok=True)
            connection = self._connect()
            with _translated(self.location):
                self._attach(connection, part)
                connection.execute(f"USE {LAKE}.main")
                connection.execute("BEGIN TRANSACTION")
                _create_tables(connection)
                connection.execute(
                    f"CALL {LAKE}.set_commit_message('framesift', 'catalog created')"
                )
                connection.execute("COMMIT")
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
        (FILES, FILES_COLUMNS),
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
def _translated(location: CatalogLocation) -> Iterator[None]:
    """Turn DuckDB's complaints about the store itself into ours."""
    try:
        yield
    except duckdb.Error as error:
        first_line = str(error).splitlines()[0]
        if isinstance(error, duckdb.IOException) and "No space left" in str(error):
            raise StorageError(
                f"{location.data}: the disk is full; nothing of this change was kept. "
                "Free some space and run it again",
                str(location.data),
            ) from error
        raise CatalogDamaged(f"{location.metadata}: {first_line}") from error
