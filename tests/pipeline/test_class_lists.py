"""One catalog, several data sets: each dataset has the classes of its own sources' class list."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from api.schemas.datasets import LayoutOfSources
from api.schemas.new_datasets import NewDataset, NewExtension, NewSplit
from api.services.datasets.new_dataset import divide_dataset, grow_dataset, make_dataset
from api.services.datasets.rebuild_dataset import rebuild_dataset
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.records.sources import recorded_source
from catalog.records.tables import Dataset
from framesift.data.classes import Classes
from framesift.data.manifest import read_manifest as read_manifest_of_client
from framesift.errors import BadFile as ClientBadFile
from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.layouts.read_layout import preset
from ingest.scan.scan import scan_source
from pipeline.datasets.diff import diff_datasets, diff_to_json
from pipeline.datasets.export import write_export
from pipeline.manifest import Manifest
from pipeline.prepared.class_file import write_class_file
from pipeline.prepared.decoded_frames import DecodedFrames
from pipeline.prepared.label_classes import LabelClasses
from pipeline.runs.class_map import ClassMap
from query.question.question import Question
from query.sets.distances import Distance
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
        assert (len(split), palette.names, split.header.classes) == (frames, classes, classes)
        for path, pixels in zip(
            split.label_paths(), split.frames["class_pixels"].to_pylist(), strict=True
        ):
            rgb = np.asarray(Image.open(str(path)), np.int64)
            ids = palette.lists[0].lookup_table[rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2]]
            assert [int((ids == number).sum()) for number in range(len(classes))] == pixels
    assert list(dataset.class_pixels) == [name.lower() for name in classes]


def test_sources_together(home: Workspace) -> None:
    """Alike ones make one dataset, whose labels mean the same."""
    dataset = of(home, "a", "a2", "turned", name="alike")
    split, _, palette = open_split(Path(dataset.manifest), None, "train")
    assert (len(split), palette.names) == (3 * FRAMES, ("Car", "Bicycle", "Sky"))
    pixels = sorted(split.frames["class_pixels"].to_pylist())
    assert pixels == [[cars, 1, number] for cars in (1, 2) for number in (1, 2, 3)]
    assert split.header.class_lists == ()
    layout = {name: value for name, value in preset("a2d2").document.items() if name != "classes"}
    assert split.header.layouts == dict.fromkeys(("a", "a2", "turned"), layout)
    written = json.loads((Path(dataset.manifest) / "manifest.json").read_text())
    assert [row["sources"] for row in written["layouts"]] == [["a", "a2", "turned"]]


def test_layouts_are_named(home: Workspace) -> None:
    """With the sources that they are of; none is said where the manifest is lost."""
    session = Session(home)
    dataset = of(home, "a", "a2", name="alike")
    one = LayoutOfSources(layout="a2d2", sources=["a", "a2"])
    assert session.datasets.get("alike").layouts == [one]
    header = Path(dataset.manifest) / "manifest.json"
    document = json.loads(header.read_text())
    own = {"sources": ["a2"], "layout": {"images": "{frame}.png"}}
    document["layouts"] = [document["layouts"][0] | {"sources": ["a"]}, own]
    header.write_text(json.dumps(document))
    assert session.datasets.get("alike").layouts == [
        LayoutOfSources(layout="a2d2", sources=["a"]), LayoutOfSources(layout="", sources=["a2"]),
    ]  # fmt: skip
    header.write_text("{")
    assert session.datasets.get("alike").layouts is None
    header.unlink()
    assert session.datasets.get("alike").layouts is None


def test_diff(home: Workspace) -> None:
    """A class that one dataset's labels do not have is unknown there, and not compared.

    A class is a tag, whatever its name; of one that both have and that no pixel shows, 0 is said.
    """
    part, more, small = (of(home, name) for name in ("part", "more", "small"))
    diff = diff_datasets(home.records, part, more)
    assert [(each.value, each.before, each.after) for each in diff.pixels.values] == [
        ("Car", 3 / 11, 3 / 15), ("Sky", 8 / 11, 10 / 15), ("Bicycle", None, 2 / 15),
        ("Tree", None, 0),
    ]  # fmt: skip
    assert [(each.value, each.before, each.after) for each in diff.presence.values] == [
        ("Car", 1, 1), ("Sky", 1, 1), ("Bicycle", None, 1), ("Tree", None, 0),
    ]  # fmt: skip
    assert diff.pixels.distance is not None
    assert diff.pixels.distance.total_variation == pytest.approx(3 / 11 - 3 / 13)
    assert diff.presence.distance == Distance(0, 0, 0)
    body = diff_to_json(diff)
    assert body["class_pixels"]["values"][2] == {
        "value": "Bicycle", "before": None, "after": 2 / 15,
    }  # fmt: skip
    back = diff_datasets(home.records, more, part)
    assert [(each.value, each.after) for each in back.presence.values] == [
        ("Car", 1), ("Bicycle", None), ("Sky", 1), ("Tree", None),
    ]  # fmt: skip
    renamed = diff_datasets(home.records, part, small)
    assert [(each.value, each.after) for each in renamed.presence.values] == [
        ("Car", 1), ("Sky", 1), ("bicycle", 1),
    ]  # fmt: skip


@pytest.mark.wide
def test_class_lists_together(home: Workspace) -> None:
    """Labels of each source are decoded by its own list, to ids that are one for each tag.

    Training without a class map is refused where the classes differ.
    """
    made = of(home, "a", "more", "other", "part", "small", name="mixed")
    split, _, classes = open_split(Path(made.manifest), None, "train")
    assert classes.names == split.header.classes == ("Car", "Bicycle", "Sky", "Tree")
    assert classes.tags == tuple(made.class_pixels) == ("car", "bicycle", "sky", "tree")
    assert classes.sources == (
        ("a",), ("more",), ("other",), ("part",), ("small",)
    )  # fmt: skip
    decoded = DecodedFrames(split, classes)
    sources, pixels = (split.frames[name].to_pylist() for name in ("label_source", "class_pixels"))
    of_source = {}
    for row, (source, counts) in enumerate(zip(sources, pixels, strict=True)):
        ids = decoded.label(row, decoded.size_px(row))
        assert np.bincount(ids.ravel(), minlength=256)[:4].tolist() == counts
        if (ids == UNKNOWN_CLASS).any():
            assert source == "part"  # which has no bicycle
        of_source[source] = counts[:3]
    assert of_source["other"] == [1, 7, 2]  # its sky is red, its car green
    assert Manifest.read(Path(made.manifest)).header == split.header
    folder = read_manifest_of_client(Path(made.manifest))
    for row in range(len(split)):
        read = folder.read(row)[1]
        assert read is not None
        assert np.array_equal(read, decoded.label(row, decoded.size_px(row)))
    with pytest.raises(InvalidInput, match=r"mixed \(of a\) and mixed \(of more\) have different"):
        LabelClasses.of(classes, None, "mixed")
    alike = of(home, "a", "other", "small", name="same-classes")
    split, _, classes = open_split(Path(alike.manifest), None, "train")
    assert LabelClasses.of(classes, None, "x").names == ("Car", "Bicycle", "Sky")


def test_exports_of_class_lists_together(home: Workspace, tmp_path: Path) -> None:
    """FiftyOne has a field for each list; a program finds the list of a label by its folder."""
    manifest = Manifest.read(Path(of(home, "a", "small", "other", name="mixed").manifest))
    classes, roots = manifest.header.dataset_classes, manifest.header.roots
    write_export(manifest, classes.tags, "fiftyone", tmp_path / "export")
    targets = json.loads((tmp_path / "export" / "metadata.json").read_text())["info"][
        "mask_targets"
    ]
    assert [*targets] == ["ground_truth", "ground_truth_2", "ground_truth_3"]
    assert (targets["ground_truth_2"]["#ff0000"], targets["ground_truth_3"]["#ff0000"]) == (
        "Sky", "car"
    )  # fmt: skip
    samples = json.loads((tmp_path / "export" / "samples.json").read_text())["samples"]
    fields = {
        row["fkey"].split(":")[1]: [name for name in row if name.startswith("ground_truth")]
        for row in samples
    }
    assert fields == {
        "a": ["ground_truth"], "other": ["ground_truth_2"], "small": ["ground_truth_3"]
    }  # fmt: skip
    listed = Classes.read(write_class_file(tmp_path, classes, roots))
    decoded = DecodedFrames(manifest, classes)
    for row, path in enumerate(manifest.label_paths()):
        assert np.array_equal(
            listed.read_label(str(path)), decoded.label(row, decoded.size_px(row))
        )
    with pytest.raises(ClientBadFile, match="lies below no folder of the dataset"):
        listed.read_label(str(tmp_path / "label.png"))
    (tmp_path / "form").mkdir()
    small = Classes.read(write_class_file(tmp_path / "form", classes))
    assert (small.names, small.below, small.ignored) == (classes.names, {}, frozenset())


def test_a_class_map_names_the_classes_of_each_list(home: Workspace) -> None:
    """Names of each list go where the map puts them; what it lacks is told with its sources."""
    made = of(home, "a", "more", "small", name="mixed")
    classes = Manifest.read(Path(made.manifest)).header.dataset_classes
    merged = {"Thing": ["Car", "car", "Bicycle", "bicycle"], "Sky": ["Sky", "sky"]}
    whole = ClassMap.from_json({"classes": merged, "ignored": ["Tree"]})
    its = LabelClasses.of(classes, whole, "mixed")
    assert its.of_label[:5].tolist() == [0, 0, 1, UNKNOWN_CLASS, UNKNOWN_CLASS]
    assert its.label_tags == (("car", "bicycle"), ("sky",))
    lacking = ClassMap.from_json({"classes": {"Sky": ["Sky", "sky"]}, "ignored": ["Car", "Tree"]})
    with pytest.raises(InvalidInput, match=r"dataset mixed \(of a\) has the label class Bicycle, "):
        lacking.ids_in(classes, "mixed")
    upper = ClassMap.from_json({"classes": {"Thing": ["Car", "Bicycle", "Tree"], "Sky": ["Sky"]}})
    with pytest.raises(InvalidInput, match=r"mixed \(of small\) has the label classes car, bicy"):
        upper.ids_in(classes, "mixed")
    parted = ClassMap.from_json(
        {"classes": {"A": ["Car", "Bicycle", "bicycle"], "B": ["car", "Sky", "sky", "Tree"]}}
    )
    with pytest.raises(InvalidInput, match=r"\(of small\) has car, which shares the tag car wi"):
        parted.ids_in(classes, "mixed")


def test_a_mixed_dataset_grows_by_sources_of_its_lists(home: Workspace) -> None:
    """By those of each list that means the same; divided and made again it keeps its lists."""
    of(home, "a", "more", name="mixed")
    grown = grow_dataset(home, "mixed", NewExtension(demands=(Demand.parse("car=99"),)))
    manifest = Manifest.read(Path(grown.manifest))
    assert set(manifest.frames["image_source"].to_pylist()) == {"a", "a2", "turned", "more"}
    classes = manifest.header.dataset_classes
    assert classes.sources == (("a", "a2", "turned"), ("more",))
    assert {len(row) for row in manifest.frames["class_pixels"].to_pylist()} == {4}
    divided = divide_dataset(home, "mixed@2", HALVES)
    assert Manifest.read(Path(divided.manifest)).header.dataset_classes == classes
    (Path(grown.manifest) / "manifest.json").unlink()
    rebuild_dataset(home, "mixed@2")
    assert Manifest.read(Path(grown.manifest)).header == manifest.header


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
        assert open_split(Path(dataset.manifest), None, "train")[2].names == classes
    assert of_then.class_pixels == {"car": 3, "bicycle": 2, "sky": 2, "tree": 0}
