"""Scans after the first: what is read again, and that they end where a first scan would."""

import errno
import json
import os
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import StorageError
from catalog.records.scans import recorded_problems
from catalog.records.sources import recorded_source
from catalog.records.tables import Source
from catalog.storage.beneath import open_beneath
from catalog.values import File, KnownFile, now
from ingest.labels.class_list import ClassList
from ingest.scan.listing_diff import compare
from ingest.scan.scan_counts import ScanCounts
from ingest.scan.thread_engine import ThreadEngine
from ingest.sources import local_folder
from ingest.sources.local_folder import LocalFolder
from tests.catalog.histories import SEEDS
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
from tests.ingest.test_killed_scan import state

NOW = now()
keys = st.lists(st.text("ab/.Z", min_size=1, max_size=4), unique=True, max_size=12)


@settings(max_examples=200, deadline=None)
@given(old=keys, new=keys, marks=st.randoms(use_true_random=False))
def test_every_key_is_told_once(old: list[str], new: list[str], marks: random.Random) -> None:
    """The merge of two sorted streams says the same as sets do."""
    sizes = {key: marks.randint(1, 2) for key in new}
    listed = [File(key, sizes[key], NOW) for key in sorted(new)]
    known = [KnownFile(key, 1, NOW, "") for key in sorted(old)]
    told = {change.key: change.change for change in compare(listed, known)}
    assert list(told) == sorted({*old, *new})
    for key, change in told.items():
        if key not in old:
            assert change == "added"
        elif key not in new:
            assert change == "removed"
        else:
            assert change == ("unchanged" if sizes[key] == 1 else "changed")


def test_a_listing_out_of_order_is_refused() -> None:
    """Taken as sorted it would pass present files for removed."""
    with pytest.raises(StorageError, match="not in order"):
        list(compare([File("b", 1, NOW), File("a", 1, NOW)], []))


@pytest.mark.parametrize(
    ("known", "etag", "mtime_differs", "change"),
    [
        ("e1", "e1", True, "unchanged"),
        ("e1", "e2", False, "changed"),
        ("", "", True, "changed"),
        ("", "", False, "unchanged"),
        ("", "e1", False, "changed"),
        ("e1", "", False, "unchanged"),
        ("e1", "", True, "changed"),
    ],
)
def test_an_etag_is_believed_before_a_time(
    known: str, etag: str, mtime_differs: bool, change: str
) -> None:
    """A copied object has a new time and the same content; a file system has no etag.

    What was listed without an etag and now has one is read again: its content was never named.
    """
    before = KnownFile("a", 1, NOW, known)
    listed = File("a", 1, NOW.replace(year=2000) if mtime_differs else NOW, etag=etag)
    assert [change.change for change in compare([listed], [before])] == [change]


def test_folders_are_listed_in_the_order_of_whole_keys(tmp_path: Path) -> None:
    """A folder's files come where its name with the slash sorts: 'a.b' before 'a/b'."""
    for key in ("a/b", "a.b", "a0", "a/c/d", "ab"):
        put(tmp_path, key, b"x")
    listed = [file.key for file in LocalFolder(tmp_path).list()]
    assert listed == sorted(listed) == ["a.b", "a/b", "a/c/d", "a0", "ab"]


def test_only_what_changed_is_read(home: Home, tmp_path: Path) -> None:
    """One frame new, one label changed, one frame gone, the rest untouched."""
    root = make_tree(tmp_path / "tree", frames=5)
    source = home.add(root)
    home.scan(source)
    add_frame(root, 6, [SKY, SKY])
    put(root, frame_key("label", 2), encode(Picture([[BICYCLE, BICYCLE, CAR, SKY]])))
    for kind in ("camera", "label"):
        (root / frame_key(kind, 3)).unlink()
    counts = home.scan(source).counts
    told = (counts.added, counts.changed, counts.removed, counts.unchanged, counts.frames)
    assert told == (2, 1, 2, 8, 2)
    assert home.rows("SELECT value FROM t_car ORDER BY fkey") == [(n,) for n in "11450"]
    unchanged = "SELECT scangen, count(*) FROM metaocean GROUP BY 1 ORDER BY 1"
    assert home.rows(unchanged) == [(1, 7), (2, 4)]


@pytest.mark.wide
def test_a_frame_that_loses_a_partner(home: Home, tmp_path: Path) -> None:
    """Without its label it is an unlabelled frame; without its JSON it is counted on."""
    root = make_tree(tmp_path / "tree")
    for number in (1, 2):
        put(root, frame_key("camera", number, "json"), b"{}")
    source = home.add(root)
    home.scan(source)
    (root / frame_key("label", 1)).unlink()
    (root / frame_key("camera", 2, "json")).unlink()
    result = home.scan(source)
    assert (result.counts.removed, result.counts.frames, result.counts.unlabelled) == (2, 1, 1)
    assert home.problems(result.scan) == []
    labelled = "SELECT labelled FROM metaocean_view WHERE scene IS NOT NULL ORDER BY frame_number"
    assert home.rows(labelled) == [("0",), ("1",), ("1",)]
    assert home.rows("SELECT value FROM t_car ORDER BY value") == [("2",), ("3",)]
    left = [(frame_key("camera", 1, "json"),)]
    assert home.rows("SELECT value FROM t_camera_json_file") == left


@pytest.mark.wide
def test_problems_stand_until_their_file_changes(home: Home, tmp_path: Path) -> None:
    """An unchanged bad file is not read again and still listed; mended, it is counted."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    good = (root / frame_key("label", 2)).read_bytes()
    put(root, frame_key("label", 2), good[:-20])
    put(root, frame_key("camera", 9, "json"), b"{}")
    home.scan(source)
    expected = {("bad_file", frame_key("label", 2)), ("orphan", frame_key("camera", 9, "json"))}

    def standing() -> set[tuple[str, str]]:
        return {(p.kind, p.key) for p in recorded_problems(home.records, source_id=source.id)}

    assert standing() == expected
    assert home.scan(source).counts.bytes_read == 0
    assert standing() == expected
    put(root, frame_key("label", 2), good)
    put(root, frame_key("label", 9), good)
    put(root, frame_key("camera", 9), good)
    assert home.scan(source).counts.frames == 2
    assert standing() == set()


@pytest.mark.wide
def test_what_could_not_be_read_is_tried_again(home: Home, tmp_path: Path) -> None:
    """A label that is away while it is read, and then back as it was, is counted next time."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    label, elsewhere = root / frame_key("label", 2), tmp_path / "elsewhere"

    def take_away(counts: ScanCounts) -> None:
        if counts.files == 7 and label.exists():
            label.rename(elsewhere)

    first = home.scan(source, progress=take_away)
    assert (first.counts.frames, first.counts.bad_files) == (2, 1)
    assert home.problems(first.scan) == [("unreadable", frame_key("label", 2))]
    elsewhere.rename(label)
    second = home.scan(source)
    assert (second.counts.frames, second.counts.changed) == (1, 1)
    assert recorded_problems(home.records, source_id=source.id) == []
    assert len(home.rows("SELECT * FROM t_car")) == 3
    assert home.scan(source).counts.frames == 0


def test_a_source_that_fails_stops_the_scan(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An I/O error is no fault of the label: it must not be recorded as bad, nor its tags go."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    home.scan(source)
    label = root / frame_key("label", 2)
    label.write_bytes(label.read_bytes() + b" ")

    def failing(real: str, key: str) -> BinaryIO:
        """A disk that fails at one file; test_opened_files.py has what a kernel says of one."""
        if key == frame_key("label", 2):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return open_beneath(real, key)

    monkeypatch.setattr(local_folder, "open_beneath", failing)
    with pytest.raises(StorageError, match="the source fails; scan it again"):
        home.scan(source)
    assert len(home.rows("SELECT * FROM t_car")) == 3
    assert recorded_problems(home.records, source_id=source.id) == []


def test_full_counts_again(home: Home, tmp_path: Path) -> None:
    """--full reads every label though nothing changed."""
    source = home.add(make_tree(tmp_path / "tree"))
    home.scan(source)
    counts = home.scan(source, full=True).counts
    assert (counts.changed, counts.unchanged, counts.frames) == (7, 0, 3)


@pytest.mark.wide
def test_another_class_list_counts_again(home: Home, tmp_path: Path) -> None:
    """What was counted with other classes must not stand."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    home.scan(source)
    renamed = CLASS_LIST | {"#00ff00": "Tractor"}
    put(root, "class_list.json", json.dumps(renamed).encode())
    assert home.scan(recorded_source(home.records, "a2d2")).counts.frames == 3
    assert len(home.rows("SELECT * FROM t_tractor WHERE value = '1'")) == 3
    assert home.rows("SELECT * FROM t_bicycle") == []
    assert home.scan(recorded_source(home.records, "a2d2")).counts.frames == 0


@pytest.mark.wide
def test_a_class_list_in_another_order_counts_nothing_again(home: Home, tmp_path: Path) -> None:
    """Nor one with other names for the same tags; the record has it as it is, order and all."""
    root = make_tree(tmp_path / "tree")
    home.scan(home.add(root))
    turned = dict(reversed(CLASS_LIST.items()))
    for class_list in (turned, turned | {"#87ceff": "SKY"}, CLASS_LIST):
        put(root, "class_list.json", json.dumps(class_list).encode())
        for _ in range(2):
            counts = home.scan(recorded_source(home.records, "a2d2")).counts
            assert counts.frames == 0
            kept = recorded_source(home.records, "a2d2").class_list
            assert kept == ClassList.from_colours(class_list).to_json()
        assert counts.changed == 0
    swapped = CLASS_LIST | {"#00ff00": "Sky", "#87ceff": "Bicycle"}
    put(root, "class_list.json", json.dumps(swapped).encode())
    assert home.scan(recorded_source(home.records, "a2d2")).counts.frames == 3


@pytest.mark.wide
def test_broken_off_after_its_first_commit(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit never holds half of what happened to a frame, or the next scan would not see it."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    home.scan(source)
    (root / frame_key("label", 3)).unlink()
    put(root, frame_key("camera", 1, "json"), b"{}")
    monkeypatch.setattr("ingest.scan.scan_commits.BATCH_FILES", 1)
    before = home.store.snapshot()

    def stop(_counts: ScanCounts) -> None:
        if home.store.snapshot() != before:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        home.scan(source, engine=ThreadEngine(2, 1), progress=stop)
    assert home.store.snapshot() == before + 1
    home.scan(source)
    assert home.rows("SELECT value FROM t_car ORDER BY value") == [("1",), ("2",)]
    assert len(home.rows("SELECT * FROM t_camera_json_file")) == 1
    assert len(home.rows("SELECT * FROM metaocean")) == 7


@pytest.mark.wide
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_any_history_ends_as_one_scan_would(
    home: Home, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random changes, scans between them, some broken off: all ends as one first scan would."""
    monkeypatch.setattr("ingest.scan.scan_commits.BATCH_FRAMES", 1)
    monkeypatch.setattr("ingest.scan.scan_commits.BATCH_FILES", 2)
    rng = random.Random(seed)
    root = make_tree(tmp_path / "tree", frames=6)
    source = home.add(root)
    for _ in range(6):
        for _ in range(rng.randint(1, 5)):
            _change_something(root, rng)
        _scan_or_break_off(home, source, rng)
    home.scan(source)
    (tmp_path / "alone").mkdir()
    alone = Home.at(tmp_path / "alone")
    alone.scan(alone.add(root))
    assert state(home) == state(alone)
    problems = [
        sorted((p.kind, p.key, p.reason) for p in recorded_problems(h.records, source_id=1))
        for h in (home, alone)
    ]
    assert problems[0] == problems[1]


def _scan_or_break_off(home: Home, source: Source, rng: random.Random) -> None:
    left = rng.choice([10_000, rng.randint(1, 60)])

    def count_down(_counts: ScanCounts) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        home.scan(source, engine=ThreadEngine(2, 1), progress=count_down)


def _change_something(root: Path, rng: random.Random) -> None:
    number = rng.randint(1, 8)
    kind, extension = rng.choice(
        [("camera", "png"), ("camera", "json"), ("label", "png"), ("lidar", "npz")]
    )
    path = root / frame_key(kind, number, extension)
    images, elsewhere = root / SCENE / "camera", root.with_name("elsewhere")
    match rng.randint(0, 4):
        case 0:
            path.unlink(missing_ok=True)
        case 1:
            put(root, frame_key(kind, number, extension), b"no png")
        case 2 if elsewhere.exists():  # all camera images are back, as they were
            shutil.rmtree(images, ignore_errors=True)
            elsewhere.rename(images)
        case 2 if images.exists():
            images.rename(elsewhere)
        case _:
            picture = Picture([[rng.choice([CAR, SKY, BICYCLE]) for _ in range(4)]])
            put(root, frame_key(kind, number, extension), encode(picture))
