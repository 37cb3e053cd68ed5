"""The records' database: opened, brought to the newest schema, and asked."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import (
    Engine,
    Select,
    create_engine,
    delete,
    event,
    func,
    inspect,
    or_,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.orm import Session

# Their tables are records, too: backups and copies hold them.
import catalog.accounts.user_tables
import catalog.policies.tables  # noqa: F401
from catalog.errors import (
    AlreadyExists,
    CatalogBusy,
    CatalogDamaged,
    FramesiftError,
    InvalidInput,
    NotFound,
    StorageError,
)
from catalog.records.home_places import HomePlaces
from catalog.records.paths import use
from catalog.records.tables import (
    Dataset,
    Job,
    Scan,
    ScanProblem,
    Source,
    Staging,
    TagDefinition,
)
from catalog.storage.disk_trouble import disk_trouble
from catalog.storage.postgres import Postgres
from catalog.storage.private_files import make_private_file, make_private_folder
from catalog.storage.write_lock import write_lock
from catalog.values import PLATFORMS, Problem

NEWEST = "0011"
"""Newest revision in migrations/versions; revisions are numbered, so that they can be compared."""

_KEYS_PER_STATEMENT = 500
_BUSY_S = 30
_KIND = "framesift_transaction"
"""Execution option of a connection: what its transactions are begun as, one of the next."""

_READS, _WRITES, _WRITES_AT_ONCE = "reads", "writes", "writes at once"

_TRANSACTION_LOCK = 0x6672616D65  # any number that no other program of the database takes


def is_made(place: Path | Postgres) -> bool:
    """Whether there are records at a place.

    Raises:
        StorageError: The server cannot be reached.
        OSError: The file cannot be looked for.
    """
    if isinstance(place, Path):
        return place.exists()
    with place.connected() as connection:
        row = connection.execute("SELECT to_regclass('alembic_version')").fetchone()
        return row is not None and row[0] is not None


class RecordStore:
    """The records of one Framesift home. Safe to use from several threads and processes.

    Attributes:
        user: Who asks, where that one sees some rows only; else empty.
        places: Where the datasets, jobs and caches that they name lie; None where that is not
            known, and paths are as the database has them.
    """

    user: str = ""

    @property
    def own_names(self) -> str:
        """What names of new datasets and jobs begin with, to be told from those of others."""
        return f"{self.user}~" if self.user else ""

    def __init__(
        self,
        place: Path | Postgres,
        *,
        places: HomePlaces | None = None,
        lock_wait_s: float = 60.0,
    ) -> None:
        """Open the database, made or migrated first where needed.

        Args:
            place: The SQLite file, or the PostgreSQL database.
            places: Where what they name lies; by default the home that has the file at
                records/records.sqlite.
            lock_wait_s: How long to wait for another process that is migrating it.

        Raises:
            StorageError: The folder or file cannot be written, or the server not be reached.
            CatalogBusy: Another process is migrating it and does not finish.
            CatalogDamaged: It is no such database, or one of a later version.
        """
        self.place = place
        if places is None and isinstance(place, Path) and place.parent.name == "records":
            places = HomePlaces(place.parent.parent)
        self.places = places
        if isinstance(place, Path):
            try:
                make_private_folder(place.parent)
            except OSError as error:
                raise StorageError(
                    f"{place.parent}: cannot be made: {error.strerror}", str(place.parent)
                ) from error
            with suppress(OSError):  # SQLite says what is wrong
                make_private_file(place)
        self.engine = _sqlite_engine(place) if isinstance(place, Path) else _postgres_engine(place)
        use(self.engine.dialect, places)
        with _translated(place):
            self._migrate(lock_wait_s)

    @contextmanager
    def session(self, *, waits: bool = True) -> Iterator[Session]:
        """One transaction that writes: committed at the end of the block, undone when it raises.

        Args:
            waits: For another transaction that writes, _BUSY_S at most.

        Raises:
            CatalogBusy: Another transaction writes, and did not end in time.
        """
        kind = _WRITES if waits else _WRITES_AT_ONCE
        engine = self.engine.execution_options(**{_KIND: kind})
        new_session = Session(engine, expire_on_commit=False)
        with _translated(self.place), new_session as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One transaction that only reads, of one state, and waits for no other."""
        engine = self.engine.execution_options(**{_KIND: _READS})
        with _translated(self.place), Session(engine, expire_on_commit=False) as session:
            yield session

    def _migrate(self, lock_wait_s: float) -> None:
        if self._revision() == NEWEST:
            return
        # Alembic takes a third of a second to import, and is needed once per release.
        from alembic.util import CommandError

        from catalog.records.migrate import upgrade

        held = "the records are being migrated"
        with (
            write_lock(self.place.with_suffix(".migrating"), lock_wait_s, held)
            if isinstance(self.place, Path)
            else self.place.lock("records-migration", lock_wait_s, held)
        ):
            found = self._revision()
            if found is not None and found > NEWEST:
                raise CatalogDamaged(
                    f"{self.place}: written by a later version of Framesift (schema {found}); "
                    "use that version"
                )
            try:
                upgrade(self.engine)
            except CommandError as error:
                raise CatalogDamaged(
                    f"{self.place}: its schema {found} is none that Framesift ever wrote; "
                    "restore it from a backup, or move it away and start anew"
                ) from error

    def _revision(self) -> str | None:
        reads = self.engine.execution_options(**{_KIND: _READS})
        with reads.connect() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            revision: str | None = connection.scalar(
                text("SELECT version_num FROM alembic_version")
            )
            return revision

    # Sources

    def add_source(self, source: Source) -> Source:
        """Keep a new source.

        Raises:
            InvalidInput: Unknown platform.
            AlreadyExists: The name, or its cluster and datasource, are taken.
        """
        if source.platform not in PLATFORMS:
            raise InvalidInput(
                f"unknown platform '{source.platform}': expected one of {', '.join(PLATFORMS)}"
            )
        with self.session() as session:
            if session.scalar(select(Source).where(Source.name == source.name)):
                raise AlreadyExists("source", source.name, "choose another name or remove it first")
            twin = session.scalar(
                select(Source).where(
                    Source.cluster == source.cluster, Source.datasource == source.datasource
                )
            )
            if twin is not None:
                raise AlreadyExists(
                    "datasource",
                    source.datasource,
                    f"source {twin.name} has it on cluster {source.cluster}; "
                    "give --cluster or --datasource another name",
                )
            session.add(source)
        return source

    def source(self, name: str) -> Source:
        """The source of that name.

        Raises:
            NotFound: There is none.
        """
        with self.reading() as session:
            source = session.scalar(select(Source).where(Source.name == name))
            if source is None:
                known = ", ".join(session.scalars(select(Source.name).order_by(Source.name)))
                raise NotFound(
                    "source", name, f"known: {known}" if known else "add one: framesift source add"
                )
            return source

    def sources(self) -> list[Source]:
        """Every source, by name."""
        with self.reading() as session:
            return list(session.scalars(select(Source).order_by(Source.name)))

    # Scans

    def scans(
        self,
        *,
        source: str | None = None,
        state: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[tuple[Scan, str]]:
        """Scans with their source's name, newest first.

        Args:
            source: Only of the source of this name.
            state: Only in this state.
            before: Only those with a smaller number.
            limit: At most so many.

        Raises:
            NotFound: There is no such source.
        """
        query = select(Scan, Source.name).join(Source).order_by(Scan.id.desc()).limit(limit)
        if source is not None:
            query = query.where(Scan.source_id == self.source(source).id)
        if state is not None:
            query = query.where(Scan.state == state)
        if before is not None:
            query = query.where(Scan.id < before)
        with self.reading() as session:
            return [(scan, name) for scan, name in session.execute(query)]

    def scan(self, number: int) -> tuple[Scan, str]:
        """A scan and its source's name.

        Raises:
            NotFound: There is none of that number.
        """
        found = self.scans(before=number + 1, limit=1) if 0 < number < 2**62 else []
        if not found or found[0][0].id != number:
            raise NotFound("scan", str(number), "GET /v1/scans lists them")
        return found[0]

    def problems(
        self,
        *,
        scan_id: int | None = None,
        source_id: int | None = None,
        below: Sequence[str] = ("",),
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Problem]:
        """What is wrong with a source's files now, or what a scan met; in the order it was met.

        With ``below``, of the files only whose keys begin with one of these.
        """
        query = select(ScanProblem).order_by(ScanProblem.id)
        if scan_id is not None:
            query = query.where(ScanProblem.scan_id == scan_id)
        if source_id is not None:
            query = query.where(ScanProblem.source_id == source_id)
        if "" not in below:
            begins = (func.substr(ScanProblem.key, 1, len(start)) == start for start in below)
            query = query.where(or_(*begins))
        if limit is not None:
            query = query.limit(limit).offset(offset)
        with self.reading() as session:
            return [Problem(row.kind, row.key, row.reason) for row in session.scalars(query)]

    def replace_problems(
        self, source_id: int, scan_id: int, examined: Sequence[str], problems: Sequence[Problem]
    ) -> None:
        """Forget what was wrong with the examined files, and keep what a scan found now."""
        keys = list(dict.fromkeys([*examined, *(problem.key for problem in problems)]))
        with self.session() as session:
            for start in range(0, len(keys), _KEYS_PER_STATEMENT):
                some = keys[start : start + _KEYS_PER_STATEMENT]
                session.execute(
                    delete(ScanProblem).where(
                        ScanProblem.source_id == source_id, ScanProblem.key.in_(some)
                    )
                )
            session.add_all(
                ScanProblem(
                    source_id=source_id, scan_id=scan_id, kind=p.kind, key=p.key, reason=p.reason
                )
                for p in problems
            )

    def set_class_list(self, source_id: int, class_list: dict[str, str]) -> None:
        """Keep the class list that a source's labels were counted with."""
        with self.session() as session:
            session.get_one(Source, source_id).class_list = class_list

    def last_scan(self, source_id: int) -> Scan | None:
        """The newest scan of a source; None before the first."""
        with self.reading() as session:
            return session.scalar(
                select(Scan).where(Scan.source_id == source_id).order_by(Scan.id.desc()).limit(1)
            )

    # Tags

    def class_names(self) -> dict[str, str]:
        """Class name of each class tag, in class order."""
        with self.reading() as session:
            rows = session.execute(
                select(TagDefinition.tag, TagDefinition.title)
                .where(TagDefinition.family == "class_pixels")
                .order_by(TagDefinition.position)
            )
            return {row.tag: row.title for row in rows}

    def define_class_tags(self, class_names: dict[str, str]) -> None:
        """Keep the class name of each class tag; known tags keep their place."""
        with self.session() as session:
            known = {row.tag: row for row in session.scalars(select(TagDefinition))}
            position = max((row.position for row in known.values()), default=-1)
            for tag, title in class_names.items():
                if tag in known:
                    known[tag].title = title
                    continue
                position += 1
                session.add(
                    TagDefinition(tag=tag, family="class_pixels", title=title, position=position)
                )

    # Datasets

    def datasets(self, name: str | None = None) -> list[Dataset]:
        """Every version of every dataset, or of that one; by name, oldest version first."""
        query = select(Dataset).order_by(Dataset.name, Dataset.version)
        if name is not None:
            query = query.where(Dataset.name == name)
        with self.reading() as session:
            return list(session.scalars(query))

    def versions(self, name: str) -> list[Dataset]:
        """Versions that "name" or "name@version" means, newest first; none where there is none."""
        with self.reading() as session:
            return list(session.scalars(_named(name)))

    def dataset(self, name: str) -> Dataset:
        """A dataset by "name" (its newest version) or "name@version".

        Raises:
            NotFound: There is none.
        """
        with self.reading() as session:
            found = session.scalar(_named(name).limit(1))
            if found is None:
                raise NotFound("dataset", name, _datasets_there_are(session, name))
            return found

    def whole_dataset(self, name: str) -> Dataset:
        """As `dataset`, for what needs each of its frames.

        Raises:
            NotFound: There is none.
            NotAllowed: Not all of its frames may be seen.
        """
        return self.dataset(name)

    def own_dataset(self, name: str) -> Dataset:
        """As `whole_dataset`, for what makes another version of it.

        Raises:
            NotFound: There is none.
            NotAllowed: Not all of its frames may be seen, or it is somebody else's.
        """
        return self.whole_dataset(name)

    # Jobs

    def _seen_jobs(self) -> Select[Job]:
        return select(Job)

    def job(self, name: str) -> Job:
        """The job of that name.

        Raises:
            NotFound: There is none.
        """
        with self.reading() as session:
            job = session.scalar(self._seen_jobs().where(Job.name == name))
            if job is None:
                raise NotFound("job", name, "framesift jobs list and GET /v1/jobs list them")
            return job

    def jobs(
        self,
        *,
        kind: str | None = None,
        states: Sequence[str] | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """Jobs, newest first.

        Args:
            kind: Only of this kind.
            states: Only in one of these states.
            before: Only those with a smaller id.
            limit: At most so many.
        """
        query = self._seen_jobs().order_by(Job.id.desc()).limit(limit)
        if kind is not None:
            query = query.where(Job.kind == kind)
        if states is not None:
            query = query.where(Job.state.in_(states))
        if before is not None:
            query = query.where(Job.id < before)
        with self.reading() as session:
            return list(session.scalars(query))

    # Stagings

    def _seen_stagings(self) -> Select[Staging, Dataset]:
        return select(Staging, Dataset).join(Dataset)

    def stagings(
        self,
        *,
        dataset_id: int | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[tuple[Staging, str]]:
        """Stagings with the "name@version" of what was staged, newest first.

        Args:
            dataset_id: Only of this dataset.
            before: Only those with a smaller id.
            limit: At most so many.
        """
        query = self._seen_stagings().order_by(Staging.id.desc()).limit(limit)
        if dataset_id is not None:
            query = query.where(Staging.dataset_id == dataset_id)
        if before is not None:
            query = query.where(Staging.id < before)
        with self.reading() as session:
            return [
                (staging, f"{dataset.name}@{dataset.version}")
                for staging, dataset in session.execute(query)
            ]

    def staging(self, number: int) -> tuple[Staging, str]:
        """A staging and the "name@version" of what was staged.

        Raises:
            NotFound: There is none of that number.
        """
        found = self.stagings(before=number + 1, limit=1) if 0 < number < 2**31 else []
        if not found or found[0][0].id != number:
            raise NotFound("staging", str(number), "GET /v1/stagings lists them")
        return found[0]


def _named(name: str) -> Select[Dataset]:
    """Datasets by "name" or "name@version", newest first."""
    # The "@" of a user's name is before the "~" that ends it in the names of their datasets.
    owner, mark, rest = name.rpartition("~")
    base, _, version = rest.partition("@")
    query = select(Dataset).where(Dataset.name == owner + mark + base)
    if version:
        # A number of more digits than SQLite holds is no version either.
        known = version.isascii() and version.isdigit() and len(version) < 19
        query = query.where(Dataset.version == (int(version) if known else -1))
    return query.order_by(Dataset.version.desc())


def _datasets_there_are(session: Session, name: str) -> str:
    """What an error says where there is no such dataset: its versions, else the others' names."""
    base, mark, _ = name.rpartition("@")
    if mark:
        versions = [
            str(found.version)
            for found in session.scalars(_named(base).order_by(None).order_by(Dataset.version))
        ]
        if versions:
            return f"'{base}' has no such version, there are {', '.join(versions)}"
    names = session.scalars(select(Dataset.name).distinct().order_by(Dataset.name)).all()
    if not names:
        return "there are none yet: framesift dataset create and POST /v1/datasets make one"
    return f"known: {', '.join(names)}"


def _sqlite_engine(path: Path) -> Engine:
    engine = create_engine(
        make_url("sqlite://").set(database=str(path)), connect_args={"timeout": _BUSY_S}
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
        kind = connection.get_execution_options().get(_KIND)
        wait_ms = 0 if kind == _WRITES_AT_ONCE else _BUSY_S * 1000
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {wait_ms}")
        connection.exec_driver_sql("BEGIN" if kind == _READS else "BEGIN IMMEDIATE")

    return engine


def _postgres_engine(place: Postgres) -> Engine:
    # The address goes around SQLAlchemy's URL, which errors and logs would show.
    engine = create_engine(
        "postgresql+psycopg://", connect_args=place.keywords, pool_pre_ping=True, pool_recycle=1800
    )

    @event.listens_for(engine, "begin")
    def _begin(connection) -> None:  # type: ignore[no-untyped-def]
        kind = connection.get_execution_options().get(_KIND)
        if kind == _READS:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return
        # One transaction at a time, as SQLite has it: what reads and then writes needs no retries.
        wait = "1ms" if kind == _WRITES_AT_ONCE else f"{_BUSY_S}s"
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{wait}'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_TRANSACTION_LOCK})")

    return engine


@contextmanager
def _translated(place: Path | Postgres) -> Iterator[None]:
    """Turn SQLAlchemy's errors about the database itself into ours."""
    try:
        yield
    except (IntegrityError, DataError) as error:
        raise InvalidInput(
            f"{place}: the change contradicts what is recorded: {_one_line(error.orig)}"
        ) from error
    except DBAPIError as error:
        if isinstance(place, Postgres):
            raise _ours_of_server(place, error) from None  # the cause may hold the password
        raise _ours(place, _one_line(error.orig)) from error
    except sqlite3.Error as error:  # while connecting, where SQLAlchemy does not wrap it
        raise _ours(place, _one_line(error)) from error
    except SQLAlchemyError as error:
        raise CatalogDamaged(f"{place}: {_one_line(error)}") from error


def _ours(place: Path | Postgres, reason: str) -> FramesiftError:
    if "locked" in reason:
        return CatalogBusy(f"{place}: busy for over {_BUSY_S} s; try again")
    if any(word in reason for word in ("full", "readonly", "unable to open", "disk I/O")):
        trouble = disk_trouble([place.parent]) if isinstance(place, Path) else None
        if trouble is not None:
            return StorageError(
                f"{trouble[0]}: {trouble[1]}. Nothing of a change under way was kept",
                str(trouble[0]),
            )
        return StorageError(f"{place}: cannot be read or written: {reason}", str(place))
    return CatalogDamaged(
        f"{place}: the records cannot be used: {reason}; "
        "restore them from a backup, or move the file away and start anew"
    )


def _ours_of_server(place: Postgres, error: DBAPIError) -> FramesiftError:
    reason = place.clean(_one_line(error.orig))
    if "lock timeout" in reason:
        return CatalogBusy(f"{place}: busy for over {_BUSY_S} s; try again")
    if isinstance(error, OperationalError):
        return StorageError(f"{place}: no answer: {reason}; try again when it answers", str(place))
    return CatalogDamaged(
        f"{place}: the records cannot be used: {reason}; restore the database from a backup"
    )


def _one_line(error: BaseException | None) -> str:
    return " ".join(str(error).split())
