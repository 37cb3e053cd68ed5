"""Commands on jobs: followed, interrupted, resumed."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from api.cli.commands.jobs.resources import resources_of
from api.cli.sigint import leaving_job_running
from catalog.errors import InvalidInput
from catalog.records.datasets import recorded_dataset
from catalog.records.jobs import recorded_job
from catalog.records.tables import Job, Task
from pipeline.jobs.backends.turn import locked
from tests.api.servers import FRAMESIFT, environment, framesift, several, wait_until
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.jobs import submit_validation
from tests.pipeline.test_datasets import make


def test_whoever_stops_following_is_told_what_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C: what follows the job again, what ends it, and the exit code of an interruption."""
    with pytest.raises(SystemExit) as stopped, leaving_job_running("train-1"):
        raise KeyboardInterrupt
    assert stopped.value.code == 130
    assert capsys.readouterr().err == (
        "job train-1 goes on; framesift jobs wait train-1 follows it, "
        "framesift jobs cancel train-1 ends it\n"
    )


def test_what_a_job_asks_of_machines() -> None:
    """Options of the command line become the field of POST /v1/jobs; what they cannot be."""
    asked = ["gpus=1", "nodes=n[1-2]", "mount=/a:/b", "environment=WANDB_MODE", "memory_mb=4000"]
    assert resources_of("slurm", asked, ["slurm.partition=gpu"]) == {
        "gpus": 1, "nodes": "n[1-2]", "mounts": {"/a": "/b"}, "environment": ["WANDB_MODE"],
        "memory_mb": 4000, "options": {"partition": "gpu"},
    }  # fmt: skip
    assert resources_of("slurm", None, None) is None
    for resource, option, words in (
        ("gpu=1", "", "unknown resource 'gpu': did you mean gpus"),
        ("gpus=-1", "", "--resource gpus=-1: expected a whole number"),
        ("gpus", "", "--resource gpus: expected NAME=VALUE"),
        ("", "hosts.x=1", "expected slurm.NAME=VALUE, for --backend slurm"),
        ("", "partition=gpu", "expected slurm.NAME=VALUE"),
    ):
        with pytest.raises(InvalidInput, match=words):
            resources_of("slurm", [resource] if resource else [], [option] if option else [])


@pytest.mark.wide
def test_a_dry_run_prints_what_would_be_submitted(catalogued: Path, tmp_path: Path) -> None:
    """A script, and nothing is recorded; a backend that cannot give what is asked says so."""
    home = copy_home(catalogued, tmp_path)
    workspace = open_home(home)
    make(workspace, "all")
    asks = ["--workers", "2", "--dry-run", "--no-prepare"]
    commands = several(
        home,
        ["train", "all", *asks, "--backend", "slurm", "--option", "slurm.partition=gpu"],
        ["train", "all", *asks, "--resource", "wall_minutes=60"],
        ["jobs", "list", "--json"],
    )
    (status, script, _), (refused, _, words), (_, listed, _) = commands
    assert status == 0
    assert "--partition=gpu" in script
    assert "srun --kill-on-bad-exit=1" in script
    assert (refused, listed) == (1, "[]\n")
    assert "wall minutes 60: backend local has no such setting" in words


@pytest.mark.wide
def test_a_job_waits_is_left_cancelled_and_resumed(catalogued: Path, tmp_path: Path) -> None:
    """By commands: it says for what it waits, what was asked for, and counts its attempts."""
    home = copy_home(catalogued, tmp_path)
    workspace = open_home(home)
    make(workspace, "all", split="train=0.75,validation=0.25")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.json").write_text("{}")
    slots = workspace.job_queue.slots("validate").folder
    slots.mkdir(parents=True)
    taken = locked(slots / "slot-0")
    assert taken is not None
    submit_validation(
        workspace.records, workspace.job_queue, str(tmp_path / "model"),
        recorded_dataset(workspace.records, "all"), name="v",
    )  # fmt: skip
    following = subprocess.Popen(
        [FRAMESIFT, "jobs", "wait", "v"], env=environment(home), stderr=subprocess.PIPE, text=True
    )
    for _ in range(2):  # its first look, and one of those by which it follows
        wait_until(lambda: recorded_job(workspace.records, "v").waits != "")
        with workspace.records.session() as session:
            session.query(Job).filter_by(name="v").one().waits = ""
            session.query(Task).one().waits = ""
    wait_until(lambda: recorded_job(workspace.records, "v").waits != "")
    following.send_signal(signal.SIGINT)
    _, told = following.communicate(timeout=300)
    assert following.returncode == 130
    assert "job v goes on; framesift jobs wait v follows it" in told
    output = framesift(home, "jobs", "show", "v").stdout
    assert "waits for one of 1 slot" in output
    assert "queued" in output
    assert framesift(home, "jobs", "cancel", "v").returncode == 0
    ended = framesift(home, "jobs", "wait", "v")
    assert (ended.returncode, ended.stderr) == (1, "error: job v cancelled: cancelled\n")
    again = framesift(home, "jobs", "resume", "v", "--bad-frames", "skip:3", "--detach", "--json")
    job = json.loads(again.stdout)
    assert (job["state"], job["attempt"], job["dataset"]) == ("pending", 2, "all@1")
    assert job["settings"]["bad_frames"] == "skip:3"
    listed = framesift(home, "jobs", "list").stdout
    assert "all@1" in listed
    assert "validation" in listed
    framesift(home, "jobs", "cancel", "v")
    os.close(taken)
    workspace.close()
