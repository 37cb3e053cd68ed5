"""One catalog, several data sets: each dataset has the classes of its own sources' class list."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from api.schemas.new_datasets import NewDataset, NewExtension, NewSplit
from api.services.datasets.new_dataset import divide_dataset, grow_dataset, make_dataset
from api.services.datasets.rebuild_dataset import rebuild_dataset
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.records.sources import recorded_source
from catalog.records.tables import Dataset
from ingest.scan.scan import scan_source
from pipeline.manifest import Manifest
from query.question.question import Question
from query.sets.methods import Demand
from tests.ingest.scene_folders import BICYCLE, CAR, CLASS_LIST, SKY, add_frame, make_tree
from tests.pipeline.homes import add_source, open_home
from tests.templates import Templates
from training.input.dataset import open_split

FRAMES = 2
HALVES = NewSplit(split="train=0.5,validation=0.5", split_by="frame", allow_leakage=True)
LISTS = {
    "a": CLASS_LIST,
    "a2": CLASS_LIST,
    "turned": dict(reversed(CLASS_LIST.items())),
    "part": {"#ff0000": "Car 1", "#87ceff": "Sky"},
    "more": {"#00aa00": "Tree", **CLASS_LIST},
    "small": {"#00ff00": "bicycle", "#ff0000": "car", "#87ceff": "sky"},
    "other": {"#ff0000": "Sky", "#00ff00": "Car", "#87ceff": "Bicycle"},
}
"""Of each source; all have frames of the same colours."""


def make_sources(folder: Path) -> None:
    """A home with a source for each class list, scanned in this order."""
    workspace = open_home(folder / "home")
    for number, (name, class_list) in enumerate(LISTS.items(), start=1):
        root = make_tree(folder / name, 0)
        for cars in range(1, FRAMES + 1):  # no frame is the same as another source's
            add_frame(root, cars, [CAR] * cars + [BICYCLE] + [SKY] * number)
        (root / "class_list.json").write_text(json.dumps(class_list))
        add_source(workspace, name, root)
    workspace.close()


@pytest.fixture
def home(templates: Templates, tmp_path: Path) -> Workspace:
    """A copy of it; its sources lie where they were made."""
    templates.copy(make_sources, tmp_path)
    return open_home(tmp_path / "home")


def of(workspace: Workspace, *sources: str, name: str = "", at: int | None = None) -> Dataset:
    """A dataset of sources' frames."""
    listed = ", ".join(f"'{source}'" for source in sources)
    question = Question(where=f"datasource IN ({listed})", snapshot=at)
    return make_dataset(workspace, NewDataset(name=name or sources[0], question=question))


@pytest.mark.parametrize(
    ("source", "classes"),
    [
        ("a", ("Car", "Bicycle", "Sky")),
        ("a2", ("Car", "Bicycle", "Sky")),
        ("turned", ("Car", "Bicycle", "Sky")),
        ("part", ("Car", "Sky")),
        ("more", ("Car", "Bicycle", "Sky", "Tree")),
        ("small", ("car", "bicycle", "sky")),
        ("other", ("Car", "Bicycle", "Sky")),
    ],
)
def test_a_dataset_of_one_source(home: Workspace, source: str, classes: tuple[str, ...]) -> None:
    """It opens for training, divided too, whatever else is catalogued; pixels are of its classes.

    Sources with the same classes have the same class ids, in whatever order their files list them.
    """
    dataset = of(home, source)
    divided = divide_dataset(home, f"{source}@1", HALVES)
    assert divided.class_pixels == dataset.class_pixels
    for made, frames in ((dataset, FRAMES), (divided, FRAMES // 2)):
        split, _, palette = open_split(Path(made.manifest), None, "train")
        assert (len(split), palette.classes, split.header.classes) == (frames, classes, classes)
        for path, pixels in zip(
            split.label_paths(), split.frames["class_pixels"].to_pylist(), strict=True
        ):
            rgb = np.asarray(Image.open(str(path)), np.int64)
            ids = palette.lookup_table[rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2]]
            assert [int((ids == number).sum()) for number in range(len(classes))] == pixels
    assert list(dataset.class_pixels) == [name.lower() for name in classes]


def test_sources_together(home: Workspace) -> None:
    """Alike ones make one dataset, whose labels mean the same; others are refused by both names."""
    dataset = of(home, "a", "a2", "turned", name="alike")
    split, _, palette = open_split(Path(dataset.manifest), None, "train")
    assert (len(split), palette.classes) == (3 * FRAMES, ("Car", "Bicycle", "Sky"))
    pixels = sorted(split.frames["class_pixels"].to_pylist())
    assert pixels == [[cars, 1, number] for cars in (1, 2) for number in (1, 2, 3)]
    for odd in ("part", "more", "small", "other"):
        with pytest.raises(InvalidInput, match=f"sources a and {odd} have different class lists"):
            of(home, "a", odd, name="mixed")


def test_an_extension_takes_frames_of_alike_sources_only(home: Workspace) -> None:
    """Where all frames of the catalog would do; and its manifest is made again when it is lost."""
    of(home, "a")
    request = NewExtension(demands=(Demand.parse("car=99"),))
    grown = grow_dataset(home, "a", request)
    manifest = Manifest.read(Path(grown.manifest))
    assert set(manifest.frames["image_source"].to_pylist()) == {"a", "a2", "turned"}
    assert len(manifest) == 3 * FRAMES
    (Path(grown.manifest) / "manifest.json").unlink()
    rebuild_dataset(home, "a@2")
    assert Manifest.read(Path(grown.manifest)).header == manifest.header


@pytest.mark.wide
def test_a_class_list_that_grows(tmp_path: Path) -> None:
    """Datasets of before open as they were, divided too; new ones have the new class."""
    workspace = open_home(tmp_path / "home")
    root = make_tree(tmp_path / "a", FRAMES)
    add_source(workspace, "a", root)
    of(workspace, "a")
    snapshot = workspace.catalog.snapshot()
    grown = {"#090909": "Tree", **dict(reversed(CLASS_LIST.items()))}
    (root / "class_list.json").write_text(json.dumps(grown))
    scan_source(workspace.whole_catalog, workspace.records, recorded_source(workspace.records, "a"))
    divided = divide_dataset(workspace, "a@1", HALVES)
    of_then = of(workspace, "a", name="then", at=snapshot)
    for dataset, classes in (
        (divided, ("Car", "Bicycle", "Sky")),
        (of(workspace, "a", name="now"), ("Car", "Bicycle", "Sky", "Tree")),
        (of_then, ("Car", "Bicycle", "Sky", "Tree")),
    ):
        assert open_split(Path(dataset.manifest), None, "train")[2].classes == classes
    assert of_then.class_pixels == {"car": 3, "bicycle": 2, "sky": 2, "tree": 0}
