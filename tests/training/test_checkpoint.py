"""Files of a training run: checkpoints, metrics, aside writing."""

from pathlib import Path

import numpy as np
import pytest

from catalog.errors import BadFile, NotFound
from pipeline.runs.checkpoint_steps import CHECKPOINT_FILE
from tests.training.test_run_identity import IDENTITY, LABELS
from training.network.about_model import AboutModel
from training.run.checkpoint import Array, Checkpoint
from training.run.metrics_log import read_metrics


def checkpoint() -> Checkpoint:
    """A checkpoint with a few arrays, more than ten so that their order is put to the test."""
    weights: list[Array] = [np.full((2, 3), i, np.float32) for i in range(12)]
    optimizer: list[Array] = [np.array(7, np.int64), np.array([1, 2], np.float32)]
    return Checkpoint(40, LABELS, IDENTITY, weights, optimizer, 320)


def test_checkpoint_comes_back(tmp_path: Path) -> None:
    """Proves step, identity and every array with its type and place survive the disk."""
    written = checkpoint()
    written.write(tmp_path)
    read = Checkpoint.read(tmp_path)
    assert read
    assert (read.step, read.labels, read.identity) == (40, LABELS, IDENTITY)
    for ours, theirs in zip(
        [*written.weights, *written.optimizer], [*read.weights, *read.optimizer], strict=True
    ):
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()
    assert [p.name for p in tmp_path.iterdir()] == [CHECKPOINT_FILE]


def test_no_checkpoint(tmp_path: Path) -> None:
    """Proves a new folder starts from nothing."""
    assert Checkpoint.read(tmp_path / "new") is None


@pytest.mark.parametrize("keep", [0, 10, 400])
def test_damaged_checkpoint(tmp_path: Path, keep: int) -> None:
    """Proves a cut file is refused by name, not with a traceback."""
    checkpoint().write(tmp_path)
    path = tmp_path / CHECKPOINT_FILE
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BadFile, match=r"checkpoint\.npz: .*damaged"):
        Checkpoint.read(tmp_path)


def test_metrics_of_a_killed_run(tmp_path: Path) -> None:
    """Proves a line that a kill cut off is passed over."""
    lines = '{"step": 1, "loss": 2.0}\n{"step": 10, "loss": 1.0}\n{"step": 20, "lo'
    (tmp_path / "metrics.jsonl").write_text(lines)
    assert [line["step"] for line in read_metrics(tmp_path)] == [1, 10]


def test_unfinished_model_says_how_to_finish(tmp_path: Path) -> None:
    """Proves evaluating before training has ended gives the right advice."""
    with pytest.raises(NotFound, match="train one"):
        AboutModel.read(tmp_path)
    checkpoint().write(tmp_path)
    with pytest.raises(NotFound, match="start it again"):
        AboutModel.read(tmp_path)


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    """Proves so many stay, and that the newest whole one is found and takes the place."""
    said: list[str] = []
    for step in range(10, 60, 10):
        Checkpoint(step, LABELS, IDENTITY, [np.zeros(2, np.float32)], [], 8 * step).write(
            tmp_path, 3
        )
    names = ("checkpoint.npz", "checkpoint-1.npz", "checkpoint-2.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    kept = [Checkpoint.read(tmp_path, name) for name in names]
    assert [one.step if one else None for one in kept] == [50, 40, 30]
    for name in names[:2]:
        (tmp_path / name).write_bytes(b"cut")
    found = Checkpoint.restore_newest(tmp_path, lambda _: None, said.append)
    assert found is not None
    assert found.step == 30
    (line,) = said
    assert line.startswith("warning: ")
    assert line.endswith("); going on from the one before, of step 30")
    again = Checkpoint.read(tmp_path)
    assert again is not None
    assert again.step == 30
    (tmp_path / "checkpoint.npz").write_bytes(b"cut")
    with pytest.raises(BadFile, match="none before it is whole: put a copy of it back"):
        Checkpoint.restore_newest(tmp_path, lambda _: None, said.append)


def test_a_newest_that_is_missing_or_of_other_arrays(tmp_path: Path) -> None:
    """Proves the one before takes its place, and that none of those kept is lost by it."""
    for step in (10, 20, 30):
        Checkpoint(step, LABELS, IDENTITY, [np.zeros(2, np.float32)], [], 8 * step).write(
            tmp_path, 3
        )
    said: list[str] = []

    def restore(checkpoint: Checkpoint) -> None:
        if checkpoint.step == 20:
            raise BadFile("checkpoint is damaged (its arrays are not those)", "of step 20")

    (tmp_path / CHECKPOINT_FILE).unlink()
    found = Checkpoint.restore_newest(tmp_path, restore, said.append)
    assert found is not None
    assert found.step == 10
    (line,) = said
    assert "checkpoint.npz: checkpoint is missing; going on from the one before" in line
    found.write(tmp_path, 3)
    assert (tmp_path / "checkpoint-2.npz").exists()
    for path in tmp_path.iterdir():
        path.unlink()
    assert Checkpoint.restore_newest(tmp_path, restore, said.append) is None
