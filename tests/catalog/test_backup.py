"""Backup and restore: a whole home again, made while others write; nothing damaged comes back."""

import copy
import hashlib
import json
import random
import shutil
import sqlite3
import tarfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select

from catalog.errors import AlreadyExists, BadFile, CatalogDamaged, FramesiftError, StorageError
from catalog.frames.frames import register
from catalog.lake.snapshots import log
from catalog.maintenance.backup import Backup, back_up, restore
from catalog.maintenance.check import check
from catalog.maintenance.compaction import compact
from catalog.records.scans import replace_problems
from catalog.records.sources import add_source
from catalog.records.store import RecordStore
from catalog.records.tables import Base, Dataset, Scan, Source
from catalog.store import CatalogStore
from catalog.values import Problem
from tests.catalog.histories import AT_ONCE, History, held
from tests.catalog.some_rows import file, local_places, open_store, source_names
from tests.zygote import Forked

REPOSITORY = Path(__file__).parent.parent.parent
TARGETS = ("b", "b.tar")


def records_of(folder: Path) -> RecordStore:
    return RecordStore(folder / "records" / "records.sqlite")


@pytest.fixture(scope="module")
def catalogue(
    empty_catalog: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, History]:
    """A catalog with some history, and records of every kind that has its own rules."""
    folder = tmp_path_factory.mktemp("history") / "home"
    shutil.copytree(empty_catalog, folder)
    store = open_store(folder)
    written = History(store, random.Random(4))
    written.write(8)
    records = records_of(folder)
    source = add_source(records,
        Source(name="s'1", uri="/x", platform="NFS", cluster="c1", datasource="d1",
               class_list={"#ff0000": "Car"})
    )  # fmt: skip
    with records.session() as session:
        scan = Scan(source_id=source.id, state="done", counts={"files": 3})
        session.add(scan)
        session.add(
            Dataset(name="d", version=1, content_id="x", question={"where": "ü"}, snapshot=2,
                    frames=1, splits={}, class_pixels={}, manifest="/m")
        )  # fmt: skip
    replace_problems(
        records, source.id, 1, [], [Problem("bad_file", f"k{n}", "r") for n in range(9)]
    )
    records.engine.dispose()
    store.close()
    return folder, written


@pytest.fixture
def folder(catalogue: tuple[Path, History], tmp_path: Path) -> Path:
    """A copy of them that a test may change."""
    return Path(shutil.copytree(catalogue[0], tmp_path / "home"))


@pytest.fixture
def history(catalogue: tuple[Path, History], store: CatalogStore) -> History:
    """What was written to the catalog in that folder."""
    copied = copy.copy(catalogue[1])
    copied.store, copied.states = store, dict(copied.states)
    return copied


def rows_of(records: RecordStore) -> dict[str, list[tuple[object, ...]]]:
    with records.session() as session:
        return {
            table.name: [tuple(row) for row in session.execute(select(table))]
            for table in Base.metadata.sorted_tables
        }


@pytest.mark.parametrize(
    "name", [TARGETS[0], *(pytest.param(name, marks=pytest.mark.wide) for name in TARGETS[1:])]
)
def test_a_whole_home_again(history: History, folder: Path, tmp_path: Path, name: str) -> None:
    """Every snapshot and every record, in a home that is written and compacted further."""
    records = records_of(folder)
    target, home = tmp_path / "backups" / name, tmp_path / "new"
    target.parent.mkdir()
    home.mkdir()
    assert compact(history.store, list, keep=AT_ONCE).merged  # leaves files that are yet to go
    backup = back_up(history.store, records, target)
    assert backup.snapshot == history.store.snapshot()
    assert [path.name for path in target.parent.iterdir()] == [name]
    assert restore(target, home) == backup
    assert {path.name for path in home.iterdir()} == {"catalog", "records"}
    restored = open_store(home)
    assert log(restored) == log(history.store)
    for number, state in history.states.items():
        assert held(restored, number) == state
    assert rows_of(records_of(home)) == rows_of(records)
    assert {finding.kind for finding in check(restored, {})} <= {"frame_incomplete"}
    with restored.writing("goes on") as connection:
        register(connection, source_names(), [file("new")], [], 1)
    compact(restored, list, keep=AT_ONCE, in_use=AT_ONCE)
    assert "c1:d1:new" in held(restored)
    add_source(
        records_of(home),
        Source(name="two", uri="/y", platform="NFS", cluster="c2", datasource="d2"),
    )
    assert len(rows_of(records)["sources"]) == 1


def test_nothing_is_overwritten(history: History, folder: Path, tmp_path: Path) -> None:
    """A backup that exists and a home that has a catalog or records are left as they are."""
    target = tmp_path / "b.tar"
    back_up(history.store, records_of(folder), target)
    before = target.read_bytes()
    with pytest.raises(AlreadyExists, match=r"b\.tar"):
        back_up(history.store, records_of(folder), target)
    assert target.read_bytes() == before
    for name in ("catalog", "records"):
        home = tmp_path / f"has {name}"
        (home / name).mkdir(parents=True)
        with pytest.raises(AlreadyExists, match="move it away before restoring"):
            restore(target, home)
        assert [path.name for path in home.iterdir()] == [name]
        assert list((home / name).iterdir()) == []


@pytest.mark.parametrize("name", TARGETS)
def test_damage_is_noticed(history: History, folder: Path, tmp_path: Path, name: str) -> None:
    """A changed byte, a missing file, one too many, a cut tar: BadFile, and no home is made."""
    target, home = tmp_path / name, tmp_path / "new"
    back_up(history.store, records_of(folder), target)
    home.mkdir()
    rng = random.Random(7)
    harmed = tmp_path / f"harmed{target.suffix}"
    for round_number in range(8):
        if target.is_dir():
            shutil.copytree(target, harmed, dirs_exist_ok=True)
            victim = rng.choice(sorted(p for p in harmed.rglob("*") if p.is_file()))
            _harm(victim, round_number, rng)
        else:
            content = bytearray(target.read_bytes())
            if round_number % 2:
                content = content[: rng.randrange(_end_of_files(target))]
            else:
                _flip_content(target, content, rng)
            harmed.write_bytes(content)
        with pytest.raises(BadFile) as error:
            restore(harmed, home)
        assert str(harmed) in str(error.value)
        assert "\n" not in str(error.value)
        assert list(home.iterdir()) == []
        if harmed.is_dir():
            shutil.rmtree(harmed)


def _harm(victim: Path, how: int, rng: random.Random) -> None:
    if how % 3 == 0:
        victim.unlink()
    elif how % 3 == 1:
        victim.with_name(f"{victim.name}.more").write_bytes(b"x")
    else:
        content = bytearray(victim.read_bytes())
        position = rng.randrange(len(content))
        content[position] ^= 255
        victim.write_bytes(content)


def _end_of_files(target: Path) -> int:
    """Where the last file's bytes end: a tar goes on with blanks, which nobody misses."""
    with tarfile.open(target) as archive:
        return max(entry.offset_data + entry.size for entry in archive.getmembers())


def _flip_content(target: Path, content: bytearray, rng: random.Random) -> None:
    """Change a byte of a file in the tar, not of the blanks between them."""
    with tarfile.open(target) as archive:
        entry = rng.choice([e for e in archive.getmembers() if e.size])
    content[entry.offset_data + rng.randrange(entry.size)] ^= 255


def test_no_backup_at_all(tmp_path: Path, folder: Path) -> None:
    """Folders and files that are something else, and a tar that would write elsewhere."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("hello")
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "backup.json").write_text(json.dumps({"format": 9, "files": {}}))
    with tarfile.open(tmp_path / "evil.tar", "w") as archive:
        archive.add(tmp_path / "note.txt", "../outside")
    home = tmp_path / "new"
    home.mkdir()
    for name in ("empty", "note.txt", "later", "evil.tar"):
        with pytest.raises(BadFile):
            restore(tmp_path / name, home)
        assert list(home.iterdir()) == []


def test_records_of_a_schema_that_is_not_read(tmp_path: Path, folder: Path) -> None:
    """A backup of before is refused before anything is in place, saying how to go on."""
    backup, home, name = tmp_path / "b", tmp_path / "new", "records/records.sqlite"
    home.mkdir()
    back_up(open_store(folder), records_of(folder), backup)
    with closing(sqlite3.connect(backup / name)) as records:
        records.execute("UPDATE alembic_version SET version_num = '0019'")
        records.commit()
    header = json.loads((backup / "backup.json").read_text())
    content = (backup / name).read_bytes()
    header["files"][name] = [len(content), hashlib.sha256(content).hexdigest()]
    (backup / "backup.json").write_text(json.dumps(header))
    with pytest.raises(CatalogDamaged, match=r"schema 0019 .*\(framesift dataset export\)"):
        restore(backup, home)
    assert list(home.iterdir()) == []
    assert not (tmp_path / "outside").exists()
    with pytest.raises(FramesiftError):
        restore(tmp_path / "nothing", home)


def test_a_restored_catalog_is_written_while_it_is_read(tmp_path: Path, folder: Path) -> None:
    """By the first who writes: a scan does that."""
    backup, home = tmp_path / "b", tmp_path / "new"
    home.mkdir()
    back_up(open_store(folder), records_of(folder), backup)
    restore(backup, home)
    store = open_store(home)
    with store.reading() as snapshot:
        before = snapshot.number
        with store.writing("beside a reader") as connection:
            register(connection, source_names(), [file("new")], [], 1)
        assert snapshot.number == before
    assert store.snapshot() > before


def test_a_lost_data_file_makes_no_backup(history: History, folder: Path, tmp_path: Path) -> None:
    """What cannot be copied whole is not called a backup."""
    data = local_places(history.store)[1]
    next((data / "main" / "files").glob("*.parquet")).unlink()
    with pytest.raises(StorageError, match=r"missing.*framesift catalog check"):
        back_up(history.store, records_of(folder), tmp_path / "b")
    assert not any(path.name.startswith("b") for path in tmp_path.iterdir())


@pytest.mark.wide
def test_beside_writers(tmp_path: Path) -> None:
    """Backups made while two processes write: each is one snapshot, whole."""
    home = tmp_path / "home"
    home.mkdir()
    store, records = open_store(home), records_of(home)
    program = ["-m", "tests.catalog.writers", str(home), "2", "3"]
    backups: list[tuple[Path, Backup]] = []

    def back_up_again() -> None:
        target = tmp_path / f"b{len(backups)}"
        backups.append((target, back_up(store, records, target)))

    back_up_again()
    with Forked(program, cwd=REPOSITORY) as writers:
        try:
            while writers.poll() is None:
                back_up_again()
                time.sleep(0.1)
        finally:
            writers.kill()
    back_up_again()
    assert writers.returncode == 0
    assert len({backup.snapshot for _, backup in backups}) > 1
    for target, backup in backups[:: max(1, len(backups) // 3)]:
        new = tmp_path / f"new {target.name}"
        new.mkdir()
        restore(target, new)
        assert held(open_store(new)) == held(store, backup.snapshot)
