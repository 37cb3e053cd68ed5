"""framesift.data: manifests, staged manifests, prepared forms and lists of files as sequences."""

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import framesift
from api.services.session import Session
from api.workspace import Workspace
from catalog.storage.file_version import version_of
from framesift.data import UNKNOWN_CLASS, Classes, open_frames
from framesift.data.frames import UInt8
from framesift.data.manifest import versioned_key
from ingest.labels import label_image
from ingest.labels.class_list import ClassList
from ingest.labels.dataset_classes import DatasetClasses
from pipeline import entry_name
from pipeline.datasets.export import export_text
from pipeline.manifest import Manifest
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.prepared.class_file import write_class_file
from pipeline.prepared.decoded_frames import DecodedFrames
from pipeline.prepared.form import prepared_rows
from pipeline.prepared.prepare import prepare
from pipeline.runs.size import Size
from tests.pipeline.conftest import workspace
from tests.pipeline.test_datasets import make
from tests.training.drawn_frames import CLASS_LIST, draw_frames, every_fourth, write_manifest

__all__ = ["workspace"]

PALETTE = DatasetClasses.of(ClassList.from_colours(CLASS_LIST))


def dated(base: Path, folder: Path, unlabelled: int | None = None) -> Manifest:
    """A manifest of drawn frames in a folder, which knows the versions of their files."""
    manifest = write_manifest(folder, base, every_fourth(draw_frames(base, 9, unknown=True)))
    rows = manifest.frames.to_pylist()
    for number, row in enumerate(rows):
        for kind in ("image", "label"):
            row[f"{kind}_version"] = version_of((base / row[kind]).stat())
        if number == unlabelled:
            row |= dict.fromkeys(("label_source", "label", "label_size", "label_version"))
            row["class_pixels"] = None
    return Manifest(manifest.header, pa.Table.from_pylist(rows, FRAMES_SCHEMA)).write(folder)


def same(ids: UInt8 | None, others: UInt8 | None) -> bool:
    """Whether both are the same class ids, or none."""
    if ids is None or others is None:
        return ids is others
    return np.array_equal(ids, others)


def test_a_manifest_gives_what_training_decodes(tmp_path: Path) -> None:
    """Proves images and class ids bit for bit, unknown pixels, splits, shards, slices, pickles."""
    manifest = dated(tmp_path, tmp_path / "m", unlabelled=2)
    frames = open_frames(tmp_path / "m")
    assert (len(frames), frames.dataset) == (9, "drawn@1")
    assert frames.classes.names == PALETTE.names
    assert frames.classes.palette.tolist() == PALETTE.class_colours.tolist()
    decoded = DecodedFrames(manifest, PALETTE)
    for row, (image, ids) in enumerate(frames):
        assert np.array_equal(image, decoded.image(row))
        if row == 2:
            assert ids is None
        else:
            assert ids is not None
            assert np.array_equal(ids, decoded.label(row, (image.shape[0], image.shape[1])))
            assert (ids == UNKNOWN_CLASS).any()
    train = open_frames(tmp_path / "m" / "manifest.json", "train")
    assert train.names == manifest.split("train").frames["fkey"].to_pylist()
    assert train.shard(1, 3).names == train.names[1::3] == train[1::3].names
    again = pickle.loads(pickle.dumps(train))
    assert np.array_equal(again[-1][0], train[len(train) - 1][0])
    with pytest.raises(IndexError):
        train[len(train)]
    with pytest.raises(framesift.UnknownName, match="has train, validation"):
        open_frames(tmp_path / "m", "test")
    with pytest.raises(ValueError, match="rank 3 of 3"):
        train.shard(3, 3)


@pytest.mark.wide
def test_a_staged_manifest_and_its_form(workspace: Workspace) -> None:
    """Proves frames of a real cache equal those of the source, and the form's what was prepared."""
    dataset = make(workspace, "all", split="train=0.5,validation=0.5")
    staged = Session(workspace).stagings.run(
        "all",
        cache=None,
        workers=1,
        progress=lambda _: None,
        failed=lambda _: None,
        prepare="48x30",
    )
    folder, source = Path(staged.manifest), Path(dataset.manifest)
    manifest = Manifest.read(folder)
    assert manifest.header.staged
    of_cache, of_source = open_frames(folder, "train"), open_frames(source, "train")
    assert of_cache.names == of_source.names
    for (image, ids), (same_image, same_ids) in zip(of_cache, of_source, strict=True):
        assert np.array_equal(image, same_image)
        assert same(ids, same_ids)
    rows = prepared_rows(manifest, Size(30, 48))
    assert rows is not None
    form = open_frames(rows.form.folder)
    assert (len(form), form.dataset) == (len(manifest), "all@1")
    assert form.classes == open_frames(folder).classes
    for row, (image, ids) in enumerate(form):
        small = rows.small(row)
        assert small is not None
        assert np.array_equal(image, small[0])
        assert same(ids, small[1])
    with pytest.raises(framesift.UnknownName, match="open its manifest"):
        open_frames(rows.form.folder, "train")


def test_a_list_of_files(tmp_path: Path) -> None:
    """Proves that the exported list opens, with the classes beside it or named."""
    manifest = dated(tmp_path, tmp_path / "m", unlabelled=1)
    text = "".join(export_text(manifest, PALETTE.tags, "files", with_labels=True))
    (tmp_path / "files.txt").write_text(text, encoding="utf-8")
    with pytest.raises(framesift.BadFile, match=r"classes.json: No such file"):
        open_frames(tmp_path / "files.txt")
    (tmp_path / "c").mkdir()
    classes = write_class_file(tmp_path / "c", PALETTE)
    listed = open_frames(tmp_path / "files.txt", classes=classes)
    assert listed.names == manifest.image_paths()
    for (image, ids), (same_image, same_ids) in zip(
        listed, open_frames(tmp_path / "m"), strict=True
    ):
        assert np.array_equal(image, same_image)
        assert same(ids, same_ids)


def test_what_is_damaged_is_an_error(tmp_path: Path) -> None:
    """Proves no wrong picture: changed, cut or missing files, damaged manifests and forms."""
    manifest = dated(tmp_path, tmp_path / ".manifests" / "m")
    folder = tmp_path / ".manifests" / "m"
    form = prepare(folder, Size(16, 20), processes=1).folder
    frames, prepared = open_frames(folder), open_frames(form)
    image = Path(manifest.image_paths()[0])
    png = image.read_bytes()
    image.write_bytes(png)
    with pytest.raises(framesift.BadFile, match="has changed since the dataset was made"):
        frames[0]
    (tmp_path / "list.txt").write_text(f"{image}\n")
    write_class_file(tmp_path, PALETTE)
    listed = open_frames(tmp_path / "list.txt")
    for damaged in (png[:-20], png[:60] + bytes([png[60] ^ 1]) + png[61:], b"no picture", png[:8]):
        image.write_bytes(damaged)
        with pytest.raises(framesift.BadFile, match=str(image)):
            listed[0]
    image.unlink()
    with pytest.raises(framesift.BadFile, match="No such file"):
        frames[0]
    with (form / "images.npy").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    with pytest.raises(framesift.BadFile, match="is damaged"):
        prepared[len(prepared) - 1]
    (folder / "frames.parquet").write_bytes(b"")
    with pytest.raises(framesift.BadFile, match="does not belong"):
        open_frames(folder)
    with pytest.raises(framesift.BadFile, match="no frames there"):
        open_frames(tmp_path / "nothing")


def test_files_that_are_elsewhere(tmp_path: Path) -> None:
    """Proves that a manifest of an object store says to stage it."""
    manifest = dated(tmp_path, tmp_path / "m")
    header = replace(manifest.header, roots={"drawn": "s3://bucket/prefix"})
    Manifest(header, manifest.frames).write(tmp_path / "m")
    with pytest.raises(framesift.BadFile, match="stage the dataset"):
        open_frames(tmp_path / "m")


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "I;16", "1"])
def test_other_pngs_are_read_as_the_scan_reads_them(mode: str, tmp_path: Path) -> None:
    """Proves both decoders agree on grey, palettes, alpha and 16 bits."""
    rgb = Image.fromarray(np.random.default_rng(1).integers(0, 256, (7, 9, 3), np.uint8))
    if mode == "I;16":
        wide = np.random.default_rng(2).integers(0, 65536, (7, 9)).astype(np.uint16)
        Image.fromarray(wide).save(tmp_path / "a.png")
    else:
        rgb.convert(mode).save(tmp_path / "a.png")
    (tmp_path / "list.txt").write_text("a.png\n")
    write_class_file(tmp_path, PALETTE)
    image, ids = open_frames(tmp_path / "list.txt")[0]
    expected = label_image.decode_image((tmp_path / "a.png").read_bytes())
    assert np.array_equal(image, expected)
    assert ids is None


def test_what_it_knows_of_the_rest_is_so() -> None:
    """Proves class ids of class lists and names in a cache, which the rest of Framesift decides."""
    names = ["Car 1", " Car 2", "Zone 10", "Zone 1 0", "Zone 3", "Sky"]
    class_list = {f"#0000{n:02X}": name for n, name in enumerate(names)}
    known = ClassList.from_colours(class_list)
    classes = Classes.of_manifest({"classes": known.classes, "class_list": known.to_json()}, {})
    assert (classes.names, classes.keys) == (known.classes, known.class_of_key)
    for key in ("a/b/c.png", "c.png", "a.b/c"):
        assert versioned_key(key, 7, "etag:x") == entry_name.versioned_key(key, 7, "etag:x")


NUMPY_ALONE = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first not in sys.stdlib_module_names and first not in ("numpy", "framesift"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refused())
import framesift
from framesift.data import open_frames

frames = open_frames(sys.argv[1])
print(len(frames), frames[0][0].shape, framesift.BadFile.__name__, "Client" in dir(framesift))
try:
    framesift.connect
except ModuleNotFoundError as error:
    print(error)
"""


def test_it_needs_numpy_alone(tmp_path: Path) -> None:
    """Proves that a node with no other package opens prepared arrays; a client says what it needs.

    Neither httpx nor pyarrow, Pillow, pandas nor any other part of Framesift can be imported there.
    """
    dated(tmp_path, tmp_path / ".manifests" / "m")
    form = prepare(tmp_path / ".manifests" / "m", Size(16, 20), processes=1).folder
    done = subprocess.run(
        [sys.executable, "-c", NUMPY_ALONE, str(form)], capture_output=True, text=True, check=False
    )
    assert (done.stdout.splitlines(), done.returncode) == (
        ["9 (16, 20, 3) BadFile True", "No module named 'httpx'"],
        0,
    ), done.stderr


def test_every_name_is_there() -> None:
    """Proves that what is imported late is the module's own; another name is none."""
    assert all(getattr(framesift, name).__name__ == name for name in framesift.__all__)
    assert not hasattr(framesift, "Connect")
