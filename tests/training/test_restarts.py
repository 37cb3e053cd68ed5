"""Ranks of a training die, and its next attempt goes on."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.job_state import FINISHED
from pipeline.jobs.backends.local import LocalBackend
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, JobRequest, Stage
from tests.api.servers import framesift
from tests.pipeline.backend_suite import Run
from tests.training.commands import TINY
from tests.training.drawn_frames import draw_frames, write_manifest
from tests.training.drawn_home import TINY_JOB, ask, drawn_home
from training.run.checkpoint import Checkpoint
from training.run.metrics_log import read_metrics

pytestmark = pytest.mark.training

STEPS, EACH = 40, 3


def training(folder: Path, name: str) -> JobRequest:
    """A job that trains with two ranks."""
    model = JobPaths(folder / name).model
    program = (
        PYTHON, "-P", "-m", "training.main", "--exec_mode", "train", "--manifest",
        str(folder / "manifest"), "--model_dir", str(model), "--batch_size", "2", "--max_steps",
        str(STEPS), "--checkpoint_every", str(EACH), "--num_workers", "2", *TINY,
    )  # fmt: skip
    return JobRequest(name, "train", (Stage("train", (program,), ranks=2),))


def ranks_of(model_dir: Path) -> list[int]:
    """Processes of the training program itself."""
    program, model = [b"-P", b"-m", b"framesift_start", b"training.main"], str(model_dir).encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[1:5] == program and model in words:
            found.append(int(folder.name))
    return sorted(found)


def kill_rank(run: Run, rank: int) -> int:
    """Kill a rank once a further checkpoint is there; its step."""
    before = Checkpoint.read(run.paths.model)
    while True:
        saved = Checkpoint.read(run.paths.model)
        if saved and saved.step > (before.step if before else 0):
            os.kill(ranks_of(run.paths.model)[rank], signal.SIGKILL)
            return saved.step
        assert run.status.state not in FINISHED, run.status
        time.sleep(0.01)


KILLS = 5


@pytest.mark.slow
def test_ranks_that_are_killed_cost_no_run(tmp_path: Path) -> None:
    """Each kill is a lost attempt; the next goes on, to the weights of a run left alone."""
    write_manifest(tmp_path / "manifest", tmp_path, {"train": draw_frames(tmp_path, 12)})
    queue, request = JobQueue(tmp_path), training(tmp_path, "killed")
    for attempt in range(1, KILLS + 1):
        run = Run(LocalBackend(), queue, replace(request, attempt=attempt))
        kill_rank(run, attempt % 2)
        status = run.ended()
        assert (status.state, status.is_lost) == ("failed", True), status
    last = Run(LocalBackend(), queue, replace(request, attempt=KILLS + 1))
    assert last.ended().state == "done", last.status
    assert last.log("train").count("going on from the checkpoint of step") == KILLS
    assert [line["step"] for line in read_metrics(last.paths.model)] == [1, 10, 20, 30, 40]
    alone = Run(LocalBackend(), queue, training(tmp_path, "alone"))
    assert alone.ended().state == "done"
    ours, theirs = (Checkpoint.read(each.paths.model) for each in (last, alone))
    assert ours
    assert theirs
    for one, other in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_command_that_waits_begins_the_next_attempt(tmp_path: Path) -> None:
    """Proves `framesift train` is done although a rank of it is killed, with nobody's help."""
    home = drawn_home(tmp_path, 8)
    model = JobPaths(home / "jobs" / "t").model
    begun = ask(
        home, "train", "few", "--workers", "2", "--max-steps", str(STEPS), "--batch-size", "2",
        "--checkpoint-every", str(EACH), "--name", "t", "--detach", *TINY_JOB,
    )  # fmt: skip
    assert begun["attempt"] == 1
    deadline = time.monotonic() + 900
    while not (model / "checkpoint.npz").exists():
        assert time.monotonic() < deadline, framesift(home, "jobs", "logs", "t").stdout
        time.sleep(0.05)
    os.kill(ranks_of(model)[1], signal.SIGKILL)
    waited = framesift(home, "jobs", "wait", "t")
    assert waited.returncode == 0, waited.stderr
    job = ask(home, "jobs", "show", "t")
    assert (job["state"], job["attempt"], job["metrics"]["step"]) == ("done", 2, STEPS)
    log = framesift(home, "jobs", "logs", "t").stdout
    assert "going on from the checkpoint of step" in log
    changes = framesift(home, "jobs", "timeline", "t").stdout
    assert "for attempt 2, as the one before ended" in changes
