"""3D boxes: counts per class, distances, marks, bad files."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import BadFile
from ingest.extractors.boxes import Boxes, distance_to, read_boxes, rotation
from ingest.extractors.run import run_extractor
from tests.ingest.extractors.frames import box, tags_of
from tests.ingest.scene_folders import Home, frame_key, make_tree, put

REAL = "other/20180810142822_label3D_frontcenter_000015196.json"


@pytest.mark.wide
def test_tags_of_boxes(home: Home, tmp_path: Path) -> None:
    """Objects are counted per class, others together; nearest point and worst marks are right.

    A frame without boxes has zeros and no distance; one without file has no tags.
    """
    root = make_tree(tmp_path / "tree", frames=3)
    boxes = {
        "box_0": box("Car", [12.0, 0.0, 0.0], occlusion=1.0),
        "box_1": box("Car", [30.0, 4.0, 0.0], truncation=0.3),
        "box_2": box("VanSUV", [40.0, 0.0, 0.0]),
        "box_3": box("Spaceship", [50.0, 0.0, 0.0]),
    }
    put(root, frame_key("label3D", 1, "json"), json.dumps(boxes).encode())
    put(root, frame_key("label3D", 2, "json"), b"{}")
    source = home.add(root)
    home.scan(source)
    counts = run_extractor(home.store, source, Boxes())
    assert (counts.read, counts.without_file) == (2, 1)
    tags = ("n_objects", "n_car", "n_van_suv", "n_other_object", "n_truck")
    assert tags_of(home, "boxes", *tags) == {1: (4, 2, 1, 1, 0), 2: (0, 0, 0, 0, 0)}
    marks = ("nearest_object_m", "occlusion_max", "truncation_max")
    assert tags_of(home, "boxes", *marks) == {1: (10.0, 1.0, 0.3), 2: (None, None, None)}


@pytest.mark.wide
def test_boxes_in_a_tree_of_their_own(home: Home, tmp_path: Path) -> None:
    """A2D2's boxes come in another archive: the file is found by name anywhere in the source."""
    root = make_tree(tmp_path / "tree" / "camera_lidar_semantic", frames=1).parent
    put(root, "class_list.json", b'{"#ff0000": "Car 1"}')
    key = "camera_lidar_semantic_bboxes/" + frame_key("label3D", 1, "json")
    put(root, key, json.dumps({"box_0": box("Car", [12.0, 0.0, 0.0])}).encode())
    source = home.add(root)
    home.scan(source)
    assert run_extractor(home.store, source, Boxes()).tagged == 1


_far = st.floats(-60, 60)


@given(st.tuples(_far, _far, _far), st.tuples(*[st.floats(0.1, 12)] * 3), st.floats(-4, 4))
def test_distance_is_that_of_a_grid_of_points(
    center: tuple[float, ...], size: tuple[float, ...], angle: float
) -> None:
    """The distance is at most, and nearly, that of the nearest of many points of the box."""
    axis = [0.3, -0.5, 0.8]
    distance = distance_to({"center": center, "size": size, "axis": axis, "rot_angle": angle})
    steps = np.linspace(-0.5, 0.5, 21)
    grid = np.stack(np.meshgrid(steps, steps, steps), -1).reshape(-1, 3) * np.array(size)
    points = np.array(center) + grid @ rotation(axis, angle).T
    nearest = float(np.linalg.norm(points, axis=1).min())
    assert distance <= nearest + 1e-9
    assert distance >= nearest - np.linalg.norm(np.array(size) / 20)


def test_real_boxes(a2d2_root: Path) -> None:
    """On a real file the turned box has the file's own corners, and its distance follows."""
    boxes = read_boxes((a2d2_root / REAL).read_bytes())
    assert [labelled_box["class"] for labelled_box in boxes] == [
        "Truck",
        "Cyclist",
        "Cyclist",
        "Car",
    ]
    for labelled_box in boxes:
        size, center = np.array(labelled_box["size"]), np.array(labelled_box["center"])
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        turned = (
            center
            + (signs * size / 2) @ rotation(labelled_box["axis"], labelled_box["rot_angle"]).T
        )
        corners = np.array(labelled_box["3d_points"])
        gaps = np.linalg.norm(turned[:, None] - corners[None], axis=2)
        assert gaps.min(axis=1).max() < 1e-3
        nearest_corner = np.linalg.norm(corners, axis=1).min()
        assert (
            nearest_corner - np.linalg.norm(size) / 2 < distance_to(labelled_box) <= nearest_corner
        )
    assert math.isclose(min(map(distance_to, boxes)), 19.0, abs_tol=0.5)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"box_0": 7}', b"[" * 100_000, b'{"box_0": {"class"']
)
def test_bad_files(content: bytes) -> None:
    """What is no object of boxes is a bad file."""
    with pytest.raises(BadFile):
        read_boxes(content)


@pytest.mark.wide
def test_a_box_without_its_numbers_is_a_bad_file(home: Home, tmp_path: Path) -> None:
    """A box that lacks a field is recorded with the file, and the run goes on."""
    root = make_tree(tmp_path / "tree", frames=2)
    put(root, frame_key("label3D", 1, "json"), b'{"box_0": {"class": "Car"}}')
    put(root, frame_key("label3D", 2, "json"), b"{}")
    source = home.add(root)
    home.scan(source)
    counts = run_extractor(home.store, source, Boxes())
    assert (counts.bad_files, counts.tagged) == (1, 1)
