"""Naming a snapshot so that compaction cannot expire it in between."""

from collections.abc import Iterator
from contextlib import contextmanager

from catalog.lake.catalog import Catalog


@contextmanager
def naming(catalog: Catalog, snapshot: int, name: str) -> Iterator[None]:
    """A block that records a dataset of a snapshot that was asked before.

    Compaction holds the write lock while it chooses the snapshots to expire: it leaves those alone
    that a dataset names, and must not come between asking and naming. It never expires the newest.

    Args:
        name: The dataset's name, for those who wait for the lock.
    """
    if snapshot == catalog.snapshot():
        yield
        return
    with catalog.quiesced(f"dataset {name} is being saved"), catalog.reading(snapshot):
        yield
