"""Scans: what they leave in the catalog and the records."""

import json
import os
from pathlib import Path

import pytest

from catalog.errors import AlreadyExists, CatalogBusy, ClassListMissing, InvalidInput, NotFound
from catalog.records.scans import last_scan, recorded_problems
from catalog.records.sources import recorded_source
from catalog.records.tag_definitions import recorded_class_names
from catalog.values import make_fkey
from ingest.labels.class_list import ClassList
from ingest.scan.change_source import remove_source
from ingest.scan.scan_counts import ScanCounts
from ingest.scan.scan_lock import scan_lock
from ingest.scan.thread_engine import ThreadEngine
from tests.ingest.png_writer import Picture, encode, header
from tests.ingest.scene_folders import (
    BICYCLE,
    CAR,
    CLASS_LIST,
    NOTHING,
    SCENE,
    SKY,
    Home,
    add_frame,
    frame_key,
    make_tree,
    put,
)


@pytest.mark.wide
def test_the_whole_sample_set(home: Home, sample_root: Path) -> None:
    """All 75 files and 24 frames land; class pixels in the catalog are those of counts.json."""
    result = home.scan(home.add(sample_root))
    files = [path for path in sample_root.rglob("*") if path.is_file()]
    assert (result.counts.files, result.counts.frames) == (len(files), 24)
    assert (result.counts.bad_files, result.counts.orphans, result.counts.unknown_pixels) == (
        0,
        0,
        0,
    )
    assert home.problems(result.scan) == []
    noted = json.loads((sample_root.parent / "counts.json").read_text())["frames"]
    names = recorded_class_names(home.records)
    assert len(names) == 38
    columns = ", ".join(f'"{tag}"' for tag in names)
    counts_of_labels = {
        Path(str(label)).name: {
            name: int(str(pixels))
            for name, pixels in zip(names.values(), counts, strict=True)
            if pixels != "0"
        }
        for label, *counts in home.rows(f"SELECT label_file, {columns} FROM metaocean_view "
                                        "WHERE label_file IS NOT NULL")
    }  # fmt: skip
    assert counts_of_labels == noted


def test_rows_of_a_file_system(home: Home, tmp_path: Path) -> None:
    """NFS: path is the folder with a trailing slash, filename the base name; one row per file."""
    root = make_tree(tmp_path / "tree", frames=1)
    home.scan(home.add(root))
    folder = f"{root}/{SCENE}/label/cam_front_center/"
    name = frame_key("label", 1).rpartition("/")[2]
    rows = home.rows(
        "SELECT path, filename, filetype, platform, datasource, fkey, fileset, state "
        "FROM metaocean ORDER BY fkey"
    )
    label = ("NFS", "a2d2", make_fkey("host1", "a2d2", frame_key("label", 1)), "NA", "resdnt")
    assert (folder, name, "png", *label) in rows
    assert (f"{root}/", "class_list.json", "json", "NFS", "a2d2",
            "host1:a2d2:class_list.json", "NA", "resdnt") in rows  # fmt: skip
    assert len(rows) == 3


def test_rows_of_an_object_store(home: Home, tmp_path: Path) -> None:
    """IBM COS: path is the bucket with a slash, filename the whole key; all can be read at once."""
    home.scan(home.add(make_tree(tmp_path / "tree", frames=1), "IBM COS"))
    rows = home.rows("SELECT path, filename, fileset, state FROM metaocean ORDER BY filename")
    keys = sorted([frame_key("camera", 1), frame_key("label", 1), "class_list.json"])
    assert rows == [("a2d2/", key, "", "resdnt") for key in keys]


def test_only_camera_images_carry_tags(home: Home, tmp_path: Path) -> None:
    """The image's row has the frame's tags; the label's row has none, so nothing counts twice."""
    root = make_tree(tmp_path / "tree", frames=2)
    add_frame(root, 7, [NOTHING, CAR], camera="rear_center")
    home.scan(home.add(root))
    rows = home.rows(
        "SELECT filename, car, bicycle, unknown_pixels, front, side, rear, center, left_, right_ "
        "FROM metaocean_view WHERE car IS NOT NULL ORDER BY filename"
    )
    names = [
        frame_key("camera", *of).rpartition("/")[2]
        for of in ((1,), (2,), (7, "png", "rear_center"))
    ]
    assert rows == [
        (names[0], "1", "1", "0", "1", "0", "0", "1", "0", "0"),
        (names[1], "2", "1", "0", "1", "0", "0", "1", "0", "0"),
        (names[2], "1", "0", "1", "0", "0", "1", "1", "0", "0"),
    ]
    assert home.rows("SELECT value FROM t_car ORDER BY fkey") == [("1",), ("2",), ("1",)]


@pytest.mark.wide
def test_rescan_changes_nothing(home: Home, tmp_path: Path) -> None:
    """A second scan reads nothing and writes nothing, not even a snapshot."""
    source = home.add(make_tree(tmp_path / "tree"))
    times = "atime, inserttime, updatedtime, requesttime"
    columns = f"SELECT * EXCLUDE ({times}, scangen) FROM metaocean"
    both = f"{columns} ORDER BY fkey", "SELECT * EXCLUDE (atime) FROM metaocean_view ORDER BY fkey"
    home.scan(source)
    before = [home.rows(statement) for statement in both]
    snapshot = home.store.snapshot()
    counts = home.scan(source).counts
    assert (counts.files, counts.unchanged, counts.frames, counts.bytes_read) == (7, 7, 0, 0)
    assert home.store.snapshot() == snapshot
    assert [home.rows(statement) for statement in both] == before
    assert home.rows("SELECT count(*) - count(DISTINCT fkey) FROM metaocean") == [(0,)]


@pytest.mark.wide
def test_removed_files_stay_in_older_snapshots(home: Home, tmp_path: Path) -> None:
    """A removed frame leaves the current snapshot with its tags and is there AT the older one."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    home.scan(source)
    before = home.store.snapshot()
    for kind in ("camera", "label"):
        (root / frame_key(kind, 2)).unlink()
    assert home.scan(source).counts.removed == 2
    count = "SELECT (SELECT count(*) FROM lake.main.files{0}), (SELECT count(*) FROM t_car), "
    count += "(SELECT count(*) FROM lake.main.class_pixels{0})"
    assert home.rows(count.format("")) == [(5, 2, 2)]
    assert home.rows(count.format(f" AT (VERSION => {before})")) == [(7, 2, 3)]


@pytest.mark.wide
def test_a_label_that_becomes_bad_loses_its_tags(home: Home, tmp_path: Path) -> None:
    """A damaged label's old counts go; its file stays and the problem is recorded."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    home.scan(source)
    label = root / frame_key("label", 2)
    label.write_bytes(label.read_bytes()[:-20])
    result = home.scan(source)
    assert (result.counts.bad_files, result.counts.frames, result.counts.changed) == (1, 0, 1)
    assert home.problems(result.scan) == [("bad_file", frame_key("label", 2))]
    assert home.rows("SELECT value FROM t_car ORDER BY value") == [("1",), ("3",)]
    assert home.rows("SELECT count(*) FROM metaocean") == [(7,)]


def test_problems_are_recorded_and_the_scan_goes_on(home: Home, tmp_path: Path) -> None:
    """Every kind of unusable file is one recorded problem; all other frames are counted."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    good = encode(Picture([[CAR, SKY]]))
    put(root, frame_key("camera", 10, "json"), b"{}")  # orphan
    put(root, frame_key("label", 11), good)  # orphan
    for number, image, label in (
        (20, good, b""),
        (21, good, b"not a png" * 9),
        (22, good, header(60000, 60000)),
        (23, good[:-12], good),
        (24, encode(Picture([[CAR, SKY, SKY]])), good),
        (25, b"", good),
        (26, good, encode(Picture([[NOTHING, SKY]]))),
    ):
        put(root, frame_key("camera", number), image)
        put(root, frame_key("label", number), label)
    result = home.scan(source)
    expected = {
        ("orphan", frame_key("camera", 10, "json")),
        ("orphan", frame_key("label", 11)),
        *(("bad_file", frame_key("label", number)) for number in (20, 21, 22, 24)),
        *(("bad_file", frame_key("camera", number)) for number in (23, 25)),
        ("unknown_colours", frame_key("label", 26)),
    }
    assert sorted(home.problems(result.scan)) == sorted(expected)
    reasons = {
        problem.key: problem.reason
        for problem in recorded_problems(home.records, scan_id=result.scan)
    }
    assert reasons[frame_key("label", 24)] == "label is 2x1 pixels, its camera image 3x1"
    assert "#090909 (1)" in reasons[frame_key("label", 26)]
    assert not any("\n" in reason for reason in reasons.values())
    counts = result.counts
    assert (counts.frames, counts.bad_files, counts.orphans, counts.unknown_pixels) == (4, 6, 2, 1)
    assert home.rows("SELECT count(*) FROM metaocean") == [(1 + 6 + 2 + 14,)]
    scan = last_scan(home.records, source.id)
    assert scan is not None
    assert (scan.id, scan.state, scan.error) == (result.scan, "done", "")
    assert scan.counts["orphans"] == 2


@pytest.mark.parametrize("kind", ["camera", "label"])
@pytest.mark.parametrize("trailer", [b"\0", bytes(70_000), b"<x:xmpmeta/>" * 1_000])
def test_bytes_behind_the_end_of_a_png_are_passed_over(
    home: Home, tmp_path: Path, kind: str, trailer: bytes
) -> None:
    """A copy's padding, a camera's trailer: of images as of labels; a cut file is still bad."""
    root = make_tree(tmp_path / "tree", frames=3)
    whole = (root / frame_key(kind, 1)).read_bytes()
    put(root, frame_key(kind, 1), whole + trailer)
    put(root, frame_key(kind, 2), whole[:-12] + trailer)
    result = home.scan(home.add(root))
    assert result.counts.frames == 2
    assert home.problems(result.scan) == [("bad_file", frame_key(kind, 2))]


def test_names_the_catalog_cannot_hold(home: Home, tmp_path: Path) -> None:
    """A name that is not UTF-8, or longer than an fkey, is a problem and not the scan's end."""
    root = make_tree(tmp_path / "tree")
    (root / os.fsdecode(b"latin-\xe4.txt")).write_bytes(b"x")
    long = "/".join(["d" * 200] * 11)
    put(root, f"{long}/f", b"x")
    result = home.scan(home.add(root))
    assert sorted(home.problems(result.scan)) == [
        ("bad_file", f"{long}/f"),
        ("bad_file", "latin-\\udce4.txt"),
    ]
    assert home.rows("SELECT count(*) FROM metaocean") == [(7,)]


def test_a_source_without_class_list(home: Home, tmp_path: Path) -> None:
    """Without class_list.json nothing is catalogued; one given by hand is used instead."""
    root = make_tree(tmp_path / "tree")
    (root / "class_list.json").rename(tmp_path / "mine.json")
    source = home.add(root)
    with pytest.raises(ClassListMissing, match="give --class-list FILE"):
        home.scan(source)
    assert home.rows("SELECT count(*) FROM metaocean") == [(0,)]
    assert last_scan(home.records, source.id) is None
    result = home.scan(source, class_list=tmp_path / "mine.json")
    assert result.counts.frames == 3
    kept = recorded_source(home.records, "a2d2").class_list
    assert kept == ClassList.from_colours(CLASS_LIST).to_json()
    with pytest.raises(ClassListMissing, match=r"gone\.json"):
        home.scan(source, class_list=tmp_path / "gone.json")


BAD_CLASS_LISTS = (
    ("{", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ("[]", "expected an object"),
    (json.dumps({"#ff0000": "x" * 20_000}), "a name of 20,000 characters; at most 100"),
    (json.dumps({"#ff0000": "Car\n\x1b[2J"}), r"'Car\n\x1b[2J' has characters that cannot be"),
    ('{"#ff0000": "Car", "#ff0000": "Truck"}', "'#ff0000' is listed 2 times"),
    ('{"#ff0000": "Path"}', "class tag 'path' would collide"),
    ('{"#ff0000": "Front"}', "class tag 'front' would collide"),
    ('{"#ff0000": "Unknown pixels"}', "class tag 'unknown_pixels' would collide"),
    ('{"#ff0000": "Scene"}', "class tag 'scene' would collide"),
    ('{"#ff0000": "fkey"}', "class tag 'fkey' would collide"),
)


def test_class_lists_that_cannot_be_used(home: Home, tmp_path: Path) -> None:
    """Broken lists and classes named as other columns are refused before anything is written."""
    root = make_tree(tmp_path / "tree", frames=1)
    source = home.add(root)
    before = home.store.snapshot()
    for text, words in BAD_CLASS_LISTS:
        put(root, "class_list.json", text.encode())
        with pytest.raises(InvalidInput) as error:
            home.scan(source)
        assert words in str(error.value)
        assert "\n" not in str(error.value)
    assert home.store.snapshot() == before


@pytest.mark.wide
def test_two_sources_share_class_tags_and_keep_their_rows(home: Home, tmp_path: Path) -> None:
    """A second source adds its new classes; rescanning one leaves the other's rows alone."""
    first = home.add(make_tree(tmp_path / "one"), name="one")
    root = make_tree(tmp_path / "two", frames=1)
    put(root, "class_list.json", json.dumps({**CLASS_LIST, "#0000ff": "Truck 1"}).encode())
    second = home.add(root, name="two")
    home.scan(first)
    home.scan(second)
    home.scan(first)
    count = "SELECT datasource, count(*), count(truck) FROM metaocean_view GROUP BY 1 ORDER BY 1"
    assert home.rows(count) == [("one", 7, 0), ("two", 3, 1)]
    assert list(recorded_class_names(home.records)) == ["car", "bicycle", "sky", "truck"]


@pytest.mark.wide
def test_removing_a_source(home: Home, tmp_path: Path) -> None:
    """Its files leave the catalog, its record goes, and its name can be used again."""
    source = home.add(make_tree(tmp_path / "tree"))
    home.scan(source)
    with pytest.raises(AlreadyExists):
        home.add(tmp_path / "tree")
    assert remove_source(home.store, home.records, "a2d2") == 7
    assert home.rows("SELECT count(*) FROM metaocean_view") == [(0,)]
    with pytest.raises(NotFound):
        remove_source(home.store, home.records, "a2d2")
    with pytest.raises(NotFound, match="removed meanwhile"):
        home.scan(source)
    assert home.scan(home.add(tmp_path / "tree")).counts.frames == 3


def test_one_scan_of_a_source_at_a_time(home: Home, tmp_path: Path) -> None:
    """A second scan or removal meanwhile is refused: each takes the other's files for gone."""
    source = home.add(make_tree(tmp_path / "tree"))
    with scan_lock(home.store, source):
        with pytest.raises(
            CatalogBusy, match=f"source a2d2 is being scanned by process {os.getpid()}"
        ):
            home.scan(source)
        with pytest.raises(CatalogBusy):
            remove_source(home.store, home.records, "a2d2")
    assert home.scan(source).counts.frames == 3


@pytest.mark.wide
def test_progress_and_workers(home: Home, tmp_path: Path) -> None:
    """Progress only grows and ends at the result; the number of workers changes no result."""
    source = home.add(make_tree(tmp_path / "tree", frames=9))
    results = []
    for workers in (1, 5):
        seen: list[int] = []

        def note(counts: ScanCounts, seen: list[int] = seen) -> None:
            seen.append(counts.files)

        results.append(home.scan(source, engine=ThreadEngine(workers), full=True, progress=note))
        assert seen == sorted(seen)
        assert seen[-1] == results[-1].counts.files == 19
        rows = home.rows("SELECT value FROM t_car ORDER BY value::INT")
        assert rows == [(str(n),) for n in range(1, 10)]
    with pytest.raises(InvalidInput, match="workers: got 0"):
        ThreadEngine(0)


def test_a_failed_scan_says_why(home: Home, tmp_path: Path) -> None:
    """An error in the middle is recorded with the scan, and what was catalogued before stays."""
    source = home.add(make_tree(tmp_path / "tree"))
    home.scan(source)

    def stop(counts: ScanCounts) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        home.scan(source, progress=stop)
    scan = last_scan(home.records, source.id)
    assert scan is not None
    assert (scan.state, scan.error) == ("failed", "KeyboardInterrupt: ")
    assert scan.finished is not None
    assert home.rows("SELECT count(*) FROM metaocean") == [(7,)]


def test_the_bicycle_of_every_frame(home: Home, tmp_path: Path) -> None:
    """Counts are pixels: one green pixel is bicycle 1, whichever numbered colour it has."""
    root = make_tree(tmp_path / "tree", frames=1)
    add_frame(root, 2, [BICYCLE, (0xC8, 0, 0), CAR])
    home.scan(home.add(root))
    assert home.rows("SELECT bicycle, car FROM metaocean_view WHERE car = '2'") == [("1", "2")]
