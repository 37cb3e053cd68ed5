"""Interfaces of catalogs: one that answers questions, and one that holds every row and writes."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import duckdb

from catalog.lake.snapshot import Snapshot


class Catalog(Protocol):
    """A catalog, or some of its rows, to be read: CatalogStore, LimitedStore.

    Safe to use from several threads.
    """

    def reading(self, at: int | None = None) -> AbstractContextManager[Snapshot]:
        """A snapshot, inside one read transaction.

        Args:
            at: Number of the snapshot, with the tags and views of its time; the newest when None.

        Raises:
            NotFound: There never was such a snapshot, or it has expired.
            StorageError: The catalog's files cannot be read.
            CatalogBusy: They were compacted away under this reader.
            CatalogDamaged: They do not fit together.
        """

    def reading_files(self, at: int | None = None) -> AbstractContextManager[Snapshot]:
        """`reading`, from the catalog's own files also where memory holds the snapshot."""

    def reading_portions(self, at: int | None = None) -> AbstractContextManager[Snapshot]:
        """`reading`, for many statements of some ten thousand rows each.

        A process that answers nobody else computes them on one thread.
        """

    def snapshot(self) -> int:
        """Number of the newest committed snapshot."""

    def quiesced(self, activity: str) -> AbstractContextManager[Callable[[], None]]:
        """The catalog quiesced for the block: nothing is written, and no snapshot expires.

        Yields:
            A check that raises StorageError where the lock was lost meanwhile.

        Raises:
            CatalogBusy: Another process held the write lock for longer; the message names it.
        """


class WritableCatalog(Catalog, Protocol):
    """A catalog with every row, which can be written: CatalogStore."""

    def inspecting(
        self, at: int | None = None
    ) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """`reading`, with DuckLake's own functions and tables; never for a user's statement."""

    def writing(
        self, reason: str, author: str = "framesift"
    ) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """A connection inside the one write transaction; commits at the end, or undoes it all.

        Args:
            reason: What the snapshot is for; kept with it.

        Raises:
            CatalogBusy: The write lock was not free in time.
            StorageError: The commit could not be written.
        """

    def lock(
        self, name: str, activity: str, wait_s: float | None = None
    ) -> AbstractContextManager[Callable[[], None]]:
        """A lock of that name for the block, which every process on this catalog sees.

        Args:
            activity: What another holder is doing, for the message.
            wait_s: How long to wait for another holder; the store's own wait when None.

        Yields:
            A check that raises StorageError where the lock was lost meanwhile.

        Raises:
            CatalogBusy: Another process held it for longer; the message names it.
            StorageError: The lock cannot be asked for.
        """
