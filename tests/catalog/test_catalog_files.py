"""The catalog's files: moved, damaged, of a later version, on a full disk."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.errors import CatalogBusy, CatalogDamaged, FramesiftError, InvalidInput, StorageError
from catalog.frames.catalog_info import info
from catalog.frames.frames import register
from catalog.records.sources import add_source, recorded_source, recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.storage.location import CatalogLocation
from catalog.storage.write_lock import write_lock
from catalog.store import CatalogStore
from tests import disks
from tests.catalog.some_rows import file, frame, local_places, open_store, source_names


def add(store: CatalogStore, *keys: str) -> int:
    """Commit files with tags; how many."""
    with store.writing("test") as connection:
        files = [file(key) for key in keys]
        register(connection, source_names(), files, [frame(key) for key in keys], 1)
    return len(keys)


@pytest.mark.parametrize("name", ["moved", "it's [a] #1 50% ä;=?*"])
def test_a_moved_catalog_opens(store: CatalogStore, folder: Path, name: str) -> None:
    """The folder can be moved, and called anything: reading and writing go on there."""
    add(store, "a")
    store.close()
    moved = folder.rename(folder.with_name(name))
    store = open_store(moved)
    add(store, "b")
    assert (info(store).files, info(store).frames) == (2, 2)
    assert not folder.exists()


def test_damaged_metadata(store: CatalogStore, folder: Path) -> None:
    """Random bytes, zeros and a cut file give CatalogDamaged in one line, and change nothing."""
    add(store, "a")
    store.close()
    metadata, _ = local_places(store)
    whole = metadata.read_bytes()
    for damaged in (
        random.Random(1).randbytes(40_000),
        bytes(40_000),
        b"",
        b"SQLite format 3\0",
        whole[:100],
        whole[:4096],
        whole[: len(whole) // 2],
        b"x" + whole[1:],
    ):
        metadata.write_bytes(damaged)
        with pytest.raises(CatalogDamaged) as error:
            open_store(folder)
        assert str(error.value).startswith(str(metadata))
        assert "\n" not in str(error.value)
        assert metadata.read_bytes() == damaged
    metadata.write_bytes(whole)
    assert info(open_store(folder)).files == 1


def test_metadata_damaged_anywhere_gives_no_foreign_error(
    store: CatalogStore, folder: Path
) -> None:
    """Pages overwritten at random: the catalog works or says what is wrong in its own error."""
    add(store, "a")
    store.close()
    metadata, _ = local_places(store)
    whole = metadata.read_bytes()
    rng = random.Random(5)
    messages = []
    for _ in range(8):
        damaged = bytearray(whole)
        at = rng.randrange(0, len(whole), 4096)
        damaged[at : at + 4096] = rng.randbytes(4096)
        metadata.write_bytes(damaged)
        try:
            info(open_store(folder))
        except FramesiftError as error:
            messages.append(str(error))
    assert messages
    assert not any("\n" in message for message in messages)


def test_missing_files(store: CatalogStore, folder: Path) -> None:
    """A missing Parquet file, or missing metadata beside Parquet files, is an error of ours."""
    add(store, "a")
    store.close()
    metadata, data = local_places(store)
    (parquet,) = (data / "main" / "files").glob("*.parquet")
    hidden = parquet.rename(folder / "hidden")
    with pytest.raises(CatalogDamaged, match="cannot be used"), store.reading() as cursor:
        cursor.execute("SELECT fkey FROM metaocean").fetchall()
    hidden.rename(parquet)
    store.close()
    metadata.rename(folder / "hidden")
    with pytest.raises(CatalogDamaged, match="missing, but"):
        open_store(folder)
    (folder / "hidden").rename(metadata)
    assert info(open_store(folder)).files == 1


def test_a_half_made_catalog_is_made_anew(tmp_path: Path) -> None:
    """What a process killed while making the catalog left behind is no obstacle."""
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    for left_over in ("catalog.part", "catalog.part-wal", "catalog.part-journal"):
        (catalog / left_over).write_bytes(b"half")
    assert info(open_store(tmp_path)).files == 0
    assert list(catalog.glob("*.part*")) == []


def test_making_waits_for_the_lock(tmp_path: Path) -> None:
    """While another process makes the catalog, a second one waits and then says it is busy."""
    (tmp_path / "catalog").mkdir()
    with write_lock(tmp_path / "catalog" / "catalog.lock", 0), pytest.raises(CatalogBusy):
        open_store(tmp_path, lock_wait_s=0.05)


def test_limits_that_duckdb_does_not_know(folder: Path) -> None:
    """A wrong memory limit is the user's input, not the catalog's damage."""
    location = CatalogLocation.in_folder(folder / "catalog")
    with pytest.raises(InvalidInput, match="lots"):
        CatalogStore(location, memory_limit="lots")
    with pytest.raises(InvalidInput, match="threads"):
        CatalogStore(location, threads=0)


def test_folders_that_cannot_be_made(tmp_path: Path) -> None:
    """A file where the folder should be is StorageError."""
    (tmp_path / "catalog").write_text("a file")
    with pytest.raises(StorageError, match="cannot be made"):
        open_store(tmp_path)
    with pytest.raises(StorageError, match="cannot be made"):
        RecordStore(tmp_path / "catalog" / "records.sqlite")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    with disks.small_disk(tmp_path / "disk", "size=3m") as disk:
        yield disk


def fill(disk: Path, leave: int) -> Path:
    """Fill the disk but for some bytes."""
    status = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - leave)))
    return filler


@pytest.mark.wide
@pytest.mark.parametrize("leave", [0, 32768, 100_000])
def test_a_full_disk(small_disk: Path, leave: int) -> None:
    """StorageError says so; exactly the acknowledged commits survive; with space, work goes on."""
    store = open_store(small_disk)
    add(store, "kept")
    filler = fill(small_disk, leave)
    batches = (add(store, *(f"{batch}-{number}" for number in range(200))) for batch in range(50))
    committed: list[int] = []
    with pytest.raises(StorageError) as error:
        committed.extend(batches)
    acknowledged = 1 + sum(committed)
    assert "disk is full" in str(error.value)
    assert "\n" not in str(error.value)
    filler.unlink()
    assert info(store).files == acknowledged
    store.close()
    again = open_store(small_disk)
    assert info(again).files == acknowledged
    add(again, "more")
    assert info(again).files == acknowledged + 1


def test_records_on_a_full_disk(small_disk: Path) -> None:
    """StorageError says so; exactly the acknowledged records survive."""
    records = RecordStore(small_disk / "records.sqlite")
    filler = fill(small_disk, 100_000)
    acknowledged: list[str] = []
    added = (add_source(records, big_source(str(number))).name for number in range(200))
    with pytest.raises(StorageError, match="full"):
        acknowledged.extend(added)
    filler.unlink()
    assert sorted(source.name for source in recorded_sources(records)) == sorted(acknowledged)
    add_source(records, big_source("more"))
    assert recorded_source(records, "more").uri == "x" * 4000


def big_source(name: str) -> Source:
    return Source(name=name, uri="x" * 4000, platform="NFS", cluster="c", datasource=name)


def test_making_a_catalog_on_a_full_disk(small_disk: Path) -> None:
    """Nothing is half made: with space again the catalog is made."""
    filler = fill(small_disk, 8192)
    with pytest.raises(StorageError):
        open_store(small_disk)
    filler.unlink()
    assert info(open_store(small_disk)).files == 0
