"""Sources that hold labels and no camera images."""

import shutil
from pathlib import Path

import pytest

from catalog.errors import StorageError
from ingest.extractors.image import Image
from ingest.extractors.run import run_extractor
from ingest.sources.local_folder import LocalFolder
from tests.ingest.scene_folders import SCENE, Home, frame_key, make_tree, put
from tests.ingest.test_killed_scan import state


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """A source of three labels."""
    root = make_tree(tmp_path / "tree")
    shutil.move(root / SCENE / "camera", tmp_path / "camera")
    return root


def tagged(home: Home) -> list[tuple[object, ...]]:
    return home.rows("SELECT fkey, value FROM t_car ORDER BY value")


def test_labels_are_enough(home: Home, labels: Path) -> None:
    """Each is a frame whose tags are on its own row; none is an orphan; nothing is read twice."""
    source = home.add(labels)
    first = home.scan(source)
    assert (first.counts.frames, first.counts.labels_alone, first.counts.orphans) == (3, 3, 0)
    prefix = "host1:a2d2:"
    rows = [(f"{prefix}{frame_key('label', number)}", str(number)) for number in (1, 2, 3)]
    assert tagged(home) == rows
    assert home.rows("SELECT front, scene FROM metaocean_view WHERE car = '2'") == [("1", SCENE)]
    assert home.problems(first.scan) == []
    assert home.scan(source).counts.frames == 0


@pytest.mark.wide
def test_images_that_come_later_take_the_tags(
    home: Home, empty_home: Path, labels: Path, tmp_path: Path
) -> None:
    """The images' rows carry the tags then, and the labels' no more; and back when they go."""
    source = home.add(labels)
    home.scan(source)
    alone = state(home)
    shutil.copytree(tmp_path / "camera", labels / SCENE / "camera")
    assert home.scan(source).counts.labels_alone == 0
    assert [str(fkey).split("/")[1] for fkey, _ in tagged(home)] == ["camera"] * 3
    shutil.copytree(empty_home, tmp_path / "other")
    other = Home.at(tmp_path / "other")
    other.scan(other.add(labels))
    assert state(home) == state(other)
    shutil.rmtree(labels / SCENE / "camera")
    home.scan(source)
    assert state(home) == alone


def test_among_images_a_label_alone_is_an_orphan(home: Home, labels: Path, tmp_path: Path) -> None:
    """The first image of a scene makes orphans of the labels that lack theirs."""
    source = home.add(labels)
    home.scan(source)
    image = tmp_path / "camera" / "cam_front_center" / Path(frame_key("camera", 2)).name
    put(labels, frame_key("camera", 2), image.read_bytes())
    second = home.scan(source)
    assert (second.counts.orphans, second.counts.labels_alone) == (2, 0)
    assert tagged(home) == [(f"host1:a2d2:{frame_key('camera', 2)}", "2")]


@pytest.mark.wide
def test_a_bad_label_alone_is_not_read_again_and_again(home: Home, labels: Path) -> None:
    """It is recorded once, and tried again when it changes."""
    put(labels, frame_key("label", 2), b"no png")
    source = home.add(labels)
    first = home.scan(source)
    assert (first.counts.frames, first.counts.bad_files) == (2, 1)
    again = home.scan(source).counts
    assert (again.bytes_read, again.bad_files) == (0, 0)
    put(labels, frame_key("label", 2), (labels / frame_key("label", 1)).read_bytes())
    assert home.scan(source).counts.frames == 1


def test_images_need_not_be_opened(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without check_images only labels are read, whatever the images hold."""
    root = make_tree(tmp_path / "tree")
    put(root, frame_key("camera", 2), b"no png")
    read = LocalFolder.read_range

    def refuse(self: LocalFolder, key: str, start: int, length: int) -> bytes:
        if "/camera/" in key:
            raise StorageError("an image was opened", key)
        return read(self, key, start, length)

    monkeypatch.setattr(LocalFolder, "read_range", refuse)
    source = home.add(root)
    counts = home.scan(source, check_images=False).counts
    assert (counts.frames, counts.bad_files, counts.labels_alone) == (3, 0, 0)


def test_an_extractor_of_images_finds_none(home: Home, labels: Path) -> None:
    """A label is not taken for the camera image that is not there."""
    source = home.add(labels)
    home.scan(source)
    counts = run_extractor(home.store, source, Image())
    assert (counts.frames, counts.without_file, counts.read) == (3, 3, 0)
