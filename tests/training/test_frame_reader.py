"""Reading frames, and what is said of bad ones."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from catalog.errors import BadFile
from catalog.storage.file_version import version_of
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.label_image import decode_label
from pipeline.manifest import Manifest
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.prepared.decoded_frames import nearest
from pipeline.runs.size import Size
from tests.training.drawn_frames import CLASS_LIST, draw_frames, write_manifest
from training.input.class_weights import WEIGHT_RANGE, catalogued_pixels, class_weights
from training.input.frame_reader import FrameReader

PALETTE = DatasetClasses.of(ClassList.from_colours(CLASS_LIST))


def reader(root: Path, cache_bytes: int = 1 << 20, size: tuple[int, int] = (32, 48)) -> FrameReader:
    """A reader of three drawn frames below ``root``."""
    files = draw_frames(root, 3, unknown=True)
    manifest = write_manifest(root / "manifest", root, {"train": files})
    return FrameReader(manifest, PALETTE, Size(*size), cache_bytes=cache_bytes)


def test_image_is_averaged_and_label_nearest(tmp_path: Path) -> None:
    """Proves half size means 2x2 averages for the image, and class ids stay class ids."""
    image, label = reader(tmp_path).small(1)
    full = np.asarray(Image.open(tmp_path / "scene/camera/001.png"), np.float64)
    averaged = full.reshape(32, 2, 48, 2, 3).mean(axis=(1, 3))
    assert image.shape == (32, 48, 3)
    # Pillow rounds after each direction.
    assert np.abs(image - averaged).max() <= 1.01
    ids = decode_label((tmp_path / "scene/label/001.png").read_bytes(), PALETTE.lists[0])
    assert label.tolist() == ids[1::2, 1::2].tolist()
    assert set(np.unique(label)) == {0, 1, 2, UNKNOWN_CLASS}


@pytest.mark.parametrize(
    ("size_px", "wanted_px", "taken"),
    [(8, 4, [1, 3, 5, 7]), (9, 3, [1, 4, 7]), (7, 3, [1, 3, 5]), (3, 6, [0, 0, 1, 1, 2, 2])],
)
def test_nearest_takes_the_middle_both_ways(size_px: int, wanted_px: int, taken: list[int]) -> None:
    """Proves rows and columns are sampled alike, from the middle.

    So an image's areas and its label's pixels stay over each other.
    """
    label = np.arange(size_px**2, dtype=np.uint8).reshape(size_px, size_px)
    assert nearest(label, Size(wanted_px, wanted_px)).tolist() == label[taken][:, taken].tolist()


def test_same_size_leaves_a_label_alone() -> None:
    """Proves nearest takes each pixel itself when nothing has to change."""
    label = np.arange(35, dtype=np.uint8).reshape(5, 7)
    assert nearest(label, Size(5, 7)).tolist() == label.tolist()
    assert nearest(label, Size(10, 14))[::2, ::2].tolist() == label.tolist()


def test_each_png_is_decoded_once_within_the_budget(tmp_path: Path) -> None:
    """Proves kept frames need no file any more, and frames beyond the budget do."""
    one_frame_bytes = 32 * 48 * 4
    frames = reader(tmp_path, cache_bytes=one_frame_bytes)
    first = frames.small(0)
    frames.small(1)
    for number in (0, 1):
        (tmp_path / f"scene/camera/{number:03d}.png").unlink()
    assert frames.small(0)[0].tolist() == first[0].tolist()
    with pytest.raises(BadFile, match=r"001\.png.*put the file back"):
        frames.small(1)


def test_label_of_another_size_is_refused(tmp_path: Path) -> None:
    """Proves the message names the label and both sizes."""
    frames = reader(tmp_path)
    Image.new("RGB", (10, 20)).save(tmp_path / "scene/label/002.png")
    with pytest.raises(BadFile, match=r"label/002\.png: label has 10x20 .* 96x64"):
        frames.frame(2)


@pytest.mark.parametrize("kind", ["camera", "label"])
def test_damaged_png_is_named(tmp_path: Path, kind: str) -> None:
    """Proves a truncated image or label is refused by name."""
    frames = reader(tmp_path)
    path = tmp_path / f"scene/{kind}/000.png"
    path.write_bytes(path.read_bytes()[:90])
    with pytest.raises(BadFile, match=rf"{kind}/000\.png: .*truncated"):
        frames.frame(0)


def test_a_file_that_changed_after_the_dataset_was_made_is_refused(tmp_path: Path) -> None:
    """Proves that another label of as many bytes is not read for the one that was catalogued."""
    files = draw_frames(tmp_path, 3)
    label = tmp_path / "scene/label/001.png"
    manifest = write_manifest(tmp_path / "manifest", tmp_path, {"train": files})
    rows = manifest.frames.to_pylist()
    for row in rows:
        row["label_version"] = version_of((tmp_path / row["label"]).stat())
    versioned = Manifest(manifest.header, pa.Table.from_pylist(rows, FRAMES_SCHEMA))
    frames = FrameReader(versioned, PALETTE, Size(32, 48))
    frames.frame(1)
    os.utime(label, ns=(0, label.stat().st_mtime_ns + 1_000_000_000))
    with pytest.raises(BadFile, match=r"label/001\.png: has changed since the dataset was made"):
        frames.frame(1)
    frames.frame(0)


def test_class_weights_come_from_the_manifest(tmp_path: Path) -> None:
    """Proves weights fall with the root of a class's share, and average 1 over the pixels.

    And that they stay within limits, and absent classes get 1.
    """
    files = draw_frames(tmp_path, 3)
    manifest = write_manifest(tmp_path / "manifest", tmp_path, {"train": files})
    pixels = catalogued_pixels(manifest)
    assert pixels.sum() == 3 * 64 * 96
    weights = class_weights(pixels)
    order = np.argsort(pixels[:3])
    assert (np.diff(weights[:3][order]) < 0).all()
    assert weights[3] == 1
    half, eighth = class_weights(np.array([4, 1, 3]))[:2]
    assert eighth / half == pytest.approx(2)
    even = np.array([8, 4, 2, 2])
    assert (class_weights(even) * even).sum() / even.sum() == pytest.approx(1)
    extreme = class_weights(np.array([10**9, 1, 0]))
    assert WEIGHT_RANGE[0] <= extreme.min() <= extreme.max() <= WEIGHT_RANGE[1]
    assert class_weights(np.zeros(2, np.int64)).tolist() == [1, 1]
