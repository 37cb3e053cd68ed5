"""Flags of the training program."""

import json
from pathlib import Path

import pytest

from tests.training.commands import run
from training.run_settings import parse_flags

BASE = ["--manifest", "m", "--model_dir", "d"]


def test_defaults_of_train_and_evaluate() -> None:
    """Proves the flags of the contract are enough, and what is left to dataset and machine."""
    train = parse_flags([*BASE, "--exec_mode", "train", "--batch_size", "2", "--max_steps", "9"])
    assert (train.split, train.batch_size, train.max_steps) == (None, 2, 9)
    assert (train.epochs, train.threads, train.continue_from) == (None, 0, None)
    assert (train.height % 8, train.width % 8) == (0, 0)
    assert train.num_workers is None
    evaluate = parse_flags([*BASE, "--exec_mode", "evaluate", "--results_dir", "r"])
    assert (evaluate.split, evaluate.shard, evaluate.shards) == (None, 0, 1)
    assert evaluate.results_dir == Path("r")
    assert parse_flags([*BASE, "--exec_mode", "train"]).batch_size == 4


def test_settings_are_json() -> None:
    """Proves that settings can be saved in a checkpoint: plain values, paths as text."""
    data = parse_flags([*BASE, "--exec_mode", "train"]).as_json()
    assert data["manifest"] == "m"
    read = json.loads(json.dumps(data))
    assert (read["augment"], read["learning_rate"], read["split"]) == (["mirror"], 0.002, None)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], "--exec_mode"),
        (["--exec_mode", "dance"], "invalid choice"),
        (["--exec_mode", "train", "--height", "150"], "152 is"),
        (["--exec_mode", "train", "--batch_size", "0"], "at least 1"),
        (["--exec_mode", "train", "--max_steps", "many"], "at least 1"),
        (["--exec_mode", "train", "--learning_rate", "nan"], "above 0"),
        (["--exec_mode", "train", "--learning_rate", "-1"], "above 0"),
        (["--exec_mode", "train", "--shards", "2"], "--shards"),
        (["--exec_mode", "train", "--max-steps", "3"], "unrecognized"),
        (["--exec_mode", "train", "--max_steps", "3", "--epochs", "1"], "give one of them"),
        (["--exec_mode", "train", "--continue_from", "d"], "is the --model_dir"),
        (["--exec_mode", "evaluate"], "--results_dir"),
        (
            ["--exec_mode", "predict", "--results_dir", "r", "--epochs", "1"],
            "--epochs belongs to train",
        ),
        *(
            (["--exec_mode", mode, "--results_dir", "r", flag, "0.5"], f"{flag} belongs to train")
            for flag in ("--learning_rate", "--checkpoint_minutes")
            for mode in ("evaluate", "predict")
        ),
        *(
            (["--exec_mode", mode, "--results_dir", "r", flag, "64"], f"{flag} belongs to train")
            for flag in (
                "--max_steps",
                "--height",
                "--width",
                "--seed",
                "--cache_mib",
                "--checkpoint_every",
                "--keep_checkpoints",
            )
            for mode in ("evaluate", "predict")
        ),
        (["--exec_mode", "evaluate", "--results_dir", "r", "--seed", "0"], "--seed belongs to"),
        (["--exec_mode", "predict", "--results_dir", "r", "--log_every", "5"], "names each frame"),
        (["--exec_mode", "train", "--results_dir", "r"], "--results_dir belongs to evaluate"),
        *(
            (
                ["--exec_mode", mode, "--results_dir", "r", "--batch_size", "4"],
                "one frame at a time",
            )
            for mode in ("evaluate", "predict")
        ),
        (["--exec_mode", "train", "--compare_dir", "d"], "belong to evaluate"),
        (
            ["--exec_mode", "predict", "--results_dir", "r", "--augment_test", "mirror"],
            "belong to evaluate",
        ),
        (
            ["--exec_mode", "evaluate", "--results_dir", "r", "--compare_network", "a:b"],
            "goes with --compare_dir",
        ),
        (["--exec_mode", "train", "--evaluate_every", "2"], "belong to train_and_evaluate"),
        (["--exec_mode", "train", "--target_miou", "0.5"], "belong to train_and_evaluate"),
        (["--exec_mode", "train_and_evaluate", "--target_miou", "2"], "at most 1"),
        (["--exec_mode", "train", "--augment", "mirror,blur"], "unknown augmentation 'blur'"),
        (["--exec_mode", "evaluate", "--results_dir", "r", "--model", "small_unet"], "your own"),
        (["--exec_mode", "train", "--classes", "none.json"], "unknown class map"),
        (["--exec_mode", "train", "--precision", "half"], "unknown precision 'half'"),
        (
            ["--exec_mode", "evaluate", "--results_dir", "r", "--shard", "2", "--shards", "2"],
            "0 <= shard < shards",
        ),
        (["--exec_mode", "evaluate", "--results_dir", "r", "--num_workers", "2"], "--shard"),
    ],
)
def test_wrong_flags(flags: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Proves that wrong flags end with status 2 and one line that names the trouble."""
    with pytest.raises(SystemExit) as stop:
        parse_flags([*BASE, *flags])
    assert stop.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert expected in lines[0]


def test_the_program_itself_ends_with_2() -> None:
    """Proves the status reaches the shell, before TensorFlow is imported."""
    ended = run("-m", "training.main", "--exec_mode", "train")
    assert ended.status == 2
    assert "--manifest" in ended.error
