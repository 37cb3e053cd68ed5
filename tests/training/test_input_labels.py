"""Labels as a training reads them are the classes that ingest counted, pixel by pixel."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.label_image import decode_label
from ingest.labels.pixel_count import count_pixels
from pipeline.example_order import examples
from pipeline.prepared.decoded_frames import UInt8
from pipeline.runs.size import Size
from tests.training.drawn_frames import found_frames, read_class_list, write_manifest
from training.input.augmentation import is_mirrored
from training.input.batches import Batches
from training.input.frame_reader import FrameReader

SAMPLE = Path(__file__).parents[2] / "sample_data" / "a2d2" / "camera_lidar_semantic"
SEED = 3


@pytest.mark.wide
def test_of_sample_frames(tmp_path: Path) -> None:
    """Proves it of frames in the repository, which have another size."""
    check_labels(SAMPLE, 6, tmp_path)


def test_of_real_frames(a2d2_root: Path, tmp_path: Path) -> None:
    """Proves it of A2D2's own, of both of its encoders."""
    root = a2d2_root / "camera_lidar_semantic"
    check_labels(root, 4, tmp_path)
    counts = json.loads((a2d2_root / "counts.json").read_text())["labels"]
    assert len(counts) == len(found_frames(root)) == 4


def check_labels(root: Path, frames: int, folder: Path) -> None:
    """Compare the labels of a run's batches, at their own size, with what ingest makes of them.

    The expected class of a pixel is looked up in the class list by its colour, which Pillow
    decodes; a batch's label is mirrored back where the run mirrors.
    """
    files = found_frames(root)[:frames]
    class_list = read_class_list(root / "class_list.json")
    palette = ClassList.from_colours(class_list)
    manifest = write_manifest(folder / "manifest", root, {"train": files}, class_list)
    with Image.open(root / files[0].label) as first:
        size = Size(first.height, first.width)
    reader = FrameReader(manifest, DatasetClasses.of(palette), size)
    order = [*islice(examples(frames, SEED, 1), frames)]
    batches = Batches(reader, iter(order), batch_size=1, seed=SEED, threads=2)
    assert {example.row for example in order} == {*range(frames)}
    mirrored = [is_mirrored(example, SEED) for example in order]
    assert any(mirrored)
    assert not all(mirrored)
    for example, back in zip(order, mirrored, strict=True):
        _, (label,) = next(batches)
        label = label[:, ::-1] if back else label
        png = (root / files[example.row].label).read_bytes()
        np.testing.assert_array_equal(label, expected_ids(root / files[example.row].label, palette))
        np.testing.assert_array_equal(label, decode_label(png, palette))
        counted = count_pixels(png, palette)
        known = label[label != UNKNOWN_CLASS]
        assert np.bincount(known, minlength=len(palette)).tolist() == counted.counts.tolist()
        assert label.size - known.size == counted.unknown
    batches.close()


def expected_ids(label: Path, palette: ClassList) -> UInt8:
    """(H, W) uint8 [class id], by comparing with one colour of the class list after the other."""
    with Image.open(label) as image:
        rgb = np.asarray(image.convert("RGB"))
    ids = np.full(rgb.shape[:2], UNKNOWN_CLASS, np.uint8)
    packed = rgb.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    for colour, class_id in palette.class_of_key.items():
        ids[packed == colour] = class_id
    return ids
