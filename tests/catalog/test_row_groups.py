"""Data files come in small row groups, in a new catalog and in one of an earlier release."""

from pathlib import Path

import pyarrow.parquet as pq

from catalog.lake.connection import LAKE
from catalog.maintenance.compaction import compact
from catalog.store import CatalogStore
from tests.catalog.histories import AT_ONCE
from tests.catalog.some_rows import local_places, open_store

ROWS = 100_000
_OPTION = "parquet_row_group_size"


def row_groups(store: CatalogStore) -> list[list[int]]:
    """Rows of each group of the files of file_digests, smallest file first."""
    files = (local_places(store)[1] / "main" / "file_digests").rglob("*.parquet")
    abouts = sorted((pq.ParquetFile(file).metadata for file in files), key=lambda m: m.num_rows)
    return [[m.row_group(n).num_rows for n in range(m.num_row_groups)] for m in abouts]


def add(store: CatalogStore) -> None:
    with store.writing("add") as connection:
        connection.execute(
            f"INSERT INTO {LAKE}.main.file_digests (fkey) SELECT i FROM range({ROWS}) AS r(i)"
        )


def forget_option(store: CatalogStore) -> None:
    """Have the catalog as a release made it that chose no row groups."""
    with store.writing("as before") as connection:
        connection.execute(
            f"DELETE FROM __ducklake_metadata_{LAKE}.ducklake_metadata WHERE key = '{_OPTION}'"
        )


def test_of_a_new_catalog(store: CatalogStore) -> None:
    add(store)
    assert row_groups(store) == [[40_960, 40_960, 18_080]]


def test_of_an_earlier_release(store: CatalogStore, folder: Path) -> None:
    """From the next writer on; compaction writes the earlier files again."""
    forget_option(store)
    later = open_store(folder)
    snapshot = later.snapshot()
    add(later)
    add(later)
    assert later.snapshot() == snapshot + 2
    assert row_groups(later) == [[40_960, 40_960, 18_080]] * 2
    compact(later, tuple, keep=AT_ONCE, in_use=AT_ONCE)
    (merged,) = row_groups(later)
    assert sum(merged) == 2 * ROWS
    assert len(merged) == 5


def test_somebody_elses_choice_stays(store: CatalogStore, folder: Path) -> None:
    with store.writing("larger ones") as connection:
        connection.execute(f"CALL {LAKE}.set_option('{_OPTION}', '81920')")
    later = open_store(folder)
    add(later)
    assert row_groups(later) == [[81_920, 18_080]]
