"""A training whose scoring on the way ends before its end."""

import json
from pathlib import Path

import numpy as np
import pytest

from catalog.errors import StorageError
from pipeline.runs.exit_codes import GOES_ON
from tests.training.commands import TINY, run_several, run_tensorflow
from tests.training.drawn_frames import draw_frames, every_fourth, write_manifest
from training.run.checkpoint import Checkpoint

pytestmark = pytest.mark.training

_ENDED = """
import os, signal, sys
import training.run.evaluation
from training.main import main
batches, at, read = training.run.evaluation._batches, float(sys.argv[1]), 0
def batches_then_signal(*of):
    global read
    for rows in batches(*of):
        read += 1
        if read == at:
            os.kill(os.getpid(), signal.SIGTERM)
        yield rows
    if read + 0.5 == at:
        os.kill(os.getpid(), signal.SIGTERM)
training.run.evaluation._batches = batches_then_signal
status = main(sys.argv[2:])
print(f"read {read} batches")
sys.exit(status)
"""


def training(root: Path, model: str, *more: str) -> list[str]:
    """Arguments of a training of two epochs of six steps, without a checkpoint by steps."""
    return [
        "--exec_mode", "train_and_evaluate", "--manifest", str(root / "manifest"), "--model_dir",
        str(root / model), "--batch_size", "2", "--epochs", "2", *TINY, *more,
    ]  # fmt: skip


def scores(model_dir: Path) -> list[tuple[int, float]]:
    """Step and mean IoU of each score."""
    lines = map(json.loads, (model_dir / "evaluations.jsonl").read_text().splitlines())
    return [(line["step"], line["miou"]) for line in lines]


def test_sigterm_while_it_scores_costs_no_step(tmp_path: Path) -> None:
    """Proves it ends before the next batch with the step's checkpoint, after the last step, too.

    The run that goes on scores that step first, keeps the score in its summaries, and ends with the
    scores, weights and summary of a run that nobody ended.
    """
    write_manifest(tmp_path / "manifest", tmp_path, every_fourth(draw_frames(tmp_path, 16)))
    flags = training(tmp_path, "ended")
    # Of two batches each: at the first of step 6, after its last, at the first of step 12.
    for at, step, before in ((1, 6, []), (2.5, 7, [6]), (1, 12, [6])):
        ended = run_tensorflow("-c", _ENDED, str(at), *flags)
        assert ended.status == GOES_ON, ended.err
        assert f"ended by SIGTERM after step {step} of 12: its checkpoint is kept" in ended.error
        assert f"read {int(at)} batches" in ended.out
        saved = Checkpoint.read(tmp_path / "ended")
        assert saved
        assert saved.step == step
        assert [of for of, _ in scores(tmp_path / "ended")] == before
    summary = json.loads((tmp_path / "ended" / "metrics.json").read_text())
    assert (summary["step"], summary["best_step"]) == (12, 6)
    assert [(6, summary["miou"])] == scores(tmp_path / "ended")
    assert not (tmp_path / "ended" / "model.json").exists()
    again, undisturbed = run_several(flags, training(tmp_path, "whole"))
    for one in (again, undisturbed):
        assert one.status == 0, one.err
    assert [step for step, _ in scores(tmp_path / "ended")] == [6, 12]
    assert scores(tmp_path / "ended") == scores(tmp_path / "whole")
    ours, theirs = (
        json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("ended", "whole")
    )
    measured = ("images_per_s", "seconds_left")
    assert {**ours, **dict.fromkeys(measured)} == {**theirs, **dict.fromkeys(measured)}
    best = json.loads((tmp_path / "ended" / "best" / "model.json").read_text())
    assert best["step"] == ours["best_step"]
    finished = [Checkpoint.read(tmp_path / name) for name in ("ended", "whole")]
    assert finished[0]
    assert finished[1]
    for weights, others in zip(finished[0].weights, finished[1].weights, strict=True):
        np.testing.assert_array_equal(weights, others)


def test_a_bad_frame_that_is_scored_costs_no_step(tmp_path: Path) -> None:
    """Proves the run ends with the step's checkpoint, and goes on once the frame is put back."""
    splits = every_fourth(draw_frames(tmp_path, 16))
    write_manifest(tmp_path / "manifest", tmp_path, splits)
    image = tmp_path / splits["validation"][1].image
    content = image.read_bytes()
    image.write_bytes(b"no PNG")
    flags = training(tmp_path, "model")
    refused, still = run_several(flags, flags)
    for one in (refused, still):
        assert one.status == 1
        assert f"{image}: is neither a PNG nor a JPEG image" in one.error
        assert "the checkpoint of step 6 is kept" in one.out
    assert "going on from the checkpoint of step 6" in still.out
    image.write_bytes(content)
    (done,) = run_several(flags)
    assert done.status == 0, done.err
    assert [step for step, _ in scores(tmp_path / "model")] == [6, 12]


def test_the_best_model_is_replaced_whole(tmp_path: Path) -> None:
    """Proves a model that is not written to its end leaves the one before, and nothing else."""
    from training.run.evaluation import keep_best

    def half(folder: Path) -> None:
        (folder / "model.safetensors").write_text("2")
        raise OSError(28, "No space left on device")

    (tmp_path / "trained").write_text("frames")
    keep_best(lambda folder: (folder / "model.json").write_text("1"), tmp_path, ["trained"])
    with pytest.raises(StorageError, match="best: cannot be written: No space left"):
        keep_best(half, tmp_path, ["trained"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best", "trained"]
    best = tmp_path / "best"
    whole = {"model.json": "1", "trained": "frames"}
    assert {path.name: path.read_text() for path in best.iterdir()} == whole
    keep_best(lambda folder: (folder / "other").write_text("3"), tmp_path, [])
    assert {path.name: path.read_text() for path in best.iterdir()} == {"other": "3"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best", "trained"]
