"""How many jobs one user may have, and how many workers a job."""

from dataclasses import replace
from pathlib import Path

import pytest

from api.schemas.datasets import NewDataset
from api.services.datasets.new_dataset import make_dataset
from api.workspace import Workspace
from catalog.errors import InvalidInput, TooManyJobs
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.tables import Dataset
from pipeline.jobs.follow import cancel, refresh
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import Stage
from pipeline.jobs.state import FINISHED
from pipeline.jobs.submit import JobOrder, Plan, resume, submit
from tests.pipeline.test_local_jobs import eventually, shell

SLEEP = Plan((Stage("train", (shell("sleep 600"),)),))


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """Of which anna sees every frame."""
    return make_dataset(workspace, NewDataset(name="all"), None)


@pytest.mark.attacks
def test_jobs_of_one_user(workspace: Workspace, dataset: Dataset) -> None:
    """Two of anna's at most, waiting or running; one that was cancelled counts no more."""
    records = workspace.limited_to(("1 = 1",), "anna").records
    queue = replace(workspace.job_queue, jobs_each=2)

    def begin() -> str:
        return submit(records, queue, JobOrder("train", "t", None, dataset), lambda _: SLEEP).name

    names = [begin(), begin()]
    try:
        with pytest.raises(TooManyJobs, match="user 'anna' has 2 jobs that wait or run"):
            begin()
        # Who sees every row is not counted, nor are anna's for them.
        wanted = JobOrder("train", "admins", None, dataset)
        names.append(submit(workspace.records, queue, wanted, lambda _: SLEEP).name)
        cancel(records, recorded_job(records, names[0]))
        first = recorded_job(workspace.records, names[0])
        eventually(lambda: refresh(workspace.records, first).state in FINISHED)
        names.append(begin())
        with pytest.raises(TooManyJobs):
            resume(records, queue, recorded_job(records, names[0]))
    finally:
        for name in names:
            cancel(workspace.records, recorded_job(workspace.records, name))
        for name in names:
            job = recorded_job(workspace.records, name)
            eventually(lambda job=job: refresh(workspace.records, job).state in FINISHED)  # type: ignore[misc]


@pytest.mark.attacks
def test_workers_of_one_job(workspace: Workspace, dataset: Dataset) -> None:
    """As many as there are cores, or settings say; nothing is recorded of one that has more."""
    queue = replace(workspace.job_queue, workers=3)
    wanted = JobOrder("train", "t", None, dataset, workers=1024)
    with pytest.raises(InvalidInput, match=r"workers 1,024: .* may have at most 3; ask for fewer"):
        submit(workspace.records, queue, wanted, lambda _: SLEEP)
    assert recorded_jobs(workspace.records) == []


def test_workers_by_default(tmp_path: Path) -> None:
    """What a training has by default is never too many."""
    assert JobQueue(tmp_path).most_workers >= 2
