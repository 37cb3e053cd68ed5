"""Layouts: patterns, documents, presets, and names held against them."""

import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from catalog.errors import InvalidInput
from catalog.lake.schema import FRAME_TAGS_COLUMNS
from catalog.tags.families import check_tag_name
from ingest.layouts.check_names import check_names
from ingest.layouts.draft import draft
from ingest.layouts.layout import Layout
from ingest.layouts.pattern import Pattern
from ingest.layouts.read_layout import preset, presets, read_layout
from ingest.layouts.recognise import ListNames, recognised
from tests.api.servers import framesift

CLASSES = [{"key": 7, "name": "road"}, {"key": [0, 1], "name": "void", "ignore": True}]
PLAIN = {"images": "i/{scene}/{frame}.jpg", "labels": "l/{scene}/{frame}.png", "classes": CLASSES}
PANOPTIC = {"encoding": "panoptic"}


@pytest.mark.parametrize(
    ("pattern", "name", "fields"),
    [
        ("{scene}_{frame}.png", "a_b_1.png", {"scene": "a", "frame": "b_1"}),
        ("{scene}_{frame_number:2}.png", "a_b_01.png", {"scene": "a_b", "frame_number": "01"}),
        ("{scene}_{frame_number:2}.png", "a_b_001.png", None),
        ("{scene}_{frame_number:2}.png", "a_1.png", None),
        ("{scene}/{scene}_x.png", "a/a_x.png", {"scene": "a"}),
        ("{scene}/{scene}_x.png", "a/ab_x.png", None),
        ("{scene}/x.png", "a/b/x.png", None),
        ("i/{frame}.{jpg,png}", "i/a.b.png", {"frame": "a.b"}),
        ("i/{frame}.{jpg,png}", "i/a.JPG", None),
        ("**/{frame}.png", "a.png", {"**": "", "frame": "a"}),
        ("i/**/{frame}.png", "i/a/b/c.png", {"**": "a/b/", "frame": "c"}),
        ("i/**/{frame}.png", "ii/a.png", None),
        ("cam_{camera}/{camera:joined}.png", "cam_a_b/ab.png", {"camera": "a_b"}),
        ("cam_{camera}/{camera:joined}.png", "cam_a_b/a_b.png", None),
        ("{scene:8_6}/x.png", "20180807_145028/x.png", {"scene": "20180807_145028"}),
        ("{frame:3}.png", "\uff10\uff10\uff10.png", None),
        ("a+b/{frame}.png", "a+b/new\nline.png", {"frame": "new\nline"}),
        ("{split}2017/{frame}.jpg", "train2017/x.jpg", {"split": "train", "frame": "x"}),
    ],
)
def test_a_pattern_says_a_names_fields(
    pattern: str, name: str, fields: dict[str, str] | None
) -> None:
    """Or that the name does not follow it; nothing is guessed."""
    assert Pattern(pattern).match(name) == fields


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "expected a path"),
        ("/i/{frame}.png", "below the source's root"),
        ("i//{frame}.png", "without empty parts"),
        ("../{frame}.png", "without empty parts"),
        ("i/x.png", "has no field"),
        ("{a}{b}.png", "the field before {b} has no end"),
        ("{Frame}.png", "'{Frame}.png' is no field"),
        ("{frame.png", "is no field"),
        ("{frame:x}.png", "{frame:x}: expected a number of digits"),
        ("*/{frame}.png", "'*' is no field"),
        ("**/a/**/{frame}.png", "** may stand once"),
        ("{frame}/**", "** may stand once, and not at the end"),
    ],
)
def test_what_is_no_pattern(pattern: str, words: str) -> None:
    """Each is one line that names it."""
    with pytest.raises(InvalidInput) as error:
        Pattern(pattern)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"image": "x"}, "no such key 'image'; did you mean images?"),
        ({"encoding": "rgb"}, "encoding 'rgb': expected one of index, colour"),
        (PANOPTIC, "encoding panoptic and segments belong together"),
        ({"segments": "s.json"}, "encoding panoptic and segments belong together"),
        (PANOPTIC | {"segments": "{split}.json"}, "the pattern of labels lacks split, so that"),
        (PANOPTIC | {"segments": "../s.json"}, "segments = ../s.json: expected a path below"),
        (PANOPTIC | {"segments": "s*.json"}, "'*.json' is no field"),
        (PANOPTIC | {"segments": 7}, "segments = 7: expected a text"),
        ({"labels": "l/{name}.png"}, "share no field"),
        ({"classes": [{"key": 7, "name": "a"}, {"key": 7, "name": "b"}]}, "key 7 is listed twice"),
        ({"classes": [{"key": "#ffffff", "name": "a"}]}, "key '#ffffff': expected a whole number"),
        ({"classes": [{"key": 70000, "name": "a"}]}, "from 0 to 65,535"),
        ({"encoding": "index//256", "classes": [{"key": 256, "name": "a"}]}, "from 0 to 255"),
        ({"classes": [{"name": "a"}]}, "expected a class with key and name"),
        ({"classes": [{"key": 1, "name": "a", "color": "#000000"}]}, "no such entry 'color'"),
        ({"classes": []}, "it has no class"),
        ({"positions": {"main": ["up"]}}, "positions of main"),
        ({"camera": 3}, "camera = 3: expected a text"),
    ],
)
def test_what_is_no_layout(changed: dict[str, Any], words: str) -> None:
    """Each contradiction is one line that says what to do."""
    assert Layout.of(PLAIN).identity == ("scene", "frame")
    with pytest.raises(InvalidInput) as error:
        Layout.of(PLAIN | changed)
    assert words in str(error.value)


EXAMPLES = {
    "a2d2": (
        "20180807_145028/camera/cam_front_center/20180807145028_camera_frontcenter_000000001.png",
        "20180807_145028/label/cam_front_center/20180807145028_label_frontcenter_000000001.png"),
    "acdc": ("rgb_anon/fog/train/GOPR0475/GOPR0475_frame_000041_rgb_anon.png",
             "gt/fog/train/GOPR0475/GOPR0475_frame_000041_gt_labelIds.png"),
    "ade20k": ("images/training/ADE_train_1.jpg", "annotations/training/ADE_train_1.png"),
    "bdd100k": ("images/10k/val/7d06fefd-f7be05a6.jpg",
                "labels/sem_seg/masks/val/7d06fefd-f7be05a6.png"),
    "bdd100k-2018": ("seg/images/val/7d06fefd.jpg", "seg/labels/val/7d06fefd_train_id.png"),
    "camvid": ("images/val/0016E5_08159.jpg", "labels/val/0016E5_08159.png"),
    "camvid-colours": ("701_StillsRaw_full/0006R0_f00930.png",
                       "LabeledApproved_full/0006R0_f00930_L.png"),
    "cityscapes": ("leftImg8bit/val/ulm/ulm_000001_000019_leftImg8bit.png",
                   "gtFine/val/ulm/ulm_000001_000019_gtFine_labelIds.png"),
    "cityscapes-instances": ("leftImg8bit/val/ulm/ulm_000001_000019_leftImg8bit.png",
                             "gtFine/val/ulm/ulm_000001_000019_gtFine_instanceIds.png"),
    "cityscapes-trainids": ("leftImg8bit/val/ulm/ulm_000001_000019_leftImg8bit.png",
                            "gtFine/val/ulm/ulm_000001_000019_gtFine_labelTrainIds.png"),
    "coco-stuff": ("images/val2017/000000000139.jpg", "annotations/val2017/000000000139.png"),
    "coco-panoptic": ("images/val2017/000000000139.jpg",
                      "annotations/panoptic_val2017/000000000139.png"),
    "fiftyone": ("data/a/x.jpg", "labels/a/x.png"),
    "idd": ("leftImg8bit/val/119/903127_leftImg8bit.png",
            "gtFine/val/119/903127_gtFine_labellevel3Ids.png"),
    "kitti": ("training/image_2/000000_10.png", "training/semantic/000000_10.png"),
    "kitti-360": (
        "data_2d_raw/2013_05_28_drive_0000_sync/image_00/data_rect/0000000250.png",
        "data_2d_semantics/train/2013_05_28_drive_0000_sync/image_00/semantic/0000000250.png"),
    "mapillary-1.2": ("training/images/x.jpg", "training/v1.2/labels/x.png"),
    "mapillary-2.0": ("training/images/x.jpg", "training/v2.0/labels/x.png"),
    "mmseg": ("img_dir/train/a/x.jpg", "ann_dir/train/a/x.png"),
    "pairs": ("images/x.png", "labels/x.png"),
    "ultralytics": ("images/train/x.jpg", "masks/train/x.png"),
}  # fmt: skip
"""An image and its label, as each data set names them."""


def test_a_label_is_no_image_of_any_folder() -> None:
    """A pattern that begins with a folder goes before one of any folders, whichever kind it is."""
    beside = Layout.of({"images": "**/{frame}.{jpg,png}", "labels": "labels/**/{frame}.png"})
    keys = ("labels/cam/a.png", "cam/a.png", "cam/labels/a.png", "labels/a.jpg")
    names = [beside.parse(key) for key in keys]
    assert [name and (name.kind, name.frame.group) for name in names] == [
        ("label", "cam/cam"), ("image", "cam/cam"), ("image", "cam/labels/cam/labels"),
        ("image", "labels/labels"),
    ]  # fmt: skip
    assert names[0]
    assert names[1]
    assert names[0].frame == names[1].frame


def test_every_preset_pairs_its_data_set() -> None:
    """Each knows its own names and gives its frames, alone or the first of those that fit."""
    assert {*EXAMPLES} == {name for name, _ in presets()}
    for name, files in EXAMPLES.items():
        check = check_names(preset(name), [*files, files[0].replace("/", "/x"), "README.md"])
        assert (check.paired, check.images_alone, check.labels_alone) in ((1, 0, 0), (1, 1, 0)), (
            name
        )
        assert check.unmatched[-1][0] == "README.md"
        fitting = [fit.name for fit in recognised(lister(files)).fits]
        variant_of = preset(name).document.get("variant_of")
        assert name in fitting or variant_of in fitting, (name, fitting)
    assert not recognised(lister(["images/a.txt", "x/y.png"])).fits


def test_tags_of_presets_are_names_that_tags_may_have() -> None:
    """No class of a preset is called as a column, or as a word of SQL, without a tag of its own."""
    for _, layout in presets():
        for tag in () if layout.classes is None else layout.classes.tags:
            check_tag_name(tag)
            assert tag not in FRAME_TAGS_COLUMNS


def lister(names: Iterable[str]) -> ListNames:
    """What lists these names, in order."""
    every = sorted(names)
    return lambda below: (name for name in every if name.startswith(below))


def city(kind: str, number: int, ending: str = "labelIds") -> str:
    stem = f"val/ulm/ulm_000001_{number:06}"
    return {
        "image": f"leftImg8bit/{stem}_leftImg8bit.png",
        "label": f"gtFine/{stem}_gtFine_{ending}.png",
    }[kind]


def test_which_layout_is_taken() -> None:
    """One that alone fits, also where the first names are all labels; of several alike, none."""
    labels = [city("label", n, e) for n in range(900) for e in ("labelIds", "instanceIds", "color")]
    cities = recognised(lister([*labels, *(city("image", n) for n in range(900))]))
    assert cities.layout is preset("cityscapes")
    assert cities.summary("s") == "looks like cityscapes (666 of 2,000 names)"
    coco = recognised(lister(EXAMPLES["coco-stuff"]))
    assert coco.layout is preset("coco-stuff")
    assert coco.summary("s").endswith("others fit, too: ade20k (2 of 2 names)")
    alike = recognised(lister(EXAMPLES["camvid"]))
    assert alike.layout is None
    assert alike.summary("s") == (
        "several layouts fit: camvid (2 of 2 names), pairs (2 of 2 names); choose one by --layout "
        "NAME"
    )
    assert recognised(lister([])).summary("s") == "s: no file is there"


@pytest.mark.parametrize(
    ("image", "label", "patterns"),
    [
        ("data/{}/rgb/cam_{}_rgb.jpg", "data/{}/sem/cam_{}_ids.png",
         ("data/{scene}/rgb/{frame}_rgb.jpg", "data/{scene}/sem/{frame}_ids.png")),
        ("raw/val/{}/{}.png", "masks/val/{}/{}_mask.png",
         ("raw/{split}/{scene}/{frame}.png", "masks/{split}/{scene}/{frame}_mask.png")),
    ],
)  # fmt: skip
def test_a_layout_to_begin_with(image: str, label: str, patterns: tuple[str, str]) -> None:
    """Made from the names, it pairs all of them; where none pair it is an example."""
    names = [one.format(drive, n) for one in (image, label) for drive in "ab" for n in (17, 28)]
    told = recognised(lister(names))
    assert told.layout is None
    document = tomllib.loads(told.draft)
    assert (document["images"], document["labels"]) == patterns
    assert check_names(Layout.of(document), names).paired == 4
    assert Layout.of(tomllib.loads(draft(["x/readme.txt"]))).identity == ("frame",)


def test_a_layout_to_begin_with_of_single_files() -> None:
    """A folder with one file has the ending that the rest of its tree has."""
    names = [f"{kind}/{drive}/{drive}_{n}_{kind}.png" for drive, n in (("a", 17), ("b", 28))
             for kind in ("photo", "mask")]  # fmt: skip
    document = tomllib.loads(draft(names))
    assert document["images"] == "photo/{scene}/{frame}_photo.png"
    assert document["labels"] == "mask/{scene}/{frame}_mask.png"


def test_a_name_that_fits_two_patterns() -> None:
    """It is the file of the one that says more, in whichever order they stand."""
    for one, other in (("images", "labels"), ("labels", "images")):
        layout = Layout.of({one: "**/{frame}.png", other: "**/{frame}_x.png"})
        kinds = [match[0] for name in ("a/7.png", "a/7_x.png") if (match := layout.match(name))]
        assert kinds == [one.removesuffix("s"), other.removesuffix("s")]
        assert check_names(layout, ["a/7.png", "a/7_x.png", "8.png", "8_x.png"]).paired == 2


def test_a_layout_to_begin_with_of_one_drive() -> None:
    """A folder below that of the images is a drive, also where no other one was seen."""
    names = [f"set/{kind}/d1/{n}_{kind}.{end}" for n in (17, 28)
             for kind, end in (("rgb", "jpg"), ("ids", "png"))]  # fmt: skip
    document = tomllib.loads(draft(names))
    assert document["images"] == "set/rgb/{scene}/{frame}_rgb.jpg"
    assert document["labels"] == "set/ids/{scene}/{frame}_ids.png"


def test_what_a_check_says() -> None:
    """Frames, files alone, two files of one frame, tags and why a name fits nothing."""
    layout = Layout.of(PLAIN | {"images": "i/{split}/{scene}/{frame}.{jpg,png}",
                                "labels": "l/{split}/{scene}/{frame}.png"})  # fmt: skip
    names = ["i/val/a/1.jpg", "i/val/a/1.png", "l/val/a/1.png", "i/val/a/2.jpg", "l/train/b/1.png",
             "l/train/b/1.tif", "i/x.jpg"]  # fmt: skip
    check = check_names(layout, names)
    assert (check.paired, check.images_alone, check.labels_alone) == (1, 1, 1)
    assert check.twice == [("i/val/a/1.jpg", "i/val/a/1.png")]
    assert check.values == {"scene": {"a": 3}, "camera": {"main": 3}, "given_split": {"val": 3}}
    assert [name for name, _ in check.unmatched] == ["l/train/b/1.tif", "i/x.jpg"]
    assert "label: does not end in .png" in check.unmatched[0][1]
    assert "image: has 2 parts, i/{split}/{scene}/{frame}.{jpg,png} has 4" in check.unmatched[1][1]


def test_the_commands(tmp_path: Path) -> None:
    """Presets are listed and shown, a folder is recognised, a layout file read, errors say why."""
    listed = framesift(tmp_path, "layout", "list")
    assert "cityscapes-trainids" in listed.stdout
    assert "7 road" in framesift(tmp_path, "layout", "show", "cityscapes").stdout
    root = tmp_path / "set"
    for name in EXAMPLES["camvid"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    checked = framesift(tmp_path, "layout", "check", str(root))
    assert checked.stdout.startswith("several layouts fit: camvid (2 of 2 names), pairs (2 of")
    assert "1 frames with image and label" in checked.stdout
    own = tmp_path / "own.toml"
    own.write_text('images = "images/{split}/{frame}.jpg"\nlabels = "labels/{split}/{frame}.png"\n')
    assert read_layout(str(own)).tags == ("given_split",)
    checked = framesift(tmp_path, "layout", "check", str(root), "--layout", str(own))
    assert "frame = 0016E5_08159" in checked.stdout
    own.write_text("images = 7")
    for arguments, words in (
        (("show", str(own)), f"error: {own}: pattern 7: expected a path"),
        (("show", "cityscape"), "unknown layout 'cityscape': did you mean cityscapes?"),
        (("check", str(tmp_path)), "no preset pairs its images with labels, of 2 names"),
        (("show", str(tmp_path / "gone.toml")), "No such file or directory; expected a layout"),
    ):
        refused = framesift(tmp_path, "layout", *arguments)
        assert refused.returncode == 1
        assert words in refused.stderr, refused.stderr


@pytest.mark.skipif("CAMVID_ROOT" not in os.environ, reason="CAMVID_ROOT is unset: no real frames")
def test_real_names() -> None:
    """All 468 frames of CamVid pair, by drive."""
    root = Path(os.environ["CAMVID_ROOT"])
    names = [path.relative_to(root).as_posix() for path in root.rglob("*.*g")]
    check = check_names(preset("camvid"), names)
    assert (check.paired, check.unmatched_names) == (468, 0)
    assert check.values["given_split"] == {"train": 367, "val": 101}
