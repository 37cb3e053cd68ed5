"""Real training runs on tiny drawn frames, alone and with Horovod."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import httpx
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from pipeline.example_order import examples
from pipeline.runs.exit_codes import GOES_ON
from tests.api.servers import wait_until
from tests.training.commands import (
    NETWORK,
    ONE_THREAD,
    TINY,
    Ended,
    horovodrun,
    run_several,
    run_tensorflow,
    signalled,
    start,
)
from tests.training.drawn_frames import CLASS_LIST, draw_frames, every_fourth, write_manifest
from training.run.checkpoint import Checkpoint
from training.run.metrics_log import read_metrics
from training.validation.shard_file import read_shard, shard_path

pytestmark = pytest.mark.training


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of 12 frames to train on and 4 to validate on."""
    root = tmp_path_factory.mktemp("frames")
    write_manifest(root / "manifest", root, every_fourth(draw_frames(root, 16)))
    return root / "manifest"


def training(manifest: Path, model_dir: Path, steps: int, *more: str) -> list[str]:
    """Arguments of a training run."""
    return [
        "--exec_mode", "train", "--manifest", str(manifest), "--model_dir", str(model_dir),
        "--batch_size", "2", "--max_steps", str(steps), *TINY, *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def trained(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """The folder of a model that two workers trained, and how they ended."""
    model_dir = tmp_path_factory.mktemp("trained")
    flags = training(manifest, model_dir, 40, "--num_workers", "2", "--checkpoint_every", "20")
    flags += ["--exec_mode", "train_and_evaluate", "--evaluate_every", "6", "--target_miou", "0.2"]
    return model_dir, run_tensorflow("-m", "training.main", *flags, launcher=horovodrun(2))


def test_two_workers_train(trained: tuple[Path, Ended]) -> None:
    """Proves two workers end well, the loss falls, and each step's metrics are on disk.

    A run in which the workers' weights differ ends with an error at its first checkpoint.
    """
    model_dir, ended = trained
    assert ended.status == 0, ended.err
    assert "error:" not in ended.err
    assert "2 worker(s) x 2 frames, 1 thread(s) each, step 0 to 40: 13.3 epochs, every" in ended.out
    lines = read_metrics(model_dir)
    assert [line["step"] for line in lines] == [1, 10, 20, 30, 40]
    assert lines[0].keys() == {"step", "loss", "learning_rate", "images_per_s", "time"}
    summary = json.loads((model_dir / "metrics.json").read_text())
    assert (summary["step"], summary["max_steps"]) == (40, 40)
    assert (summary["epochs"], summary["frames"], summary["frames_seen"]) == (13.333, 12, 12)
    assert (summary["epoch"], summary["seconds_left"]) == (13.333, 0)
    assert re.search(r"step 10/40 epoch 3.33/13.33 loss .* images/s, 0:00:\d\d left", ended.out)
    assert summary["first_loss"] == lines[0]["loss"]
    assert summary["loss"] == lines[-1]["loss"] < 0.5 * summary["first_loss"]
    about = json.loads((model_dir / "model.json").read_text())
    assert (about["workers"], about["step"], about["dataset"]["id"]) == (2, 40, "drawn-1")
    assert about["classes"] == ["Sky", "RD normal street", "Car", "Bicycle"]
    scores = [json.loads(line) for line in (model_dir / "evaluations.jsonl").open()]
    assert [line["step"] for line in scores] == [18, 36, 40]
    best = max(scores, key=lambda line: float(line["miou"]))
    assert (summary["best_step"], summary["best_miou"]) == (best["step"], best["miou"])
    assert 0.5 < best["miou"] <= 1
    record = json.loads((model_dir / "run.json").read_text())
    assert record["dataset"]["id"] == "drawn-1"
    assert record["sha256"] == about["sha256"]
    assert record["metrics"] == summary
    assert record["begun"][0]["environment"]["packages"]["tensorflow-cpu"] == "2.15.1"
    assert [(one["file"], one["step"]) for one in record["checkpoints"]] == [
        ("checkpoint.npz", 40), ("checkpoint-1.npz", 36),  # before it was scored
    ]  # fmt: skip
    newest = (model_dir / "checkpoint.npz").read_bytes()
    assert record["checkpoints"][0]["sha256"] == hashlib.sha256(newest).hexdigest()
    assert record["begun"][0]["code"]["version"] == version("framesift")
    events = [
        json.loads(line.removeprefix(":::MLLOG ")) for line in (model_dir / "mlperf.log").open()
    ]
    at = {event["key"]: event for event in events}
    assert [e["value"] for e in events if e["key"] == "eval_accuracy"] == [
        line["miou"] for line in scores
    ]
    assert at["global_batch_size"]["value"] == 4
    assert at["run_stop"]["metadata"]["status"] == "success"
    took_ms = at["run_stop"]["time_ms"] - at["run_start"]["time_ms"]
    assert summary["seconds_to_target"] == took_ms / 1000
    kept = json.loads((model_dir / "best" / "model.json").read_text())
    assert kept["step"] == best["step"]
    for name in ("trained_frames.parquet", "trained_scenes.json"):
        assert (model_dir / "best" / name).read_bytes() == (model_dir / name).read_bytes()
    assert list((model_dir / "tensorboard").glob("events.out.tfevents.*"))
    leftovers = [p.name for p in model_dir.iterdir() if "part" in p.name or "draft" in p.name]
    assert not leftovers


def test_tensorboard_shows_the_run(trained: tuple[Path, Ended]) -> None:
    """Proves the TensorBoard that `make setup` installs starts, and reads what a training wrote."""
    model_dir, _ = trained
    program = Path(sys.executable).parent / "tensorboard"
    board = [str(program), "--logdir", str(model_dir), "--port", "0"]
    with subprocess.Popen(board, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if url := re.search(r"http://localhost:\d+", line):
                    break
            assert url, "".join(said)
            tags = f"{url[0]}/data/plugin/scalars/tags"

            def shown() -> bool:
                scalars = httpx.get(tags, timeout=300).json().get("tensorboard", {})
                return {"loss", "learning_rate", "images_per_s"} <= set(scalars)

            wait_until(shown)
        finally:
            process.kill()


def test_workers_notice_that_they_differ() -> None:
    """Proves the check behind every checkpoint, and the averages, on two real workers."""
    program = (
        "from training.run.workers import join_workers; w = join_workers(2); "
        "print('same', w.agree('x'), 'own', w.agree(str(w.rank)), 'mean', w.mean(w.rank), "
        "'first', w.broadcast_number(w.rank + 7)); "
        "import os, pathlib; port = f\":{int(os.environ['HOROVOD_GLOO_RENDEZVOUS_PORT']):04X}\"; "
        "lines = ''.join(pathlib.Path(f'/proc/net/tcp{n}').read_text() for n in ('', '6')); "
        "found = [line.split() for line in lines.splitlines()]; "
        "print('listens at', [f[1] for f in found if f[1].endswith(port) and f[3] == '0A'])"
    )
    ended = run_tensorflow("-c", program, launcher=horovodrun(2))
    assert ended.status == 0, ended.err
    assert ended.out.count("same True own False mean 0.5 first 7") == 2
    assert ended.out.count("listens at ['0100007F:") == 2, "for the rendezvous: on loopback alone"


def test_one_worker_leaves_horovod() -> None:
    """Proves a training of one process has no thread of Horovod's, which wakes each millisecond."""
    program = (
        "import horovod.tensorflow as horovod; from training.run.workers import join_workers; "
        "w = join_workers(1); print(w.size, horovod.is_initialized(), w.mean(2.5), w.agree('x'))"
    )
    ended = run_tensorflow("-c", program)
    assert ended.status == 0, ended.err
    assert "1 False 2.5 True" in ended.out


_KILLED = """
import os, signal, sys
from training.run.checkpoint import Checkpoint
from training.main import main
write = Checkpoint.write
def write_one(checkpoint, model_dir, keep):
    if checkpoint.step > 5:
        os.kill(os.getpid(), signal.SIGKILL)
    write(checkpoint, model_dir, keep)
Checkpoint.write = write_one
sys.exit(main(sys.argv[1:]))
"""


def test_ended_run_goes_on_exactly(manifest: Path, tmp_path: Path) -> None:
    """Proves SIGTERM costs nothing, even before the first regular checkpoint.

    SIGUSR1 has a checkpoint written on the way, from which a run goes on whose newest is damaged.
    The run keeps its state, and goes on to the weights of a run that nobody ended, to the last bit.
    And it stays this run: another seed, split and rate are refused, each by its flag.
    """
    every = ["--augment", "mirror,crop,scale,colour"]
    flags = training(manifest, tmp_path / "ended", 20, *every)
    ended = run_tensorflow("-c", signalled({5: signal.SIGUSR1, 7: signal.SIGTERM}), *flags)
    assert ended.status == GOES_ON, ended.err
    assert "ended by SIGTERM after step 7 of 20: its checkpoint is kept" in ended.error
    saved = Checkpoint.read(tmp_path / "ended")
    assert saved
    assert saved.step == 7
    other = [*flags, "--seed", "77", "--split", "validation", "--learning_rate", "0.01"]
    whole = training(manifest, tmp_path / "whole", 20, *every)
    newest = tmp_path / "ended" / "checkpoint.npz"
    newest.write_bytes(newest.read_bytes()[:-100])
    refused, again, undisturbed = run_several(other, flags, whole)
    assert refused.status == 1
    assert "--split train there, validation here; --seed 0 there, 77 here; --learn" in refused.error
    for one in (again, undisturbed):
        assert one.status == 0, one.err
    assert "going on from the one before, of step 5" in again.out
    assert "going on from the checkpoint of step 5" in again.out
    finished = [Checkpoint.read(tmp_path / name) for name in ("ended", "whole")]
    assert finished[0]
    assert finished[1]
    assert finished[0].identity == finished[1].identity
    for kind in ("weights", "optimizer"):
        for ours, theirs in zip(
            getattr(finished[0], kind), getattr(finished[1], kind), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_a_new_run_begins_with_a_model(
    manifest: Path, trained: tuple[Path, Ended], tmp_path: Path
) -> None:
    """Proves --continue_from is a run of its own with a parent, on a dataset that is not divided.

    And that validating the model on what it, or its parent, was trained on is named.
    """
    model_dir, _ = trained
    files = draw_frames(tmp_path, 5, seed=9)
    write_manifest(tmp_path / "whole", tmp_path, {"all": files}, id="drawn-9")
    child = training(tmp_path / "whole", tmp_path / "child", 4, "--continue_from", str(model_dir))
    out = ["--results_dir", str(tmp_path / "results"), *ONE_THREAD, *NETWORK]
    base = ["--exec_mode", "evaluate", "--model_dir", str(tmp_path / "child"), *out]
    on_own = [*base, "--manifest", str(tmp_path / "whole")]
    on_parents = [*base, "--manifest", str(manifest), "--split", "train", "--shards", "2"]
    wrong = training(tmp_path / "other", tmp_path / "new", 4, "--continue_from", str(model_dir))
    other_list = dict(list(CLASS_LIST.items())[:4])
    write_manifest(tmp_path / "other", tmp_path, {"all": files}, other_list)
    ended = run_several(child, child, on_own, on_parents, wrong)
    for one in ended[:-1]:
        assert one.status == 0, one.err
    began, went_on, own, parents, refused = ended
    assert f"beginning with the weights of {model_dir.resolve()}, step 40" in began.out
    assert "warning: dataset drawn is not divided: all its frames are trained on" in began.out
    assert "going on from the checkpoint of step 4" in went_on.out
    about, parent = (
        json.loads((folder / "model.json").read_text())
        for folder in (tmp_path / "child", model_dir)
    )
    assert (about["step"], about["parent"]["step"]) == (4, 40)
    assert about["parent"]["sha256"] == parent["sha256"]
    assert (about["parent"]["dataset_id"], about["parent"]["split"]) == ("drawn-1", "train")
    assert parent["parent"] is None
    first = json.loads((tmp_path / "child" / "metrics.json").read_text())
    before = json.loads((model_dir / "metrics.json").read_text())
    assert first["first_loss"] < 0.5 * before["first_loss"]
    assert len(first["warnings"]) == 1
    assert read_shard(shard_path(tmp_path / "results", 0, 1)).trained_frames == 5, own.out
    assert read_shard(shard_path(tmp_path / "results", 0, 2)).trained_frames == 6, parents.out
    # The validated frames that neither was trained on are of the one scene that there is.
    shard = read_shard(shard_path(tmp_path / "results", 0, 2))
    assert shard.frames_of_trained_scenes == len(shard.frames) - 6
    assert "differ in Bicycle" in refused.error


def test_killed_run_goes_on(manifest: Path, tmp_path: Path) -> None:
    """Proves kill -9 costs the steps since the last checkpoint only.

    The run that goes on sees the same frames in the same order, so it ends with the weights of a
    run that nobody killed. Started once more when it has finished, it changes nothing.
    """
    flags = training(manifest, tmp_path / "killed", 60, "--checkpoint_every", "5")
    killed = run_tensorflow("-c", _KILLED, *flags)
    assert killed.status == -signal.SIGKILL, killed.err
    saved = Checkpoint.read(tmp_path / "killed")
    assert saved
    assert saved.step == 5
    assert not (tmp_path / "killed" / "model.json").exists()
    whole = training(manifest, tmp_path / "whole", 60, "--checkpoint_every", "50")
    again, once_more, undisturbed = run_several(flags, flags, whole)
    for one in (again, once_more, undisturbed):
        assert one.status == 0, one.err
    assert f"going on from the checkpoint of step {saved.step}" in again.out
    assert "going on from the checkpoint of step 60" in once_more.out
    steps = [line["step"] for line in read_metrics(tmp_path / "killed")]
    assert steps == [1, 10, 20, 30, 40, 50, 60]
    ended = [Checkpoint.read(tmp_path / name) for name in ("killed", "whole")]
    assert ended[0]
    assert ended[1]
    for ours, theirs in zip(ended[0].weights, ended[1].weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_one_bad_worker_ends_all(manifest: Path, tmp_path: Path) -> None:
    """Proves that when one worker meets a damaged frame, the others do not wait for ever."""
    files = draw_frames(tmp_path, 8)
    bad = write_manifest(tmp_path / "manifest", tmp_path, {"train": files})
    (tmp_path / files[3].label).write_bytes(b"\x89PNG\r\n\x1a\n cut")
    flags = training(tmp_path / "manifest", tmp_path / "model", 5000, "--num_workers", "2")
    ended = run_tensorflow("-m", "training.main", *flags, launcher=horovodrun(2))
    assert bad.folder
    assert ended.status != 0
    errors = [line for line in ended.err.splitlines() if "error: " in line]
    firsts = [islice(examples(8, 0, 2, rank=rank, ranks=2), 4) for rank in (0, 1)]
    (meets,) = (rank for rank, first in enumerate(firsts) if 3 in [e.row for e in first])
    assert any(files[3].label in line and line.startswith(f"[{meets}]<stderr>:") for line in errors)
    assert not (tmp_path / "model" / "model.json").exists()


def test_what_the_first_worker_refuses_ends_all(manifest: Path, tmp_path: Path) -> None:
    """Proves each worker ends with the reason in a line, and none with a traceback."""
    (tmp_path / "checkpoint.npz").write_bytes(b"cut")
    cases: Sequence[tuple[Sequence[str], str]] = (
        (["--keep_checkpoints", "1000000000"], "make room, or keep fewer"),
        ([], "none before it is whole: put a copy of it back"),
    )
    for more, expected in cases:
        flags = training(manifest, tmp_path, 3, "--num_workers", "2", *more)
        ended = run_tensorflow("-m", "training.main", *flags, launcher=horovodrun(2))
        assert ended.status == 1
        errors = [line for line in ended.err.splitlines() if "error: " in line]
        assert len(errors) == 2, ended.err
        assert all(expected in line for line in errors)
        assert "Traceback" not in ended.err


def test_sigterm_with_fewer_frames_than_workers(tmp_path: Path) -> None:
    """Proves one frame keeps two workers busy, and SIGTERM ends them at one step, which is kept."""
    write_manifest(tmp_path / "manifest", tmp_path, {"train": draw_frames(tmp_path, 1)})
    flags = training(
        tmp_path / "manifest", tmp_path / "model", 100_000, "--checkpoint_every", "100000",
        "--num_workers", "2",
    )  # fmt: skip
    with start("-m", "training.main", *flags, launcher=horovodrun(2)) as process:
        wait_for(tmp_path / "model" / "metrics.json", process.poll)
        process.terminate()
        _, err = process.communicate(timeout=300)
        assert process.returncode != 0
    assert "ended by SIGTERM after step" in err
    wait_until(lambda: not still_running(str(tmp_path / "model")))
    saved = Checkpoint.read(tmp_path / "model")
    assert saved
    assert saved.step >= 1


FINITE = "not finite at step"


def without_numbers(model: Path, copy: Path) -> Path:
    """A copy of a model whose every weight is NaN."""
    shutil.copytree(model, copy)
    weights = load_file(copy / "model.safetensors")
    save_file({k: np.full_like(v, np.nan) for k, v in weights.items()}, copy / "model.safetensors")
    about = json.loads((copy / "model.json").read_text())
    about["sha256"] = hashlib.sha256((copy / "model.safetensors").read_bytes()).hexdigest()
    (copy / "model.json").write_text(json.dumps(about))
    return copy


def test_refusals(manifest: Path, trained: tuple[Path, Ended], tmp_path: Path) -> None:
    """Proves each expected failure of training is status 1 and one line that says what to do."""
    model_dir, _ = trained
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{")
    none = write_manifest(tmp_path / "none", tmp_path, {"train": []})
    remote = (manifest / "manifest.json").read_text().replace('"drawn": "', '"drawn": "s3://x')
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote" / "manifest.json").write_text(remote)
    (tmp_path / "remote" / "frames.parquet").write_bytes((manifest / "frames.parquet").read_bytes())
    assert none.folder
    lacking = draw_frames(tmp_path, 4)
    write_manifest(tmp_path / "lacking", tmp_path, {"train": lacking})
    (tmp_path / lacking[2].label).unlink()
    new, kept = tmp_path / "new", tmp_path / "kept"
    empty = without_numbers(model_dir, tmp_path / "empty")
    cases: Sequence[tuple[Sequence[str], str]] = [
        (training(tmp_path / "absent", new, 3), "no such file"),
        (training(damaged, new, 3), "manifest is damaged"),
        (training(manifest, new, 3, "--split", "trian"), "did you mean train?"),
        (training(tmp_path / "none", new, 3), "has no frames"),
        (training(tmp_path / "remote", new, 3), "stage the dataset first"),
        (training(manifest, new, 3, "--num_workers", "2"), "horovodrun -np 2"),
        (training(manifest, new, 3, "--horovod", "reduce=adasum"), "workers, and this is one"),
        (training(tmp_path / "lacking", new, 3), "frames that lack a file: 1 of 4"),
        (training(manifest, new, 3, "--batch_size", "1000000"), "a step takes at least"),
        (training(manifest, model_dir, 41), "--max_steps 40 there, 41 here; give the flags"),
        (training(manifest, manifest / "manifest.json", 3), "Not a directory"),
        (training(manifest, new, 30, "--learning_rate", "1e30"), "loss is not finite at step"),
        (training(manifest, kept, 9, "--learning_rate", "1e38", "--checkpoint_every", "1"), FINITE),
        (
            training(manifest, new, 3, "--continue_from", str(empty)),
            f"not finite at step 1: begin with another model than {empty}",
        ),
    ]
    ended = run_several(*(flags for flags, _ in cases))
    for (flags, expected), one in zip(cases, ended, strict=True):
        assert one.status == 1, flags
        assert expected in one.error
    # What is kept of a run that diverged is from before it did.
    checkpoint = Checkpoint.read(kept)
    assert checkpoint is None or all(np.isfinite(each).all() for each in checkpoint.weights)


def wait_for(path: Path, ended: object, timeout_s: float = 600) -> None:
    """Wait until a file is there, while its process runs."""
    assert callable(ended)
    limit_s = time.monotonic() + timeout_s
    while not path.exists():
        assert ended() is None, "the process ended early"
        assert time.monotonic() < limit_s, f"no {path.name} in {timeout_s} s"
        time.sleep(0.02)


def still_running(text: str) -> list[str]:
    """Numbers of processes whose command line holds ``text``."""
    pids = []
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if folder.name.isdigit() and folder.name != str(os.getpid()) and text in command:
            pids.append(folder.name)
    return pids
