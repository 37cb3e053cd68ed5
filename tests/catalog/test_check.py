"""The check: each thing that can be wrong is found, named and, where it can be, put right."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from catalog.frames.frames import register
from catalog.maintenance.check import Finding, check
from catalog.maintenance.compaction import compact
from catalog.store import CatalogStore
from tests.catalog.histories import AT_ONCE, SEEDS, History, held
from tests.catalog.some_rows import file, frame, local_places, open_store, source_names


@pytest.fixture
def sound(store: CatalogStore) -> CatalogStore:
    """A catalog of three frames with their labels, and a file more."""
    with store.writing("made") as connection:
        keys = ["a", "b", "c"]
        files = [file(key) for key in [*keys, *(f"{key}-label" for key in keys), "other"]]
        register(connection, source_names(), files, [frame(key) for key in keys], 1)
    return store


def execute(store: CatalogStore, *statements: str) -> None:
    with store.writing("broken by a test") as connection:
        for statement in statements:
            connection.execute(statement)


def kinds(findings: list[Finding]) -> list[str]:
    return [finding.kind for finding in findings]


@pytest.mark.wide
@pytest.mark.parametrize("seed", SEEDS[:1])
def test_nothing_is_wrong_with_what_we_write(store: CatalogStore, seed: int) -> None:
    """Whatever was written, and compacted: nothing is found and nothing changes."""
    history = History(store, random.Random(seed))
    for _ in range(2):
        history.write(5)
        before = store.snapshot()
        for repair in (False, True):
            # The frames of these histories have no label file.
            assert set(kinds(check(store, {}, repair=repair))) <= {"frame_incomplete"}
        assert store.snapshot() == before
        assert held(store) == history.states[before]
        compact(store, list, keep=AT_ONCE, in_use=AT_ONCE)
        assert set(kinds(check(store, {}))) <= {"frame_incomplete"}


def double_rows(store: CatalogStore) -> None:
    execute(store, "INSERT INTO files SELECT * FROM files WHERE filename IN ('a', 'other')")


def double_file(store: CatalogStore) -> None:
    """The same rows under the same row numbers, as two merges in one transaction leave them."""
    for key in ("x1", "x2"):
        with store.writing("made") as connection:
            register(connection, source_names(), [file(key)], [], 1)
    with store.writing("merged twice") as connection:
        for _ in range(2):
            connection.execute("CALL ducklake_merge_adjacent_files('lake', 'files')")


def loose_rows(store: CatalogStore) -> None:
    execute(
        store,
        "CREATE TABLE tags_late (fkey VARCHAR NOT NULL, late INTEGER)",
        "INSERT INTO tags_late VALUES ('c1:d1:gone', 1), ('c1:d1:a', 2)",
        "CREATE VIEW lake.bluadmin.t_late AS SELECT fkey, CAST(late AS VARCHAR) AS value "
        "FROM lake.main.tags_late WHERE late IS NOT NULL",
    )


def wrong_views(store: CatalogStore) -> None:
    execute(
        store,
        "DROP VIEW lake.bluadmin.t_front",
        "CREATE VIEW lake.bluadmin.t_ghost AS SELECT 1 AS a",
        "CREATE OR REPLACE VIEW lake.bluadmin.t_rear AS SELECT fkey, '1' AS value "
        "FROM lake.main.files",
    )


def wrong_statistics(store: CatalogStore) -> None:
    """As a compaction followed by a commit left them."""
    with sqlite3.connect(local_places(store)[0]) as metadata:
        metadata.execute(
            "UPDATE ducklake_table_column_stats SET min_value = '11', max_value = '12' "
            "WHERE min_value = '10'"  # sizes
        )
    metadata.close()


def orphan(store: CatalogStore) -> None:
    (local_places(store)[1] / "main" / "files" / "orphan.parquet").write_bytes(b"PAR1")


@pytest.mark.wide
@pytest.mark.parametrize(
    ("break_it", "expected", "words"),
    [
        (double_rows, ["double_fkey"], ["files: 2 files with several rows", "c1:d1:a"]),
        (double_file, ["double_fkey"], ["files with several rows"]),
        (loose_rows, ["view", "row_without_file"],
         ["tags_late: 1 rows of files that are not catalogued", "c1:d1:gone"]),
        (wrong_views, ["view"], ["3 views", "t_front, t_ghost, t_rear"]),
        (wrong_statistics, ["wrong_statistics"], ["columns have values that are less"]),
        (orphan, ["orphan_file"], ["1 files that belong to no commit", "orphan.parquet"]),
    ],
)  # fmt: skip
def test_found_and_put_right(
    sound: CatalogStore,
    break_it: Callable[[CatalogStore], None],
    expected: list[str],
    words: list[str],
) -> None:
    """Found without changing anything, then repaired, then gone; what was right stays."""
    before = held(sound)
    break_it(sound)
    snapshot = sound.snapshot()
    findings = check(sound, {})
    assert kinds(findings) == expected
    assert not any(finding.repaired for finding in findings)
    text = " ".join(finding.what for finding in findings)
    for word in words:
        assert word in text
    assert sound.snapshot() == snapshot
    repaired = check(sound, {}, repair=True)
    assert kinds(repaired) == expected
    assert all(finding.repaired for finding in repaired)
    assert check(sound, {}) == []
    after = held(sound)
    assert {fkey: after[fkey].keys() - {"late"} for fkey in before} == {
        fkey: tags.keys() for fkey, tags in before.items()
    }


@pytest.mark.wide
def test_several_things_at_once(sound: CatalogStore) -> None:
    """Each is found beside the others, and what can be is put right in one go."""
    double_rows(sound)
    execute(sound, "DELETE FROM files WHERE filename IN ('b', 'c-label')")
    assert kinds(check(sound, {})) == [
        "double_fkey", "row_without_file", "row_without_file", "frame_incomplete"
    ]  # fmt: skip
    check(sound, {}, repair=True)
    assert kinds(check(sound, {})) == ["frame_incomplete"]


@pytest.mark.wide
def test_incomplete_frames(sound: CatalogStore) -> None:
    """A frame without names, without counts, without its label: told, and not made up."""
    execute(
        sound,
        "DELETE FROM tags_frame WHERE fkey = 'c1:d1:a'",
        "DELETE FROM class_pixels WHERE fkey = 'c1:d1:b'",
        "DELETE FROM files WHERE filename = 'c-label'",
    )
    for repair in (True, False):
        findings = check(sound, {}, repair=repair)
        assert kinds(findings) == ["frame_incomplete"] * 3
        assert [finding.what.rpartition(":")[2] for finding in findings] == ["a", "b", "c"]
        assert not any(finding.repaired for finding in findings)
        assert {finding.remedy for finding in findings} == {"framesift ingest SOURCE --full"}


@pytest.mark.wide
@pytest.mark.parametrize("harm", ["missing", "cut"])
def test_a_data_file_is_lost(sound: CatalogStore, folder: Path, harm: str) -> None:
    """A lost file of the newest snapshot is named with the way back; the rest is checked."""
    data = local_places(sound)[1]
    (path,) = (data / "main" / "class_pixels").glob("*.parquet")
    sound.close()
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-10])
    wrong_views(sound)
    for repair in (False, True):
        findings = check(open_store(folder), {}, repair=repair)
        assert kinds(findings)[0] == "missing_file"
        assert path.name in findings[0].what
        assert "the newest snapshot" in findings[0].what
        assert "from a backup" in findings[0].remedy
        assert not findings[0].repaired
        assert "view" in kinds(findings)


@pytest.mark.wide
def test_a_data_file_of_an_old_snapshot_is_lost(sound: CatalogStore) -> None:
    """It is told apart from one of the newest, and goes with its snapshots."""
    data = local_places(sound)[1]
    (path,) = (data / "main" / "class_pixels").glob("*.parquet")
    execute(sound, "DELETE FROM class_pixels", "DELETE FROM tags_frame")
    path.unlink()
    (finding,) = check(sound, {})
    assert finding.kind == "missing_file"
    assert "older snapshots" in finding.what
    compact(sound, list, keep=AT_ONCE, in_use=AT_ONCE)
    assert check(sound, {}) == []


def test_named_snapshots(sound: CatalogStore) -> None:
    """A dataset whose snapshot is gone is named; one whose snapshot is there is not."""
    (finding,) = check(sound, {"dataset a@1": 1, "dataset b@2": 77})
    assert finding.kind == "snapshot_gone"
    assert finding.what == "dataset b@2 names snapshot 77, which is not there"


@pytest.mark.wide
def test_counts_are_compared(sound: CatalogStore) -> None:
    """What can be read is held against what was written down."""
    sound.close()
    with closing(sqlite3.connect(local_places(sound)[0])) as metadata, metadata:
        metadata.execute(
            "UPDATE ducklake_data_file SET record_count = record_count + 1 "
            "WHERE table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'files')"
        )
    assert "wrong_count" in kinds(check(sound, {}))
