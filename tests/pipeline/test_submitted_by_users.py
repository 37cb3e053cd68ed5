"""Jobs as users submit them, by the command line and over REST, on each backend.

Nothing of a request is built by hand: what these tests run is what the product submits.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline.job_state import FINISHED
from pipeline.jobs.request import JobPaths
from tests.api.servers import framesift, serving, until_driven
from tests.pipeline.homes import copy_home
from tests.slurm_cluster import slurm_cluster
from tests.two_hosts import two_hosts

SIZE = ("--height", "32", "--width", "48")
PROGRAM = "sh -c 'hostname > {job}/$RANK; env > {job}/env; wc -l < {files} > {job}/frames'"


@pytest.fixture
def home(catalogued: Path, tmp_path: Path) -> Path:
    """A home with a dataset of four frames, and one of more frames whose name begins like its."""
    home = copy_home(catalogued, tmp_path)
    for name, limit in (("few", "4"), ("few-more", "9")):
        command(home, "dataset", "create", name, "--range", "car=1:", "--limit", limit)
    return home


def command(home: Path, *words: str, variables: Mapping[str, str] | None = None) -> str:
    """What a command prints, which has to succeed."""
    done = framesift(home, *words, variables=variables)
    assert done.returncode == 0, (words, done.stdout, done.stderr, logs(home))
    return done.stdout


def logs(home: Path) -> str:
    """The logs of all jobs."""
    files = sorted((home / "jobs").rglob("*.log"))
    return "\n".join(f"{file}\n{file.read_text()}" for file in files)


def ended(url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """A job that a server is asked for, once it has ended."""
    answer = httpx.post(f"{url}/v1/jobs", json=body)
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    deadline = time.monotonic() + 600
    while job["state"] not in FINISHED:
        assert time.monotonic() < deadline, job
        time.sleep(0.2)
        job = httpx.get(f"{url}/v1/jobs/{job['name']}").json()
    return job


def submit_all(home: Path, backend: str, ranks: int, **variables: str) -> None:
    """Train, and run on a question, by the command line; validate and run over REST.

    The server that drives the jobs of the command line has none of these variables.
    """
    there = ("--backend", backend)
    apart = () if backend == "local" else ("--resource", "ranks_per_node=1")
    programs = {"FRAMESIFT_RUN_PROGRAMS": "users"}
    with serving(home, variables=programs):
        until_driven(home)
        command(
            home, "train", "few", "--name", "net", "--workers", "2", "--batch-size", "1",
            "--max-steps", "2", *SIZE, *there, *apart, variables=variables,
        )  # fmt: skip
        run = json.loads((JobPaths(home / "jobs" / "net").model / "run.json").read_text())
        assert run["begun"][0]["workers"] == 2
        command(
            home, "run", "--range", "car=1:", "--limit", "3", "--name", "mine", "--ranks",
            str(ranks), "--command", PROGRAM, *there, variables=variables,
        )  # fmt: skip
    with serving(home, variables={**programs, **variables}) as (url, _):
        scored = ended(
            url,
            {"kind": "validate", "model": "net", "dataset": "few", "workers": 2,
             "name": "scored", "backend": backend},
        )  # fmt: skip
        assert (scored["state"], scored["error"]) == ("done", ""), logs(home)
        assert scored["metrics"]["frames"] == 4
        theirs = ended(
            url,
            {"kind": "run", "dataset": "few", "command": PROGRAM, "ranks": 2, "name": "theirs",
             "backend": backend},
        )  # fmt: skip
        assert (theirs["state"], theirs["error"]) == ("done", ""), logs(home)
    assert len(hosts(home, "mine", ranks)) == ranks
    frames = [int((output(home, name) / "frames").read_text()) for name in ("mine", "theirs")]
    assert frames == [3, 4]


def output(home: Path, job: str) -> Path:
    """Folder of what a program made."""
    return home / "jobs" / job / "output"


def hosts(home: Path, job: str, ranks: int) -> list[str]:
    """The machine of each rank of a program, by what the rank says."""
    return [(output(home, job) / str(rank)).read_text().strip() for rank in range(ranks)]


@pytest.mark.training
def test_on_this_machine(home: Path) -> None:
    """Ranks of programs and of trainings, and shards, all begin."""
    submit_all(home, "local", 2)


@pytest.mark.hosts
def test_on_machines_behind_ssh(home: Path, tmp_path: Path) -> None:
    """All ranks of a training and of a program begin, and fill the machines by their slots.

    Programs see nothing of an allocation of Slurm's in which a user submits, nor one of ours.
    """
    with two_hosts(tmp_path / "ssh") as machines:
        (home / "backends.toml").write_text(machines.settings)
        allocation = {"SLURM_CONF": "/etc/x", "SLURM_JOB_ID": "7", "SLURM_PROCID": "1"}
        submit_all(home, "hosts", 3, **allocation)
        first, second = machines.names
        assert hosts(home, "mine", 3) == [first, first, second]
        assert hosts(home, "theirs", 2) == [first, first]
        assert "SLURM_" not in (output(home, "mine") / "env").read_text()


@pytest.mark.slurm
def test_on_slurm(home: Path) -> None:
    """Batch jobs of the cluster that the variables of the user's shell name."""
    with slurm_cluster() as config:
        submit_all(home, "slurm", 2, SLURM_CONF=str(config))
