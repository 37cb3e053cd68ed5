"""Snapshots, compaction, check, export and backup of a catalog in PostgreSQL and S3.

Of one in a home: test_compaction, test_check, test_backup, test_export.
"""

import random
from pathlib import Path

import pytest

from catalog.errors import CatalogBusy, NotFound
from catalog.frames.frames import register
from catalog.lake.snapshots import log
from catalog.maintenance.backup import back_up, restore
from catalog.maintenance.check import check
from catalog.maintenance.compaction import compact
from catalog.maintenance.export import export_parquet
from catalog.maintenance.snapshot_diff import diff
from catalog.records.store import RecordStore
from tests.catalog.backends import new_location, open_at
from tests.catalog.histories import AT_ONCE, History, held
from tests.catalog.some_rows import file, open_store, source_names
from tests.ingest.s3_server import moto

pytestmark = pytest.mark.wide


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> History:
    """A catalog of some commits."""
    moto().sign_in(monkeypatch, tmp_path)
    written = History(open_at(new_location("postgres-s3", tmp_path)), random.Random(5))
    written.write(5)
    return written


def test_old_snapshots_and_compaction(history: History) -> None:
    """Each snapshot is asked as it was; kept ones after compaction, too; expired ones are named."""
    store, states = history.store, history.states
    numbers = sorted(states)
    assert [one.commit.number for one in log(store)][: len(numbers)] != []
    for number in numbers:
        assert held(store, number) == states[number]
    difference = diff(store, numbers[0], numbers[-1])
    assert difference.files_added == len(states[numbers[-1]].keys() - states[numbers[0]].keys())
    snapshot = numbers[1]
    done = compact(store, lambda: [snapshot], keep=AT_ONCE, in_use=AT_ONCE)
    assert done.expired
    assert held(store) == states[numbers[-1]]
    assert held(store, snapshot) == states[snapshot]
    with pytest.raises(NotFound, match="has expired"):
        held(store, numbers[2])
    assert {one.kind for one in check(store, {"d": snapshot})} <= {"frame_incomplete"}


def test_a_reader_whose_files_are_deleted(history: History) -> None:
    """It is told to ask again, and answered then."""
    store = history.store
    for number in range(3):
        with store.writing("add") as connection:
            register(connection, source_names(), [file(f"n{number}")], [], 1)
    expected = held(store)

    def ask_in_the_middle() -> None:
        with store.reading() as cursor:
            assert cursor.execute("SELECT count(*) FROM metaocean").fetchone() is not None
            compact(open_at(store.location), list, keep=AT_ONCE, in_use=AT_ONCE)
            cursor.execute("SELECT max(size), max(fkey) FROM metaocean").fetchall()

    with pytest.raises(CatalogBusy, match=r"compacted.*ask again"):
        ask_in_the_middle()
    assert held(store) == expected


def test_check_repairs(history: History) -> None:
    """A view that is gone and a file of no commit are found and put right."""
    store = history.store
    with store.writing("broken by a test") as connection:
        connection.execute("DROP VIEW lake.bluadmin.t_car")
        connection.execute(f"COPY (SELECT 1) TO '{store.location.data}/main/files/stray.parquet'")
    for repair in (False, True):
        findings = [
            one for one in check(store, {}, repair=repair) if one.kind != "frame_incomplete"
        ]
        assert [(one.kind, one.repaired) for one in findings] == [
            ("orphan_file", repair), ("view", repair)
        ]  # fmt: skip
    assert {one.kind for one in check(store, {})} <= {"frame_incomplete"}


def test_backup_comes_home(history: History, tmp_path: Path) -> None:
    """A backup of any place is restored into a home on this machine, and exported alike."""
    store, home = history.store, tmp_path / "new"
    records = RecordStore(tmp_path / "records.sqlite")
    backup = back_up(store, records, tmp_path / "b.tar")
    home.mkdir()
    assert restore(tmp_path / "b.tar", home) == backup
    restored = open_store(home)
    for number, state in history.states.items():
        assert held(restored, number) == state
    with restored.writing("goes on") as connection:
        register(connection, source_names(), [file("new")], [], 1)
    assert {one.kind for one in check(restored, {})} <= {"frame_incomplete"}
    assert export_parquet(store, tmp_path / "out").rows == len(held(store))
