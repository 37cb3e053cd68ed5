"""The variables of a job: of the shell that submitted it, whichever process starts its programs."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from pipeline.jobs.environment import inherited, submitted_variables
from tests.api.servers import framesift, serving, until_driven, wait_until
from tests.pipeline.homes import copy_home

SHOWS = (
    "sh -c 'env > {job}/env; [ -e {job}/../go ] || exit 3; "
    'python -c "import sys; print(sys.prefix)" > {job}/python\''
)
SERVERS = {"NCCL_IB_DISABLE": "0", "NCCL_DEBUG": "INFO", "FRAMESIFT_RUN_PROGRAMS": "users"}
SHELLS = {
    "NCCL_IB_DISABLE": "1", "NCCL_IB_DISABLE_NOT": "2", "OMP_NUM_THREADS": "3",
    "FRAMESIFT_JOB_ENVIRONMENT": "MY_*", "MY_SETTING": "a 'b' $c", "MY_TOKEN": "hidden",
    "MY_URL": "https://me:hidden@host/", "AWS_SECRET_ACCESS_KEY": "hidden",
    "NCCL_KEY": "hidden", "OTHER": "hidden", "SLURM_JOB_ID": "hidden", "SLURM_PROCID": "hidden",
    "LSB_JOBID": "hidden", "PMIX_RANK": "hidden", "OMPI_COMM_WORLD_RANK": "hidden",
    "SLURM_CONF": "/clusters/mine.conf",
}  # fmt: skip


@pytest.fixture
def home(catalogued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose server has variables of its own; no environment of Python's is active."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    return copy_home(catalogued, tmp_path)


@pytest.fixture
def url(home: Path) -> Iterator[str]:
    """The server, which drives the home's jobs."""
    with serving(home, variables=SERVERS) as (url, _):
        until_driven(home)
        yield url


def output(home: Path, job: str) -> Path:
    """Folder of what a program made."""
    return home / "jobs" / job / "output"


def variables_of(home: Path, job: str) -> dict[str, str]:
    """The variables that a program had."""
    lines = (output(home, job) / "env").read_text().splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


@pytest.mark.wide
def test_a_job_has_the_variables_of_the_shell_that_submitted_it(home: Path, url: str) -> None:
    """A server starts its steps, and a resume from another shell its next attempt; none leaks.

    No secret is in the records or in a job's folder, and over REST the server's variables count.
    """
    asked = ("--range", "car=1:", "--limit", "2", "--command", SHOWS)
    needs = ("--resource", "environment=NCCL_IB_DISABLE", "--resource", "environment=MY_SETTING")
    mine = framesift(home, "run", *asked, *needs, "--name", "mine", variables=SHELLS)
    assert mine.returncode == 1, mine.stderr
    assert "run 0 ended with exit code 3; see " in mine.stderr
    (home / "jobs" / "mine" / "go").touch()
    other = {"NCCL_IB_DISABLE": "9", "NCCL_DEBUG": "WARN", "MY_SETTING": "other"}
    again = framesift(home, "jobs", "resume", "mine", variables=other)
    assert again.returncode == 0, again.stderr
    had = variables_of(home, "mine")
    expected = {name: SHELLS[name] for name in list(SHELLS)[:3]} | {"MY_SETTING": "a 'b' $c"}
    assert {name: had.get(name) for name in (*expected, "NCCL_DEBUG")} == {
        **expected, "NCCL_DEBUG": None,
    }  # fmt: skip
    assert "hidden" not in str(had)
    assert (output(home, "mine") / "python").read_text().strip() == sys.prefix
    result = json.loads((home / "jobs" / "mine" / "result.json").read_text())
    computes = {"NCCL_IB_DISABLE": "1", "NCCL_IB_DISABLE_NOT": "2", "OMP_NUM_THREADS": "3"}
    assert computes.items() <= result["lineage"]["environment"].items()
    assert "PATH" not in result["lineage"]["environment"]
    files = [file for file in home.rglob("*") if file.is_file() and "cache" not in file.parts]
    assert [file for file in files if b"hidden" in file.read_bytes()] == []
    body = {"kind": "run", "question": {"limit": 1}, "command": SHOWS, "name": "theirs"}
    assert httpx.post(f"{url}/v1/jobs", json=body).status_code == 202
    wait_until(lambda: httpx.get(f"{url}/v1/jobs/theirs").json()["state"] == "failed")
    theirs = variables_of(home, "theirs")
    assert (theirs["NCCL_IB_DISABLE"], theirs["NCCL_DEBUG"]) == ("0", "INFO")


@pytest.mark.wide
def test_a_secret_that_the_driver_lacks_is_named(home: Path, url: str) -> None:
    """A job that cannot do without it does not begin without it."""
    done = framesift(
        home, "run", "--range", "car=1:", "--command", "true", "--resource",
        "environment=MY_TOKEN", variables=SHELLS,
    )  # fmt: skip
    assert done.returncode == 1
    assert "environment MY_TOKEN: no record keeps a secret, or what is of one " in done.stderr


@pytest.mark.wide
def test_an_active_environment_goes_before_our_own(home: Path, tmp_path: Path) -> None:
    """`python` is the one that the user's shell would start, where one is activated there."""
    python = tmp_path / "theirs" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho theirs\n")
    python.chmod(0o755)
    program = "sh -c 'python > {job}/python'"
    done = framesift(
        home, "run", "--range", "car=1:", "--limit", "1", "--name", "mine", "--command", program,
        variables={
            "PATH": f"{python.parent}:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(tmp_path / "theirs"),
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (output(home, "mine") / "python").read_text() == "theirs\n"


@pytest.mark.parametrize("submitted", [None, {}, {"TZ": "Asia/Kolkata", "MY_SETTING": "kept"}])
def test_what_a_record_keeps_is_in_the_place_of_the_drivers(
    submitted: Mapping[str, str] | None,
) -> None:
    """Whatever of that kind the driver has; what is of a machine or login, or secret, is its."""
    further = ("MY_*", "SSH_AUTH_SOCK")
    own = {"HOME": "/srv", "MY_TOKEN": "its", "SSH_AUTH_SOCK": "/tmp/its"}
    driver = {**own, "TZ": "UTC", "MY_SETTING": "its", "OTHER": "its"}
    of_driver = {"TZ": "UTC", "MY_SETTING": "its"} if submitted is None else submitted
    assert inherited(driver, (), further, submitted) == {**own, **of_driver}
    logins = {"MY_URL": "s3://me:it@h", "MY_GIT": "https://it@h"}
    kept = submitted_variables({**driver, **logins}, further)
    assert kept == {"TZ": "UTC", "MY_SETTING": "its"}
