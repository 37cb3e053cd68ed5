"""One scan, or removal, of a source at a time; and one watcher."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from catalog.records.tables import Source
from catalog.store import CatalogStore


@contextmanager
def scan_lock(store: CatalogStore, source: Source) -> Iterator[None]:
    """Hold the source for the block; it is free when the process dies."""
    with store.lock(f"scan-{source.id}", f"source {source.name} is being scanned", wait_s=0.0):
        yield


@contextmanager
def watch_lock(store: CatalogStore, source: Source) -> Iterator[Callable[[], None]]:
    """Keep other watchers off the source for the block; scans of it may run.

    Yields:
        A check that raises StorageError where the lock was lost meanwhile.
    """
    reason = f"source {source.name} is being watched"
    with store.lock(f"watch-{source.id}", reason, wait_s=0.0) as still_held:
        yield still_held
