"""Folders that may not be read, and what is to be left out: the rest of the source is scanned."""

from pathlib import Path

import pytest

from catalog.errors import InvalidInput, StorageError
from catalog.records.scans import recorded_problems
from catalog.records.tables import Source
from ingest.sources.exclude import Excluded
from ingest.sources.local_folder import LocalFolder
from ingest.sources.source_options import SourceOptions
from tests.ingest.png_writer import Picture, encode
from tests.ingest.scene_folders import CAR, SCENE, SKY, Home, add_frame, frame_key, make_tree, put
from tests.permissions import permissions_count

CLOSED, NAMES_ONLY = 0o000, 0o400


@pytest.mark.parametrize("mode", [CLOSED, NAMES_ONLY])
def test_a_closed_folder_is_a_problem_and_the_rest_is_scanned(
    home: Home, tmp_path: Path, mode: int
) -> None:
    """It was the end of the scan, with no frame; opened, it is as if nothing had been."""
    root = make_tree(tmp_path / "tree")
    put(root, "lost+found/inode", b"lost")
    (root / "lost+found").chmod(mode)
    source = home.add(root)
    with permissions_count():
        with pytest.raises(StorageError, match=r"lost\+found"):
            list(LocalFolder(root).list())
        result = home.scan(source)
    assert (result.counts.frames, result.counts.bad_files, result.counts.files) == (3, 1, 7)
    (problem,) = recorded_problems(home.records, source_id=source.id)
    assert (problem.kind, problem.key) == ("unreadable", "lost+found/")
    assert "--exclude" in problem.reason
    (root / "lost+found").chmod(0o700)
    assert home.scan(source).counts.added == 1
    assert recorded_problems(home.records, source_id=source.id) == []


@pytest.mark.wide
def test_what_is_catalogued_below_a_closed_folder_stays(home: Home, tmp_path: Path) -> None:
    """Labels may not be listed: their frames keep their counts, though all is counted again."""
    root = make_tree(tmp_path / "tree")
    source = home.add(root)
    home.scan(source)
    before = home.rows("SELECT fkey, value FROM t_car ORDER BY fkey")
    image = root / frame_key("camera", 1)
    image.write_bytes(image.read_bytes() + b"longer")
    add_frame(root, 1, [CAR, SKY], camera="rear_center")
    labels = root / SCENE / "label" / "cam_front_center"
    labels.chmod(CLOSED)
    try:
        with permissions_count():
            counts = home.scan(source, full=True).counts
    finally:
        labels.chmod(0o700)
    assert (counts.removed, counts.frames, counts.bad_files) == (0, 1, 1)
    after = home.rows("SELECT fkey, value FROM t_car ORDER BY fkey")
    assert before == [row for row in after if "frontcenter" in str(row[0])]
    assert len(after) == 4
    again = home.scan(source).counts
    assert (again.changed, again.removed, again.bad_files) == (1, 0, 0)


def test_what_is_left_out_leaves_the_catalog_and_is_not_opened(home: Home, tmp_path: Path) -> None:
    """By name at any depth, or by path; so many that without a pattern it would be refused."""
    root = make_tree(tmp_path / "tree", frames=12)
    put(root, f"{SCENE}/label/cam_front_center/old.bak", encode(Picture([[SKY]])))
    put(root, "lost+found/inode", b"lost")
    source = home.add(root)
    home.scan(source)
    patterns = ["*.bak", "lost+found", f"{SCENE}/camera"]
    with home.records.session() as session:
        source = session.get_one(Source, source.id)
        source.options = SourceOptions(exclude=tuple(patterns)).to_json()
    (root / "lost+found").chmod(CLOSED)
    with permissions_count():
        counts = home.scan(source).counts
    (root / "lost+found").chmod(0o700)
    assert (counts.files, counts.removed, counts.bad_files, counts.labels_alone) == (13, 14, 0, 12)
    assert home.rows("SELECT count(*) FROM metaocean WHERE filename LIKE '%.bak'") == [(0,)]


@pytest.mark.parametrize(
    ("pattern", "key", "left_out"),
    [
        ("lost+found", "lost+found/a/b", True),
        ("lost+found", "scene/lost+found", True),
        ("lost+found", "scene/lost+found.txt", False),
        ("lidar", "scene/no_lidar", False),
        ("lidar", "no_lidar/a/lidar2", False),
        ("lidar", "no_lidar/lidar/a/b", True),
        ("*.bak", "a/b.bak", True),
        ("a/b", "a/b/c", True),
        ("a/b", "a/b2/c", False),
        ("a/b", "a/b/c/d/e", True),
        ("a/b", "x/a/b", False),
        ("/a/", "a/b", True),
        ("a/*", "b/a/c", False),
        ("", "a", None),
        ("*", "a", None),
    ],
)
def test_patterns(pattern: str, key: str, left_out: bool | None) -> None:
    """Names anywhere, paths from the root; one that leaves out everything is refused."""
    if left_out is None:
        with pytest.raises(InvalidInput, match="exclude"):
            Excluded([pattern])
    else:
        assert Excluded([pattern])(key) is left_out
