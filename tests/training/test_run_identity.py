"""What a run is told apart by, and what it goes on from or begins with; no TensorFlow here."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from catalog.errors import BadFile, InvalidInput, NotFound
from ingest.labels.class_list import ClassList
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.runs.checkpoint_steps import CHECKPOINT_FILE
from tests.training.drawn_frames import CLASSES, draw_frames, write_manifest
from training.input.trained_frames import (
    FILE,
    SCENES_FILE,
    frames_trained_on,
    scenes_trained_on,
    write_trained_frames,
    write_trained_scenes,
)
from training.run.checkpoint import Checkpoint
from training.run.parent import read_parent
from training.run.run_identity import RunIdentity

LABELS = DatasetClasses.of(CLASSES)

IDENTITY = RunIdentity(
    dataset_id="drawn-1",
    split="validation",
    height_px=152,
    width_px=240,
    network="small_unet",
    seed=1,
    batch_size=4,
    workers=2,
    learning_rate=2e-3,
    max_steps=300,
    schedule="Adam",
)
OTHERS = {
    "dataset_id": ("drawn-2", "dataset id drawn-1 there, drawn-2 here"),
    "split": ("train", "--split validation there, train here"),
    "height_px": (304, "--height 152 there, 304 here"),
    "width_px": (480, "--width 240 there, 480 here"),
    "network": ("large_unet", "--model small_unet there, large_unet here"),
    "seed": (77, "--seed 1 there, 77 here"),
    "batch_size": (8, "--batch_size 4 there, 8 here"),
    "workers": (1, "workers 2 there, 1 here"),
    "learning_rate": (0.01, "--learning_rate 0.002 there, 0.01 here"),
    "max_steps": (600, "--max_steps 300 there, 600 here"),
    "schedule": ("SGD", "schedule Adam there, SGD here"),
    "parent_sha256": ("b" * 64, "--continue_from none there, bbbbbbbbbbbb... here"),
    "class_map": ("two (c0ffee)", "--classes none there, two (c0ffee) here"),
    "augment": ("crop", "--augment mirror there, crop here"),
    "precision": ("mixed_float16", "--precision float32 there, mixed_float16 here"),
    "backbone_sha256": ("c" * 64, "--backbone_weights none there, cccccccccccc... here"),
}


def checkpoint() -> Checkpoint:
    """A checkpoint of the run."""
    return Checkpoint(40, LABELS, IDENTITY, [np.zeros(2, np.float32)], [], 320)


def test_every_part_that_differs_is_named() -> None:
    """Proves no part of the identity can change without being refused by its flag."""
    assert OTHERS.keys() == {field.name for field in fields(RunIdentity)}
    checkpoint().check_same_run(LABELS, IDENTITY, Path("model"))
    for field, (value, told) in OTHERS.items():
        other = RunIdentity.from_json(IDENTITY.as_json() | {field: value})
        with pytest.raises(InvalidInput) as refused:
            checkpoint().check_same_run(LABELS, other, Path("model"))
        assert f"step 40 of another run: {told}; give the flags of that run" in str(refused.value)
        assert "--continue_from model to begin with its weights" in str(refused.value)


def test_all_differences_are_named_at_once() -> None:
    """Proves that a run with split, seed and learning rate of another hears all of them."""
    other = replace(IDENTITY, split="train", seed=77, learning_rate=0.01)
    with pytest.raises(InvalidInput, match=r"--split .*; --seed .*; --learning_rate .*; give"):
        checkpoint().check_same_run(LABELS, other, Path("model"))


def test_another_class_list_is_refused() -> None:
    """Proves names, colours and their order belong to the run."""
    others = ClassList.from_colours({"#000000": "Void"}), replace(CLASSES, keys=CLASSES.keys[::-1])
    for other in others:
        with pytest.raises(InvalidInput, match="class list of 5 keys and 4 classes there"):
            checkpoint().check_same_run(DatasetClasses.of(other), IDENTITY, Path("model"))


def test_an_unfinished_training_is_a_parent(tmp_path: Path) -> None:
    """Proves its checkpoint's weights are given, as long as the file is the one that was read."""
    with pytest.raises(NotFound, match="expected the folder of a model or of a checkpoint"):
        read_parent(tmp_path)
    checkpoint().write(tmp_path)
    parent = read_parent(tmp_path)
    assert (parent.step, parent.dataset_id, parent.split) == (40, "drawn-1", "validation")
    parent.check_classes(("Sky", "RD normal street", "Car", "Bicycle"), "drawn")
    with pytest.raises(InvalidInput, match=r"knows 4 classes, dataset other has 1;.*Bicycle"):
        parent.check_classes(("Sky",), "other")
    assert [array.tolist() for array in parent.weights("")] == [[0, 0]]
    replace(checkpoint(), step=50).write(tmp_path)
    with pytest.raises(BadFile, match="changed while this run began"):
        parent.weights("")
    assert (tmp_path / CHECKPOINT_FILE).exists()


def test_frames_trained_on(tmp_path: Path) -> None:
    """Proves a model lists its and its parents' frames; without a list its own split is known.

    A model whose parent has no list has none: of its own frames alone it would seem whole.
    """
    files = draw_frames(tmp_path, 3)
    manifest = write_manifest(tmp_path / "m", tmp_path, {"train": files[:2], "validation": files})
    train, validation = manifest.split("train"), manifest.split("validation")
    old = {"id": "drawn-1", "split": "train"}
    own = frames_trained_on(tmp_path / "old", old, train, "train")
    assert own == frozenset({"train-000", "train-001"})
    assert frames_trained_on(tmp_path / "old", old, validation, "validation") is None
    write_trained_frames(tmp_path / "first", ["validation-001", "elsewhere"], None)
    write_trained_frames(tmp_path / "second", ["train-000"], tmp_path / "first")
    for folder, name, split, trained in (
        ("first", "train", train, set()),
        ("first", "validation", validation, {"validation-001"}),
        ("second", "train", train, {"train-000"}),
        ("second", "validation", validation, {"validation-001"}),
    ):
        assert frames_trained_on(tmp_path / folder, old, split, name) == frozenset(trained)
    assert write_trained_frames(tmp_path / "third", ["train-000"], tmp_path / "first")
    assert not write_trained_frames(tmp_path / "third", ["train-000"], tmp_path / "old")
    assert not (tmp_path / "third" / FILE).exists()
    assert frames_trained_on(tmp_path / "third", {}, validation, "validation") is None
    write_trained_scenes(tmp_path / "first", ["b", "b"], None)
    write_trained_scenes(tmp_path / "second", ["a"], tmp_path / "first")
    assert scenes_trained_on(tmp_path / "second") == {"a", "b"}
    assert scenes_trained_on(tmp_path / "old") == set()
    for damage in ("[", '{"a": 1}', "[1]"):
        (tmp_path / "first" / SCENES_FILE).write_text(damage)
        with pytest.raises(BadFile, match=r"trained_scenes\.json"):
            scenes_trained_on(tmp_path / "first")
    (tmp_path / "second" / FILE).write_bytes(b"PAR1")
    with pytest.raises(BadFile, match=r"trained_frames\.parquet: is damaged"):
        frames_trained_on(tmp_path / "second", old, train, "train")
