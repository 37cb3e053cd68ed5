"""Batches of a training: in order, mirrored as drawn, errors as they are, and a clean end."""

from itertools import islice
from pathlib import Path

import pytest

from catalog.errors import BadFile
from ingest.labels.class_list import ClassList
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.example_order import examples
from pipeline.runs.size import Size
from tests.training.commands import run
from tests.training.drawn_frames import CLASS_LIST, draw_frames, write_manifest
from training.input.augmentation import is_mirrored
from training.input.batches import Batches
from training.input.frame_reader import FrameReader

PALETTE = DatasetClasses.of(ClassList.from_colours(CLASS_LIST))

_ALIVE = """
import sys
from pathlib import Path
from pipeline.example_order import examples
from pipeline.manifest import Manifest
from pipeline.runs.size import Size
from ingest.labels.class_list import ClassList
from training.input.batches import Batches
from training.input.frame_reader import FrameReader
frames = Manifest.read(Path(sys.argv[1]))
palette = frames.header.dataset_classes
reader = FrameReader(frames, palette, Size(64, 96))
alive = Batches(reader, examples(len(frames), 0, 2), batch_size=2, seed=0, threads=4)
print(next(alive)[0].shape)
"""


def batches(root: Path, threads: int = 3) -> tuple[Batches, FrameReader]:
    """Of seven drawn frames, two each."""
    frames = write_manifest(root / "manifest", root, {"train": draw_frames(root, 7)})
    reader = FrameReader(frames, PALETTE, Size(32, 48))
    order = examples(7, 1, 2)
    return Batches(reader, order, batch_size=2, seed=1, threads=threads), reader


def test_batches_follow_the_order(tmp_path: Path) -> None:
    """Proves frames come in the order of the job, image and label mirrored together."""
    made_batches, reader = batches(tmp_path)
    mirrors = set()
    read = [
        pair
        for images, labels in islice(made_batches, 9)
        for pair in zip(images, labels, strict=True)
    ]
    for example, (image, label) in zip(examples(7, 1, 2), read, strict=False):
        mirrors.add(is_mirrored(example, 1))
        step = -1 if is_mirrored(example, 1) else 1
        wanted_image, wanted_label = reader.small(example.row)
        assert image.tolist() == wanted_image[:, ::step].tolist()
        assert label.tolist() == wanted_label[:, ::step].tolist()
    assert mirrors == {True, False}
    made_batches.close()


def test_a_frame_that_cannot_be_read_is_its_own_error(tmp_path: Path) -> None:
    """Proves the batch that needs it raises what decoding it raises, and no batch before."""
    files = draw_frames(tmp_path, 7)
    row = next(islice(examples(7, 1, 2), 4, None)).row
    frames = write_manifest(tmp_path / "manifest", tmp_path, {"train": files})
    (tmp_path / files[row].image).write_bytes(b"\x89PNG\r\n\x1a\n cut")
    reader = FrameReader(frames, PALETTE, Size(32, 48))
    made_batches = Batches(reader, examples(7, 1, 2), batch_size=2, seed=1, threads=1)
    next(made_batches)
    next(made_batches)
    with pytest.raises(BadFile, match=rf"{files[row].image}: PNG is truncated"):
        next(made_batches)
    made_batches.close()


@pytest.mark.wide
def test_a_process_ends_with_an_iterator_alive(tmp_path: Path) -> None:
    """Proves that frames being read ahead keep no process, nor end it by a signal."""
    write_manifest(tmp_path / "manifest", tmp_path, {"train": draw_frames(tmp_path, 8)})
    ended = run("-c", _ALIVE, tmp_path / "manifest", timeout_s=300)
    assert (ended.status, ended.out, ended.err) == (0, "(2, 64, 96, 3)\n", "")
