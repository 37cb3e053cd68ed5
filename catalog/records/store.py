"""The records' database: opened, brought to the newest schema, and asked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import (
    Select,
    inspect,
    select,
    text,
)
from sqlalchemy.orm import Session

# Their tables are records, too: backups and copies hold them.
import catalog.accounts.user_tables
import catalog.policies.tables  # noqa: F401
from catalog.errors import (
    AlreadyExists,
    CatalogDamaged,
    InvalidInput,
    NotFound,
    StorageError,
)
from catalog.records.engine import (
    KIND,
    READS,
    WRITES,
    WRITES_AT_ONCE,
    postgres_engine,
    sqlite_engine,
    translated,
)
from catalog.records.home_places import HomePlaces
from catalog.records.paths import use
from catalog.records.tables import (
    Dataset,
    Job,
    Source,
    Staging,
)
from catalog.storage.postgres import Postgres
from catalog.storage.private_files import make_private_file, make_private_folder
from catalog.storage.write_lock import write_lock
from catalog.values import PLATFORMS

NEWEST = "0011"
"""Newest revision in migrations/versions; revisions are numbered, so that they can be compared."""


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
        self.engine = sqlite_engine(place) if isinstance(place, Path) else postgres_engine(place)
        use(self.engine.dialect, places)
        with translated(place):
            self._migrate(lock_wait_s)

    @contextmanager
    def session(self, *, waits: bool = True) -> Iterator[Session]:
        """One transaction that writes: committed at the end of the block, undone when it raises.

        Args:
            waits: For another transaction that writes, BUSY_S at most.

        Raises:
            CatalogBusy: Another transaction writes, and did not end in time.
        """
        kind = WRITES if waits else WRITES_AT_ONCE
        engine = self.engine.execution_options(**{KIND: kind})
        new_session = Session(engine, expire_on_commit=False)
        with translated(self.place), new_session as session, session.begin():
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One transaction that only reads, of one state, and waits for no other."""
        engine = self.engine.execution_options(**{KIND: READS})
        with translated(self.place), Session(engine, expire_on_commit=False) as session:
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
        reads = self.engine.execution_options(**{KIND: READS})
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
            limit: At most this many.
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

    def seen_stagings(self) -> Select[Staging, Dataset]:
        """Stagings and their datasets, those that may be seen."""
        return select(Staging, Dataset).join(Dataset)


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
