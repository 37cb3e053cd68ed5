"""Frames that are there twice: found at ingest, taken once by samples, never parted by splits."""

import shutil
from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from catalog.frames import duplicates
from catalog.frames.duplicates import DuplicateCandidate, DuplicateSearch
from catalog.maintenance.compaction import compact
from catalog.records.scans import marked_snapshot
from ingest.scan import find_duplicates
from ingest.scan.change_source import remove_source
from ingest.scan.find_duplicates import _digests, _Sources
from ingest.sources.local_folder import LocalFolder
from pipeline.datasets.division import Division, divide
from pipeline.datasets.leakage_guard import guard_of_rows
from query.frames.candidates import DUPLICATE
from query.frames.sampling import hashes_of
from query.frames.select_frames import select_frames
from query.question.question import Question
from query.sets.leakage_guard import DRIVE
from query.sets.methods import Sample
from query.sets.select_set import SetRequest, select_set, with_columns
from tests.ingest.png_writer import Picture, encode
from tests.ingest.scene_folders import CAR, SCENE, SKY, Home, frame_key, make_tree, put

OTHER = "20190401_121727"


def deliver_again(root: Path, numbers: tuple[int, ...] = (1, 2, 3)) -> None:
    """The frames once more, byte by byte, as another scene."""
    for number in numbers:
        for kind in ("camera", "label"):
            key = frame_key(kind, number)
            renamed = key.replace(SCENE, OTHER)
            renamed = renamed.replace(SCENE.replace("_", ""), OTHER.replace("_", ""))
            put(root, renamed, (root / key).read_bytes())


def marks(home: Home) -> list[tuple[object, ...]]:
    """Scenes and numbers of the frames with the same mark, of those that have one."""
    return home.rows(
        "SELECT string_agg(scene || ' ' || frame_number, ', ' ORDER BY scene) FROM metaocean_view "
        "WHERE duplicate IS NOT NULL GROUP BY duplicate ORDER BY 1"
    )


BOTH = [(f"{SCENE} {number}, {OTHER} {number}",) for number in (1, 2, 3)]


@pytest.mark.wide
def test_a_scene_delivered_again_is_found(home: Home, tmp_path: Path) -> None:
    """Under its other name; by the scan that brings it, and no more when either scene goes."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    home.scan(source)
    assert marks(home) == []
    deliver_again(root)
    home.scan(source)
    assert marks(home) == BOTH
    assert home.rows("SELECT count(*) FROM t_car") == [(6,)]
    assert home.scan(source).counts.commits == 0
    put(root, frame_key("label", 2), encode(Picture([[CAR, SKY, SKY, SKY]])))
    home.scan(source)
    assert marks(home) == [BOTH[0], BOTH[2]]
    shutil.rmtree(root / SCENE)
    home.scan(source)
    assert marks(home) == []


def searched(home: Home, marked: int | None) -> DuplicateSearch:
    """A search by itself; see duplicates.search."""
    with home.store.inspecting() as cursor:
        return duplicates.search(cursor, marked)


@pytest.mark.wide
def test_a_scan_compares_only_what_was_written_since(home: Home, tmp_path: Path) -> None:
    """And its marks are those of a comparison of everything, across a compaction, too."""
    root = make_tree(tmp_path / "tree", frames=4)
    deliver_again(root)
    source = home.add(root)

    def scanned() -> list[tuple[object, ...]]:
        home.scan(source)
        assert searched(home, None).changes({}) == {}
        known = searched(home, marked_snapshot(home.records))
        assert known == DuplicateSearch(home.store.snapshot(), [])
        return marks(home)

    assert scanned() == BOTH
    before = marked_snapshot(home.records)
    image = root / frame_key("camera", 2)
    image.write_bytes(image.read_bytes() + b"another")
    deliver_again(root, (4,))
    assert compact(home.store, list, keep=timedelta(days=1)).merged
    assert scanned() == [BOTH[0], BOTH[2], (f"{SCENE} 4, {OTHER} 4",)]
    assert {frame.fkey[-7:-4] for frame in searched(home, before).alike} == {"004"}
    for kind in ("camera", "label"):
        (root / frame_key(kind, 1)).unlink()
    assert scanned() == [BOTH[2], (f"{SCENE} 4, {OTHER} 4",)]


@pytest.mark.wide
def test_what_a_killed_scan_left_is_marked_by_the_next(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are unchanged then; another source's scan finds them, too."""
    root, other = make_tree(tmp_path / "tree"), make_tree(tmp_path / "other", frames=0)
    source, another = home.add(root), home.add(other, name="other")
    home.scan(source)
    deliver_again(root)

    def killed(*_: object) -> DuplicateSearch:
        raise KeyboardInterrupt

    with monkeypatch.context() as patches:
        patches.setattr(duplicates, "search", killed)
        with pytest.raises(KeyboardInterrupt):
            home.scan(source)
    assert marks(home) == []
    assert home.scan(another).counts.added == 1
    assert marks(home) == BOTH


@pytest.mark.wide
def test_a_commit_between_search_and_marks(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marks of a search are not written once another process changed a frame: it searches again."""
    root = make_tree(tmp_path / "tree")
    deliver_again(root)
    source, searches = home.add(root), 0
    digests_of = find_duplicates._digests

    def removed_between(*arguments: object) -> Mapping[str, str]:
        nonlocal searches
        searches += 1
        if searches == 1:
            with home.store.writing("another process") as connection:
                for table in ("files", "tags_frame", "class_pixels", "file_digests"):
                    connection.execute(
                        f"DELETE FROM {table} WHERE fkey LIKE '%{SCENE}%000000002.png'"
                    )
        return digests_of(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(find_duplicates, "_digests", removed_between)
    home.scan(source)
    assert searches == 2
    assert marks(home) == [BOTH[0], BOTH[2]]


def test_another_encoding_of_the_label_is_the_same(home: Home, tmp_path: Path) -> None:
    """The label is compared by what it shows, the image by its bytes."""
    root = make_tree(tmp_path / "tree", frames=1)
    deliver_again(root, (1,))
    stamp, folder = OTHER.replace("_", ""), f"{OTHER}/label/cam_front_center"
    pixels = [[CAR, (0, 255, 0), SKY]]
    put(
        root,
        f"{folder}/{stamp}_label_frontcenter_000000001.png",
        encode(Picture(pixels, filters=(1,))),
    )
    home.scan(home.add(root))
    assert marks(home) == BOTH[:1]


@pytest.mark.wide
def test_equal_labels_of_other_images_are_no_duplicates(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A car that waits: only images of the same size are read, and each once."""
    root = make_tree(tmp_path / "tree", frames=0)
    label = encode(Picture([[CAR, SKY]]))
    for number, image in enumerate(([CAR, SKY], [SKY, CAR], [SKY, SKY], [CAR, CAR])):
        put(root, frame_key("camera", number), encode(Picture([image])) + b"x" * (number == 3))
        put(root, frame_key("label", number), label)
    read: list[str] = []
    whole = LocalFolder.read

    def noted(self: LocalFolder, key: str) -> bytes:
        read.append(key)
        return whole(self, key)

    monkeypatch.setattr(LocalFolder, "read", noted)
    source = home.add(root)
    home.scan(source)
    sizes = {number: (root / frame_key("camera", number)).stat().st_size for number in range(4)}
    alike = [n for n in sizes if list(sizes.values()).count(sizes[n]) > 1]
    assert sorted(key for key in read if "/camera/" in key) == [
        frame_key("camera", number) for number in alike
    ]
    assert 3 not in alike
    assert marks(home) == []
    read.clear()
    home.scan(source)
    assert not [key for key in read if "/camera/" in key]


def test_etags_of_an_object_store_need_no_read(home: Home, tmp_path: Path) -> None:
    """Two images of one MD5 are the same; other marks of content say nothing."""

    def frame(fkey: str, etag: str) -> DuplicateCandidate:
        return DuplicateCandidate(fkey, "host1", "gone", 7, etag, "0" * 16, None)

    md5 = "0123456789abcdef" * 2
    frames = [frame("a", md5), frame("b", f'"{md5}"'), frame("c", md5), frame("d", f"{md5}-2")]
    digests = _digests(frames, frames, _Sources(home.records, {}))
    assert digests == {"a": md5, "c": md5}


@pytest.mark.wide
def test_two_sources(home: Home, tmp_path: Path) -> None:
    """A frame of another source is found, too; when that source is removed, nothing is twice."""
    first, second = make_tree(tmp_path / "one"), make_tree(tmp_path / "two")
    home.scan(home.add(first, name="one"))
    home.scan(home.add(second, name="two"))
    assert len(marks(home)) == 3
    remove_source(home.store, home.records, "one")
    assert marks(home) == []


@pytest.mark.wide
def test_samples_hold_each_frame_once(home: Home, tmp_path: Path) -> None:
    """Of the same question, and of a question that only the copies answer."""
    root = make_tree(tmp_path / "tree")
    deliver_again(root)
    home.scan(home.add(root))
    assert len(select_frames(home.store, Question())) == 6
    for seed in range(3):
        sample = select_frames(home.store, Question(sample=100, seed=seed))
        assert sorted(sample.frames["frame_number"].to_pylist()) == [1, 2, 3]
    drawn, _ = select_set(home.store, SetRequest(Question(), Sample(frames=100)))
    assert sorted(drawn.frames["frame_number"].to_pylist()) == [1, 2, 3]
    copies = select_frames(home.store, Question(sample=100, scenes=(OTHER,)))
    assert copies.frames["frame_number"].to_pylist() == [1, 2, 3]
    assert np.unique(copies.frames["scene"].to_pylist()).tolist() == [OTHER]


def test_files_are_as_ever(home: Home, tmp_path: Path) -> None:
    """A frame's mark does not make its file look changed."""
    root = make_tree(tmp_path / "tree")
    deliver_again(root)
    source = home.add(root)
    home.scan(source)
    again = home.scan(source)
    assert (again.counts.unchanged, again.counts.changed) == (1 + 12, 0)
    assert again.counts.commits == 0


@pytest.mark.wide
def test_splits_never_part_them(home: Home, tmp_path: Path) -> None:
    """The guard of splits, and of sets apart from another dataset, which was made before."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    home.scan(source)
    before = select_frames(home.store, Question())
    deliver_again(root)
    third = OTHER.replace("2019", "2020")
    shutil.copytree(root / OTHER, root / third)
    for path in sorted((root / third).rglob("*.png")):
        path.write_bytes(path.read_bytes() + b"another image")
        path.rename(path.with_name(path.name.replace("2019", "2020")))
    home.scan(source)
    assert marks(home) == BOTH
    with home.store.reading() as cursor:
        every = select_frames(home.store, Question())
        frames = with_columns(cursor, every, [DRIVE, DUPLICATE]).frames
    hashes = hashes_of(frames["fkey"].to_pylist())
    halves = Division({"train": Fraction(1, 2), "validation": Fraction(1, 2)})
    sides, report = divide(frames, hashes, halves, {})
    side = dict(zip(frames["scene"].to_pylist(), sides.tolist(), strict=True))
    assert side[SCENE] == side[OTHER] != side[third]
    assert report["leakage"]["shared_duplicates"] == 0

    rows = before.frames.append_column("image", before.frames["image_file"])
    away = guard_of_rows(home.store, rows, before.snapshot, min_gap_s=0.0)
    apart = SetRequest(Question(), Sample(frames=100), leakage_guard=away)
    drawn, _ = select_set(home.store, apart)
    assert set(drawn.frames["scene"].to_pylist()) == {third}
