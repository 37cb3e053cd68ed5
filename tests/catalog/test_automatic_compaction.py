"""When a catalog is to be compacted, and that one process at a time is told so."""

from pathlib import Path

import pytest

from catalog.frames.frames import register
from catalog.maintenance.automatic import Uncompacted, compaction_due, uncompacted
from catalog.maintenance.compaction import compact
from catalog.store import CatalogStore
from tests.catalog.some_rows import file, open_store, source_names


def add(store: CatalogStore, *keys: str) -> None:
    """A commit with a file for each key."""
    with store.writing("add") as connection:
        register(connection, source_names(), [file(key) for key in keys], [], 1)


@pytest.mark.wide
def test_files_since_the_last_compaction(store: CatalogStore) -> None:
    """Those of the table with the most; none after a compaction, which expires no snapshot."""
    before = uncompacted(store).files
    for number in range(4):
        add(store, f"k{number}", f"l{number}")
    left = uncompacted(store)
    assert left == Uncompacted(max(before, 4), None)
    oldest = store.snapshot()
    assert compact(store, list, keep=None).expired == ()
    done = uncompacted(store)
    assert done.files == 0
    assert done.compacted is not None
    add(store, "m")
    assert uncompacted(store) == Uncompacted(1, done.compacted)
    with store.reading(oldest - 1) as snapshot:
        assert snapshot.execute("SELECT count(*) FROM metaocean").fetchone() == (6,)


@pytest.mark.wide
def test_one_process_is_told_to_compact(store: CatalogStore, folder: Path) -> None:
    """While it does no other is; and none where too few files came."""
    for number in range(3):
        add(store, f"k{number}")
    other = open_store(folder)
    with compaction_due(store, 3) as is_due:
        assert is_due
        with compaction_due(other, 3) as is_due_too:
            assert not is_due_too
    with compaction_due(other, 4) as is_due:
        assert not is_due
    compact(store, list, keep=None)
    with compaction_due(other, 3) as is_due:
        assert not is_due
