"""One Framesift home, opened: its stores and its folders."""

import threading
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from api.machine import memory_mb
from api.settings import Secret, Settings
from catalog.accounts.row_collections import named_rules
from catalog.errors import FramesiftError, NotAllowed, NotMade, StorageError, StoreAway
from catalog.records.counts import record_counts
from catalog.records.home_layout import HomeLayout
from catalog.records.reading import RecordReader, Records, is_older
from catalog.records.tag_definitions import recorded_class_names
from catalog.storage.location import CatalogLocation
from catalog.storage.lru import Lru
from catalog.storage.postgres import Postgres
from catalog.storage.private_files import tighten, tighten_database
from catalog.storage.s3_prefix import S3Access, S3Prefix
from catalog.values import Owner
from ingest.sources import sealed_keys
from ingest.sources.sealed_keys import SecretKey

if TYPE_CHECKING:
    from catalog.lake.catalog import Catalog
    from catalog.limited_store import LimitedStore
    from catalog.records.store import RecordStore
    from catalog.store import CatalogStore
    from pipeline.afm.stage import AfmAccess
    from pipeline.archive.recall import ArchiveAccess
    from pipeline.datasets.visible_datasets import VisibleDatasets, VisiblePart
    from pipeline.jobs.queue import JobQueue


def database_at(url: Secret | None) -> Path | Postgres | None:
    """The database of a setting: a postgresql:// URL or the path of a SQLite file."""
    text = url.text if url is not None else ""
    if not text:
        return None
    if "://" in text:
        return Postgres.parse(text)
    return Path(text).expanduser().absolute()


def data_at(text: str | None, access: S3Access) -> Path | S3Prefix | None:
    """The place of a setting: an s3:// URI or a folder."""
    if not text:
        return None
    if "://" in text:
        return S3Prefix.parse(text, access)
    return Path(text).expanduser().absolute()


AWAY = "a database or store of this server does not answer; try again in some seconds"
"""What callers are told of `StoreAway` who may not know where databases are."""

_HOME = "FRAMESIFT_HOME"

_Rows = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
"""Rules of collections, and the names by which a user knows them."""

_PARTS = 32_768
"""Visible parts of datasets, of all limited users, that a process remembers, some 1.5 kB each."""

_LIMITED = 256
"""Different sets of rows of which is kept what is known, for those who may see no others."""


class Workspace:
    """Stores and folders of one home; each store is opened when first used, and imported then.

    A command that needs one of them only, starts in half the time.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        serves: bool = False,
        processes: int = 1,
        on_making: Callable[[str], None] | None = lambda _: None,
    ) -> None:
        """Open nothing yet.

        Args:
            serves: Many questions will be asked of this process.
            processes: How many such processes share what a server may hold in memory.
            on_making: Told what is made where there was none; None to make nothing.
        """
        self.settings, self.serves, self._processes = settings, serves, processes
        self.on_making = on_making
        self.home = settings.home.expanduser().absolute()
        self._limited: Lru[_Rows, tuple[LimitedStore, VisibleDatasets]] = Lru(_LIMITED)
        self._seen: LimitedStore | None = None
        self._seen_parts: Lru[str, VisiblePart | None] = Lru(_PARTS)
        self._limiting = threading.Lock()
        key = settings.secret_key.text if settings.secret_key else ""
        self.secret_key = SecretKey(self.home / "secret.key", key)
        sealed_keys.use(self.secret_key)

    @cached_property
    def catalog_location(self) -> CatalogLocation:
        """Where the catalog lies."""
        settings, default = self.settings, CatalogLocation.in_folder(self.home / "catalog")
        return CatalogLocation(
            database_at(settings.catalog_metadata) or default.metadata,
            data_at(settings.catalog_data, self.s3_access) or default.data,
        )

    @property
    def s3_access(self) -> S3Access:
        """The access to catalogs in S3."""
        settings = self.settings
        return S3Access(
            settings.catalog_s3_endpoint,
            settings.catalog_s3_profile,
            settings.catalog_s3_region,
            settings.catalog_s3_ca_bundle,
        )

    @property
    def catalog(self) -> "Catalog":
        """The catalog of files and tags, as far as this workspace's user may see it."""
        return self.whole_catalog if self._seen is None else self._seen

    @property
    def whole_catalog(self) -> "CatalogStore":
        """The catalog with every row, which can be written.

        Raises:
            NotAllowed: This workspace's user may see some rows only.
        """
        if self._seen is not None:
            raise NotAllowed("the catalog is written by those who may see every row")
        return self._store

    @property
    def opened_catalog(self) -> "CatalogStore | None":
        """`whole_catalog`, if it has been used."""
        return self.whole_catalog if "_store" in self.__dict__ else None

    @cached_property
    def _store(self) -> "CatalogStore":
        from catalog.lake import extensions
        from catalog.lake.metadata.own_tables import is_made
        from catalog.store import CatalogStore

        if not self.serves:
            from api.returned_memory import return_freed_memory

            return_freed_memory()
        location, metadata = self.catalog_location, self.settings.catalog_metadata
        variable = "FRAMESIFT_CATALOG_METADATA" if metadata else _HOME
        is_there = self._is_there("catalog", location.metadata, variable, lambda: is_made(location))
        self._migrate_records()
        extensions.remember_in(self.home / "checked_extensions.json")
        store = CatalogStore(
            location,
            lock_wait_s=self.settings.lock_wait_s,
            memory_limit=self.settings.query_memory,
            spill_limit=self.settings.query_spill,
            snapshot_memory_mb=self._snapshot_memory_mb if self.serves else 0,
            share_budget=self.serves,
            timeout_s=self.settings.query_timeout_s,
            class_names=self.class_names,
            collection_column=self._collection_column,
        )
        if self.serves:
            from query.statistics.facets import prepare

            store.memory.prepare_by(partial(prepare, store))
        if not is_there and self.on_making is not None:
            self.on_making(f"made a new catalog: {location.metadata}")
        return store

    def _migrate_records(self) -> None:
        """Migrate records of an older schema, before the catalog's format is looked at.

        Those in PostgreSQL, where looking costs each command a connection, are migrated as servers
        start, which open them first, and as a command first reads them.
        """
        location = self.records_place
        if isinstance(location, Path) and is_older(location):
            _ = self.records

    @property
    def _snapshot_memory_mb(self) -> int:
        budget = self.settings.snapshot_memory_mb
        return (memory_mb() // 4 if budget is None else budget) // self._processes

    def limited_to(self, rules: tuple[str, ...], owner: Owner) -> "Workspace":
        """The same home for a user who sees the rows of collections with these rules, or none."""
        from catalog.limited_store import LimitedStore
        from pipeline.datasets.visible_datasets import VisibleDatasets, visible_to
        from pipeline.manifest_store import read_manifest
        from query.question.collection_rule import collection_column, rows_of

        # A collection that changed after the caller's rules were read names nothing.
        named = tuple(pair for pair in named_rules(self.records, owner.name) if pair[1] in rules)
        with self._limiting:
            rows = self._limited.get((rules, named))
            if rows is None:
                column = collection_column(named)
                catalog = LimitedStore(self.whole_catalog, rows_of(rules), column)
                folder = self.home / "seen"
                read = partial(read_manifest, self.records)
                rows = catalog, VisibleDatasets(catalog, folder, read, self._seen_parts)
                self._limited.put((rules, named), rows)
        limited = copy(self)
        limited._seen, datasets = rows
        limited.records = self.records.limited_to(
            owner, visible_to(owner, datasets, has_rows=bool(rules)), datasets.manifest
        )
        return limited

    @cached_property
    def records(self) -> "RecordStore":
        """The records of sources, scans, datasets and jobs."""
        from catalog.records.store import RecordStore, is_made

        file = self.home / "records" / "records.sqlite"
        with suppress(OSError):  # the store says what is wrong
            if file.is_file():  # it is a home, and no other folder
                tighten(self.home)
        location, variable = self.records_place, _HOME
        if self.settings.records:
            variable = "FRAMESIFT_RECORDS"
        is_there = self._is_there("records", location, variable, lambda: is_made(location))
        store = RecordStore(
            location, home_layout=self.home_layout, lock_wait_s=self.settings.lock_wait_s
        )
        if not is_there and self.on_making is not None:
            self.on_making(f"made new records: {location}")
        return store

    @property
    def readable_records(self) -> Records:
        """The records, to be read only: what commands list and show imports no SQLAlchemy for it.

        Of a limited user the user's own, as `records`.
        """
        if self.serves or self._records_are_open:
            return self.records
        return self._reader

    @cached_property
    def _reader(self) -> Records:
        location = self.records_place
        if isinstance(location, Path):
            with suppress(OSError):
                if location.is_file():
                    tighten(self.home)
                    tighten_database(location)
        return RecordReader(location, self.home_layout, lambda: self.records)

    @property
    def is_limited(self) -> bool:
        """True where its user may see some rows only."""
        return self._records_are_open and bool(self.records.user)

    def place(self, path: str) -> str:
        """A path as answers tell it: users limited to collections learn no folder of the server.

        Then it is relative to the home, or the last part of what lies elsewhere.
        """
        if not self.is_limited or "://" in path:
            return path
        home = f"{self.home}/"
        return path.removeprefix(home) if path.startswith(home) else Path(path).name

    def error_text(self, error: FramesiftError) -> str:
        """An error's text for users limited to collections, without folders and hosts.

        Paths are relative to the home, the cache, or where catalog and records lie.
        """
        if isinstance(error, StoreAway):  # what a database's library says names hosts
            return AWAY
        text = str(error)
        location, records = self.catalog_location, self.records_place
        paths = (self.home, self.cache, location.data, location.metadata, records)
        for path in sorted(set(map(str, paths)), key=len, reverse=True):
            name = "the database" if "://" in path else Path(path).name
            text = text.replace(f"{path}/", "").replace(path, name)
        return text

    def class_names(self) -> dict[str, str]:
        """Class name of each class tag, in class order."""
        return recorded_class_names(self.readable_records)

    def _collection_column(self) -> str:
        """Value of the column `collection`, for who sees every row; see TableLayout."""
        database = self.records_place
        if isinstance(database, Path) and not database.exists():
            return ""
        named = named_rules(self.readable_records)
        if not named:
            return ""
        from query.question.collection_rule import collection_column

        return collection_column(named)

    def record_counts(self) -> tuple[int, int, int]:
        """Numbers of sources, versions of datasets, and jobs: of a limited user the user's own."""
        return record_counts(self.readable_records)

    @property
    def _records_are_open(self) -> bool:
        return "records" in self.__dict__

    @property
    def records_place(self) -> Path | Postgres:
        """The database of the records."""
        return database_at(self.settings.records) or self.home / "records" / "records.sqlite"

    def _is_there(
        self, what: str, location: Path | Postgres, variable: str, is_made: Callable[[], bool]
    ) -> bool:
        """Return whether it has been made; refused where it must have been."""
        try:
            is_there = is_made()
        except OSError as error:
            raise StorageError(
                f"{location}: cannot be looked for: {error.strerror}", str(location)
            ) from error
        if not is_there and self.on_making is None:
            raise NotMade(what, str(location), variable)
        return is_there

    @cached_property
    def home_layout(self) -> HomeLayout:
        """Where datasets, jobs and caches lie."""
        return HomeLayout.of(self.home, self.catalog_location)

    @property
    def images(self) -> Path:
        """Folder of pictures that were made of frames."""
        return self.home / "cache" / "images"

    @property
    def indexes(self) -> Path:
        """Folder of tar archives' indexes."""
        return self.home / "indexes"

    @property
    def jobs(self) -> Path:
        """Folder of jobs' files."""
        return self.home / "jobs"

    @property
    def job_queue(self) -> "JobQueue":
        """The home's jobs, and how many of them run at once."""
        from pipeline.jobs.queue import JobQueue

        settings = self.settings
        return JobQueue(
            self.jobs,
            settings.job_slots,
            settings.command_slots,
            settings.job_environment,
            settings.jobs_each,
            settings.ranks_each,
            settings.job_workers,
            settings.jobs_in_container,
            self.cache,
            self.variables,
            backends=self.home / "backends.toml",
        )

    @property
    def afm_access(self) -> "AfmAccess":
        """The way from this machine to AFM."""
        from pipeline.afm.mmafmctl import PrefetchOptions
        from pipeline.afm.stage import AfmAccess

        settings = self.settings
        return AfmAccess(
            settings.afm_command,
            self.list_folder,
            settings.jobs_in_container,
            settings.afm_cos_command,
            PrefetchOptions(settings.afm_gateway, settings.afm_force),
        )

    @property
    def archive_access(self) -> "ArchiveAccess":
        """The settings by which this machine reaches archives that hold a source's files."""
        from ingest.sources.archived import RestoreRequest
        from pipeline.archive.recall import ArchiveAccess

        settings = self.settings
        restore = RestoreRequest(settings.restore_days, settings.restore_tier)
        return ArchiveAccess(
            settings.recall_command, self.list_folder, restore, settings.migrate_command
        )

    @property
    def list_folder(self) -> Path:
        """Folder of lists of files for storage systems' commands."""
        return (self.settings.list_folder or self.home / "lists").expanduser().absolute()

    @property
    def cache(self) -> Path:
        """Folder that datasets are staged into."""
        return (self.settings.cache or self.home / "cache").expanduser().absolute()

    @property
    def variables(self) -> dict[str, str]:
        """Variables by which a command that this process starts opens the same home.

        What is secret it inherits (pipeline.jobs.environment).
        """
        settings = self.settings
        locations = {
            "CACHE": settings.cache and self.cache,
            "CATALOG_METADATA": database_at(settings.catalog_metadata),
            "CATALOG_DATA": data_at(settings.catalog_data, self.s3_access),
            "RECORDS": database_at(settings.records),
        }
        # It starts in another folder, where a path that is not whole would lead elsewhere.
        return {"FRAMESIFT_HOME": str(self.home)} | {
            f"FRAMESIFT_{name}": str(location)
            for name, location in locations.items()
            if isinstance(location, Path)
        }

    def close(self) -> None:
        """Close what is open."""
        for catalog, _ in self._limited.clear():
            catalog.close()
        if "_store" in self.__dict__:
            self._store.close()
