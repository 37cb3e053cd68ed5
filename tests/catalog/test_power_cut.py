"""A power cut: what was acknowledged is on the disk."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.frames.frames import register
from catalog.lake.metadata.own_tables import data_files
from catalog.maintenance.backup import back_up, restore
from catalog.maintenance.check import check
from catalog.maintenance.compaction import compact
from catalog.maintenance.copying import copy_catalog
from catalog.records.store import RecordStore
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from tests.catalog.histories import AT_ONCE
from tests.catalog.some_rows import file, frame, local_places, open_store, source_names
from tests.disks import Disk, disk
from tests.postgres_server import postgres


@pytest.fixture
def powered(tmp_path: Path) -> Iterator[Disk]:
    """A disk whose power can be cut."""
    with disk(tmp_path) as folder:
        yield folder


def commit(store: CatalogStore, key: str) -> None:
    with store.writing(f"{key} added") as connection:
        frames = [frame("again"), frame(key)]  # one is replaced by each commit
        register(connection, source_names(), [file("again"), file(key)], frames, 1)


def keys(store: CatalogStore) -> list[str]:
    with store.reading() as cursor:
        return sorted(row[0] for row in cursor.execute("SELECT filename FROM metaocean").fetchall())


def whole(home: Path, expected: list[str]) -> None:
    """The catalog of a home opens, has these files, and nothing is wrong with it."""
    store = open_store(home)
    assert keys(store) == expected
    # These frames have no label.
    assert {one.kind for one in check(store, {})} <= {"frame_incomplete"}
    store.close()


@pytest.mark.wide
def test_what_was_committed_is_there_after_a_power_cut(powered: Disk) -> None:
    """Rows added and replaced, a compaction and a backup, each asked for on the disk alone."""
    store = open_store(powered.folder / "home")
    commit(store, "a")
    commit(store, "b")
    with powered.power_cut() as cut:
        whole(cut / "home", ["a", "again", "b"])
    commit(store, "c")
    compact(store, list, keep=AT_ONCE, in_use=AT_ONCE)
    records = RecordStore(powered.folder / "home" / "records" / "records.sqlite")
    for name in ("backup.tar", "backup"):
        back_up(store, records, powered.folder / name)
    restore(powered.folder / "backup", powered.folder / "again")
    with powered.power_cut() as cut:
        for number, name in enumerate(("backup.tar", "backup")):
            restore(cut / name, cut / f"restored{number}")
        for home in ("home", "again", "restored0", "restored1"):
            whole(cut / home, ["a", "again", "b", "c"])


def test_a_copied_catalog_is_there_after_a_power_cut(powered: Disk, tmp_path: Path) -> None:
    """Catalog copy to PostgreSQL and a folder: its files are on the disk."""
    store = open_store(tmp_path / "home")
    commit(store, "a")
    copy_catalog(store, CatalogLocation(postgres().new(), powered.folder / "data"))
    with store.inspecting() as cursor:
        sizes = {one.path: one.size for one in data_files(cursor)}
    with powered.power_cut() as cut:
        assert {path: (cut / "data" / path).stat().st_size for path in sizes} == sizes


def test_data_files_are_synced_before_the_commit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every Parquet file of a commit and its folder, nothing older, and before the metadata.

    Needs no disk of its own, so it runs everywhere.
    """
    store = open_store(folder)
    commit(store, "a")
    data = local_places(store)[1]
    before = set(data.rglob("*.parquet"))
    synced: dict[Path, int] = {}
    fsync = os.fsync

    def watched(handle: int) -> None:
        synced[Path(f"/proc/self/fd/{handle}").readlink()] = store.snapshot()
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    snapshot = store.snapshot()
    commit(store, "b")
    new = set(data.rglob("*.parquet")) - before
    assert {path.stem.endswith("-delete") for path in new} == {True, False}
    assert synced == dict.fromkeys(new | {path.parent for path in new}, snapshot)
    assert keys(store) == ["a", "again", "b"]
