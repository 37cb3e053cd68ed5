"""A watcher over a real folder: what is written can be asked for soon after."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from catalog.errors import InvalidInput, NotFound
from catalog.records.scans import recorded_problems
from catalog.records.sources import recorded_source
from catalog.records.tables import Scan
from ingest.labels.class_list import ClassList
from ingest.scan.change_source import remove_source
from ingest.scan.scan_lock import scan_lock
from tests.ingest.png_writer import Picture, encode
from tests.ingest.scene_folders import (
    BICYCLE,
    CAR,
    CLASS_LIST,
    SCENE,
    SKY,
    Home,
    add_frame,
    frame_key,
    make_tree,
    put,
)
from tests.ingest.watch.watching import (
    WatchThread,
    undisturbed,
    wait_until_equal,
    watching,
    watching_here,
)

ONE_ROW = encode(Picture([[CAR, SKY]]))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three frames."""
    return make_tree(tmp_path / "tree")


@pytest.fixture
def watched(home: Home, tree: Path, tmp_path: Path) -> Iterator[WatchThread]:
    """A watcher of the tree that has listed it, and never lists it again."""
    home.add(tree)
    with watching_here(tmp_path / "home") as watcher:
        watcher.until_listed()
        yield watcher


def watch_record(home: Home) -> Scan:
    """The newest record of a watcher."""
    with home.records.session() as session:
        query = select(Scan).where(Scan.kind == "watch").order_by(Scan.id.desc()).limit(1)
        return session.scalars(query).one()


@pytest.mark.wide
def test_every_kind_of_change(
    watched: WatchThread, home: Home, empty_home: Path, tree: Path, tmp_path: Path
) -> None:
    """New, rewritten, renamed and removed files and folders: then equal to a scan of the end."""
    label = tree / frame_key("label", 1)
    before = label.stat()
    label.write_bytes(encode(Picture([[BICYCLE, BICYCLE, SKY]])))
    assert label.stat().st_size != 0
    assert label.stat().st_mtime_ns != before.st_mtime_ns
    add_frame(tree, 7, [CAR, SKY])
    (tree / frame_key("camera", 2)).unlink()
    put(tree, frame_key("label", 8), b"")
    put(tree, "other/notes.txt", b"1")
    source = make_tree(tmp_path / "made", 2)
    (source / SCENE).rename(tree / "20190101_000000")
    shutil.copytree(source, tree / "deep" / "er")
    shutil.copytree(tree / SCENE, tree / "gone" / SCENE)
    wait_until_equal(watched, home, lambda: undisturbed(empty_home, tmp_path / "one", tree))

    shutil.rmtree(tree / "gone")
    (tree / "deep").rename(tree / "deeper")
    (tree / "other" / "notes.txt").rename(tree / "moved.txt")
    add_frame(tree / "deeper" / "er", 9, [CAR, CAR])
    wait_until_equal(watched, home, lambda: undisturbed(empty_home, tmp_path / "two", tree))
    assert not any(batch["whole"] for batch in watched.batches[1:])
    assert watched.warnings == []


@pytest.mark.wide
def test_many_files_make_few_commits(
    watched: WatchThread, home: Home, tree: Path, tmp_path: Path
) -> None:
    """A thousand files one after the other: a commit every two seconds, and not one each."""
    before, began = home.store.snapshot(), time.monotonic()
    for number in range(100, 600):
        add_frame(tree, number, [CAR, SKY])
    watched.until(lambda: home.rows("SELECT count(*) FROM t_car") == [(503,)])
    assert home.store.snapshot() - before <= 20 + (time.monotonic() - began)


@pytest.mark.wide
def test_a_file_that_is_being_written_waits(
    watched: WatchThread, home: Home, empty_home: Path, tree: Path, tmp_path: Path
) -> None:
    """Its scene is scanned for another frame: no bad file, no orphan, and it comes when closed."""
    put(tree, frame_key("camera", 10), ONE_ROW)
    with (tree / frame_key("label", 10)).open("wb") as file:
        file.write(ONE_ROW[:40])
        file.flush()
        add_frame(tree, 11, [CAR, SKY])
        watched.until(lambda: home.rows("SELECT count(*) FROM t_car") == [(4,)])
        assert recorded_problems(home.records, source_id=1) == []
        assert not any(batch["bad_files"] for batch in watched.batches)
        file.write(ONE_ROW[40:])
    wait_until_equal(watched, home, lambda: undisturbed(empty_home, tmp_path / "one", tree))
    assert home.rows("SELECT count(*) FROM t_car") == [(5,)]


@pytest.mark.wide
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_well(
    home: Home, tree: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Its process: exit code 0, the record done, with the counts of all its batches."""
    home.add(tree)
    with watching(tmp_path / "home") as watched:
        watched.until_listed()
        assert watch_record(home).state == "running"
        add_frame(tree, 9, [CAR, SKY])
        watched.until(lambda: home.rows("SELECT count(*) FROM t_car") == [(4,)])
        assert watched.end(number) == 0
        assert watched.warnings == []
    record = watch_record(home)
    assert (record.state, record.error) == ("done", "")
    assert record.finished is not None
    assert (record.counts["added"], record.counts["frames"]) == (9, 4)
    assert record.counts["commits"] == sum(batch["commits"] for batch in watched.batches)
    assert home.rows("SELECT DISTINCT scangen FROM metaocean") == [(record.id,)]


@pytest.mark.wide
def test_a_busy_source_waits(watched: WatchThread, home: Home, tree: Path) -> None:
    """While another process scans it nothing is lost, and it is said once."""
    with scan_lock(home.store, recorded_source(home.records, "a2d2")):
        add_frame(tree, 9, [CAR, SKY])
        watched.until_says("the changes wait")
        add_frame(tree, 10, [CAR, SKY])
    watched.until(lambda: home.rows("SELECT count(*) FROM t_car") == [(5,)])
    assert len(watched.warnings) == 1


@pytest.mark.wide
def test_another_watcher_is_refused(watched: WatchThread, home: Home, tmp_path: Path) -> None:
    """One line that names the first, exit code 1; a scan by ingest is not kept away."""
    with watching(tmp_path / "home") as second:
        assert second.ended() == 1
    assert len(second.warnings) == 1
    assert f"is being watched by process {os.getpid()}" in second.warnings[0]
    home.scan(recorded_source(home.records, "a2d2"))


@pytest.mark.wide
def test_a_source_that_goes_away_and_comes_back(
    watched: WatchThread, home: Home, empty_home: Path, tree: Path, tmp_path: Path
) -> None:
    """Nothing is taken for removed; what changed meanwhile is found; and it is watched again."""
    aside = tree.with_name("aside")
    tree.rename(aside)
    watched.until_says("again in")
    assert home.rows("SELECT count(*) FROM t_car") == [(3,)]
    add_frame(aside, 9, [CAR, SKY])
    aside.rename(tree)
    watched.until(lambda: home.rows("SELECT count(*) FROM t_car") == [(4,)])
    add_frame(tree, 10, [CAR, SKY])
    wait_until_equal(watched, home, lambda: undisturbed(empty_home, tmp_path / "one", tree))
    assert watched.end() is None


@pytest.mark.wide
def test_missed_events_are_repaired_by_listing(
    home: Home, empty_home: Path, tree: Path, tmp_path: Path
) -> None:
    """Without any events, as on a network file system: changed, renamed and removed files."""
    home.add(tree)
    with watching_here(tmp_path / "home", "none", 0.5) as watched:
        watched.until_listed()
        add_frame(tree, 9, [CAR, SKY])
        (tree / frame_key("label", 1)).unlink()
        (tree / SCENE).rename(tree / "20190101_000000")
        add_frame(tree, 10, [CAR, SKY])
        wait_until_equal(watched, home, lambda: undisturbed(empty_home, tmp_path / "one", tree))
        assert all(batch["whole"] for batch in watched.batches)


@pytest.mark.wide
def test_another_class_list_counts_everything_again(
    watched: WatchThread, home: Home, tree: Path
) -> None:
    """A batch that meets it looks at the whole source, and not at its own folders alone."""
    for number in (21, 22, 23):
        add_frame(tree / "elsewhere", number, [CAR, SKY])
    watched.until(lambda: home.rows("SELECT count(*) FROM t_car") == [(6,)])
    changed = {**CLASS_LIST, "#87ceff": "Clouds"}
    put(tree, "list.part", json.dumps(changed).encode()).rename(tree / "class_list.json")
    add_frame(tree, 9, [CAR, SKY])
    watched.until(lambda: any(batch["whole"] for batch in watched.batches[1:]))
    assert home.rows("SELECT count(*) FROM t_clouds WHERE value::INTEGER > 0") == [(7,)]
    assert recorded_source(home.records, "a2d2").class_list == (
        ClassList.from_colours(changed).to_json()
    )


@pytest.mark.wide
def test_a_broken_class_list_waits_for_a_better_one(
    watched: WatchThread, home: Home, tree: Path
) -> None:
    """As while it is being edited: said, tried again, and nothing is lost."""
    put(tree, "class_list.json", b"{")
    add_frame(tree, 9, [CAR, SKY])
    watched.until_says("not JSON")
    put(tree, "class_list.json", json.dumps(CLASS_LIST).encode())
    watched.until(lambda: home.rows("SELECT count(*) FROM t_car") == [(4,)])


@pytest.mark.wide
def test_a_removed_source_ends_it(watched: WatchThread, home: Home, tree: Path) -> None:
    """There is nothing left to watch: an error, and nothing of it comes back."""
    remove_source(home.store, home.records, "a2d2")
    add_frame(tree, 9, [CAR, SKY])
    assert isinstance(watched.ended(), NotFound)
    assert home.rows("SELECT count(*) FROM metaocean") == [(0,)]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ("amqp://x/y", "expected inotify, none, sqs://"),
        ("sqs", "expected inotify, none, sqs://"),
        ("sqs://queue", "is no folder of a bucket"),
        ("kafka://host:9092/topic", "is no folder of a bucket"),
        ("none", "give --relist SECONDS, or --events"),
    ],
)
def test_events_that_do_not_fit_end_it_at_once(
    home: Home, tree: Path, tmp_path: Path, events: str, reason: str
) -> None:
    """What is expected is said, and nothing is recorded."""
    home.add(tree)
    with watching_here(tmp_path / "home", events) as watched:
        error = watched.ended()
    assert isinstance(error, InvalidInput)
    assert reason in str(error)
    with home.records.session() as session:
        assert session.scalars(select(Scan)).all() == []


@pytest.mark.wide
def test_a_source_that_is_not_there_ends_it_at_once(home: Home, tree: Path, tmp_path: Path) -> None:
    """One line and exit code 1: most likely it is a mistake, and nothing was watched yet."""
    home.add(tree)
    shutil.rmtree(tree)
    with watching(tmp_path / "home") as watched:
        assert watched.ended() == 1
    assert watched.warnings == [f"error: {tree}: no such folder; is the source mounted?"]


@pytest.mark.wide
def test_too_few_watches_are_said_with_the_setting(home: Home, tree: Path, tmp_path: Path) -> None:
    """The kernel really refuses, in a user namespace of its own that may watch seven folders.

    At the start it is an error. Later it is said once, and what is watched goes on.
    """
    own = ("unshare", "-Ur", "sh", "-c")
    limit = 'echo 7 > /proc/sys/user/max_inotify_watches && exec "$0" "$@"'
    if subprocess.run([*own, limit, "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces are not allowed here")
    home.add(tree)  # six folders: the root, a scene, camera and label, a camera's in each
    prefix = (*own, limit)
    with watching(tmp_path / "home", "--relist", "0", prefix=prefix) as watched:
        watched.until_listed()
        (tree / "a" / "b" / "c").mkdir(parents=True)
        watched.until_says("fs.inotify.max_user_watches")
        (tree / "d").mkdir()
        add_frame(tree, 9, [CAR, SKY])
        watched.until(lambda: home.rows("SELECT count(*) FROM t_car") == [(4,)])
        assert watched.end() == 0
        assert len(watched.warnings) == 1
    with watching(tmp_path / "home", prefix=prefix) as watched:
        assert watched.ended() == 1
        assert "fs.inotify.max_user_watches" in watched.warnings[0]
