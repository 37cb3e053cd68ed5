"""The network learns: real frames by heart."""

from pathlib import Path

import pytest

from tests.training.commands import run_several
from tests.training.drawn_frames import found_frames, read_class_list, write_manifest
from training.validation.scores import pixel_accuracy
from training.validation.shard_file import read_shard, shard_path

pytestmark = pytest.mark.training


def test_it_overfits_real_frames(a2d2_root: Path, tmp_path: Path) -> None:
    """Proves frames, labels, loss and network fit together: beyond 90 % of four frames' pixels.

    Those are the labels' own, at full size. 150 steps reached 91.5 %, in 23 s of CPU.
    """
    root = a2d2_root / "camera_lidar_semantic"
    files = found_frames(root)
    write_manifest(
        tmp_path / "manifest", root, {"train": files}, read_class_list(root / "class_list.json")
    )
    given = [
        "--manifest", str(tmp_path / "manifest"), "--model_dir", str(tmp_path / "model"),
        "--threads", "2",
    ]  # fmt: skip
    train = ["--exec_mode", "train", *given, "--batch_size", "4", "--max_steps", "200"]
    train += ["--height", "80", "--width", "120"]
    train += ["--learning_rate", "0.004", "--augment", "none"]
    results = tmp_path / "results"
    score = ["--exec_mode", "evaluate", *given, "--split", "train", "--results_dir", str(results)]
    trained, scored = run_several(train, score)
    assert trained.status == scored.status == 0, trained.err + scored.err
    shard = read_shard(shard_path(results, 0, 1))
    assert len(shard.frames) == len(files) == 4
    assert pixel_accuracy(shard.confusion.matrix) > 0.9
