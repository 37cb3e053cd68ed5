"""Frames and their order in PyTorch: run by test_torch.py in an environment that has it."""

import json
import os
import pickle
from itertools import chain, islice
from pathlib import Path

import albumentations
import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from framesift.data import Frames, open_frames
from framesift.data.frames import UInt8
from framesift.data.torch import FrameSampler, TorchFrames
from framesift.errors import BadFile
from pipeline.example_order import examples

TWO = {
    "name": "two",
    "classes": {"Ground": ["RD normal street"], "Things": ["Car", "Bicycle"]},
    "ignored": ["Sky"],
}


@pytest.fixture
def frames() -> Frames:
    """Seven frames of 96x64 pixels: sky, street and a car; some pixels are of no class."""
    return open_frames(os.environ["DRAWN_MANIFEST"])


def labelled(frames: Frames, index: int) -> tuple[UInt8, UInt8]:
    """A frame's image and class ids, as framesift.data has them."""
    image, ids = frames[index]
    assert ids is not None
    return image, ids


def test_frames_are_tensors(frames: Frames) -> None:
    """Images and masks as the files have them, in another process, too."""
    dataset = pickle.loads(pickle.dumps(TorchFrames(frames)))
    assert len(dataset) == 7
    assert dataset.class_names == ("Sky", "RD normal street", "Car", "Bicycle")
    for index in range(7):
        image, ids = labelled(frames, index)
        tensor, mask = dataset[index]
        assert (tensor.dtype, tuple(tensor.shape)) == (torch.uint8, (3, 64, 96))
        assert (mask.dtype, tuple(mask.shape)) == (torch.int64, (64, 96))
        assert np.array_equal(tensor.numpy().transpose(1, 2, 0), image)
        assert np.array_equal(mask.numpy(), ids)
    batch, masks = next(iter(DataLoader(dataset, batch_size=7, num_workers=2)))
    assert batch.shape == (7, 3, 64, 96)
    loss = torch.nn.functional.cross_entropy(torch.zeros(7, 4, 64, 96), masks, ignore_index=255)
    assert loss.item() == pytest.approx(np.log(4), rel=1e-5)


def test_classes_are_merged(frames: Frames, tmp_path: Path) -> None:
    """By an object or its file; ignored classes are 255; a class without a place is refused."""
    (tmp_path / "two.json").write_text(json.dumps(TWO))
    table = np.full(256, 255)
    table[[1, 2, 3]] = 0, 1, 1
    for classes in (TWO, str(tmp_path / "two.json")):
        dataset = TorchFrames(frames, classes=classes)
        assert dataset.class_names == ("Ground", "Things")
        assert np.array_equal(dataset[0][1].numpy(), table[labelled(frames, 0)[1]])
    with pytest.raises(BadFile, match="Sky"):
        TorchFrames(frames, classes={"name": "x", "classes": {"Car": ["Car"]}})
    with pytest.raises(BadFile, match="no-such-map"):
        TorchFrames(frames, classes="no-such-map")


def test_joint_transforms(frames: Frames) -> None:
    """As albumentations calls them, and as torchvision's v2 does: image and mask alike."""
    image, ids = labelled(frames, 0)
    flipped = TorchFrames(frames, albumentations.Compose([albumentations.HorizontalFlip(p=1.0)]))
    assert np.array_equal(flipped[0][0].numpy().transpose(1, 2, 0), image[:, ::-1])
    assert np.array_equal(flipped[0][1].numpy(), ids[:, ::-1])

    def upside_down(*pair: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(each.flip(-2) for each in pair)

    turned = TorchFrames(frames, upside_down)
    assert np.array_equal(turned[0][0].numpy().transpose(1, 2, 0), image[::-1])
    assert np.array_equal(turned[0][1].numpy(), ids[::-1])
    assert turned[0][1].dtype == torch.int64


@pytest.mark.parametrize(
    ("count", "ranks", "batch"), [(7, 1, 1), (7, 2, 2), (100, 3, 4), (3, 4, 2)]
)
def test_the_order_of_our_own_training(count: int, ranks: int, batch: int) -> None:
    """Three epochs, one after another, are the trainer's row of examples of each rank."""
    samplers = [FrameSampler(range(count), rank, ranks, 5, batch) for rank in range(ranks)]
    for rank, sampler in enumerate(samplers):
        lengths, read = [], []
        for epoch in range(3):
            sampler.set_epoch(epoch)
            lengths.append(len(sampler))
            read.append([*sampler])
            assert len(read[-1]) == lengths[-1]
        assert lengths == [-(-count // (ranks * batch)) * batch] * 3
        rows = examples(count, 5, batch, rank=rank, ranks=ranks)
        assert [*chain.from_iterable(read)] == [each.row for each in islice(rows, sum(lengths))]
        sampler.set_epoch(1)
        assert [*sampler] == read[1]


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_a_job_goes_on_with_other_ranks(ranks: int) -> None:
    """In mid-epoch, with three ranks before: every frame once until the epoch's end."""
    before = [FrameSampler(range(90), rank, 3, 1, 2) for rank in range(3)]
    read: list[int] = []
    for sampler in before:
        sampler.set_epoch(0)
        read += islice(sampler, 8)
    states = [sampler.state_dict() for sampler in before]
    assert states[0] == {"read": 24, "frames": 90, "seed": 1} == states[1] == states[2]
    assert before[0].state_dict(steps=3)["read"] == 18
    after = [FrameSampler(range(90), rank, ranks, 1, 3) for rank in range(ranks)]
    lengths = set()
    for sampler in after:
        sampler.load_state_dict(states[0])
        sampler.set_epoch(0)  # as loops do before each epoch
        lengths.add(len(sampler))
        read += sampler
    assert len(lengths) == 1
    assert sorted(read[:90] if ranks == 1 else {*read}) == [*range(90)]
    assert len(read) - 90 < 3 * ranks
    with pytest.raises(ValueError, match="state of seed 1: expected 2"):
        FrameSampler(range(90), seed=2).load_state_dict(states[0])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_data_loader(frames: Frames, workers: int) -> None:
    """That of torchdata goes on in mid-epoch by its own state, also where workers read ahead."""

    def loader() -> StatefulDataLoader:
        dataset = TorchFrames(frames)
        sampler = FrameSampler(dataset, seed=3, batch_size=2)
        return StatefulDataLoader(dataset, 2, sampler=sampler, num_workers=workers)

    def batches(of: StatefulDataLoader) -> list[bytes]:
        return [images.numpy().tobytes() for images, _ in of]

    whole = batches(loader())
    first = loader()
    reading = iter(first)
    begun = [next(reading)[0].numpy().tobytes() for _ in range(2)]
    state = first.state_dict()
    again = loader()
    again.load_state_dict(state)
    assert begun + batches(again) == whole
    assert len(whole) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((0, 0, 1), "no frames"), ((4, 2, 2), "rank 2 of 2"), ((4, 0, 1, 1, 0), "batch_size 0"),
     ((4, 0, 1, -1), "seed -1")],
)  # fmt: skip
def test_what_is_refused(arguments: tuple[int, ...], words: str) -> None:
    """Numbers that cannot be."""
    count, *rest = arguments
    with pytest.raises(ValueError, match=words):
        FrameSampler(range(count), *rest)


def test_a_frame_without_label(tmp_path: Path) -> None:
    """It is named, and what to do."""
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    (tmp_path / "list.txt").write_text(f"{tmp_path}/a.png\n")
    classes = {"classes": [{"id": 0, "name": "Sky", "colour": "#87ceff", "colours": ["#87ceff"]}]}
    (tmp_path / "classes.json").write_text(json.dumps(classes))
    with pytest.raises(BadFile, match="has no label"):
        TorchFrames(open_frames(tmp_path / "list.txt"))[0]


def test_a_staging_fetches_in_the_order_of_the_sampler() -> None:
    """A cache of half of the frames, processes that are forked and spawned, other ranks later."""
    frames = TorchFrames(open_frames(os.environ["STAGED_MANIFEST"]))
    source = open_frames(os.environ["SOURCE_MANIFEST"])
    count, epochs = len(frames), 2

    def check(sampler: FrameSampler, workers: int, start: str | None, rows: list[int]) -> None:
        loader = DataLoader(
            frames,
            batch_size=2,
            sampler=sampler,
            num_workers=workers,
            multiprocessing_context=start,
        )
        read = [image for images, _ in loader for image in images]
        assert len(read) == len(rows)
        for image, row in zip(read, rows, strict=True):
            expected = labelled(source, row)[0]
            assert np.array_equal(image.numpy().transpose(1, 2, 0), expected)

    for workers, start in ((0, None), (2, "fork"), (1, "spawn")):
        order = examples(count, 3, 2)
        for epoch in range(epochs if start == "fork" else 1):
            sampler = FrameSampler(frames, seed=3, batch_size=2)
            sampler.set_epoch(epoch)
            check(sampler, workers, start, [each.row for each in islice(order, count)])
    state = {"read": 10, "frames": count, "seed": 3}
    for rank in range(2):
        sampler = FrameSampler(frames, rank, 2, seed=3, batch_size=2)
        sampler.load_state_dict(state)
        rest = examples(count, 3, 2, rank=rank, ranks=2, begin=10)
        check(sampler, 2, "fork", [each.row for each in islice(rest, len(sampler))])
