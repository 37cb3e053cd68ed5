"""The drawn scenes in every preset's layout, by commands from names to staged class ids."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from framesift.data import open_frames
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.label_image import decode_label
from ingest.layouts.read_layout import preset_names
from pipeline.manifest import Manifest
from sample_data.class_words import class_of_entry
from sample_data.classes import COLOUR_TO_ENTRY, IDS_OF_CLASS
from sample_data.drawn_layout import DrawnLayout, drawn_layout, reduced_frame
from sample_data.plan import PlannedFrame, plan_frame
from tests.api.servers import several

REDUCED = 8
PIXELS = 240 * 151

CHOSEN = ("camvid",)
"""Presets whose names another's fit as well."""

OFTEN = ("cityscapes-instances", "pairs")
"""Those that run after each change: instances of 16 bits; JPEG, and classes of the user."""


class Drawn(NamedTuple):
    """A frame of the committed set, made smaller."""

    frame: PlannedFrame
    picture: NDArray[np.uint8]
    ids: NDArray[np.uint8]


@pytest.fixture(scope="session")
def pictures(committed: Path) -> list[Drawn]:
    """Two frames of a scene, and one of another between."""
    colours = [int(colour[1:], 16) for colour in COLOUR_TO_ENTRY]
    entry_of = np.zeros(1 << 24, np.uint8)
    entry_of[colours] = np.arange(len(colours))
    result = []
    for index in (0, 1, 8):
        frame, layout = plan_frame(index, 2026), drawn_layout("a2d2")
        rgb = np.array(Image.open(committed / layout.path(frame, "label"))).astype(np.int64)
        ids = entry_of[rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2]]
        picture = np.array(Image.open(committed / layout.path(frame, "image")))
        result.append(Drawn(frame, *reduced_frame(picture, ids, REDUCED)))
    return result


def write(layout: DrawnLayout, pictures: Sequence[Drawn], root: Path) -> None:
    """Write the frames in the layout."""
    files = layout.own_files(REDUCED, [layout.planned(drawn.frame) for drawn in pictures])
    for drawn in pictures:
        files |= layout.files(layout.planned(drawn.frame), drawn.picture, drawn.ids)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def class_ids(classes: ClassList, ids: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Position of each pixel's class in the list; void in panoptic labels alone."""
    keys = class_of_entry(classes)
    assert classes.encoding.is_panoptic or None not in keys
    of_entry = [UNKNOWN_CLASS if key is None else classes.classes.index(key.name) for key in keys]
    return np.array(of_entry, np.uint8)[ids]


@pytest.mark.parametrize(
    "name",
    [name if name in OFTEN else pytest.param(name, marks=pytest.mark.wide)
     for name in preset_names()],
)  # fmt: skip
def test_from_names_to_class_ids(name: str, pictures: list[Drawn], tmp_path: Path) -> None:
    """Names tell the layout; counts, tags, staged images and labels are as they were drawn."""
    layout, root, home = drawn_layout(name), tmp_path / "set", tmp_path / "home"
    classes = layout.classes
    write(layout, pictures, root)
    chosen = ["--layout", name] if name in CHOSEN else []
    columns = ", ".join(("filename", "scene", "camera", *layout.layout.tags))
    ended = several(
        home,
        ["source", "add", "drawn", str(root), *chosen],
        ["ingest", "drawn", "--json"],
        ["sql", "select sum(int(value)) from t_car"],
        ["sql", f"select {columns} from metaocean_view where labelled = 1 order by filename"],
        ["dataset", "create", "cars", "--range", "car=1:"],
        ["stage", "cars"],
    )
    assert [code for code, _, _ in ended] == [0] * 6, ended
    added, scanned, cars, named, _, _ = (out for _, out, _ in ended)
    own = layout.layout.lacks_classes
    words = "has its own layout: layout.toml (6 of 6 names)" if own else f"looks like {name} ("
    assert chosen or words in added
    counts = json.loads(scanned)
    void = sum(int((class_ids(classes, drawn.ids) == UNKNOWN_CLASS).sum()) for drawn in pictures)
    assert (counts["frames"], counts["unknown_pixels"], counts["problems"]) == (3, void, [])
    assert void < PIXELS / 2
    drawn_cars = sum(np.isin(drawn.ids, IDS_OF_CLASS["Car"]).sum() for drawn in pictures)
    assert (cars, drawn_cars > 3000) == (f"0,{drawn_cars}\n", True)

    frames = {layout.path(layout.planned(drawn.frame), "image"): drawn for drawn in pictures}
    told = [layout.layout.parse(path) for path in frames]
    assert sorted(line.split(",", 1)[1] for line in named.splitlines()) == sorted(
        ",".join(
            f'"{value}"' for value in (Path(path).name, frame.scene, frame.camera, *frame.tags)
        )
        for path, (frame, _) in zip(frames, filter(None, told), strict=True)
    )
    (folder,) = (home / "cache" / ".manifests").iterdir()
    manifest, opened = Manifest.read(folder), open_frames(folder)
    staged = manifest.header.class_list
    assert staged == classes
    assert len(opened) == len(frames) == 3
    for (image, ids), row in zip(opened, manifest.frames.to_pylist(), strict=True):
        drawn = frames[row["image"]]
        expected = class_ids(classes, drawn.ids)
        assert ids is not None
        assert np.array_equal(ids, expected)
        label = (root / row["label"]).read_bytes()
        assert np.array_equal(decode_label(label, staged, row["label_segments"]), expected)
        known = expected[expected != UNKNOWN_CLASS]
        pixels = np.bincount(known, minlength=len(staged)).tolist()
        assert row["class_pixels"] == pixels
        counted = {n: k for n, k in zip(staged.classes, pixels, strict=True) if k}
        assert (layout.count(drawn.ids), expected.size) == (counted, PIXELS)
        difference = np.abs(image.astype(int) - drawn.picture)
        assert difference.max() == 0 if row["image"].endswith(".png") else difference.mean() < 4
