"""Snapshots: an old one is asked as it was, the log names them, and two of them are compared."""

import random
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.errors import NotFound
from catalog.frames.frames import register
from catalog.lake.metadata.own_tables import expire
from catalog.lake.snapshot_engines import KEPT_OPEN
from catalog.lake.snapshots import log
from catalog.maintenance import snapshot_diff
from catalog.maintenance.compaction import compact
from catalog.maintenance.go_back import go_back
from catalog.maintenance.snapshot_diff import TagChange, changes, diff
from catalog.store import CatalogStore, snapshot_of
from catalog.tags import families
from catalog.tags.tags import add_class_tags
from query.statistics.class_statistics import class_report
from query.statistics.population import Frames
from tests.catalog.histories import AT_ONCE, SEEDS, History, State, held
from tests.catalog.some_rows import file, frame, open_store, source_names

COUNT = "SELECT count(*) FROM metaocean"


def add(store: CatalogStore, *keys: str, reason: str = "add") -> int:
    """Commit files; the snapshot's number."""
    with store.writing(reason, author="someone") as connection:
        register(connection, source_names(), [file(key) for key in keys], [], 1)
    return store.snapshot()


@pytest.mark.wide
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_every_snapshot_is_asked_as_it_was(store: CatalogStore, folder: Path, seed: int) -> None:
    """Rows, tags and views of each snapshot, by this store and by one opened later."""
    history = History(store, random.Random(seed))
    history.write(10)
    for catalog in (store, open_store(folder)):
        for number, state in history.states.items():
            assert held(catalog, number) == state
            with catalog.reading(number) as cursor:
                assert snapshot_of(cursor) == number


def test_an_old_snapshot_has_the_tags_of_its_time(store: CatalogStore) -> None:
    """A class or family that came later is not there; class statistics leave it out."""
    add_class_tags(store, ["car"])
    with store.writing("x") as connection:
        register(connection, source_names(), [file("a")], [frame("a", car=2)], 1)
    before = store.snapshot()
    add_class_tags(store, ["sky"])
    families.write(store, "weather", {"weather": "VARCHAR"})
    store.class_names = {"car": "Car", "sky": "Sky"}.copy
    assert [share.tag for share in class_report(store, Frames(at=before)).classes] == ["car"]
    assert [share.tag for share in class_report(store).classes] == ["car", "sky"]
    store.class_names = {"truck": "Truck", "sky": "Sky", "car": "Cars", "weather": "Rain"}.copy
    for at, named in ((before, {"car": "Cars"}), (None, {"sky": "Sky", "car": "Cars"})):
        with store.reading(at) as snapshot:  # those that it has, in the order of the names
            assert list(snapshot.classes.items()) == list(named.items())
            assert snapshot.pixel_tags == ("unknown_pixels", *sorted(named))
    with store.reading(before) as cursor:
        row = cursor.execute("SELECT * FROM metaocean_view").fetchone()
        columns = [column[0] for column in cursor.description or ()]
    assert row is not None
    assert "car" in columns
    assert not {"sky", "weather"} & set(columns)


def counted(store: CatalogStore, number: int) -> tuple[int, int]:
    """Files and labelled frames of a snapshot, by reading it."""
    at = f"AT (VERSION => {number})"
    with store.inspecting() as cursor:
        row = cursor.execute(
            f"SELECT (SELECT count(*) FROM lake.main.files {at}), "
            f"(SELECT count(label_file) FROM lake.main.tags_frame {at})"
        ).fetchone()
    assert row is not None
    return row


def check_log(store: CatalogStore) -> None:
    """Its counts are those of reading each snapshot."""
    entries = log(store)
    counts = {one.commit.number: (one.files, one.frames) for one in entries}
    assert counts == {number: counted(store, number) for number in counts}
    assert log(store, 3) == entries[:3]


def write_frames(store: CatalogStore, first: int) -> None:
    """Four frames, of which others replace three: every other one has no label."""
    frames = [frame(f"u{n}", car=n) for n in range(first, first + 4)]
    frames[::2] = [replace(one, label=None) for one in frames[::2]]
    with store.writing("frames") as connection:
        register(connection, source_names(), [file(f.image) for f in frames], frames, 1)


def test_the_log_counts_files_and_frames(store: CatalogStore) -> None:
    """Of each snapshot: with deleted rows, frames without a label, and merged files."""
    add_class_tags(store, ["car"])
    for first in range(3):
        write_frames(store, first)
    assert compact(store, tuple, keep=timedelta(days=1)).merged
    write_frames(store, 3)
    check_log(store)


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(3))
def test_the_log_of_a_random_history(store: CatalogStore, folder: Path, seed: int) -> None:
    """Compacted, brought back to an older snapshot, and with snapshots that expired."""
    history = History(store, random.Random(seed))
    for first in range(5):
        history.write(2)
        write_frames(store, first)
        if first in (1, 3):
            compact(store, tuple, keep=timedelta(days=1))
    check_log(store)
    newest = store.snapshot()
    store.close()
    go_back(store.location, newest - 3, lock_wait_s=1.0)
    write_frames(store, 9)
    compact(store, [newest - 4, newest].copy, keep=AT_ONCE, in_use=AT_ONCE)
    write_frames(store, 10)
    check_log(open_store(folder))


@pytest.mark.parametrize("number", [-1, 0, 1_000_000, 2**63, 2**70])
def test_a_snapshot_that_never_was(store: CatalogStore, number: int) -> None:
    """One line that says which there are; the store goes on."""
    newest = add(store, "a")
    with pytest.raises(NotFound) as error, store.reading(number):
        pass
    assert f"no snapshot named '{number}'" in str(error.value)
    assert f"the oldest is 1, the newest {newest}" in str(error.value)
    assert "framesift catalog log" in str(error.value)
    with store.reading() as cursor:
        assert cursor.execute(COUNT).fetchone() == (1,)


def test_an_expired_snapshot(store: CatalogStore, folder: Path) -> None:
    """A reader inside goes on; the next is told, by a store that had it open and by another."""
    old, new = add(store, "a"), add(store, "b")
    with store.reading(old) as inside:
        assert inside.execute(COUNT).fetchone() == (1,)
        with open_store(folder).writing("expire") as connection:
            expire(connection, [old])
        assert inside.execute(COUNT).fetchone() == (1,)
    for catalog in (store, open_store(folder)):
        with pytest.raises(NotFound, match=rf"no snapshot named '{old}'.*newest {new}"):
            held(catalog, old)
        assert len(held(catalog, new)) == 2


@pytest.mark.wide
def test_many_old_snapshots_at_once(store: CatalogStore) -> None:
    """Few readers are kept open; one in use when it is let go of still answers."""
    numbers = [add(store, f"k{number}") for number in range(12)]
    with store.reading(numbers[0]) as first:
        for count, number in enumerate(numbers, 1):
            assert len(held(store, number)) == count
        assert len(store.engines) <= KEPT_OPEN + 1
        assert first.execute(COUNT).fetchone() == (1,)
    failed = []

    def ask(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(4):
            position = rng.randrange(len(numbers))
            if len(held(store, numbers[position])) != position + 1:
                failed.append(position)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_old_readers_are_locked_down(store: CatalogStore) -> None:
    """A reader of an old snapshot writes no more than one of the newest."""
    old = add(store, "a")
    add(store, "b")
    for statement in ("DELETE FROM lake.main.files", "COPY (SELECT 1) TO '/tmp/x.csv'", "COMMIT"):
        with store.reading(old) as cursor, pytest.raises(Exception, match="SQL0104N"):
            cursor.execute(statement)


def test_the_log(store: CatalogStore) -> None:
    """Newest first: number, time, author, reason, tables changed, files and frames."""
    add(store, "a", reason="first's")
    families.write(store, "weather", {"weather": "VARCHAR"})
    with store.writing("x") as connection:
        register(connection, source_names(), [file("b")], [frame("b")], 1)
    newest, tags, first, creation = log(store)
    assert [creation.commit.number, creation.files, creation.frames] == [1, 0, 0]
    assert creation.commit.reason == "catalog created"
    assert (first.commit.author, first.commit.reason) == ("someone", "first's")
    assert (first.commit.tables, first.files, first.frames) == (("files",), 1, 0)
    assert (tags.commit.tables, tags.commit.author) == (("tags_weather",), "tags")
    assert newest.commit.tables == ("class_pixels", "files", "tags_frame")
    assert (newest.files, newest.frames) == (2, 1)
    assert newest.commit.number == store.snapshot()
    assert newest.commit.time > tags.commit.time > first.commit.time
    assert log(store, limit=1) == [newest]


def expected_changes(old: State, new: State) -> set[tuple[str, str, object, object]]:
    """What differs in the tags of files that both states have."""
    return {
        (fkey, tag, old[fkey].get(tag), new[fkey].get(tag))
        for fkey in old.keys() & new.keys()
        for tag in old[fkey].keys() | new[fkey].keys()
        if old[fkey].get(tag) != new[fkey].get(tag)
    }


@pytest.mark.parametrize(
    ("seed", "part_rows"),
    [(0, 1_000), *(pytest.param(*each, marks=pytest.mark.wide) for each in [(1, 1_000), (2, 2)])],
)
def test_diff_against_the_states(
    store: CatalogStore, seed: int, part_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts and rows between random snapshots, both ways; and again after compaction."""
    monkeypatch.setattr(snapshot_diff, "PART_ROWS", part_rows)
    rng = random.Random(seed)
    history = History(store, rng)
    history.write(10)
    states = history.states
    pairs = [rng.sample(sorted(states), 2) for _ in range(4)]
    for compacted in (False, True):
        if compacted:
            compact(store, states.keys, keep=AT_ONCE, in_use=AT_ONCE)
        for before, after in pairs:
            check_pair(store, before, after, states[before], states[after])


def check_pair(store: CatalogStore, before: int, after: int, old: State, new: State) -> None:
    difference = diff(store, before, after)
    listed = list(changes(store, before, after))
    expected = expected_changes(old, new)
    as_text = {(c.fkey, c.tag, _text(c.before), _text(c.after)) for c in listed}
    assert as_text == expected
    assert len(listed) == len(expected)
    assert difference.files_added == len(new.keys() - old.keys())
    assert difference.files_removed == len(old.keys() - new.keys())
    assert difference.files_changed == 0
    frames = [{f for f, tags in state.items() if "front" in tags} for state in (old, new)]
    assert difference.frames_added == len(frames[1] - frames[0])
    assert difference.frames_removed == len(frames[0] - frames[1])
    assert difference.frames_changed == len({change[0] for change in expected})
    for tag, counts in difference.tags.items():
        of_tag = [(b, a) for _, name, b, a in expected if name == tag]
        assert counts.set == sum(b is None for b, _ in of_tag)
        assert counts.cleared == sum(a is None for _, a in of_tag)
        assert counts.changed == len(of_tag) - counts.set - counts.cleared
    assert difference.tags.keys() == {change[1] for change in expected}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def test_diff_names_new_tags_and_changed_files(store: CatalogStore) -> None:
    """Tags that came and went; a file of another size; a value with its type."""
    first = add(store, "a", "b")
    families.write(store, "weather", {"rain_mm": "DOUBLE"}, _row("c1:d1:a", 2.5))
    second = store.snapshot()
    with store.writing("x") as connection:
        connection.execute("UPDATE files SET size = 11 WHERE filename = 'b'")
    families.drop(store, "weather")
    third = store.snapshot()
    forth, back = diff(store, first, second), diff(store, second, third)
    assert (forth.tags_added, forth.tags_removed, forth.files_changed) == (("rain_mm",), (), 0)
    assert list(changes(store, first, second)) == [TagChange("c1:d1:a", "rain_mm", None, 2.5)]
    assert (back.tags_added, back.tags_removed, back.files_changed) == ((), ("rain_mm",), 1)
    assert diff(store, second, second) == snapshot_diff.SnapshotDiff(second, second)
    with pytest.raises(NotFound, match="no snapshot named '99'"):
        diff(store, first, 99)


def _row(fkey: str, value: float) -> pa.Table:
    return pa.table({"fkey": [fkey], "rain_mm": [value]})
