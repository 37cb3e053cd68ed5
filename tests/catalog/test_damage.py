"""Damaged files: a check names them and their snapshots, and there is a way back."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catalog.errors import CatalogDamaged, InvalidInput, NotFound
from catalog.frames.frames import register
from catalog.lake.metadata.own_tables import snapshots_that_need
from catalog.maintenance.check import check
from catalog.maintenance.damage import damage, damage_of_records
from catalog.maintenance.go_back import go_back
from catalog.records.store import RecordStore
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags import families
from tests.api.servers import framesift
from tests.catalog.histories import held
from tests.catalog.some_rows import file, frame, local_places, open_store, source_names
from tests.templates import Templates

PAGE = 4096


def make_three_commits(folder: Path) -> None:
    """A catalog of three commits: snapshots 2 to 4 hold a, a and b, a to c."""
    store = open_store(folder)
    for key in "abc":
        with store.writing(f"{key} added") as connection:
            register(connection, source_names(), [file(key)], [frame(key)], 1)
    store.close()


@pytest.fixture
def folder(templates: Templates, tmp_path: Path) -> Path:
    """A folder with a copy of that catalog."""
    templates.copy(make_three_commits, tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def sound(folder: Path) -> Iterator[CatalogStore]:
    """The catalog."""
    store = open_store(folder)
    yield store
    store.close()


def newest_file(store: CatalogStore, table: str) -> Path:
    return max((local_places(store)[1] / "main" / table).glob("*.parquet"))


def spoil(path: Path, start: int, size: int) -> None:
    """Zeros in place of a part of a file."""
    content = bytearray(path.read_bytes())
    content[start : start + size] = bytes(size)
    path.write_bytes(content)


@pytest.mark.wide
def test_a_damaged_page_and_the_way_back(sound: CatalogStore, folder: Path) -> None:
    """The file, its snapshots and the newest whole one are named; going back restores that."""
    before = {number: held(sound, number) for number in (2, 3)}
    broken = newest_file(sound, "files")
    spoil(broken, 4, 200)
    findings = check(sound, {})
    assert [one.kind for one in findings] == ["damaged_file"]
    assert broken.name in findings[0].what
    assert "the newest snapshot" in findings[0].what
    assert findings[0].what.endswith("in snapshot 4")
    assert "framesift catalog restore --to-snapshot 3" in findings[0].remedy
    sound.close()
    assert go_back(sound.location, 3) == 5
    store = open_store(folder)
    assert store.snapshot() == 5
    assert held(store) == before[3]
    assert held(store, 2) == before[2]
    older, _ = check(store, {})  # and that these frames have no label
    assert (older.kind, older.what.endswith("in snapshot 4")) == ("damaged_file", True)
    assert "framesift compact" in older.remedy
    with store.writing("d added") as connection:
        register(connection, source_names(), [file("d")], [frame("d")], 1)
    assert [row for row in held(store) if row.endswith(":d")]


@pytest.mark.wide
def test_empty_files_of_an_old_catalog(sound: CatalogStore, folder: Path) -> None:
    """As a power cut left them before commits were synced: all of the last two commits' files."""
    families.write(sound, "late", {"loss": "DOUBLE"}, None)
    with sound.inspecting() as cursor:
        needed = snapshots_that_need(cursor, [f"main/files/{newest_file(sound, 'files').name}"])
    assert list(needed.values()) == [{4, 5}]
    for table in ("files", "class_pixels", "tags_frame"):
        newest_file(sound, table).write_bytes(b"")
    before = held(sound, 3)
    sound.close()
    (finding,) = [one for one in check(open_store(folder), {}) if one.kind == "missing_file"]
    assert finding.what.startswith("3 data files of the newest snapshot")
    assert "in snapshots 4 to 5" in finding.what
    assert "--to-snapshot 3" in finding.remedy
    go_back(sound.location, 3)
    assert held(open_store(folder)) == before


def test_what_going_back_refuses(sound: CatalogStore) -> None:
    """A number that is none, the newest, and a snapshot that is not whole: nothing changes."""
    with pytest.raises(NotFound, match="4"):
        go_back(sound.location, 9)
    with pytest.raises(InvalidInput, match="the newest"):
        go_back(sound.location, 4)
    spoil(min((local_places(sound)[1] / "main" / "files").glob("*.parquet")), 4, 200)
    with pytest.raises(CatalogDamaged):
        go_back(sound.location, 3)
    assert sound.snapshot() == 4


def test_a_catalog_that_does_not_open(sound: CatalogStore, folder: Path) -> None:
    """The command says which files, and that no snapshot is whole."""
    newest_file(sound, "catalog_format").write_bytes(b"")
    sound.close()
    RecordStore(folder / "records" / "records.sqlite")
    told = framesift(folder, "catalog", "check")
    assert told.returncode == 1
    assert "missing_file: 1 data files of the newest snapshot: main/catalog_format" in told.stdout
    assert "no snapshot is whole" in told.stdout
    assert told.stderr == ""


@pytest.mark.parametrize("page", [1, 9, 20])
def test_damaged_metadata(sound: CatalogStore, page: int) -> None:
    """A page of SQLite's: one finding that names the file, and no traceback."""
    metadata = local_places(sound)[0]
    sound.close()
    spoil(metadata, page * PAGE, PAGE)
    damaged_file = damage(CatalogLocation.in_folder(metadata.parent))
    assert not damaged_file.opens
    (finding,) = damaged_file.findings
    assert finding.kind == "damaged_metadata"
    assert str(metadata) in finding.what
    assert "from a backup" in finding.remedy
    assert "\n" not in finding.what


def test_damaged_records(tmp_path: Path) -> None:
    """A page of SQLite's is damaged, and the file is gone: both are told apart."""
    path = tmp_path / "records.sqlite"
    RecordStore(path).engine.dispose()
    with closing(sqlite3.connect(path)) as records:
        records.execute("PRAGMA journal_mode = DELETE")
        (root,) = records.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'sources'"
        ).fetchone()
    assert damage_of_records(path) == []
    spoil(path, (root - 1) * PAGE, PAGE)
    (finding,) = damage_of_records(path)
    assert finding.kind == "damaged_records"
    assert "tables sources cannot be read" in finding.what
    path.unlink()
    (finding,) = damage_of_records(path)
    assert finding.kind == "records_gone"
    assert "source add" in finding.remedy


@pytest.mark.wide
def test_records_that_were_made_again(sound: CatalogStore) -> None:
    """Another command has made empty ones since: the catalog's sources are missed."""
    (finding,) = [one for one in check(sound, {}, sources=[]) if one.kind == "records_gone"]
    assert "c1:d1" in finding.what
    assert not [one for one in check(sound, {}, sources=[("c1", "d1")]) if "gone" in one.kind]
