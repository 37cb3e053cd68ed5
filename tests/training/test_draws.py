"""Networks whose layers draw and normalise by batches: runs that go on end as without a break."""

import signal
from pathlib import Path

import numpy as np
import pytest

from tests.training.commands import SMALL, horovodrun, run_several, run_tensorflow, signalled
from tests.training.drawn_frames import draw_frames, write_manifest
from training.run.checkpoint import Checkpoint

pytestmark = pytest.mark.training


def training(root: Path, model: str, network: str, *more: str) -> list[str]:
    """Arguments of a training of nine steps."""
    return [
        "--exec_mode", "train", "--manifest", str(root / "manifest"), "--model_dir",
        str(root / model), "--batch_size", "2", "--max_steps", "9", *SMALL, "--model",
        f"tests.training.own_networks:{network}", *more,
    ]  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_goes_on_draws_what_it_would_have_drawn(tmp_path: Path, workers: int) -> None:
    """Proves its weights, moving means among them, are to the last bit those of a whole run.

    Workers draw different numbers, and a run is the same however often checkpoints are written.
    """
    write_manifest(tmp_path / "manifest", tmp_path, {"train": draw_frames(tmp_path, 8)})
    launcher = horovodrun(workers) if workers > 1 else ()
    flags = training(tmp_path, "ended", "draws_and_normalises")
    ended = run_tensorflow("-c", signalled({4: signal.SIGTERM}), *flags, launcher=launcher)
    assert "ended by SIGTERM after step 4 of 9" in ended.err, ended.err
    whole = training(tmp_path, "whole", "draws_and_normalises", "--checkpoint_every", "2")
    for each in (flags, whole):
        done = run_tensorflow("-m", "training.main", *each, launcher=launcher)
        assert done.status == 0, done.err
        assert "draws other numbers" not in done.out
    ours, theirs = (Checkpoint.read(tmp_path / name) for name in ("ended", "whole"))
    assert ours
    assert theirs
    for one, other in zip(
        [*ours.weights, *ours.optimizer], [*theirs.weights, *theirs.optimizer], strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_what_cannot_be_drawn_again_is_said(tmp_path: Path) -> None:
    """Proves a network that draws from TensorFlow's own state is warned of by the operation."""
    write_manifest(tmp_path / "manifest", tmp_path, {"train": draw_frames(tmp_path, 4)})
    (done,) = run_several(training(tmp_path, "model", "draws_by_state"))
    assert done.status == 0, done.err
    assert "own_networks:draws_by_state draws by RandomUniform: a run that goes on" in done.out
