"""Connections to the records' database: its kinds of transactions, and its errors as ours."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.orm.exc import StaleDataError

from catalog.errors import (
    CatalogBusy,
    CatalogDamaged,
    FramesiftError,
    InvalidInput,
    StorageError,
    StoreAway,
)
from catalog.storage.disk_trouble import disk_trouble
from catalog.storage.postgres import Postgres

BUSY_S = 30
KIND = "framesift_transaction"
"""Execution option of a connection: what its transactions are begun as, one of the next."""

READS, WRITES, WRITES_AT_ONCE = "reads", "writes", "writes at once"

_TRANSACTION_LOCK = 0x6672616D65  # any number that no other program of the database takes


def sqlite_engine(path: Path) -> Engine:
    """An engine for a SQLite file; nothing is opened yet."""
    engine = create_engine(
        make_url("sqlite://").set(database=str(path)), connect_args={"timeout": BUSY_S}
    )

    @event.listens_for(engine, "connect")
    def _configure(connection, _record) -> None:  # type: ignore[no-untyped-def]
        connection.isolation_level = None  # the "begin" listener below begins transactions
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection) -> None:  # type: ignore[no-untyped-def]
        # Take the write lock at once: a transaction that reads and then writes could otherwise
        # fail with "database is locked" however long it waits.
        kind = connection.get_execution_options().get(KIND)
        wait_ms = 0 if kind == WRITES_AT_ONCE else BUSY_S * 1000
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait_ms}")
        connection.exec_driver_sql("BEGIN" if kind == READS else "BEGIN IMMEDIATE")

    return engine


def postgres_engine(database: Postgres) -> Engine:
    """An engine for a PostgreSQL database; nothing is opened yet."""
    # The address goes around SQLAlchemy's URL, which errors and logs would show.
    engine = create_engine(
        "postgresql+psycopg://",
        connect_args=database.keywords,
        pool_pre_ping=True,
        pool_recycle=1800,
    )

    @event.listens_for(engine, "begin")
    def _begin(connection) -> None:  # type: ignore[no-untyped-def]
        kind = connection.get_execution_options().get(KIND)
        if kind == READS:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return
        # One transaction at a time, as SQLite has it: what reads and then writes needs no retries.
        wait = "1ms" if kind == WRITES_AT_ONCE else f"{BUSY_S}s"
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{wait}'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_TRANSACTION_LOCK})")

    return engine


@contextmanager
def translated(database: Path | Postgres) -> Iterator[None]:
    """Turn SQLAlchemy's errors about the database itself into ours."""
    try:
        yield
    except (IntegrityError, DataError) as error:
        raise InvalidInput(
            f"{database}: the change contradicts what is recorded: {_one_line(error.orig)}"
        ) from error
    except DBAPIError as error:
        if isinstance(database, Postgres):
            raise _ours_of_server(database, error) from None  # the cause may hold the password
        raise _ours(database, _one_line(error.orig)) from error
    except sqlite3.Error as error:  # while connecting, where SQLAlchemy does not wrap it
        raise _ours(database, _one_line(error)) from error
    except StaleDataError as error:
        raise CatalogBusy(
            f"{database}: another change of the same record came first; try again"
        ) from error
    except SQLAlchemyError as error:
        raise CatalogDamaged(f"{database}: {_one_line(error)}") from error


def _ours(database: Path | Postgres, reason: str) -> FramesiftError:
    if "locked" in reason:
        return CatalogBusy(f"{database}: busy for over {BUSY_S} s; try again")
    if any(word in reason for word in ("full", "readonly", "unable to open", "disk I/O")):
        trouble = disk_trouble([database.parent]) if isinstance(database, Path) else None
        if trouble is not None:
            return StorageError(
                f"{trouble[0]}: {trouble[1]}. Nothing of a change under way was kept",
                str(trouble[0]),
            )
        return StorageError(f"{database}: cannot be read or written: {reason}", str(database))
    return CatalogDamaged(
        f"{database}: the records cannot be used: {reason}; "
        "restore them from a backup, or move the file away and start again"
    )


def _ours_of_server(database: Postgres, error: DBAPIError) -> FramesiftError:
    reason = database.clean(_one_line(error.orig))
    if "lock timeout" in reason:
        return CatalogBusy(f"{database}: busy for over {BUSY_S} s; try again")
    # A connection that broke is an InterfaceError at times, and at others of no class of its own.
    if isinstance(error, OperationalError) or error.connection_invalidated:
        return StoreAway(
            f"{database}: no answer: {reason}; try again when it answers", str(database)
        )
    return CatalogDamaged(
        f"{database}: the records cannot be used: {reason}; restore the database from a backup"
    )


def _one_line(error: BaseException | None) -> str:
    return " ".join(str(error).split())
