"""LiDAR files: both sets' names, zero points, missing arrays, nothing unpickled."""

import io
import pickle
from pathlib import Path

import numpy as np
import pytest

from catalog.errors import BadFile
from ingest.extractors import lidar
from ingest.extractors.lidar import Lidar, read_points
from ingest.extractors.run import run_extractor
from tests.ingest.extractors.frames import npz, tags_of
from tests.ingest.scene_folders import Home, frame_key, make_tree, put

REAL = "other/20180810142822_lidar_frontcenter_000015196.npz"
POINTS = [[3.0, 4.0, 0.0], [0.0, 0.0, 15.0]]


@pytest.mark.wide
def test_tags_of_points(home: Home, tmp_path: Path) -> None:
    """Both sets' names of arrays are read; zero points have no distance; no file, no tags."""
    root = make_tree(tmp_path / "tree", frames=4)
    files = {
        1: npz({"points": POINTS, "distance": [5.0, 15.0], "lidar_id": [0, 0]}),
        2: npz({"pcloud_points": POINTS, "pcloud_attr.distance": [5.0, 16.0]}),
        3: npz({"points": np.empty((0, 3)), "distance": np.empty(0)}),
    }
    for number, content in files.items():
        put(root, frame_key("lidar", number, "npz"), content)
    source = home.add(root)
    home.scan(source)
    assert run_extractor(home.store, source, Lidar()).without_file == 1
    assert tags_of(home, "lidar", *Lidar.columns) == {
        1: (2, 10.0, 15.0),
        2: (2, 10.5, 16.0),
        3: (0, None, None),
    }


def test_missing_arrays() -> None:
    """Without distances those of the points are taken; without both the file is bad."""
    for name in ("points", "pcloud_points"):
        assert read_points(npz({name: POINTS}))[1].tolist() == [5.0, 15.0]
    assert read_points(npz({"points": np.empty((0, 3))}))[0] == 0
    assert read_points(npz({"points": []}))[0] == 0
    with pytest.raises(BadFile, match="but azimuth, row"):
        read_points(npz({"row": [1], "azimuth": [1]}))
    with pytest.raises(BadFile, match="shape"):
        read_points(npz({"points": [[1.0, 2.0]]}))


@pytest.mark.wide
def test_points_at_no_finite_distance_are_left_out(home: Home, tmp_path: Path) -> None:
    """They count as points, and do not spoil mean and maximum."""
    root = make_tree(tmp_path / "tree", frames=1)
    put(root, frame_key("lidar", 1, "npz"), npz({"distance": [5.0, np.nan, 7.0, np.inf]}))
    source = home.add(root)
    home.scan(source)
    run_extractor(home.store, source, Lidar())
    assert tags_of(home, "lidar", *Lidar.columns) == {1: (4, 6.0, 7.0)}


class _Bomb:
    """Unpickling it fails the test."""

    def __reduce__(self) -> "tuple[object, tuple[str]]":
        return pytest.fail, ("a pickle was loaded",)


def test_pickles_are_never_loaded() -> None:
    """An npz of objects, and a bare pickle, are bad files; their code does not run."""
    objects = npz({"distance": np.array([_Bomb()], dtype=object)})
    for content in (objects, pickle.dumps(_Bomb())):
        with pytest.raises(BadFile):
            read_points(content)


def test_damaged_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty, cut short, damaged inside, an npy, an array that claims too much: bad files."""
    good = npz({"distance": np.arange(2_000.0)})
    assert read_points(good)[0] == 2_000
    npy = io.BytesIO()
    np.save(npy, np.arange(3.0))
    middle = len(good) // 2
    damaged = good[:middle] + bytes([good[middle] ^ 0xFF]) + good[middle + 1 :]
    for content in (b"", good[:-30], good[:100], damaged, npy.getvalue(), b"PK\3\4 no zip"):
        with pytest.raises(BadFile):
            read_points(content)
    monkeypatch.setattr(lidar, "MAX_ARRAY_BYTES", 1_000)
    with pytest.raises(BadFile, match="claims"):
        read_points(good)


def test_real_points(a2d2_root: Path) -> None:
    """A real file: its 8,196 points, distances the points' own within rounding."""
    content = (a2d2_root / REAL).read_bytes()
    points, distances = read_points(content)
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        slow = np.sqrt((arrays["points"] ** 2).sum(axis=1))
    assert points == 8196
    assert np.allclose(distances, slow)
