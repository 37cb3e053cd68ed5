"""The committed set: files, names, JSON and pixel counts."""

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import pytz
from PIL import Image

from sample_data.classes import CLASS_OF_ENTRY, COLOUR_TO_ENTRY

WIDTH, HEIGHT = 1920, 1208
A2D2_SCENES_YEAR = "2018"
Counts = dict[str, dict[str, int]]


def label_files(root: Path) -> list[Path]:
    """All label pictures of a set."""
    return sorted(root.glob("camera_lidar_semantic/*/label/*/*.png"))


def counted_slowly(label: Path) -> dict[str, int]:
    """Pixels per class by comparing the whole picture with one colour after the other."""
    pixels = np.array(Image.open(label).convert("RGB"))
    counts: Counter[str] = Counter()
    for colour, entry in COLOUR_TO_ENTRY.items():
        red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
        same = (pixels[..., 0] == red) & (pixels[..., 1] == green) & (pixels[..., 2] == blue)
        counts[re.sub(r" \d$", "", entry)] += int(same.sum())
    return {name: number for name, number in counts.items() if number}


def test_counts_name_every_label_and_add_up(committed: Path, counts: Counts) -> None:
    """counts.json has every label file, and each one's counts sum to the whole picture."""
    assert sorted(counts) == sorted(file.name for file in label_files(committed))
    assert {sum(classes.values()) for classes in counts.values()} == {WIDTH * HEIGHT}
    assert all(number > 0 for classes in counts.values() for number in classes.values())


@pytest.mark.parametrize("index", [0, 5, 11, 23])
def test_counts_equal_a_colour_by_colour_count(committed: Path, counts: Counts, index: int) -> None:
    """An independent count of the decoded file gives exactly counts.json."""
    label = label_files(committed)[index]
    assert counted_slowly(label) == counts[label.name]


def test_class_list_has_55_colours_of_38_classes() -> None:
    """The class list is complete and its colours are distinct lower-case hex."""
    assert len(COLOUR_TO_ENTRY) == 55
    assert len(set(CLASS_OF_ENTRY)) == 38
    assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in COLOUR_TO_ENTRY)


def test_set_carries_the_class_list(committed: Path) -> None:
    """The set's class_list.json is ours, entry by entry in the same order."""
    written = json.loads((committed / "camera_lidar_semantic/class_list.json").read_text())
    assert list(written.items()) == list(COLOUR_TO_ENTRY.items())


def test_names_and_folders_follow_a2d2(committed: Path) -> None:
    """Every label has its camera picture and JSON under the names A2D2 would give them."""
    pattern = re.compile(r"(\d{8})_(\d{6})/label/cam_(\w+)/\1\2_label_(\w+)_(\d{9})\.png")
    root = committed / "camera_lidar_semantic"
    for label in label_files(committed):
        match = pattern.fullmatch(label.relative_to(root).as_posix())
        assert match is not None, label
        assert match[4] == match[3].replace("_", "")
        assert not match[1].startswith(A2D2_SCENES_YEAR)
        name = label.name.replace("_label_", "_camera_")
        picture = root / label.relative_to(root).as_posix().split("/")[0] / "camera"
        picture = picture / label.parent.name / name
        assert picture.is_file()
        assert picture.with_suffix(".json").is_file()


def test_set_has_several_scenes_and_cameras(committed: Path) -> None:
    """At least four scenes and four cameras, most frames from front_center."""
    cameras = Counter(file.parent.name for file in label_files(committed))
    scenes = {file.parents[2].name for file in label_files(committed)}
    assert len(scenes) >= 4
    assert len(cameras) >= 4
    assert cameras["cam_front_center"] > sum(cameras.values()) / 2


def test_camera_json_has_the_real_keys_and_form(committed: Path) -> None:
    """Keys, indent and missing final newline are A2D2's; the stamp is a microsecond integer."""
    for file in committed.glob("camera_lidar_semantic/*/camera/*/*.json"):
        text = file.read_text()
        content = json.loads(text)
        assert list(content) == ["lidar_ids", "cam_tstamp", "cam_name"]
        assert list(content["lidar_ids"]) == ["0", "1", "2", "3", "4"]
        assert isinstance(content["cam_tstamp"], int)
        assert file.parent.name == f"cam_{content['cam_name']}"
        assert text == json.dumps(content, indent=4)


def test_stamps_are_utc_and_folders_local_time(committed: Path) -> None:
    """A frame's UTC stamp is its folder's Berlin time plus frame number / 29.97 s."""
    berlin = pytz.timezone("Europe/Berlin")
    for file in committed.glob("camera_lidar_semantic/*/camera/*/*.json"):
        local = datetime.strptime(file.parents[2].name, "%Y%m%d_%H%M%S")  # noqa: DTZ007
        start = berlin.localize(local).astimezone(UTC).timestamp()
        stamp = json.loads(file.read_text())["cam_tstamp"] / 1e6
        number = int(file.stem[-9:])
        assert stamp - start == pytest.approx(number / 29.97, abs=0.05)


def test_calibration_has_a2d2s_structure(committed: Path) -> None:
    """cams_lidars.json has 5 lidars and 6 cameras with every field the real one has."""
    content = json.loads((committed / "cams_lidars.json").read_text())
    assert list(content) == ["vehicle", "lidars", "cameras"]
    assert len(content["lidars"]) == 5
    assert len(content["cameras"]) == 6
    for camera in content["cameras"].values():
        assert camera["Resolution"] == [WIDTH, HEIGHT]
        for key in ("tstamp_delay", "view", "Lens", "CamMatrix", "CamMatrixOriginal", "Distortion"):
            assert key in camera


def test_a_frame_answers_the_example_query(counts: Counts) -> None:
    """A front_center frame lies in all three documented ranges, and another has a bicycle."""
    front = {name: pixels for name, pixels in counts.items() if "_frontcenter_" in name}
    hits = [
        name
        for name, pixels in front.items()
        if 10_000 <= pixels.get("Car", 0) <= 20_000
        and 3_000 <= pixels.get("Bicycle", 0) <= 5_000
        and 5_000 <= pixels.get("Pedestrian", 0) <= 6_000
    ]
    assert hits
    assert any("Bicycle" in pixels for name, pixels in front.items() if name not in hits)


def test_bicycles_are_missing_from_some_scene(counts: Counts) -> None:
    """Some scenes have no bicycle at all, so a filter has something to leave out."""
    scenes = {name[:14] for name in counts}
    with_bicycle = {name[:14] for name, pixels in counts.items() if "Bicycle" in pixels}
    assert with_bicycle
    assert scenes - with_bicycle


@pytest.mark.wide
def test_camera_and_label_show_the_same_geometry(committed: Path) -> None:
    """Label borders are camera edges: the camera picture changes at most of them."""
    label = label_files(committed)[0]
    name = label.name.replace("_label_", "_camera_")
    picture = label.parents[2] / "camera" / label.parent.name / name
    ids = np.array(Image.open(label)).astype(int)
    rgb = np.array(Image.open(picture)).astype(int)
    border = np.abs(np.diff(ids, axis=1)).sum(axis=2) > 0
    step = np.abs(np.diff(rgb, axis=1)).sum(axis=2)
    assert (step[border] > 6).mean() > 0.85
    assert (step[~border] > 6).mean() < 0.1


def test_committed_set_stays_small(committed: Path) -> None:
    """The whole committed set stays below 8 MB."""
    assert sum(file.stat().st_size for file in committed.rglob("*") if file.is_file()) < 8_000_000
