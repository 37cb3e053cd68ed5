"""Real training runs: from the prepared form, and going on with another number of workers."""

import json
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from pipeline.prepared.prepare import prepare
from pipeline.runs.size import FULL, Size
from tests.pipeline.test_prepared import staged
from tests.training.commands import (
    NETWORK,
    TINY,
    horovodrun,
    run_several,
    run_tensorflow,
    signalled,
)
from tests.training.drawn_frames import draw_frames
from training.run.checkpoint import Checkpoint
from training.validation.shard_file import read_shard, shard_path

pytestmark = pytest.mark.training


def training(manifest: Path, model_dir: Path, *more: str) -> list[str]:
    """Arguments of a training run of batches of 2."""
    return [
        "--exec_mode", "train", "--manifest", str(manifest), "--model_dir", str(model_dir),
        "--batch_size", "2", *TINY, *more,
    ]  # fmt: skip


def validation(manifest: Path, model_dir: Path, results_dir: Path) -> list[str]:
    """Arguments of a validation as one shard."""
    return [
        "--exec_mode", "evaluate", "--manifest", str(manifest), "--model_dir", str(model_dir),
        "--results_dir", str(results_dir), "--threads", "1", *NETWORK,
    ]  # fmt: skip


def test_the_form_changes_nothing_but_the_time(tmp_path: Path) -> None:
    """Proves a run uses the form where it fits, says so, and ends with the same weights and scores.

    It reads the form alone: the frames' files are gone then. At full size it is enough for both,
    labels of a validation included.
    """
    files = draw_frames(tmp_path, 8, unknown=True)
    folder = staged(tmp_path, {"train": files[:5], "validation": files[5:]})
    plain, other = tmp_path / "plain", tmp_path / "other"
    decoded, scored = run_several(
        training(folder, plain, "--max_steps", "4"), validation(folder, plain, tmp_path / "first")
    )
    assert decoded.status == scored.status == 0, decoded.err + scored.err
    assert "decoding each frame: no prepared form of this size" in decoded.out
    form, full = prepare(folder, Size(64, 96)), prepare(folder, FULL)
    full.folder.rename(kept := tmp_path / full.folder.name)
    for drawn in files:
        (tmp_path / drawn.image).unlink()
    for drawn in files[:5]:
        (tmp_path / drawn.label).unlink()
    prepared, scored = run_several(
        training(folder, other, "--max_steps", "4"), validation(folder, plain, tmp_path / "second")
    )
    assert prepared.status == scored.status == 0, prepared.err + scored.err
    assert f"reading frames from the prepared form {form.folder}" in prepared.out
    assert f"reading images from the prepared form {form.folder}" in scored.out
    told = [json.loads((folder / "metrics.json").read_text()) for folder in (plain, other)]
    assert [metrics["prepared"] for metrics in told] == [None, form.folder.name]
    ended = [Checkpoint.read(folder) for folder in (plain, other)]
    assert ended[0] is not None
    assert ended[1] is not None
    for ours, theirs in zip(ended[0].weights, ended[1].weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    first, second = (read_shard(shard_path(tmp_path / name, 0, 1)) for name in ("first", "second"))
    assert (first.confusion.matrix == second.confusion.matrix).all()
    assert first.frames == second.frames
    kept.rename(full.folder)
    shutil.rmtree(form.folder)
    for drawn in files[5:]:
        (tmp_path / drawn.label).unlink()
    trained, scored = run_several(
        training(folder, tmp_path / "third", "--max_steps", "4"),
        validation(folder, plain, tmp_path / "whole"),
    )
    assert trained.status == scored.status == 0, trained.err + scored.err
    assert f"reading frames from the prepared form {full.folder}" in trained.out
    third = Checkpoint.read(tmp_path / "third")
    assert third is not None
    for ours, theirs in zip(third.weights, ended[0].weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    whole = read_shard(shard_path(tmp_path / "whole", 0, 1))
    assert (whole.confusion.matrix == first.confusion.matrix).all()
    assert whole.frames == first.frames


def test_a_run_goes_on_with_another_number_of_workers(tmp_path: Path) -> None:
    """Proves the steps left follow from the examples left, and that the run stays this run."""
    folder = staged(tmp_path, {"train": draw_frames(tmp_path, 9)})
    model_dir = tmp_path / "model"
    three = training(folder, model_dir, "--epochs", "3")
    one_epoch = run_tensorflow("-c", signalled({3: signal.SIGTERM}), *three, launcher=horovodrun(2))
    assert one_epoch.status != 0
    stopped = Checkpoint.read(model_dir)
    assert stopped is not None
    assert (stopped.step, stopped.examples) == (3, 12)
    alone = run_tensorflow("-m", "training.main", *three)
    assert alone.status == 0, alone.err
    assert "going on from the checkpoint of step 3" in alone.out
    # 3 epochs of 9 frames are 7 steps of 2 workers, 28 examples; 16 are left, 8 steps of one.
    assert re.search(r"1 worker\(s\) x 2 frames, 1 thread\(s\) each, step 3 to 11: ", alone.out)
    ended = Checkpoint.read(model_dir)
    assert ended is not None
    assert (ended.step, ended.examples) == (11, 28)
    assert ended.identity == stopped.identity
