"""One training and one validation over frames of two data sets: colours and ids as labels."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ingest.layouts.read_layout import preset
from pipeline.runs.class_map import chosen_classes
from tests.api.servers import framesift
from tests.ingest.label_sets import city_keys
from tests.training.drawn_frames import CLASS_LIST
from tests.training.drawn_home import TINY_JOB, ask, drawn_home

pytestmark = pytest.mark.training

FRAMES = 4
SIDES = (64, 96)
FLAGS = ("--batch-size", "2", "--workers", "1", *TINY_JOB)

PROGRAM = """
import sys
from framesift.data import open_frames

listed, manifest, prepared = (open_frames(path) for path in sys.argv[1:])
assert len(listed) == len(manifest) == len(prepared) == 8
for one, other, third in zip(listed, manifest, prepared, strict=True):
    assert (one[1] == other[1]).all() and (one[1] == third[1]).all() and (one[1] != 255).any()
assert listed.classes.names == manifest.classes.names == prepared.classes.names
"""
"""Class ids are the same by files, manifest and prepared form."""


def add_city(root: Path) -> None:
    """Frames of ids: a band of each of Cityscapes' 34 ids, and one of an id that is none."""
    rng = np.random.default_rng(7)
    for number in range(FRAMES):
        bands = rng.permutation(np.repeat([*range(34), 77], 3))[: SIDES[1]]
        label = np.broadcast_to(bands.astype(np.uint8), SIDES)
        image = np.repeat(label[..., None], 3, axis=2)
        for key, pixels in zip(city_keys(number), (image, label), strict=True):
            (root / key).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.ascontiguousarray(pixels)).save(root / key)


def truth(root: Path) -> dict[str, int]:
    """Pixels of each label class of both data sets, by their own names, counted by NumPy."""
    counts: dict[str, int] = {}
    city = preset("cityscapes").classes
    assert city is not None
    for label in root.glob("city/gtFine/**/*.png"):
        pixels = np.bincount(np.asarray(Image.open(label)).ravel(), minlength=256)
        for key in city.keys:
            counts[key.name] = counts.get(key.name, 0) + int(pixels[key.key])
    for label in root.glob("source/**/label/**/*.png"):
        rgb = np.asarray(Image.open(label).convert("RGB"), np.int64)
        packed = rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2]
        for colour, name in CLASS_LIST.items():
            own = name.rstrip(" 12")
            count = int((packed == int(colour[1:], 16)).sum())
            counts[own] = counts.get(own, 0) + count
    return counts


def test_two_data_sets_train_one_network(tmp_path: Path) -> None:
    """Refused without a map that names both; scores, forms and arrays have both one's pixels."""
    home = drawn_home(tmp_path, FRAMES)
    add_city(tmp_path / "city")
    ask(home, "source", "add", "city", str(tmp_path / "city"), "--layout", "cityscapes")
    ask(home, "ingest", "city")
    ask(home, "dataset", "create", "both")
    refused = framesift(home, "train", "both", *FLAGS)
    assert refused.returncode == 1
    assert "both (of a2d2) and both (of city) have different classes, such as" in refused.stderr
    refused = framesift(home, "train", "both", *FLAGS, "--classes", "a2d2-8")
    assert "dataset both (of city) has the label classes sky, car, bicycle, " in refused.stderr
    ask(home, "stage", "both", "--cache", str(tmp_path / "cache"), "--prepare", "96x64")

    train = framesift(home, "train", "both", *FLAGS, "--classes", "cityscapes-19", "--max-steps",
                      "2", "--name", "one")  # fmt: skip
    assert train.returncode == 0, train.stderr
    validate = framesift(home, "validate", "one", "both", "--workers", "1", "--name", "scored",
                         "--trust-model")  # fmt: skip
    assert validate.returncode == 0, validate.stderr
    report = json.loads((home / "jobs" / "scored" / "report" / "report.json").read_text())
    counts, map_ = truth(tmp_path), chosen_classes("cityscapes-19")
    assert map_ is not None
    expected = {
        name: sum(counts.get(label, 0) for label in labels) for name, labels in map_.merged.items()
    }
    assert {row["class"]: row["truth_pixels"] for row in report["per_class"]} == expected
    assert min(expected["car"], expected["road"], expected["rider"]) > 0
    assert counts["Car"] > 0
    assert counts["car"] > 0
    rows = {row["class"]: row["label_tags"] for row in report["per_class"]}
    assert (rows["car"], rows["road"]) == (["car"], ["rd_normal_street", "road"])
    model = json.loads((home / "jobs" / "one" / "model" / "model.json").read_text())
    assert [each["sources"] for each in model["class_lists"]] == [["city"]]

    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = framesift(home, "run", "both", "--name", "given", "--prepare", "96x64", "--command",
                    f"python3 {program} {{files}} {{manifest}} {{prepared}}")  # fmt: skip
    assert run.returncode == 0, run.stderr
