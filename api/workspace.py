"""One Framesift home, opened: its stores and its folders."""

from functools import cached_property
from pathlib import Path

from api.settings import Settings
from catalog.record_store import RecordStore
from catalog.store import CatalogLocation, CatalogStore


class Workspace:
    """Stores and folders of one home; each store is opened when first used."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.home = settings.home.expanduser().absolute()

    @cached_property
    def catalog(self) -> CatalogStore:
        """The catalog of files and tags."""
        return CatalogStore(
            CatalogLocation.in_folder(self.home / "catalog"),
            lock_wait_s=self.settings.lock_wait_s,
            memory_limit=self.settings.query_memory,
        )

    @cached_property
    def records(self) -> RecordStore:
        """The records of sources, scans, datasets and jobs."""
        return RecordStore(
            self.home / "records" / "records.sqlite", lock_wait_s=self.settings.lock_wait_s
        )

    @property
    def datasets(self) -> Path:
        """Folder of dataset manifests."""
        return self.home / "datasets"

    @property
    def indexes(self) -> Path:
        """Folder of tar archives' indexes."""
        return self.home / "indexes"

    @property
    def jobs(self) -> Path:
        """Folder of jobs' files."""
        return self.home / "jobs"

    @property
    def cache(self) -> Path:
        """Folder that datasets are staged into."""
        return (self.settings.cache or self.home / "cache").expanduser().absolute()

    def close(self) -> None:
        """Close what is open."""
        if "catalog" in self.__dict__:
            self.catalog.close()
