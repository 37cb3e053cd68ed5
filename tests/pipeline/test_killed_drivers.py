"""A home's driver killed anywhere, and disks that are full: what comes out is the same."""

import os
import random
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import JobFailed, StorageError
from catalog.records.datasets import recorded_datasets
from catalog.records.jobs import recorded_job
from pipeline.job_state import FINISHED
from pipeline.jobs.follow import wait
from pipeline.jobs.plan import Plan
from pipeline.jobs.request import JobPaths, Stage
from pipeline.jobs.submit import submit
from pipeline.jobs.work import Work
from query.question.label_range import LabelRange
from query.question.question import Question
from tests.api.servers import FRAMESIFT, environment
from tests.disks import small_disk
from tests.pipeline.clusters import BACKENDS, cluster_of
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.jobs import submit_commands
from tests.pipeline.test_local_jobs import shell

_KILLED_TIMES = 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "seed"),
    [*(("local", seed) for seed in range(3)), *((backend, 0) for backend in BACKENDS)],
)
def test_a_driver_that_is_killed_anywhere(
    backend: str, seed: int, catalogued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Again and again: each step is done, the program ran once, the dataset is one version."""
    workspace = open_home(copy_home(catalogued, tmp_path))
    with ExitStack() as stack:
        if backend != "local":
            cluster = stack.enter_context(cluster_of(backend, tmp_path, workspace.home))
            for variable, value in cluster.items():
                monkeypatch.setenv(variable, value)
        jobs = Session(workspace, is_command=True).jobs
        cars = Question(ranges=(LabelRange(tag="car", lowest=1),), limit=2)
        command = "sh -c 'echo ran >> {job}/ran'"
        name = jobs.run(None, command, question=cars, attempts=3, backend=backend).name
        pauses = random.Random(seed)
        daemon = [str(FRAMESIFT), "jobs", "daemon", "--until-done"]
        env = environment(workspace.home)
        for _ in range(_KILLED_TIMES):
            driver = subprocess.Popen(daemon, env=env, start_new_session=True)
            time.sleep(pauses.uniform(1.0, 6.0))
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
        subprocess.run(daemon, env=env, check=True, timeout=600)
    job = recorded_job(workspace.records, name)
    assert (job.state, job.error) == ("done", "")
    assert (Path(job.paths["output"]) / "ran").read_text() == "ran\n"
    assert [task.attempt for task in job.tasks] == [1] * len(job.tasks)
    assert [dataset.version for dataset in recorded_datasets(workspace.records)] == [1]


def test_a_disk_that_is_full_when_a_job_begins(workspace: Workspace) -> None:
    """The record says so, and nothing runs; with room again, the job is resumed."""
    folder = workspace.jobs / "job"
    folder.parent.mkdir(parents=True)
    # A folder cannot be made where a file lies: as little as on a disk without room.
    work = Work((Stage("work", (shell("echo hello"),)),), writes=(folder.touch,))
    plan = Plan("job", "scan", JobPaths(folder), work=work)
    with pytest.raises(StorageError, match=str(folder)):
        submit(workspace.records, workspace.job_queue, lambda: plan)
    job = recorded_job(workspace.records, "job")
    assert job.state == "failed"
    assert job.state in FINISHED
    assert str(folder) in job.error
    folder.unlink()
    jobs = Session(workspace, is_command=True).jobs
    jobs.resume("job")
    assert jobs.wait("job", progress=lambda _: None).state == "done"


def test_a_disk_that_is_full_while_a_job_runs(workspace: Workspace) -> None:
    """It has failed once, and says why; resumed without room it fails at once; then it ends."""
    records, queue = workspace.records, workspace.job_queue
    with small_disk(workspace.jobs, "size=400k") as disk:
        big, room = disk / "job" / "big", workspace.home / "room"
        script = f"[ -e {room} ] || cat /dev/zero > {big}"
        job = submit_commands(records, queue, shell(script), name="job", attempts=3)
        with pytest.raises(JobFailed, match=r"work 0 ended with exit code 1.*is full: make room"):
            wait(records, job, queue=queue)
        assert recorded_job(records, "job").tasks[0].attempt == 1
        jobs = Session(workspace, is_command=True).jobs
        with pytest.raises(StorageError, match="No space left on device"):
            jobs.resume("job")
        assert "No space left on device" in jobs.get("job").error
        big.unlink()
        room.touch()
        jobs.resume("job")
        assert jobs.wait("job", progress=lambda _: None).state == "done"
