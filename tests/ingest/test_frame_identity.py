"""A frame in several trees is counted once; one without a label is a frame."""

import shutil
from pathlib import Path

import pytest

from catalog.frames.catalog_info import info
from catalog.store import CatalogStore
from query.statistics.class_statistics import class_report
from tests.ingest.png_writer import Picture, encode
from tests.ingest.scene_folders import (
    BICYCLE,
    CAR,
    SCENE,
    SKY,
    Home,
    frame_key,
    make_tree,
    put,
)
from tests.ingest.test_killed_scan import state

FIRST, SECOND = "camera_lidar_semantic", "camera_lidar_semantic_bboxes"


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    """A source with frames 1 to 3 in the first tree, and 2 and 3 in the second as well."""
    root = make_tree(tmp_path / "tree")
    (root / FIRST).mkdir()
    (root / SCENE).rename(root / FIRST / SCENE)
    for number in (2, 3):
        for kind in ("camera", "label"):
            key = frame_key(kind, number)
            put(root, f"{SECOND}/{key}", (root / FIRST / key).read_bytes())
        put(root, f"{SECOND}/{frame_key('lidar', number, 'npz')}", b"points")
    return root


def cars(home: Home) -> list[tuple[object, ...]]:
    """Which tree's image carries each frame's tags, and its cars."""
    return home.rows("SELECT split_part(substr(fkey, 12), '/', 1), value FROM t_car ORDER BY value")


def scanned_alone(empty_home: Path, tmp_path: Path, root: Path, name: str) -> list[object]:
    """The state of a catalog into which the source as it is was scanned first."""
    shutil.copytree(empty_home, tmp_path / name)
    other = Home.at(tmp_path / name)
    other.scan(other.add(root))
    return state(other)


@pytest.mark.wide
def test_frames_of_both_trees_are_counted_once(home: Home, trees: Path) -> None:
    """They are the first tree's; lidar comes from the other, and every file is catalogued."""
    result = home.scan(home.add(trees))
    assert cars(home) == [(FIRST, "1"), (FIRST, "2"), (FIRST, "3")]
    assert info(home.store).frames == 3
    assert home.rows("SELECT sum(front), count(*) FROM lake.main.class_pixels") == [(3, 3)]
    assert home.rows("SELECT count(*) FROM metaocean") == [(1 + 6 + 6,)]
    lidar = home.rows("SELECT value FROM t_lidar_file ORDER BY value")
    assert [str(key).split("/")[0] for (key,) in lidar] == [SECOND, SECOND]
    assert result.counts.orphans == 0
    assert home.scan(home.add(trees, name="other")).counts.frames == 5  # a source of its own


@pytest.mark.wide
def test_either_tree_may_go_and_come_back(
    home: Home, empty_home: Path, trees: Path, tmp_path: Path
) -> None:
    """No label of the other tree is read again, and the catalog is as if scanned once."""
    source = home.add(trees)
    home.scan(source)
    both = state(home)
    for gone, remaining in ((FIRST, SECOND), (SECOND, FIRST)):
        (trees / gone).rename(tmp_path / "away")
        result = home.scan(source)
        assert (result.counts.frames, result.counts.bytes_read) == (0, 0)
        assert {tree for tree, _ in cars(home)} == {remaining}
        assert state(home) == scanned_alone(empty_home, tmp_path, trees, f"without_{gone}")
        (tmp_path / "away").rename(trees / gone)
        home.scan(source)
        assert state(home) == both
    assert home.scan(source).counts.commits == 0


@pytest.mark.wide
def test_a_changed_label_of_either_tree(
    home: Home, empty_home: Path, trees: Path, tmp_path: Path
) -> None:
    """The first tree's counts are the frame's, whichever tree's label changes."""
    source = home.add(trees)
    home.scan(source)
    put(trees, f"{SECOND}/{frame_key('label', 2)}", encode(Picture([[SKY] * 4])))
    home.scan(source)
    assert [value for _, value in cars(home)] == ["1", "2", "3"]
    put(trees, f"{FIRST}/{frame_key('label', 3)}", encode(Picture([[CAR, BICYCLE, SKY, SKY, SKY]])))
    home.scan(source)
    assert cars(home) == [(FIRST, "1"), (FIRST, "1"), (FIRST, "2")]
    assert state(home) == scanned_alone(empty_home, tmp_path, trees, "other")


@pytest.mark.wide
def test_image_and_label_of_two_trees_are_one_frame(
    home: Home, empty_home: Path, trees: Path, tmp_path: Path
) -> None:
    """A tree of images and one of labels: the image carries what the label shows, until it goes."""
    source = home.add(trees)
    shutil.rmtree(trees / FIRST / SCENE / "label")
    shutil.rmtree(trees / SECOND / SCENE / "camera")
    home.scan(source)
    assert cars(home) == [(FIRST, "2"), (FIRST, "3")]
    labels = home.rows("SELECT value FROM t_label_file ORDER BY value")
    assert [key for (key,) in labels] == [f"{SECOND}/{frame_key('label', n)}" for n in (2, 3)]
    labelled = home.rows("SELECT value, count(*) FROM t_labelled GROUP BY value ORDER BY value")
    assert labelled == [("0", 1), ("1", 2)]
    assert home.scan(source).counts.commits == 0
    shutil.rmtree(trees / SECOND)
    home.scan(source)
    assert cars(home) == []
    assert home.rows("SELECT count(*) FROM t_labelled WHERE value = '0'") == [(3,)]
    assert state(home) == scanned_alone(empty_home, tmp_path, trees, "other")


@pytest.mark.wide
def test_frames_without_a_label_are_frames(home: Home, tmp_path: Path) -> None:
    """With scene, camera and position, without pixels; labelled frames are counted as before."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    home.scan(source)
    before = class_report(home.store).classes
    for number in (8, 9):
        put(root, frame_key("camera", number, camera="side_left"), encode(Picture([[SKY]])))
    result = home.scan(source)
    counts = result.counts
    assert (counts.frames, counts.unlabelled, counts.orphans, counts.bytes_read) == (0, 2, 0, 0)
    assert home.rows(
        "SELECT scene, camera, frame_number, side, front, car, unknown_pixels, label_file "
        "FROM metaocean_view WHERE labelled = '0' ORDER BY frame_number"
    ) == [(SCENE, "side_left", str(number), "1", "0", None, None, None) for number in (8, 9)]
    for table in ("t_car", "t_sky", "t_unknown_pixels", "t_label_file"):
        assert home.rows(f"SELECT count(*) FROM {table}") == [(3,)]
    assert info(home.store).frames == 3
    assert [share.name for share in before] == ["Car", "Bicycle", "Sky"]
    assert class_report(home.store).classes == before
    hot = CatalogStore(
        home.store.location, threads=1, snapshot_memory_mb=200, class_names=home.store.class_names
    )
    assert class_report(hot).classes == before
    hot.close()
    assert home.scan(source).counts.commits == 0


@pytest.mark.wide
def test_a_label_that_comes_later(home: Home, empty_home: Path, tmp_path: Path) -> None:
    """It is counted by the next scan, which makes the frame a labelled one; and back."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    label = root / frame_key("label", 2)
    content = label.read_bytes()
    label.unlink()
    home.scan(source)
    without = state(home)
    assert home.rows("SELECT count(*) FROM t_car") == [(2,)]
    label.write_bytes(content)
    assert home.scan(source).counts.frames == 1
    assert state(home) == scanned_alone(empty_home, tmp_path, root, "other")
    label.unlink()
    assert home.scan(source).counts.unlabelled == 1
    assert state(home) == without
