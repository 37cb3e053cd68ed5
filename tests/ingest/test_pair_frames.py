"""Pairing a listing's files into frames."""

from collections.abc import Iterable, Iterator
from datetime import datetime

import pytest

from catalog.values import File, Problem
from ingest.layouts.layout import Layout
from ingest.layouts.read_layout import preset
from ingest.scan import sorted_files
from ingest.scan.listing_diff import ScannedFile
from ingest.scan.pair_frames import LOOSE_FILES, SceneFiles, pair_frames

CENTER = "20180807_145028/{0}/cam_front_center/20180807145028_{0}_frontcenter_000000{1:03d}.{2}"


WHEN = datetime(2020, 1, 1)  # noqa: DTZ001 (naive UTC)


def key(kind: str, number: int = 1, extension: str = "png", scene: str = "20180807_145028") -> str:
    return CENTER.format(kind, number, extension).replace("20180807_145028", scene)


A2D2, CITYSCAPES = preset("a2d2"), preset("cityscapes")


def scanned(key: str, layout: Layout = A2D2) -> ScannedFile:
    return ScannedFile(File(key, 1, WHEN), "added", layout.parse(key))


def paired(keys: Iterable[str], layout: Layout = A2D2) -> list[SceneFiles]:
    return list(pair_frames((scanned(key, layout) for key in keys), layout))


def problems(keys: Iterable[str]) -> list[Problem]:
    return [problem for scene in paired(keys) for problem in scene.problems]


def test_the_four_files_of_a_frame_come_together() -> None:
    """Image, label, lidar and camera JSON of one frame, whatever stands between them."""
    keys = [
        key("camera", extension="json"),
        key("camera"),
        key("camera", 2),
        key("label"),
        key("label", 2),
        key("label3D", extension="json"),
        key("lidar", extension="npz"),
        "readme.txt",
    ]
    scene, loose = paired(keys)
    first, second = scene.frames
    assert [
        file and file.key for file in (first.image, first.label, first.lidar, first.camera_json)
    ] == [key("camera"), key("label"), key("lidar", 1, "npz"), key("camera", 1, "json")]
    assert second.lidar is second.camera_json is None
    assert scene.problems == loose.problems == []
    assert sorted(file.key for file in [*scene.files, *loose.files]) == sorted(keys)


def test_the_root_folder_may_be_called_as_the_kinds_are() -> None:
    """camera_lidar_semantic above the scenes does not disturb the pairing."""
    keys = [f"camera_lidar_semantic/{key(kind)}" for kind in ("camera", "label")]
    (scene,) = paired(keys)
    assert [frame.id.group for frame in scene.frames] == ["camera_lidar_semantic/20180807_145028"]


@pytest.mark.parametrize(
    ("only", "reason"),
    [
        (key("lidar", extension="npz"), "neither camera image nor label beside it"),
        (key("camera", extension="json"), "neither camera image nor label beside it"),
    ],
)
def test_orphans(only: str, reason: str) -> None:
    """A frame without image or label is reported, by the file that is there."""
    assert problems([only]) == [Problem("orphan", only, reason)]


def test_images_without_a_label_are_frames() -> None:
    """With their other partners, and apart from those that have a label; nothing is amiss."""
    keys = [key("camera"), key("camera", 1, "json"), key("camera", 2), key("label", 2)]
    (scene,) = paired(keys)
    (frame,) = scene.unlabelled
    assert [file.key for file in frame.files] == keys[:2]
    assert [frame.label_key for frame in scene.frames] == [key("label", 2)]
    assert scene.problems == []


def test_labels_alone_are_frames() -> None:
    """Without any camera image in its scene a label is a frame; among images, an orphan."""
    (scene,) = paired([key("label"), key("label", 2), key("lidar", 2, "npz")])
    assert [frame.label_key for frame in scene.frames] == [key("label"), key("label", 2)]
    assert scene.alone == scene.frames
    assert (scene.problems, scene.has_images) == ([], False)
    keys = [key("camera", 2), key("label"), key("label", 2)]
    (scene,) = paired(keys)
    assert [frame.label_key for frame in scene.frames] == [key("label", 2)]
    assert scene.problems == [Problem("orphan", key("label"), "label without camera image")]


def test_a_label_with_a_bad_name_is_a_bad_file() -> None:
    """A PNG in a label folder whose name does not parse is reported, not passed over."""
    bad = key("label").replace("frontcenter", "front.center ")
    (problem,) = problems([bad])
    assert (problem.kind, problem.key) == ("bad_file", bad)


def test_prefixes_keep_scenes_of_the_same_name_apart() -> None:
    """An image below one folder does not pair with a label below another."""
    image, label = paired([f"a/{key('camera')}", f"b/{key('label')}"])
    assert [frame.id.group for frame in image.unlabelled] == ["a/20180807_145028"]
    assert [frame.id.group for frame in label.frames] == ["b/20180807_145028"]
    copies = [f"{folder}/{key(kind)}" for folder in "ab" for kind in ("camera", "label")]
    assert [len(scene.frames) for scene in paired(copies)] == [1, 1]


def test_cameras_and_stamps_are_not_mixed() -> None:
    """The same number in another camera, or under another stamp, is another frame."""
    left = key("label").replace("front_center", "front_left").replace("frontcenter", "frontleft")
    other_stamp = key("label").replace("20180807145028", "20180807145029")
    for other in (left, other_stamp):
        (scene,) = paired([key("camera"), other])
        assert [frame.image and frame.image.key for frame in scene.unlabelled] == [key("camera")]
        assert [problem.key for problem in scene.problems] == [other]


def test_one_scene_is_held_at_a_time() -> None:
    """A scene is handed on as soon as the next one begins."""
    read: list[str] = []
    scenes = ["20180807_145028", "20180810_142822", "20180925_101535"]

    def listing() -> Iterator[ScannedFile]:
        for scene in scenes:
            for kind in ("camera", "label"):
                read.append(key(kind, scene=scene))
                yield scanned(read[-1])

    groups = pair_frames(listing(), A2D2)
    assert next(groups).frames[0].id.scene == scenes[0]
    assert len(read) == 3
    assert [group.frames[0].id.scene for group in groups] == scenes[1:]


def test_files_of_no_scene_are_not_collected_without_end() -> None:
    """A source of a million other files is handed on in small groups, none lost."""
    keys = [f"bus/{n:06d}.json" for n in range(2 * LOOSE_FILES + 5)]
    groups = paired(keys)
    assert [len(group.files) for group in groups] == [LOOSE_FILES, LOOSE_FILES, 5]
    assert [file.key for group in groups for file in group.files] == keys


def city(kind: str, number: int, scene: str = "ulm", split: str = "val") -> str:
    stem = f"{split}/{scene}/{scene}_000001_{number:06}"
    return {
        "image": f"leftImg8bit/{stem}_leftImg8bit.png",
        "label": f"gtFine/{stem}_gtFine_labelIds.png",
        "colours": f"gtFine/{stem}_gtFine_color.png",
    }[kind]


@pytest.mark.parametrize("run_files", [3, 50_000])
def test_two_trees_are_paired(monkeypatch: pytest.MonkeyPatch, run_files: int) -> None:
    """Labels come long before images: sorted in memory, and by runs on disk, they pair alike."""
    monkeypatch.setattr(sorted_files, "RUN_FILES", run_files)
    keys = [city("label", n, scene) for scene in ("aachen", "ulm") for n in range(5)]
    keys += [city("colours", 1), city("image", 9, "aachen"), "notes.txt"]
    keys += [city("image", n, "ulm") for n in range(1, 6)]
    keys += [city("image", 0, "ulm", "train"), city("label", 7, "bonn")]
    scenes = paired(sorted(keys), CITYSCAPES)
    frames = [frame for scene in scenes for frame in scene.frames]
    assert [(f.image and f.image.key, f.label_key) for f in frames] == [
        (None, city("label", 7, "bonn")),
        *((city("image", n), city("label", n)) for n in range(1, 5)),
    ]
    assert frames[-1].id.tags == ("val", "000001")
    unlabelled = [frame.image.key for s in scenes for frame in s.unlabelled if frame.image]
    assert unlabelled == [
        city("image", 0, "ulm", "train"), city("image", 9, "aachen"), city("image", 5),
    ]  # fmt: skip
    orphans = [problem.key for scene in scenes for problem in scene.problems]
    assert orphans == [*(city("label", n, "aachen") for n in range(5)), city("label", 0)]
    every = sorted(file.key for scene in scenes for file in scene.files)
    assert every == sorted(keys)


def test_a_large_scene_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part knows whether the scene has images, though they may be in another part."""
    monkeypatch.setattr("ingest.scan.pair_frames.SCENE_FRAMES", 2)
    keys = [city("label", n) for n in range(5)] + [city("image", 4)]
    scenes = paired(keys, CITYSCAPES)
    assert [len(scene.files) for scene in scenes] == [2, 2, 2]
    assert all(scene.has_images for scene in scenes)
    assert [len(scene.problems) for scene in scenes] == [2, 2, 0]


def test_two_files_of_one_kind() -> None:
    """The first is the frame's; the other is a problem that names it, and stays a file."""
    layout = preset("pairs")
    keys = ["images/a.jpg", "images/a.png", "images/b.jpg", "labels/a.png"]
    (scene,) = paired(keys, layout)
    assert [(f.image and f.image.key) for f in scene.frames] == ["images/a.jpg"]
    assert [(p.kind, p.key, p.reason) for p in scene.problems] == [
        ("bad_file", "images/a.png", "its frame has images/a.jpg as its image already; keep one")
    ]
    assert len(scene.files) == 4
