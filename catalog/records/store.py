"""The records' database: opened, and brought to the newest schema."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import inspect, select, text
from sqlalchemy.orm import Session

# Their tables are records, too: backups and copies hold them.
import catalog.records.automation.tables
import catalog.records.policy_tables
import catalog.records.question_tables
import catalog.records.user_tables  # noqa: F401
from catalog.errors import EXPORT_AND_IMPORT, CatalogDamaged, StorageError
from catalog.records.engine import (
    BUSY_S,
    KIND,
    READS,
    WRITES,
    WRITES_AT_ONCE,
    postgres_engine,
    sqlite_engine,
    translated,
)
from catalog.records.home_layout import HomeLayout
from catalog.records.kinds import Kind
from catalog.records.paths import use
from catalog.records.reading import Value
from catalog.records.revision import NEWEST
from catalog.records.tables import Base, Dataset
from catalog.storage.postgres import Postgres
from catalog.storage.private_files import make_private_file, make_private_folder
from catalog.storage.write_lock import write_lock
from catalog.values import NOBODY, Owner

_Record = TypeVar("_Record")


def is_made(database: Path | Postgres) -> bool:
    """Return whether there are records in a database.

    Raises:
        OSError: The file cannot be looked for.
    """
    if isinstance(database, Path):
        return database.exists()
    with database.connected() as connection:
        row = connection.execute("SELECT to_regclass('alembic_version')").fetchone()
        return row is not None and row[0] is not None


def class_of(kind: Kind[_Record]) -> type[_Record]:
    """The class of SQLAlchemy's whose records are of that kind."""
    classes = {str(mapper.local_table): mapper.class_ for mapper in Base.registry.mappers}
    return cast("type[_Record]", classes[kind.table])


def _whole(dataset: Dataset) -> Dataset:
    return dataset


class RecordStore:
    """The records of one Framesift home. Safe to use from several threads and processes.

    What they hold is read and changed by functions of it, a module for each noun.

    Attributes:
        owner: The user limited to collections whose records these are; nobody for all records.
        as_seen: Gives a dataset as that user sees it; None where the user sees no frame of it.
        seen_manifest: Gives the manifest (pipeline.manifest) of the part that the user sees, of a
            dataset as it is recorded.
        home_layout: Where the datasets, jobs and caches that they name lie; None where that is not
            known, and paths are as the database has them.
    """

    def __init__(
        self,
        location: Path | Postgres,
        *,
        home_layout: HomeLayout | None = None,
        lock_wait_s: float = 60.0,
    ) -> None:
        """Open the database, made or migrated first where needed.

        Args:
            home_layout: Where what they name lies; by default the home that has the file at
                records/records.sqlite.
            lock_wait_s: How long to wait for another process that is migrating it.

        Raises:
            StorageError: The folder or file cannot be written, or the server not be reached.
        """
        self.location = location
        self.owner = NOBODY
        self.as_seen: Callable[[Dataset], Dataset | None] = _whole
        self.seen_manifest: Callable[[Dataset], Any] = _whole
        if home_layout is None and isinstance(location, Path) and location.parent.name == "records":
            home_layout = HomeLayout(location.parent.parent)
        self.home_layout = home_layout
        if isinstance(location, Path):
            try:
                make_private_folder(location.parent)
            except OSError as error:
                raise StorageError(
                    f"{location.parent}: cannot be made: {error.strerror}", str(location.parent)
                ) from error
            with suppress(OSError):  # SQLite says what is wrong
                make_private_file(location)
        self.engine = (
            sqlite_engine(location) if isinstance(location, Path) else postgres_engine(location)
        )
        use(self.engine.dialect, home_layout)
        with translated(location):
            self._migrate(lock_wait_s)

    def limited_to(
        self,
        owner: Owner,
        as_seen: Callable[[Dataset], Dataset | None],
        seen_manifest: Callable[[Dataset], Any] = _whole,
    ) -> "RecordStore":
        """The same records for a user who is limited to collections."""
        limited = copy(self)
        limited.owner, limited.as_seen, limited.seen_manifest = owner, as_seen, seen_manifest
        return limited

    @property
    def user(self) -> str:
        """The name of the user limited to collections; empty for all records."""
        return self.owner.name

    @property
    def own_names(self) -> str:
        """The prefix of names of new datasets and jobs, which tells them from others' names."""
        return f"{self.user}~" if self.user else ""

    @contextmanager
    def session(self, *, waits: bool = True) -> Iterator[Session]:
        """One transaction that writes: committed at the end of the block, undone when it raises.

        Args:
            waits: For another transaction that writes, BUSY_S at most.
        """
        kind = WRITES if waits else WRITES_AT_ONCE
        engine = self.engine.execution_options(**{KIND: kind})
        new_session = Session(engine, expire_on_commit=False)
        with translated(self.location), new_session as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One transaction that only reads, of one state, and waits for no other."""
        engine = self.engine.execution_options(**{KIND: READS})
        with translated(self.location), Session(engine, expire_on_commit=False) as session:
            yield session

    def select(
        self,
        kind: Kind[_Record],
        where: str = "",
        /,
        *,
        order: str = "",
        limit: int | None = None,
        **values: Value,
    ) -> list[_Record]:
        """Records of a kind: see catalog.records.reading.Records."""
        query = select(class_of(kind)).limit(limit)
        if where:
            query = query.where(text(where))
        if order:
            query = query.order_by(text(order))
        with self.reading() as session:
            return list(session.scalars(query, values))

    def rows(self, statement: str, /, **values: Value) -> list[tuple[Any, ...]]:
        """Rows of a SELECT: see catalog.records.reading.Records."""
        if isinstance(self.location, Path):
            # By the driver: servers ask class names and collections with each question, and a
            # session of SQLAlchemy takes twenty times as long as SQLite.
            with translated(self.location), closing(self.engine.raw_connection()) as pooled:
                connection = cast("sqlite3.Connection", pooled.driver_connection)
                connection.execute(f"PRAGMA busy_timeout = {BUSY_S * 1000}")
                return connection.execute(statement, values).fetchall()
        with self.reading() as session:
            return [tuple(row) for row in session.execute(text(statement), values)]

    def _migrate(self, lock_wait_s: float) -> None:
        if self._revision() == NEWEST:
            return
        # Alembic takes a third of a second to import, and is needed once per schema.
        from alembic.util import CommandError

        from catalog.records.migrate import upgrade

        activity = "the records are being migrated"
        with (
            write_lock(self.location.with_suffix(".migrating"), lock_wait_s, activity)
            if isinstance(self.location, Path)
            else self.location.lock("records-migration", lock_wait_s, activity)
        ):
            revision = self._revision()
            if revision is not None and revision > NEWEST:
                raise CatalogDamaged(
                    f"{self.location}: written by a later version of Framesift (schema "
                    f"{revision}, this version reads up to {NEWEST}); use that version"
                )
            try:
                upgrade(self.engine)
            except CommandError as error:
                raise CatalogDamaged(
                    f"{self.location}: its schema {revision} is none that this version of "
                    f"Framesift reads; {EXPORT_AND_IMPORT}"
                ) from error

    def _revision(self) -> str | None:
        reads = self.engine.execution_options(**{KIND: READS})
        with reads.connect() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            revision: str | None = connection.scalar(
                text("SELECT version_num FROM alembic_version")
            )
            return revision
