"""Panoptic labels from a scan to datasets, prepared frames, programs and scores."""

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from api.frame_images.drawing import Look
from api.frame_images.pictures import both_files, label_file, made_label, made_overlay
from catalog.errors import InvalidInput
from framesift.data import open_frames
from framesift.data.classes import Classes
from pipeline.datasets.export import export_text, fiftyone_document
from pipeline.manifest import Manifest
from pipeline.prepared.class_file import write_class_file
from tests.api.servers import framesift, several
from tests.ingest.panoptic_set import CLASSES, OF_A, TRAIN, annotations, make_set
from tests.ingest.scene_folders import put
from tests.pipeline.homes import open_home

IDS_LAYOUT = """
images = "images/{frame}.png"
labels = "labels/{frame}.png"
encoding = "index"
[[classes]]
key = 1
name = "car"
[[classes]]
key = 2
name = "road"
[[classes]]
key = 9
name = "person"
ignore = true
"""

NAMES = ("road", "car", "person")
NONE = 255

A = [["", "road", "road", "car"], ["car", "car", "", ""]]
TRUTHS: Mapping[str, Any] = {
    "a.png": A, "a2.png": [["road"]], "b.png": [["car", "car", ""]], "c.png": [["road", "car"]],
}  # fmt: skip


def ids_of(names: Any, classes: tuple[str, ...]) -> Any:
    """(H, W) uint8 [class id] of classes' names."""
    return np.array(
        [[classes.index(name) if name else NONE for name in row] for row in names], np.uint8
    )


def make_ids(root: Path) -> Path:
    """A frame with labels of ids, whose classes have the same tags."""
    put(root, "layout.toml", IDS_LAYOUT.encode())
    for folder, values in (("images", [[4, 4]]), ("labels", [[2, 1]])):
        file = BytesIO()
        Image.fromarray(np.array(values, np.uint8)).save(file, "PNG")
        put(root, f"{folder}/c.png", file.getvalue())
    return root


def staged(home: Path, version: int) -> Path:
    """The staged manifest of a version of the dataset both."""
    (folder,) = (
        folder
        for folder in (home / "cache" / ".manifests").iterdir()
        if (header := Manifest.read(folder).header).name == "both" and header.version == version
    )
    return folder


def check_frames(frames: Any, truths: Mapping[str, Any]) -> None:
    """Images and class ids of frames are the drawn ones."""
    assert len(frames) == len(truths)
    for name, (image, ids) in zip(frames.names, frames, strict=True):
        truth = ids_of(truths[Path(name).name], frames.classes.names)
        assert ids is not None
        assert ids.tolist() == truth.tolist(), name
        assert image.shape == (*truth.shape, 3)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with panoptic and other labels, and a dataset of both, staged and prepared."""
    base = tmp_path_factory.mktemp("panoptic")
    pan, ids, home = make_set(base / "pan"), make_ids(base / "ids"), base / "home"
    ended = several(
        home,
        ["source", "add", "pan", str(pan)],
        ["source", "add", "ids", str(ids)],
        ["ingest", "pan"],
        ["ingest", "ids"],
        ["dataset", "create", "both", "--where", "labelled = 1"],
        ["stage", "both", "--prepare", "full"],
    )
    assert [code for code, _, _ in ended] == [0] * 6, ended
    return base


@pytest.mark.wide
def test_every_way_to_class_ids(base: Path, tmp_path: Path) -> None:
    """Staged files, a prepared form, a list of files and its classes: each the drawn ids."""
    home = base / "home"
    folder = staged(home, 1)
    check_frames(open_frames(folder), TRUTHS)
    manifest = Manifest.read(folder)
    names = [Path(key).name for key in manifest.frames["label"].to_pylist()]
    assert dict(zip(names, manifest.frames["label_segments"].to_pylist(), strict=True)) == {
        "a.png": "1:7 70000:3 300:99", "a2.png": "5:7", "b.png": "1:3", "c.png": None,
    }  # fmt: skip
    (form,) = (home / "cache" / ".prepared").iterdir()
    prepared = open_frames(form)
    assert [ids.tolist() for _, ids in prepared if ids is not None] == [
        ids_of(TRUTHS[name], prepared.classes.names).tolist() for name in names
    ]
    list_ = tmp_path / "files.txt"
    list_.write_text("".join(export_text(manifest, (), "files", with_labels=True)))
    write_class_file(tmp_path, manifest.header.dataset_classes, manifest.header.roots)
    frames = open_frames(list_)
    for (_, ids), name in zip(frames, names, strict=True):
        assert ids is not None
        assert ids.tolist() == ids_of(TRUTHS[name], frames.classes.names).tolist()
    assert Classes.read(tmp_path / "classes.json").below == open_frames(folder).classes.below
    lines = framesift(home, "dataset", "export", "both", "--format", "csv").stdout.splitlines()
    assert lines[0].split(",")[8:] == ["label_segments", *sorted(NAMES, key=lines[0].index)]
    assert sorted(line.split(",")[8] for line in lines[1:]) == [
        "", "1:3", "1:7 70000:3 300:99", "5:7"
    ]  # fmt: skip
    for _ in range(2):  # a second time in its place
        out = tmp_path / "of"
        run = framesift(
            home, "dataset", "export", "both", "--format", "fiftyone", "--out", str(out)
        )
        assert run.returncode == 0, run.stderr
    samples = json.loads((out / "samples.json").read_text())["samples"]
    targets = json.loads((out / "metadata.json").read_text())["info"]["mask_targets"]
    of_field = {field: sample[field] for sample in samples for field in targets if field in sample}
    assert len(of_field) == len(targets) == 2
    masks: dict[str, Any] = {}
    for sample in samples:
        (field,) = targets.keys() & sample.keys()
        names_of = {int(key): name for key, name in targets[field].items()}
        if Path(sample[field]["mask_path"]).parent == out / "masks":
            mask = np.asarray(Image.open(sample[field]["mask_path"]))
            label = Path(sample["filepath"]).name
            masks[label] = [[names_of.get(int(pixel), "") for pixel in row] for row in mask]
    assert len(masks) == 3
    for label, drawn in masks.items():
        assert ids_of(drawn, NAMES).tolist() == ids_of(TRUTHS[label], NAMES).tolist()
    with pytest.raises(InvalidInput, match="a server sends no masks"):
        fiftyone_document(manifest, ())


@pytest.mark.wide
def test_pictures(base: Path) -> None:
    """A label's picture has its classes' colours, an overlay marks those that are asked for."""
    workspace = open_home(base / "home")
    rows = framesift(
        base / "home", "sql", "select fkey from metaocean_view where filename = 'a.png' "
        "and labelled = 1",
    ).stdout  # fmt: skip
    fkey = rows.split(",")[1].strip().strip('"')
    look = Look("png")
    picture = np.asarray(Image.open(BytesIO(made_label(label_file(workspace, fkey), look).made())))
    files = both_files(workspace, fkey)
    colours = {name: tuple(picture[at]) for name, at in (("road", (0, 1)), ("car", (0, 3)))}
    assert len({*colours.values(), (0, 0, 0)}) == 3
    assert [[tuple(pixel) for pixel in row] for row in picture] == [
        [colours.get(name, (0, 0, 0)) for name in row] for row in A
    ]
    overlay = np.asarray(
        Image.open(BytesIO(made_overlay(files, look, alpha=1.0, classes="car").made()))
    )
    camera = (4, 0, 0)  # each pixel of the images
    assert [[tuple(pixel) for pixel in row] for row in overlay] == [
        [colours["car"] if name == "car" else camera for name in row] for row in A
    ]
    workspace.close()


@pytest.mark.wide
def test_scores_of_given_predictions(base: Path, tmp_path: Path) -> None:
    """Truth is what NumPy finds in ids and JSON; predictions have no segments."""
    home, place = base / "home", tmp_path / "out"
    header = Manifest.read(staged(home, 1)).header
    classes = header.dataset_classes.names
    learned = [name for name in classes if name != "person"]
    matrix = np.zeros((2, 2), int)
    frames = json.loads(framesift(home, "select", "--json").stdout)["frames"]
    for frame in frames:
        name = Path(frame["fkey"]).name
        truth = ids_of(TRUTHS[name], tuple(learned))
        predicted = np.full(truth.shape, learned.index("road"), np.uint8)
        known = truth != NONE
        np.add.at(matrix, (truth[known], predicted[known]), 1)
        path = place / frame["fkey"].partition(":")[2].partition(":")[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full(truth.shape, classes.index("road"), np.uint8)).save(path)
    command = ["validate", "both", "--predictions", str(place), "--model-name", "roads"]
    done = framesift(home, *command, "--name", "scored", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads((home / "jobs" / "scored" / "report" / "report.json").read_text())
    assert (report["classes"], report["confusion_matrix"]) == (learned, matrix.tolist())
    assert int(matrix.sum()) == 10
    refused = framesift(home, *command, "--encoding", "labels")
    assert refused.returncode == 1
    assert "labels of several class lists" in refused.stderr
    ended = several(
        home,
        ["dataset", "create", "pan", "--where", "datasource = 'pan'"],
        ["stage", "pan"],
        ["validate", "pan", *command[2:], "--encoding", "labels"],
    )
    assert [code for code, _, _ in ended] == [0, 0, 1], ended
    assert "panoptic labels, and predictions have no segments" in ended[2][2]


@pytest.mark.wide
def test_a_json_file_that_changes(base: Path) -> None:
    """A dataset keeps the segments that it was made with; the next one has the new ones."""
    home = base / "home"
    put(base / "pan", "annotations/panoptic_train.json",
        annotations(TRAIN | {"a.png": OF_A | {70_000: 7}}))  # fmt: skip
    ended = several(
        home,
        ["ingest", "pan"],
        ["dataset", "create", "both", "--where", "labelled = 1"],
        ["stage", "both@2", "--prepare", "full"],
    )
    assert [code for code, _, _ in ended] == [0] * 3, ended
    check_frames(open_frames(staged(home, 1)), TRUTHS)
    roads = [["road" if name == "car" else name for name in row] for row in A]
    check_frames(open_frames(staged(home, 2)), {**TRUTHS, "a.png": roads})
    assert len([*(home / "cache" / ".prepared").iterdir()]) == 2
    old, new = (Manifest.read(home / "datasets" / "both" / f"v{n}").header.id for n in (1, 2))
    assert old != new
    put(base / "pan", "annotations/panoptic_train.json", annotations(TRAIN)[:-9])
    ended = several(home, ["ingest", "pan"], ["dataset", "create", "both"])
    assert ended[0][0] == 0, ended
    assert "not JSON" in ended[0][1] + ended[0][2]
    assert [row["name"] for row in CLASSES] == [*NAMES]
