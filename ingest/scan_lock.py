"""One scan, or removal, of a source at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

from catalog.store import CatalogStore
from catalog.tables import Source
from catalog.write_lock import write_lock


@contextmanager
def scan_lock(store: CatalogStore, source: Source) -> Iterator[None]:
    """Hold the source for the block; the kernel frees it when the process dies.

    Raises:
        CatalogBusy: Another process scans or removes the source; the message names it.
    """
    path = store.location.metadata.with_name(f"scan-{source.id}.lock")
    with write_lock(path, 0.0, f"source {source.name} is being scanned"):
        yield
