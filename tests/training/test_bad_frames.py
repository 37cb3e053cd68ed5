"""Frames that cannot be read: skipped up to a limit, and listed."""

import json
from pathlib import Path

import pytest

from catalog.errors import BadFile
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.example_order import examples
from pipeline.runs.size import Size
from tests.training.commands import TINY, horovodrun, run_several, run_tensorflow
from tests.training.drawn_frames import CLASS_LIST, FrameFiles, draw_frames, write_manifest
from training.input.frame_reader import FrameReader
from training.input.skipped_frames import (
    SkippedFrames,
    read_skipped_frames,
    write_skipped_frames,
)
from training.run.checkpoint import Checkpoint

PALETTE = DatasetClasses.of(ClassList.from_colours(CLASS_LIST))


def damage(root: Path, *frames: FrameFiles) -> None:
    """Cut images off."""
    for frame in frames:
        (root / frame.image).write_bytes(b"\x89PNG\r\n\x1a\n cut")


def test_skipped_frames_count_nothing_up_to_a_limit(tmp_path: Path) -> None:
    """Black without a label stands in their place; each is listed once; one more is an error."""
    files = draw_frames(tmp_path, 4)
    frames = write_manifest(tmp_path / "manifest", tmp_path, {"train": files})
    damage(tmp_path, files[1])
    (tmp_path / files[2].label).unlink()
    bad = SkippedFrames(frames.frames["fkey"].to_pylist(), 2, "train")
    reader = FrameReader(frames, PALETTE, Size(32, 48), bad=bad)
    for row in (1, 2, 1):
        image, label = reader.small(row)
        assert not image.any()
        assert (label == UNKNOWN_CLASS).all()
    assert (reader.small(0)[1] != UNKNOWN_CLASS).all()
    first, second = bad.listed()
    assert first["fkey"] == "train-001"
    assert f"{files[1].image}: PNG is truncated" in first["reason"]
    assert f"{files[2].label}: No such file" in second["reason"]
    write_skipped_frames(tmp_path / "model", bad.listed())
    assert read_skipped_frames(tmp_path / "model") == [first, second]
    damage(tmp_path, files[3])
    with pytest.raises(BadFile, match="and --bad_frames allows 2; a run goes on with more"):
        reader.small(3)


def test_missing_files_are_looked_for(tmp_path: Path) -> None:
    """The first is named and their frames counted; skipped, they are listed before any is read."""
    files = draw_frames(tmp_path, 4)
    frames = write_manifest(tmp_path / "manifest", tmp_path, {"train": files})
    FrameReader(frames, PALETTE, Size(32, 48)).look_for_files()
    (tmp_path / files[1].image).unlink()
    (tmp_path / files[3].label).unlink()
    with pytest.raises(BadFile, match=r"001\.png: No such file.*frames that lack a file: 2 of 4"):
        FrameReader(frames, PALETTE, Size(32, 48)).look_for_files()
    bad = SkippedFrames(frames.frames["fkey"].to_pylist(), 2, "train")
    FrameReader(frames, PALETTE, Size(32, 48), bad=bad).look_for_files()
    assert [one["fkey"] for one in bad.listed()] == ["train-001", "train-003"]
    with pytest.raises(BadFile, match="2 frames cannot be read, and --bad_frames allows 1"):
        FrameReader(
            frames,
            PALETTE,
            Size(32, 48),
            bad=SkippedFrames(frames.frames["fkey"].to_pylist(), 1, "train"),
        ).look_for_files()


@pytest.mark.training
def test_a_training_goes_on_without(tmp_path: Path) -> None:
    """What was skipped is in log, metrics, model and list, also of a split scored on the way.

    Another frame that is scored and cannot be read is one too many for that split alone.
    """
    files = draw_frames(tmp_path, 10)
    splits = {"train": files[:6], "validation": files[6:]}
    manifest = write_manifest(tmp_path / "manifest", tmp_path, splits)
    damage(tmp_path, files[1], files[7])
    model = tmp_path / "model"
    train = [
        "--exec_mode", "train_and_evaluate", "--manifest", str(tmp_path / "manifest"),
        "--model_dir", str(model), *TINY, "--batch_size", "2", "--epochs", "4",
    ]  # fmt: skip
    refused, done = run_several(train, [*train, "--bad_frames", "skip:1"])
    assert (refused.status, done.status) == (1, 0), done.err
    assert "PNG is truncated" in refused.error
    assert "warning: skipped frame train-001: " in done.out
    assert "warning: skipped frame validation-001: " in done.out
    assert json.loads((model / "metrics.json").read_text())["bad_frames"] == 2
    assert json.loads((model / "model.json").read_text())["dataset"]["bad_frames"] == 1
    listed = [("train", "train-001"), ("validation", "validation-001")]
    assert [(one["split"], one["fkey"]) for one in read_skipped_frames(model)] == listed
    validation = manifest.split("validation")
    (others,) = (rows for n in (0, 1) if 1 not in (rows := validation.shard_rows(n, 2)))
    damage(tmp_path, splits["validation"][others[0]])
    train[train.index(str(model))] = str(tmp_path / "two")
    two = ["-m", "training.main", *train, "--num_workers", "2", "--bad_frames"]
    ended = run_tensorflow(*two, "skip:1", launcher=horovodrun(2))
    assert ended.status != 0
    assert "2 frames cannot be read, and --bad_frames allows 1" in ended.err
    assert Checkpoint.read(tmp_path / "two"), "of the step that was scored"
    ended = run_tensorflow(*two, "skip:2", launcher=horovodrun(2))
    assert ended.status == 0, ended.err
    assert json.loads((tmp_path / "two" / "metrics.json").read_text())["bad_frames"] == 3


@pytest.mark.training
def test_two_workers_skip_together(tmp_path: Path) -> None:
    """Each frame is listed whichever worker met it, and the limit is for both together."""
    files = draw_frames(tmp_path, 8)
    write_manifest(tmp_path / "manifest", tmp_path, {"train": files})
    order = examples(8, 0, 1, rank=0, ranks=2), examples(8, 0, 1, rank=1, ranks=2)
    met = [next(each).row for each in order]
    damage(tmp_path, *(files[row] for row in met))
    model = tmp_path / "model"
    train = [
        "-m", "training.main", "--exec_mode", "train", "--manifest", str(tmp_path / "manifest"),
        "--model_dir", str(model), *TINY, "--batch_size", "1", "--max_steps", "3",
    ]  # fmt: skip
    refused = run_tensorflow(*train, "--bad_frames", "skip:1", launcher=horovodrun(2))
    assert refused.status != 0, refused.err
    assert "2 frames cannot be read, and --bad_frames allows 1" in refused.err
    train[train.index(str(model))], model = str(tmp_path / "other"), tmp_path / "other"
    done = run_tensorflow(*train, "--bad_frames", "skip:2", launcher=horovodrun(2))
    assert done.status == 0, done.err
    assert json.loads((model / "metrics.json").read_text())["bad_frames"] == 2
    fkeys = sorted(f"train-{row:03d}" for row in met)
    assert [one["fkey"] for one in read_skipped_frames(model)] == fkeys
    about = json.loads((model / "model.json").read_text())
    assert about["dataset"]["bad_frames"] == 2
