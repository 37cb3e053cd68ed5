"""Several workers make the steps that one makes with their frames together."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.runs.exchange import Exchange
from tests.training.commands import TINY, horovodrun, run_tensorflow
from tests.training.drawn_frames import draw_frames, every_fourth, write_manifest
from training.run.checkpoint import Checkpoint
from training.run.metrics_log import read_metrics


@pytest.mark.training
def test_two_workers_equal_one_with_their_frames(tmp_path: Path) -> None:
    """Proves 2 workers of 2 frames make the losses and weights of 1 worker of 4.

    Classes are rare in some frames, so the mean of two workers' means is another number. Its
    learning rate is twice theirs, which is multiplied by their number.
    """
    manifest = tmp_path / "manifest"
    write_manifest(manifest, tmp_path, every_fourth(draw_frames(tmp_path, 16)))
    two = ["--batch_size", "2", "--learning_rate", "0.001", "--horovod", "fusion_mb=1,cycle_ms=2"]
    one = ["--batch_size", "4", "--learning_rate", "0.002"]
    losses, weights = [], []
    for name, flags, launcher in (("two", two, horovodrun(2)), ("one", one, ())):
        command = ["--exec_mode", "train", "--manifest", str(manifest), "--max_steps", "8"]
        command += ["--model_dir", str(tmp_path / name), "--log_every", "1", *TINY, *flags]
        ended = run_tensorflow("-m", "training.main", *command, launcher=launcher)
        assert ended.status == 0, ended.err
        losses.append([line["loss"] for line in read_metrics(tmp_path / name)])
        checkpoint = Checkpoint.read(tmp_path / name)
        assert checkpoint is not None
        weights.append(np.concatenate([each.ravel() for each in checkpoint.weights]))
    assert len(losses[0]) == 8
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    # Adam makes a whole step of a gradient that is nearly nothing, so some weights differ more.
    difference = np.abs(weights[0] - weights[1])
    assert np.median(difference) < 1e-6
    assert np.quantile(difference, 0.99) < 1e-4
    assert difference.max() < 4e-3


def test_options_are_read_as_they_are_written() -> None:
    """Proves the text of a flag and the options of a request mean the same."""
    options = {"fusion_mb": 0, "cycle_ms": 1.5, "compression": "fp16", "reduce": "adasum"}
    exchange = Exchange.of(options)
    assert exchange.text == "fusion_mb=0,cycle_ms=1.5,compression=fp16,reduce=adasum"
    assert Exchange.parsed(exchange.text) == exchange
    assert Exchange.parsed("").text == ""
