"""Opens connections to DuckLake catalogs, and translates DuckLake's errors.

A connection is DuckDB in this process with the catalog attached as LAKE. A reader's is locked down:
it reaches no file outside the catalog's data and changes no setting.
"""

import glob
import os
import re
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import duckdb

from catalog.errors import (
    CatalogBusy,
    CatalogDamaged,
    FramesiftError,
    InvalidInput,
    StorageError,
    StoreAway,
)
from catalog.lake import stream_buffer
from catalog.lake.cursor import Cursor
from catalog.lake.extensions import Extensions
from catalog.storage.disk_trouble import disk_trouble
from catalog.storage.location import CatalogLocation
from catalog.storage.postgres import Postgres
from catalog.storage.s3_prefix import S3Keys, S3Prefix
from catalog.storage.spill_folder import new_spill_folder
from catalog.text.quoting import quoted

LAKE = "lake"
DISCOVER = "bluadmin"
"""Schema of the Discover-shaped views, which a Db2 client knows as BLUADMIN."""

METADATA = f"__ducklake_metadata_{LAKE}"
"""DuckLake's own tables, as it attaches them."""

STORE_FAILS = (
    duckdb.IOException,
    duckdb.SerializationException,
    duckdb.InternalException,
    duckdb.FatalException,
    duckdb.TransactionException,
)
"""Errors that DuckDB raises when the store fails, not the statement."""

SAFE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_unsigned_extensions": "false",
    "allow_community_extensions": "false",
}
"""Settings of every connection: no extension but those of catalog.lake.extensions."""

UTC = "SET GLOBAL TimeZone = 'UTC'"
"""Statement for every connection that meets times: DuckDB's own zone is the machine's."""

_POSTGRES_AWAY = re.compile(
    r"Unable to connect to Postgres|connection to server|server closed the connection"
    r"|terminating connection|no connection to the server|could not receive data"
    r"|the database system is|connection has been closed|SSL (connection|SYSCALL|error)"
    r"|Current transaction is aborted"  # by what went before: the connection is gone
)
_S3_AWAY = re.compile(
    r"[Cc]ould not connect|Connection error|connection error|HTTP 5\d\d|Timeout was reached"
    r"|SSL (peer|server)"
)
_S3_REFUSES = re.compile(r"HTTP 40[03]|NoSuchBucket")
_NO_ROOM = re.compile(r"No space left|disk is full|[Dd]isk quota")
_OF_SQLITE = re.compile(r"disk is full|disk I/O error|readonly database|unable to open database")
_REFUSED = re.compile(
    r"[Pp]ermission denied|[Rr]ead-only file system|readonly database|unable to open"
    r"|disk I/O error|read-only transaction"
)
_POSTGRES_FAILS = re.compile(r"Failed to (execute query|prepare COPY|fetch|copy|get)")
_OTHER_COMMIT = re.compile(r"duplicate key value|could not serialize|UNIQUE constraint failed")

_ADDRESS_MB = 1024
_ADDRESS_MB_BY_THREAD = 150
"""Its stack and its part of malloc's heap. Two threads took 1,028 MB in all; with 900 left, and 600
in one run of two, the process was aborted ("terminate called without an active exception")."""


class Lake:
    """A connection to a catalog.

    Attributes:
        connection: DuckDB's, with the catalog attached.
    """

    def __init__(
        self,
        location: CatalogLocation,
        limits: dict[str, str],
        *,
        read_only: bool,
        at: int | None = None,
    ) -> None:
        """Connect; makes DuckLake's own tables where there are none and it is not read-only.

        Args:
            limits: DuckDB's settings of memory and threads.
            read_only: Lock the connection down.
            at: Number of the snapshot to read; the newest when None.

        Raises:
            InvalidInput: A limit is none that DuckDB knows.
            StorageError: Metadata or data cannot be reached, or too little address space is left.
            CatalogDamaged: They are no catalog.
        """
        self.location = location
        self._keys: S3Keys | None = None
        threads = str(limits.get("threads", ""))
        _check_address_space(int(threads) if threads.isdigit() else os.cpu_count() or 1)
        extensions = Extensions(_extensions(location))
        settings = {**SAFE, **extensions.settings, "temp_directory": new_spill_folder(), **limits}
        try:
            self.connection = duckdb.connect(":memory:", config=settings)
            if (spill := limits.get("max_temp_directory_size")) is not None:
                # DuckDB 1.5.5 shows it as given above, and keeps to it only as set here.
                self.connection.execute(f"SET max_temp_directory_size = '{quoted(spill)}'")
        except duckdb.Error as error:
            raise InvalidInput(f"catalog limits {limits}: {one_line(error)}") from error
        try:
            extensions.load(self.connection)
            self.connection.execute(UTC)
            # A commit that another one got ahead of must fail: DuckLake would commit the same rows
            # once more, and an fkey that both replaced would be there twice.
            self.connection.execute("SET GLOBAL ducklake_max_retry_count = 0")
            if isinstance(location.metadata, Path):
                self._read_in_one_transaction()
            self._prepare_s3()
            self.sign_in()
            self.attach(read_only=read_only, at=at, name=LAKE)
            if read_only:
                # DuckLake first reads its own tables by many short statements, at which threads
                # only wait for each other: 45 ms by one, 55 by two. What fails will fail again.
                with one_thread(self.connection), suppress(duckdb.Error):
                    snapshot_of(self.connection)
                self._lock_down()
        except BaseException:
            self.connection.close()
            raise

    def sign_in(self) -> None:
        """Give DuckDB the keys to S3 as they are now: temporary ones are renewed."""
        data = self.location.data
        if not isinstance(data, S3Prefix) or (keys := data.keys()) == self._keys:
            return
        endpoint = urlsplit(data.endpoint())
        options = {
            "KEY_ID": keys.access_key,
            "SECRET": keys.secret_key,
            "SESSION_TOKEN": keys.token,
            "REGION": data.region(),
            "ENDPOINT": endpoint.netloc,
            # Own servers seldom have a host name per bucket; AWS's certificate covers one label.
            "URL_STYLE": "path" if endpoint.netloc or "." in data.bucket else "vhost",
            "SCOPE": str(data),
        }
        pairs = ", ".join(f"{name} '{quoted(value)}'" for name, value in options.items() if value)
        tls = "false" if endpoint.scheme == "http" else "true"
        self.connection.execute(
            f"CREATE OR REPLACE SECRET catalog_s3 (TYPE s3, {pairs}, USE_SSL {tls})"
        )
        self._keys = keys

    def close(self) -> None:
        """Close the connection; without COMMIT this rolls back."""
        close(self.connection)

    def _read_in_one_transaction(self) -> None:
        """Let scans of SQLite tables use the handle on which their transaction began.

        With more threads than one each scan opens a handle of its own, which reads what is
        committed by then and leaves rows beyond the transaction's last row id out. A reader beside
        a commit so lost delete files, and replaced rows came back: docs/decisions/0022.
        """
        self.connection.execute("SET GLOBAL sqlite_disable_multithreaded_scans = true")

    def _prepare_s3(self) -> None:
        data = self.location.data
        if not isinstance(data, S3Prefix):
            return
        # DuckDB takes the keys of the environment into settings, which every statement can read;
        # and one of its HTTP clients checks no certificate unless told to.
        for setting in (
            "s3_access_key_id = ''",
            "s3_secret_access_key = ''",
            "s3_session_token = ''",
            "enable_server_cert_verification = true",
            "enable_curl_server_cert_verification = true",
            f"ca_cert_file = '{quoted(data.access.ca_bundle)}'",
        ):
            self.connection.execute(f"SET GLOBAL {setting}")

    def attach(self, *, read_only: bool, at: int | None, name: str) -> None:
        """Attach the catalog, or a snapshot of it, under a name."""
        # No data inlining: with schema changes it made queries on wide tables 13 times slower.
        # The data path is given again each time, so that a catalog's folder can be moved.
        options = [
            f"DATA_PATH '{quoted(_data_path(self.location))}'",
            "OVERRIDE_DATA_PATH true",
            "DATA_INLINING_ROW_LIMIT 0",
        ]
        metadata = self.location.metadata
        if isinstance(metadata, Postgres):
            address = f"postgres:{metadata.conninfo}"
            options.append("META_SCHEMA 'public'")
            if metadata.password:
                # In a secret, because DuckDB shows an attached database's place to every statement.
                self.connection.execute(
                    "CREATE OR REPLACE SECRET catalog_postgres "
                    f"(TYPE postgres, PASSWORD '{quoted(metadata.password)}')"
                )
                options.append("META_SECRET 'catalog_postgres'")
        else:
            address = f"sqlite:{metadata}"
            if not read_only:
                # In SQLite's default journal mode a reader's open snapshot makes commits fail.
                options.append("META_JOURNAL_MODE 'WAL'")
        if read_only:
            options.append("READ_ONLY")
        if at is not None:
            options.append(f"SNAPSHOT_VERSION {at}")
        self.connection.execute(
            f"ATTACH 'ducklake:{quoted(address)}' AS {name} ({', '.join(options)})"
        )

    def _lock_down(self) -> None:
        data = _data_path(self.location)
        # As a pattern, too: DuckDB asks for both where a path that is read as one has a "[".
        allowed = ", ".join(
            f"'{quoted(path)}'" for path in dict.fromkeys((data, glob.escape(data)))
        )
        self.connection.execute(f"SET allowed_directories = [{allowed}]")
        self.connection.execute("SET enable_external_access = false")
        stream_buffer.allow(self.connection, "threads")  # for `one_thread`
        self.connection.execute("SET lock_configuration = true")


def close(connection: duckdb.DuckDBPyConnection) -> None:
    """Roll back and close a connection or cursor.

    Closing alone would end this process where PostgreSQL is gone: DuckDB then rolls back in a
    destructor, where the error that this gives is fatal (1.5.5).
    """
    with suppress(duckdb.Error):
        connection.execute("ROLLBACK")
    connection.close()


@contextmanager
def one_thread(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let a connection, and all that share its engine, work on one core for the block.

    Each thread of a writer holds row groups of all columns that it reads and writes: at a million
    frames two took 1.2 GB, and one 0.4 GB and a fifth less of CPU.
    """
    row = connection.execute("SELECT current_setting('threads')").fetchone()
    connection.execute("SET threads = 1")
    try:
        yield
    finally:
        connection.execute(f"SET threads = {int(row[0]) if row else 1}")


def snapshot_of(cursor: Cursor) -> int:
    """Number of the snapshot that the cursor's transaction reads."""
    row = cursor.execute(f"SELECT id FROM {LAKE}.main.current_snapshot()").fetchone()
    return int(row[0]) if row else 0


def one_line(error: duckdb.Error) -> str:
    """DuckDB's message in one line of bounded length."""
    return " ".join(str(error).split())[:400]


@contextmanager
def translated(
    location: CatalogLocation,
    kinds: tuple[type[duckdb.Error], ...] = (duckdb.Error,),
    *,
    committing: bool = False,
) -> Iterator[None]:
    """Turn DuckDB's complaints about the store itself into ours."""
    try:
        yield
    except duckdb.Error as error:
        if not isinstance(error, kinds) and not _of_metadata(location, error):
            raise
        text = location.clean(str(error))
        # A cause is printed with every traceback: one that holds a password is dropped.
        cause = error if text == str(error) else None
        raise _ours(location, " ".join(text.split()), committing) from cause


def _of_metadata(location: CatalogLocation, error: duckdb.Error) -> bool:
    """Return whether it is the metadata's database that fails.

    SQLite's complaints come as errors of no kind, PostgreSQL's in errors of any kind or none.
    """
    if type(error) is duckdb.Error:
        return True
    return isinstance(location.metadata, Postgres) and _POSTGRES_AWAY.search(str(error)) is not None


def _ours(location: CatalogLocation, text: str, committing: bool) -> FramesiftError:
    metadata = location.metadata
    # The beginning says what was done, the end why it failed; statements may lie between.
    reason = text if len(text) <= 400 else f"{text[:150]} ... {text[-245:]}"
    if _NO_ROOM.search(text) or _REFUSED.search(text):
        trouble = disk_trouble(_folders(location, text))
        if trouble is not None:
            return StorageError(
                f"{trouble[0]}: {trouble[1]}. Nothing of a change under way was kept",
                str(trouble[0]),
            )
    if _NO_ROOM.search(text):  # and somebody has made room since
        folder = _folders(location, text)[0]
        return StorageError(
            f"{folder}: the disk is full; nothing of a change under way was kept. "
            "Free some space and run it again",
            str(folder),
        )
    if "database is locked" in text:
        return CatalogBusy(f"{metadata}: busy: {reason}. Try again")
    of_s3 = isinstance(location.data, S3Prefix) and not _POSTGRES_AWAY.search(text)
    if _POSTGRES_AWAY.search(text) or _S3_AWAY.search(text):
        outcome = (
            "it went away during a commit, which may have been kept: look, or run it again"
            if committing and not of_s3
            else "nothing of a change under way was kept; try again when it answers"
        )
        address = str(location.data if of_s3 else metadata)
        return StoreAway(f"{address}: no answer: {reason}; {outcome}", address)
    if _REFUSED.search(text) or _S3_REFUSES.search(text):
        address = str(location.data if of_s3 and _S3_REFUSES.search(text) else metadata)
        return StorageError(f"{address}: cannot be read or written: {reason}", address)
    if committing and _OTHER_COMMIT.search(text):
        return CatalogBusy(
            f"{metadata}: another commit came in between; nothing of this change was kept. "
            "Run it again"
        )
    if isinstance(metadata, Postgres) and _POSTGRES_FAILS.search(text):
        return StorageError(f"{metadata}: cannot be read or written: {reason}", str(metadata))
    return CatalogDamaged(
        f"{metadata}: the catalog cannot be used: {reason}. "
        "Restore it from a backup, or move it away and ingest again"
    )


def _folders(location: CatalogLocation, text: str) -> list[Path]:
    """The local folders that a complaint may be about, likeliest first."""
    folders = [location.data] if isinstance(location.data, Path) else []
    if isinstance(location.metadata, Path):
        folders.insert(0 if _OF_SQLITE.search(text) else 1, location.metadata.parent)
    with suppress(FileNotFoundError):  # no temporary folder can be written
        folders.append(Path(tempfile.gettempdir()))  # queries spill there
    return sorted(folders, key=lambda folder: f"{folder}/" not in text)


def _data_path(location: CatalogLocation) -> str:
    return str(location.data) if isinstance(location.data, S3Prefix) else f"{location.data}/"


def _extensions(location: CatalogLocation) -> list[str]:
    """Names of the extensions that a catalog needs, in the order of loading."""
    sql = "postgres_scanner" if isinstance(location.metadata, Postgres) else "sqlite_scanner"
    http = ["httpfs"] if isinstance(location.data, S3Prefix) else []
    return [sql, *http, "ducklake"]


@cache
def _check_address_space(threads: int) -> None:
    """Accept an address space with room for DuckDB's threads, which aborts without; looked at once.

    Raises:
        StorageError: The process is limited to less (ulimit -v, RLIMIT_AS).
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    used_mb = pages * os.sysconf("SC_PAGE_SIZE") >> 20
    needed_mb = used_mb + _ADDRESS_MB + threads * _ADDRESS_MB_BY_THREAD
    if limit >> 20 < needed_mb:
        raise StorageError(
            f"this process may take {limit >> 20:,} MB of address space, and the catalog needs "
            f"{needed_mb:,} MB with {threads} threads (most of it is never used): raise the limit, "
            "ulimit -v or RLIMIT_AS, or limit memory by cgroups instead"
        )
