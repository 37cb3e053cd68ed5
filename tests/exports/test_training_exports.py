"""Datasets as other trainers read them: images as they are, masks of class ids."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
import yaml  # type: ignore[import-untyped,unused-ignore]
from PIL import Image
from pycocotools.coco import COCO

from catalog.errors import InvalidInput
from pipeline.exports.coco_masks import class_regions
from pipeline.exports.export import ABOUT, TrainingExport
from pipeline.exports.formats import TRAINING_FORMATS, TrainingFormat
from pipeline.manifest import Manifest
from pipeline.runs.class_map import ClassMap
from tests.drawn_jpegs import jpeg_of
from tests.pipeline.homes import REPOSITORY
from tests.pipeline.test_prepared import staged
from tests.training.drawn_frames import FrameFiles, draw_frames

COLOURS = {(0x87, 0xCE, 0xFF): 0, (0xFF, 0, 0xFF): 1, (0xFF, 0, 0): 2, (0xC8, 0, 0): 2}
"""Class id of each colour that is drawn; Sky, RD normal street, Car, Bicycle."""
NAMES = ["Sky", "RD normal street", "Car", "Bicycle"]
TWO = ClassMap.from_json(
    {"name": "two", "classes": {"Ground": ["RD normal street"], "Things": ["Car", "Bicycle"]},
     "ignored": ["Sky"]}
)  # fmt: skip

UInt8 = npt.NDArray[np.uint8]


def true_ids(path: Path) -> UInt8:
    """A label's class ids, pixel by pixel; 255 of a colour in no list."""
    pixels = np.asarray(Image.open(path).convert("RGB"))
    rows = [[COLOURS.get((int(r), int(g), int(b)), 255) for r, g, b in row] for row in pixels]
    return np.array(rows, np.uint8)


class Drawn:
    """A dataset of seven drawn frames: a JPEG, others PNGs, two splits."""

    def __init__(self, root: Path) -> None:
        """Draw it."""
        self.root = root
        self.files = draw_frames(root, 7, unknown=True)
        jpeg = self.files[2].image.replace(".png", ".jpg")
        with Image.open(root / self.files[2].image) as picture:
            (root / jpeg).write_bytes(jpeg_of(picture))
        self.files[2] = FrameFiles("scene", jpeg, self.files[2].label)
        self.splits = {"train": self.files[:5], "validation": self.files[5:]}
        self.folder = staged(root, self.splits)

    @property
    def manifest(self) -> Manifest:
        """As it is on disk."""
        return Manifest.read(self.folder)

    def expected(self, split: str) -> list[tuple[bytes, UInt8]]:
        """Image file and class ids of each frame."""
        return [
            ((self.root / each.image).read_bytes(), true_ids(self.root / each.label))
            for each in self.splits[split]
        ]


@pytest.fixture
def drawn(tmp_path: Path) -> Drawn:
    """The dataset."""
    return Drawn(tmp_path / "drawn")


def pairs_of_files(out: Path, images: str, masks: str) -> list[tuple[str, bytes, UInt8]]:
    """Stem, image and mask of each frame of two folders, in the order of their names."""
    read = []
    for path in sorted((out / masks).iterdir()):
        (image,) = (out / images).glob(f"{path.stem}.*")
        with Image.open(path) as mask:
            assert mask.mode == "L"
            read.append((path.stem, image.read_bytes(), np.asarray(mask)))
    return read


def same(read: list[tuple[bytes, UInt8]], expected: list[tuple[bytes, UInt8]]) -> bool:
    """True where images and masks are alike, in one order."""
    return len(read) == len(expected) and all(
        image == other and np.array_equal(ids, other_ids)
        for (image, ids), (other, other_ids) in zip(read, expected, strict=True)
    )


def test_mmseg(drawn: Drawn, tmp_path: Path) -> None:
    """Images and masks; a list and a dataset for each suffix of a split."""
    out = tmp_path / "out"
    done = TrainingExport("mmseg").write(drawn.manifest, out)
    assert (done.expected, done.written, done.unchanged, done.problems) == (7, 7, 0, [])
    for split in drawn.splits:
        read = pairs_of_files(out, f"img_dir/{split}", f"ann_dir/{split}")
        assert same([(image, ids) for _, image, ids in read], drawn.expected(split))
    config: dict[str, Any] = {}
    exec((out / "dataset.py").read_text(), {}, config)
    assert config["metainfo"]["classes"] == tuple(NAMES)
    assert config["metainfo"]["palette"][0] == [0x87, 0xCE, 0xFF]
    assert config["num_classes"] == 4
    joined = config["train_dataset"]
    assert joined["type"] == "ConcatDataset"
    assert [each["img_suffix"] for each in joined["datasets"]] == [".png", ".jpg"]
    listed = [
        f"{name}{each['img_suffix']}"
        for each in [*joined["datasets"], config["validation_dataset"]]
        for name in (out / each["ann_file"]).read_text().split()
        if (out / each["data_prefix"]["img_path"] / f"{name}{each['img_suffix']}").is_file()
    ]
    assert len(listed) == 7


def test_ultralytics(drawn: Drawn, tmp_path: Path) -> None:
    """A mask has its image's path with masks for images; validation is val."""
    out = tmp_path / "out"
    TrainingExport("ultralytics").write(drawn.manifest, out)
    data = yaml.safe_load((out / "data.yaml").read_text())
    assert data == {
        "train": "images/train", "val": "images/val", "masks_dir": "masks", "nc": 4,
        "names": dict(enumerate(NAMES)),
    }  # fmt: skip
    for split, key in (("train", "train"), ("validation", "val")):
        read = pairs_of_files(out, f"images/{key}", f"masks/{key}")
        assert same([(image, ids) for _, image, ids in read], drawn.expected(split))
    only = drawn.manifest.split("train")
    with pytest.raises(InvalidInput, match="no frames of the split validation"):
        TrainingExport("ultralytics").write(only, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_coco(drawn: Drawn, tmp_path: Path) -> None:
    """Pycocotools paints the masks again; areas and boxes are theirs."""
    out = tmp_path / "out"
    TrainingExport("coco").write(drawn.manifest, out)
    for split in drawn.splits:
        coco = COCO(str(out / "annotations" / f"{split}.json"))
        assert [each["name"] for each in coco.loadCats(coco.getCatIds())] == NAMES
        read = []
        for image in coco.loadImgs(sorted(coco.imgs)):
            ids = np.full((image["height"], image["width"]), 255, np.uint8)
            for annotation in coco.loadAnns(coco.getAnnIds(imgIds=image["id"])):
                mask = coco.annToMask(annotation) == 1
                ids[mask] = annotation["category_id"] - 1
                rows, columns = np.nonzero(mask)
                box = [columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1]
                assert annotation["bbox"] == [int(each) for each in box]
                assert annotation["area"] == int(mask.sum())
            read.append(((out / "images" / image["file_name"]).read_bytes(), ids))
        assert same(read, drawn.expected(split))


def samples(shard: Path) -> list[tuple[bytes, UInt8, dict[str, Any]]]:
    """Image, class ids and facts of each sample of a WebDataset shard."""
    with tarfile.open(shard) as archive:
        members = [(each.name, archive.extractfile(each).read()) for each in archive]  # type: ignore[union-attr]
    assert len({name.partition(".")[0] for name, _ in members}) == len(members) // 3
    return [
        (image, np.asarray(Image.open(io.BytesIO(mask))), json.loads(about))
        for (_, image), (_, mask), (_, about) in zip(
            *(members[n::3] for n in range(3)), strict=True
        )
    ]


def rows(shard: Path) -> list[tuple[bytes, UInt8, dict[str, Any]]]:
    """The same of a Parquet shard."""
    return [
        (row["image"]["bytes"], np.asarray(Image.open(io.BytesIO(row["label"]["bytes"]))), row)
        for row in pq.read_table(shard).to_pylist()
    ]


@pytest.mark.parametrize(("form", "read"), [("webdataset", samples), ("hf", rows)])
def test_shards(form: TrainingFormat, read: Any, drawn: Drawn, tmp_path: Path) -> None:
    """A size of shards; every frame once, in order; the same bytes at each export."""
    manifest = drawn.manifest
    largest = int(manifest.frame_bytes().max())
    outs = [tmp_path / "one", tmp_path / "other"]
    for out in outs:
        TrainingExport(form, shard_bytes=2 * largest).write(manifest, out)
    shards = sorted(each.relative_to(outs[0]) for each in outs[0].rglob("*-*"))
    assert [(outs[0] / each).read_bytes() for each in shards] == [
        (outs[1] / each).read_bytes() for each in shards
    ]
    for split, expected in (("train", 5), ("validation", 2)):
        of_split = [each for each in shards if each.name.startswith(split)]
        assert len(of_split) < expected
        frames = [frame for shard in of_split for frame in read(outs[0] / shard)]
        assert same([(image, ids) for image, ids, _ in frames], drawn.expected(split))
        fkeys = manifest.split(split).frames["fkey"].to_pylist()
        assert [about["fkey"] for *_, about in frames] == fkeys
    alone = tmp_path / "alone"
    TrainingExport(form, shard_bytes=1).write(manifest, alone)  # no frame is cut
    assert len([*alone.rglob("*-*")]) == 7
    with pytest.raises(InvalidInput, match="format coco has no shards"):
        TrainingExport("coco", shard_bytes=1).write(manifest, tmp_path / "none")


@pytest.mark.parametrize("form", TRAINING_FORMATS)
def test_an_export_goes_on(form: TrainingFormat, drawn: Drawn, tmp_path: Path) -> None:
    """What is missing is written and nothing else; another export is refused."""
    out, manifest = tmp_path / "out", drawn.manifest
    export = TrainingExport(form, TWO)
    export.write(manifest, out)
    whole = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    old = max(path for path in whole if path.suffix in (".png", ".jpg", ".tar", ".parquet"))
    times = {path: path.stat().st_mtime_ns for path in whole}
    done = export.write(manifest, out)
    assert (done.written, done.unchanged) == (0, 7)
    old.unlink()
    done = export.write(manifest, out)
    assert 0 < done.written < 7
    assert {path: path.read_bytes() for path in whole} == whole
    kept = [path for path in whole if path.suffix in (".png", ".jpg", ".tar", ".parquet")]
    changed = {path.stem for path in kept if path.stat().st_mtime_ns != times[path]}
    assert changed == {old.stem}  # of a frame both files
    other: TrainingFormat = "hf" if form != "hf" else "coco"
    for another in (TrainingExport(form), TrainingExport(other, TWO)):
        with pytest.raises(InvalidInput, match="holds an export of drawn@1 with "):
            another.write(manifest, out)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    with pytest.raises(InvalidInput, match="holds something else"):
        export.write(manifest, tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_classes_are_merged(drawn: Drawn, tmp_path: Path) -> None:
    """By the map: ignored classes and pixels of no class are 255."""
    out = tmp_path / "out"
    TrainingExport("mmseg", TWO).write(drawn.manifest, out)
    table = np.full(256, 255, np.uint8)
    table[[1, 2, 3]] = 0, 1, 1
    read = pairs_of_files(out, "img_dir/train", "ann_dir/train")
    for (_, _, ids), (_, truth) in zip(read, drawn.expected("train"), strict=True):
        assert np.array_equal(ids, table[truth])
    assert "'Ground', 'Things'" in (out / "dataset.py").read_text()


@pytest.mark.parametrize("form", TRAINING_FORMATS)
def test_frames_that_cannot_be_read(form: TrainingFormat, drawn: Drawn, tmp_path: Path) -> None:
    """They are listed and left out; all others are there, and they too once they are mended."""
    manifest = drawn.manifest
    label = drawn.root / drawn.files[0].label
    label.rename(tmp_path / "label.png")
    cut = drawn.root / drawn.files[6].image
    status, whole = cut.stat(), cut.read_bytes()
    cut.write_bytes(cut.read_bytes()[: status.st_size // 2] + bytes(status.st_size // 2 + 1))
    os.truncate(cut, status.st_size)
    os.utime(cut, ns=(status.st_atime_ns, status.st_mtime_ns))
    done = TrainingExport(form).write(manifest, tmp_path / "out")
    assert (done.written, [problem.key for problem in done.problems]) == (
        5, [str(drawn.root / drawn.files[0].label), str(cut)],
    )  # fmt: skip
    (tmp_path / "label.png").rename(label)
    cut.write_bytes(whole)
    os.utime(cut, ns=(status.st_atime_ns, status.st_mtime_ns))
    for written in (2, 7), (0,):
        done = TrainingExport(form).write(manifest, tmp_path / "out")
        assert (done.written in written, done.problems) == (True, [])
        assert done.written + done.unchanged == 7
    exports = [tmp_path / "out", tmp_path / "fresh"]
    TrainingExport(form).write(manifest, exports[1])
    one, fresh = (
        {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        for out in exports
    )
    one.pop(Path("incomplete.json"), None)
    assert one == fresh


def test_what_is_refused(drawn: Drawn, tmp_path: Path) -> None:
    """A frame without label, a map that lacks a class: before anything is written."""
    lacking = ClassMap.from_json({"name": "less", "classes": {"Sky": ["Sky"]}})
    with pytest.raises(InvalidInput, match="which it neither merges nor ignores"):
        TrainingExport("hf", lacking).write(drawn.manifest, tmp_path / "out")
    folder = staged(drawn.root, drawn.splits, unlabelled=3)
    with pytest.raises(InvalidInput, match="1 of the 7 frames"):
        TrainingExport("hf").write(Manifest.read(folder), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_names_are_letters(tmp_path: Path) -> None:
    """Paths that differ in odd characters alone are numbered; long ones are cut."""
    root = tmp_path / "drawn"
    files = []
    names = ["a b.png", "a_b.png", "a.b.png", "-x/" + "y" * 220 + ".png"]
    for name, frame in zip(names, draw_frames(root, 4), strict=True):
        (root / name).parent.mkdir(exist_ok=True)
        (root / frame.image).rename(root / name)
        files.append(FrameFiles("scene", name, frame.label))
    manifest = Manifest.read(staged(root, {"train": files}))
    TrainingExport("mmseg").write(manifest, tmp_path / "out")
    listed = (tmp_path / "out/splits/train.png.txt").read_text().split()
    assert listed[:3] == ["drawn_a_b", "drawn_a_b-2", "drawn_a_b-3"]
    assert len(listed[3]) <= 220
    assert len({*listed}) == 4


def test_regions_are_pycocotools() -> None:
    """Texts, areas and boxes of random masks, some of one class alone, are its own."""
    from pycocotools import mask

    random = np.random.default_rng(0)
    for number in range(60):
        ids = random.integers(0, 3, random.integers(1, 30, 2)).astype(np.uint8)
        if number % 2:
            ids = np.repeat(np.repeat(ids, 1 + number, 0), 40, 1)
        ids[ids == 2] = 255
        regions = class_regions(ids)
        assert {each.class_id for each in regions} == {*np.unique(ids).tolist()} - {255}
        for each in regions:
            encoded = mask.encode(np.asfortranarray((ids == each.class_id).astype(np.uint8)))
            assert encoded["counts"].decode() == each.counts
            assert mask.area(encoded) == each.area
            assert tuple(mask.toBbox(encoded)) == each.bbox


WRITE = """
import sys
from pathlib import Path
from pipeline.exports.export import TrainingExport
from pipeline.manifest import Manifest
TrainingExport(sys.argv[1]).write(Manifest.read(Path(sys.argv[2])), Path(sys.argv[3]))
"""


@pytest.mark.wide
@pytest.mark.parametrize("form", ["mmseg", "webdataset"])
def test_an_export_that_is_killed(form: TrainingFormat, tmp_path: Path) -> None:
    """Begun again it ends as one that was not killed; no half file stays."""
    root = tmp_path / "drawn"
    files = draw_frames(root, 100)
    folder = staged(root, {"train": files[:70], "validation": files[70:]})
    out, whole = tmp_path / "out", tmp_path / "whole"
    command = [sys.executable, "-c", WRITE, form, str(folder)]
    with subprocess.Popen([*command, str(out)], cwd=REPOSITORY) as process:
        deadline = time.monotonic() + 60
        while not [*out.rglob("*.png"), *out.rglob("*.tar*")] and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    done = TrainingExport(form).write(Manifest.read(folder), out)
    assert done.written > 0  # it was killed before its end
    assert done.written + done.unchanged == 100
    TrainingExport(form).write(Manifest.read(folder), whole)
    written = {
        path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()
    }
    assert written == {
        path.relative_to(whole): path.read_bytes() for path in whole.rglob("*") if path.is_file()
    }
    assert Path(ABOUT) in written
