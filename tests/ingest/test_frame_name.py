"""What file names say, and which names say nothing."""

import pytest

from ingest.layouts.layout import FrameId
from ingest.layouts.read_layout import preset

A2D2 = preset("a2d2")
CAMERAS = A2D2.document["cameras"]
SCENE = "20180807_145028"
STAMP = "20180807145028"


def name(
    kind: str = "label",
    camera: str = "front_center",
    *,
    token: str | None = None,
    folder: str | None = None,
    number: str = "000006882",
    extension: str = "png",
) -> str:
    token = camera.replace("_", "") if token is None else token
    return f"{SCENE}/{folder or kind}/cam_{camera}/{STAMP}_{kind}_{token}_{number}.{extension}"


@pytest.mark.parametrize("prefix", ["", "camera_lidar_semantic/", "a/label/b/", "new\nline/"])
@pytest.mark.parametrize("camera", CAMERAS)
@pytest.mark.parametrize(
    ("kind", "extension", "kind_of_file"),
    [
        ("camera", "png", "image"),
        ("camera", "json", "camera_json"),
        ("label", "png", "label"),
        ("lidar", "npz", "lidar"),
        ("label3D", "json", "boxes"),
    ],
)
def test_all_kinds_of_all_cameras(
    prefix: str, camera: str, kind: str, extension: str, kind_of_file: str
) -> None:
    """Every kind of file of all six cameras parses, below any folders, to the same frame."""
    parsed = A2D2.parse(prefix + name(kind, camera, extension=extension))
    assert parsed is not None
    assert parsed.frame == FrameId(prefix + SCENE, SCENE, camera, STAMP, 6882, "", ())
    assert parsed.kind == kind_of_file


def test_position_tags_of_the_cameras() -> None:
    """The six cameras and what they are tagged with, as Spectrum Discover's users ask for it."""
    positions = {camera: A2D2.positions(camera) for camera in CAMERAS}
    assert {camera: {tag for tag in tags if tags[tag]} for camera, tags in positions.items()} == {
        "front_center": {"front", "center"},
        "front_left": {"front", "left_"},
        "front_right": {"front", "right_"},
        "side_left": {"side", "left_"},
        "side_right": {"side", "right_"},
        "rear_center": {"rear", "center"},
    }


@pytest.mark.parametrize(
    "key",
    [
        name(folder="camera"),
        name("camera", folder="label"),
        name(token="front_center"),
        name(token="frontleft"),
        name(camera="front_middle"),
        name(number="6882"),
        name(number="0000068821"),
        name(number="\uff10\uff10000688\uff12"),
        name().replace(SCENE, "2018080\uff17_145028"),
        name(extension="jpg"),
        name(extension="PNG"),
        name(extension="png.bak"),
        name() + "\n",
        name() + "/",
        name().replace(".png", " .png"),
        name().replace("_label_", ".label."),
        name().replace("cam_", ""),
        name().replace("/label/", "/instance/").replace("_label_", "_instance_"),
        f"{STAMP}_label_frontcenter_000006882.png",
        "camera_lidar_semantic/class_list.json",
        "camera_lidar_semantic/README-SemSeg.txt",
        "",
    ],
)
def test_names_that_say_nothing(key: str) -> None:
    """A name that breaks the rules anywhere is no frame's file: it is never guessed at."""
    assert A2D2.parse(key) is None


def test_label_folders_are_told_from_names_that_hold_the_word() -> None:
    """Only a PNG in a folder called label is taken for a label."""
    assert A2D2.looks_like_label("s/label/cam_front_center/wrong.png")
    assert A2D2.looks_like_label("label/x.png")
    assert not A2D2.looks_like_label("s/camera/cam_front_center/x_label_.png")
    assert not A2D2.looks_like_label("s/label3D/cam_front_center/x.png")
    assert not A2D2.looks_like_label("s/label/cam_front_center/notes.txt")
