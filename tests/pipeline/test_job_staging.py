"""The staging beside a job, as its runner starts and ends it; shell scripts stand for both."""

import json
from pathlib import Path

import pytest

from pipeline.jobs.backends.local import LocalBackend
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest, Stage, StagingBeside
from tests.pipeline.test_local_jobs import ended, eventually, local_status, runs, shell

pytestmark = pytest.mark.wide

LOCAL = LocalBackend()


def submit(folder: Path, staging: str, command: str) -> str:
    """Start a job with a staging beside it; its handle."""
    folder.mkdir()
    request = JobRequest(
        "job",
        "train",
        (Stage("train", (shell(command),)),),
        staging=StagingBeside(shell(staging), {"FRAMESIFT_HOME": "/home"}),
    )
    return LOCAL.submit(request, JobPaths(folder), JobQueue(folder), "name")


def test_the_staging_alone_has_keys_and_ends_with_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command begins when the staging says so, without a key; then the staging ends."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("FRAMESIFT_SECRET_KEY", "secret")
    folder, pid = tmp_path / "job", tmp_path / "pid"
    ready = json.dumps({"ready": True, "files": 1, "of_files": 2})
    handle = submit(
        folder,
        f"env; echo $$ > {pid}; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; "
        f"echo '{ready}' > {folder}/staging.json; sleep 600",
        "env; echo trained",
    )
    eventually(lambda: "its staging" in local_status(handle, JobPaths(folder)).waits)
    assert local_status(handle, JobPaths(folder)).state == "staging"
    assert not JobPaths(folder).log("train", 0).exists()
    (tmp_path / "go").touch()
    assert ended(handle, folder).state == "done"
    trained = JobPaths(folder).log("train", 0).read_text()
    assert "trained" in trained
    assert "secret" not in trained
    assert "FRAMESIFT_HOME" not in trained
    staged = JobPaths(folder).log("staging", 0).read_text()
    assert "AWS_SECRET_ACCESS_KEY=secret" in staged
    assert "FRAMESIFT_SECRET_KEY=secret" in staged
    assert not runs(pid)


def test_a_staging_that_fails_before_the_job_begins(tmp_path: Path) -> None:
    """Its own words are the job's error, once."""
    handle = submit(tmp_path / "job", "echo 'error: no such bucket' >&2; exit 1", "echo trained")
    status = ended(handle, tmp_path / "job")
    assert status.state == "failed"
    assert status.error.startswith("no such bucket")
    assert status.error.count("no such bucket") == 1


def test_a_job_whose_staging_ended_says_why(tmp_path: Path) -> None:
    """Beside what its own program says."""
    folder = tmp_path / "job"
    handle = submit(
        folder,
        f"echo '{{\"ready\": true}}' > {folder}/staging.json; sleep 1; "
        f"echo 'error: cache is gone' >&2; touch {tmp_path}/gone; exit 1",
        f"while [ ! -e {tmp_path}/gone ]; do sleep 0.05; done; sleep 1; "
        "echo 'error: frame 7 is not in the cache' >&2; exit 1",
    )
    error = ended(handle, folder).error
    assert "frame 7 is not in the cache" in error
    assert "its staging: cache is gone" in error
