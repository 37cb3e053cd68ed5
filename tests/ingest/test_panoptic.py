"""Panoptic labels as COCO has them: counted by the JSON file that names each segment's category."""

import tarfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.frame_images.drawing import decoded_label
from catalog.errors import BadFile, InvalidInput
from catalog.frames.frames import label_keys
from catalog.frames.label_segments import segments_of
from catalog.maintenance.backup import back_up, restore
from catalog.maintenance.check import check
from catalog.maintenance.compaction import compact
from catalog.records.scans import recorded_problems
from catalog.records.sources import recorded_source
from catalog.records.tables import Source
from catalog.values import make_fkey
from ingest.labels.class_list import ClassList
from ingest.labels.label_image import decode_keys, decode_label
from ingest.labels.pixel_count import count_pixels
from ingest.labels.segments import SegmentFile, Segments
from ingest.layouts.layout import Layout
from ingest.scan import pair_frames, scan_commits
from ingest.scan.array_scan import collect_units, write_units
from ingest.scan.change_source import names_of, remove_source
from ingest.scan.check_labels import check_labels
from ingest.scan.scan import ScanOptions
from ingest.scan.scan_counts import ScanCounts
from ingest.scan.thread_engine import ThreadEngine
from ingest.scan.unit_files import UnitFolder
from ingest.sources.partial import FolderSelection
from ingest.sources.source_options import SourceOptions
from pipeline.runs.prediction_set import check_encoding
from tests.catalog.some_rows import open_store
from tests.ingest.panoptic_set import (
    CLASSES,
    IDS,
    LAYOUT,
    LISTED,
    OF_A,
    TRAIN,
    VAL,
    annotations,
    make_set,
)
from tests.ingest.png_writer import Picture, encode
from tests.ingest.s3_server import moto
from tests.ingest.scene_folders import Home, put

FRAMES = (
    "SELECT filename, given_split, road, car, person, unknown_pixels FROM metaocean_view "
    "WHERE labelled = 1 ORDER BY fkey"
)
A = ("a.png", "train", "2", "3", "0", "3")
A2 = ("a2.png", "train", "1", "0", "0", "0")
B = ("b.png", "val", "0", "2", "0", "1")


def problems(home: Home, scan: int) -> list[tuple[str, str, str]]:
    """Kind, key and reason of a scan's problems."""
    return [
        (problem.kind, problem.key, problem.reason)
        for problem in recorded_problems(home.records, scan_id=scan)
    ]


def archived(root: Path) -> Path:
    """The set as an archive."""
    path = root.with_suffix(".tar")
    with tarfile.open(path, "w") as tar:
        for file in sorted(each for each in root.rglob("*") if each.is_file()):
            tar.add(file, file.relative_to(root).as_posix())
    return path


@pytest.mark.parametrize("is_tar", [False, True])
def test_scan(home: Home, tmp_path: Path, is_tar: bool) -> None:
    """Exact counts by each split's file; void is no problem; then nothing is left to do."""
    root = make_set(tmp_path / "set")
    source = home.add(archived(root) if is_tar else root)
    result = home.scan(source, index_folder=tmp_path)
    assert home.rows(FRAMES) == [A, A2, B]
    assert problems(home, result.scan) == [
        (
            "unknown_colours",
            "panoptic/train/a.png",
            "2 pixels in ids that are no class: category 99 (1), segment 9 (1)",
        )
    ]
    again = home.scan(source, index_folder=tmp_path)
    assert (again.counts.files, again.counts.unchanged, again.counts.commits) == (9, 9, 0)


@pytest.mark.wide
def test_objects(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same from a bucket; a JSON file that changes is seen by its ETag."""
    server, root = moto(), make_set(tmp_path / "set")
    server.sign_in(monkeypatch, tmp_path)
    bucket = server.new_bucket("panoptic-scan")
    server.put_folder(bucket, root)
    source = home.add(Path("unused"), platform="S3")
    options = SourceOptions(endpoint_url=server.endpoint, region="us-east-1").to_json()
    with home.records.session() as session:
        record = session.get_one(Source, source.id)
        record.uri, record.options = f"s3://{bucket}", options
    home.scan(record)
    assert [row[1:] for row in home.rows(FRAMES)] == [A[1:], A2[1:], B[1:]]
    assert home.scan(record).counts.commits == 0
    put(root, "annotations/panoptic_val.json", annotations({"b.png": {1: 7}}))
    server.put_folder(bucket, root / "annotations", "annotations/")
    home.scan(record)
    assert home.rows(FRAMES)[2][1:] == ("val", "2", "0", "0", "1")


@pytest.mark.wide
def test_units(home: Home, tmp_path: Path) -> None:
    """Counted by a job array, whose elements read no JSON file, the rows are the same."""
    root = make_set(tmp_path / "set")
    source = home.add(root)
    folder = tmp_path / "units"
    units = write_units(home.store, home.records, source, ScanOptions(), folder, unit_frames=1)
    for path in root.glob("annotations/*"):
        path.rename(path.with_suffix(".away"))
    for number in range(1, units + 1):
        UnitFolder(folder).count(number)
    for path in root.glob("annotations/*"):
        path.rename(path.with_suffix(".json"))
    collect_units(home.store, home.records, source, ScanOptions(), folder)
    assert home.rows(FRAMES) == [A, A2, B]
    assert home.scan(source).counts.commits == 0


@pytest.mark.wide
def test_a_file_that_changes(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All labels are counted again, after a scan that was broken off as well, and once only."""
    root = make_set(tmp_path / "set")
    source = home.add(root)
    home.scan(source)
    put(root, "annotations/panoptic_train.json", annotations(TRAIN | {"a.png": OF_A | {9: 24}}))
    monkeypatch.setattr(scan_commits, "BATCH_FRAMES", 1)
    monkeypatch.setattr(pair_frames, "LOOSE_FILES", 1)  # files of no frame come first

    def stop(counts: ScanCounts) -> None:
        if counts.frames == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        home.scan(source, engine=ThreadEngine(1, frames_each=1), progress=stop)
    result = home.scan(source)
    assert home.rows(FRAMES) == [("a.png", "train", "2", "3", "1", "2"), A2, B]
    assert result.counts.frames == 3
    assert home.scan(source).counts.commits == 0


@pytest.mark.wide
def test_a_file_that_goes_and_returns(home: Home, tmp_path: Path) -> None:
    """Without it its labels cannot be counted; those of the other split stay."""
    root = make_set(tmp_path / "set")
    source = home.add(root)
    home.scan(source)
    file = root / "annotations/panoptic_train.json"
    file.unlink()
    result = home.scan(source)
    assert home.rows(FRAMES) == [B]
    reason = (
        "annotations/panoptic_train.json: is not there; it says of which category each segment of "
        "the label is"
    )
    assert problems(home, result.scan) == [
        ("unreadable", "panoptic/train/a.png", reason),
        ("unreadable", "panoptic/train/a2.png", reason),
    ]
    file.write_bytes(annotations(TRAIN | {"a2.png": {5: 3}}))
    home.scan(source)
    assert home.rows(FRAMES) == [A, ("a2.png", "train", "0", "1", "0", "0"), B]


@pytest.mark.wide
def test_a_file_that_a_scan_of_a_folder_met(home: Home, tmp_path: Path) -> None:
    """It is known from then on, so that its change is seen."""
    root = make_set(tmp_path / "set")
    source = home.add(root)
    home.scan(source, selection=FolderSelection.of(["panoptic/val"]))
    assert home.rows(FRAMES) == [B]
    put(root, "annotations/panoptic_val.json", annotations({"b.png": {1: 24}}))
    home.scan(source, selection=FolderSelection.of(["panoptic/train"]))
    assert home.rows(FRAMES) == [A, A2, ("b.png", "val", "0", "0", "2", "1")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (annotations({"a.png": OF_A}), "has no annotation of a2.png"),
        (
            annotations(TRAIN | {"a2.png": {0: 7}}),
            "a2.png has a segment with id 0; expected a whole number from 1 to 16,777,215",
        ),
        (
            annotations(TRAIN | {"a2.png": {5: -1}}),
            "a2.png has a segment with category_id -1; expected a whole number from 0 to 65,535",
        ),
        (
            annotations(TRAIN | {"a2.png": {5: 7, 6: 7}}).replace(b'"id": 6', b'"id": 5'),
            "a2.png has segment 5 twice",
        ),
        (annotations(TRAIN | {"a3.png": {}}).replace(b"a3", b"a2"), "a2.png is listed twice"),
        (
            annotations(TRAIN).replace(b'"id": 5, "category_id"', b'"id": 5, "category"'),
            "a2.png has segments_info that is no list of objects with id and category_id",
        ),
    ],
)
def test_what_a_file_says_of_a_label(content: bytes, reason: str) -> None:
    """What is wrong with one label is said of it, and the others have their segments."""
    file = SegmentFile(content)
    assert file.of("panoptic/train/a2.png") == Segments({}, reason)
    assert file.of("panoptic/train/a.png") == Segments(OF_A)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"annotations": [', "not JSON: "),
        (b"[]", "has no list of annotations"),
        (b'{"annotations": [{"file_name": "a.png"}]}', "annotations: expected objects with file_"),
        (b'{"annotations": [{"segments_info": []}]}', "annotations: expected objects with file_"),
    ],
)
def test_a_broken_file(content: bytes, reason: str) -> None:
    """It is refused as a whole."""
    with pytest.raises(BadFile, match=f"^{reason}"):
        SegmentFile(content)


def test_labels_that_files_lack(home: Home, tmp_path: Path) -> None:
    """They are listed problems, and others are counted; mended, nothing is left of it."""
    root = make_set(tmp_path / "set")
    put(root, "annotations/panoptic_train.json", annotations({"a.png": OF_A}))
    put(root, "annotations/panoptic_val.json", b"oh")
    source = home.add(root)
    result = home.scan(source)
    assert home.rows(FRAMES) == [A]
    of_val = "annotations/panoptic_val.json: not JSON: Expecting value: line 1 column 1 (char 0)"
    assert problems(home, result.scan)[1:] == [
        (
            "unreadable",
            "panoptic/train/a2.png",
            "annotations/panoptic_train.json: has no annotation of a2.png",
        ),
        ("unreadable", "panoptic/val/b.png", of_val),
    ]
    put(root, "annotations/panoptic_train.json", annotations(TRAIN))
    put(root, "annotations/panoptic_val.json", annotations(VAL))
    result = home.scan(source)
    assert home.rows(FRAMES) == [A, A2, B]
    assert [kind for kind, _, _ in problems(home, result.scan)] == ["unknown_colours"]


@pytest.mark.wide
def test_one_file_at_the_root(home: Home, tmp_path: Path) -> None:
    """A constant name; labels named by the end of their path, the longer name first."""
    root = make_set(tmp_path / "set")
    text = LAYOUT.replace("annotations/panoptic_{split}.json", "panoptic.json")
    put(root, "layout.toml", text.encode())
    rows = {"a.png": {1: 3}, "train/a.png": OF_A, "train/a2.png": {5: 7}, "b.png": {1: 3}}
    put(root, "panoptic.json", annotations(rows))
    source = home.add(root)
    home.scan(source)
    assert home.rows(FRAMES) == [A, A2, B]
    assert home.scan(source).counts.commits == 0


@pytest.mark.parametrize(("colour_type", "interlaced"), [(2, False), (2, True), (6, False)])
def test_forms(colour_type: int, interlaced: bool) -> None:
    """RGB, interlaced and with alpha; each label is counted by its own segments alone."""
    pixels = [[(n & 255, n >> 8 & 255, n >> 16, 77)[: 4 if colour_type == 6 else 3] for n in row]
              for row in IDS]  # fmt: skip
    png = encode(Picture(pixels, colour_type, interlaced=interlaced))
    counts = count_pixels(png, LISTED, Segments(OF_A))
    assert (counts.counts.tolist(), counts.unknown, counts.void) == ([2, 3, 0], 3, 1)
    assert counts.unknown_keys == {"category 99": 1, "segment 9": 1}
    other = count_pixels(png, LISTED, Segments({9: 24}))
    assert (other.counts.tolist(), other.unknown, other.void) == ([0, 0, 1], 7, 1)
    assert other.unknown_keys == {"segment 70000": 3, "segment 1": 2, "segment 300": 1}
    assert counts.digest == other.digest


def test_samples_that_are_no_segments() -> None:
    """Grey samples have no green and blue."""
    with pytest.raises(BadFile, match="encoding panoptic needs 8 bits of RGB or RGBA"):
        count_pixels(encode(Picture([[(1,)]], 0)), LISTED, Segments({1: 7}))


def kept(home: Home) -> dict[str, str]:
    """The segments that the newest snapshot has of each label."""
    names = names_of(recorded_source(home.records, "a2d2"))
    with home.store.reading_files() as snapshot:
        fkeys = [
            make_fkey(names.cluster, names.datasource, key) for key in label_keys(snapshot, names)
        ]
        segments = segments_of(snapshot, fkeys)
    return {fkey.rpartition("/")[2]: text for fkey, text in segments.items()}


def test_segments_are_kept_with_their_labels(home: Home, tmp_path: Path) -> None:
    """Those that labels were counted by, while they are catalogued; no view shows them."""
    root = make_set(tmp_path / "set")
    source = home.add(root)
    home.scan(source)
    assert kept(home) == {"a.png": "1:7 70000:3 300:99", "a2.png": "5:7", "b.png": "1:3"}
    put(root, "annotations/panoptic_val.json", annotations({"b.png": {1: 7, 2: 3}}))
    put(root, "annotations/panoptic_train.json", annotations({"a.png": OF_A}))
    home.scan(source)
    assert kept(home) == {"a.png": "1:7 70000:3 300:99", "b.png": "1:7 2:3"}
    (root / "panoptic/train/a.png").unlink()
    home.scan(source)
    assert kept(home) == {"b.png": "1:7 2:3"}
    remove_source(home.store, home.records, "a2d2")
    with home.store.reading_files() as snapshot:
        rows = snapshot.execute("SELECT count(*) FROM main.label_segments").fetchall()
    assert rows == [(0,)]


@pytest.mark.wide
def test_segments_in_copies(home: Home, tmp_path: Path) -> None:
    """A backup that is restored, and a compaction, keep them; checks find nothing odd."""
    home.scan(home.add(make_set(tmp_path / "set")))
    before = kept(home)
    assert len(before) == 3
    back_up(home.store, home.records, tmp_path / "backup")
    (tmp_path / "new").mkdir()
    restore(tmp_path / "backup", tmp_path / "new")
    restored = replace(home, store=open_store(tmp_path / "new"))
    compact(restored.store, list, keep=timedelta(0))
    assert kept(restored) == before
    assert check(restored.store, {}) == check(home.store, {})


def test_decoded_labels(home: Home, tmp_path: Path) -> None:
    """Pictures and checks have the segments of the catalog; without them a label is refused."""
    root = make_set(tmp_path / "set")
    home.scan(home.add(root))
    source: Source = recorded_source(home.records, "a2d2")
    check, unread = check_labels(home.store, source)
    assert (check.labels, check.pixels, unread, check.never_seen) == (3, 12, [], ["person"])
    assert [
        (row["key"], row["pixels"], row["examples"]) for row in check.to_json()["unknown_keys"]
    ] == [("segment 9", 1, ["panoptic/train/a.png"]), ("99", 1, ["panoptic/train/a.png"])]
    png = (root / "panoptic/train/a.png").read_bytes()
    known = Segments(OF_A).text
    assert decode_label(png, LISTED, known).tolist() == [[255, 0, 0, 1], [1, 1, 255, 255]]
    assert decode_label(png, LISTED, "9:24").tolist() == [[255] * 4, [255, 255, 255, 2]]
    colours = np.asarray(decoded_label(png, "a.png", LISTED, known))
    assert colours[0, 1].tolist() == LISTED.class_colours[0].tolist()
    for segments, reason in ((None, "whose segments are not known"), ("1:x", "are damaged: '1:x'")):
        with pytest.raises(BadFile, match=reason):
            decode_label(png, LISTED, segments)
    grey = encode(Picture([[(1,)]], 0))
    for decode in (decode_label, lambda png, listed, text: decode_keys(png, listed.encoding, text)):
        with pytest.raises(BadFile, match="encoding panoptic needs 8 bits of RGB or RGBA"):
            decode(grey, LISTED, known)
    own: dict[str, Any] = {"encoding": "panoptic", "classes": CLASSES}
    with pytest.raises(InvalidInput, match="encoding panoptic: predictions have no JSON file"):
        check_encoding(own)


def test_segments_of_other_labels() -> None:
    """A layout says them of panoptic labels, and of no others."""
    for document in ({"encoding": "index", "segments": "a.json"}, {"encoding": "panoptic"}):
        with pytest.raises(InvalidInput, match="encoding panoptic and segments belong together"):
            Layout.of({"images": "a/{frame}.png", "labels": "b/{frame}.png", **document})


def test_most_classes() -> None:
    """Void has a class id of its own, so that one class less has room."""
    rows = [{"key": n, "name": f"class {n}"} for n in range(255)]
    assert len(ClassList.from_json({"encoding": "panoptic", "classes": rows[1:]})) == 254
    with pytest.raises(InvalidInput, match="255 classes; at most 254"):
        ClassList.from_json({"encoding": "panoptic", "classes": rows})
