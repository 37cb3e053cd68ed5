"""How many jobs one user may have, and how many workers a job."""

from dataclasses import replace
from pathlib import Path

import pytest

from api.schemas.new_datasets import NewDataset
from api.services.accounts.callers import Caller
from api.services.call import Call
from api.services.datasets.new_dataset import make_dataset
from api.workspace import Workspace
from catalog.accounts import users
from catalog.errors import InvalidInput, TooManyJobs
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.tables import Dataset, Job
from catalog.values import Owner
from pipeline.job_state import FINISHED
from pipeline.jobs.accounting.quotas import check_quota
from pipeline.jobs.follow import cancel, refresh
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.resources import Resources
from pipeline.jobs.submit import check_resumable, resume
from tests.pipeline.jobs import submit_commands
from tests.pipeline.test_local_jobs import eventually, shell

SLEEP = shell("sleep 600")


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """Of which anna sees every frame."""
    return make_dataset(workspace, NewDataset(name="all"), None)


def test_a_quota_counts_one_user_s_unfinished_jobs(workspace: Workspace, tmp_path: Path) -> None:
    """Neither ended ones nor those of a user whose name begins alike; the last one may be had."""
    records = workspace.records
    jobs = [
        ("anna", "running", 2),
        ("anna", "queued", 1),
        ("anna", "done", 9),
        ("anna2", "running", 5),
    ]
    with records.session() as session:
        session.add_all(
            Job(
                name=f"j{number}", kind="train", backend="local", state=state, user=user,
                request={"resources": {"ranks": ranks}},
            )
            for number, (user, state, ranks) in enumerate(jobs)
        )  # fmt: skip
    queue = JobQueue(tmp_path, user="anna", jobs_each=3, ranks_each=4)
    check_quota(records, queue, 1)
    with pytest.raises(TooManyJobs, match="user 'anna' has 2 jobs"):
        check_quota(records, replace(queue, jobs_each=2), 1)
    with pytest.raises(TooManyJobs, match=r"user 'anna' has 3 ranks .* of 4 "):
        check_quota(records, queue, 2)
    check_quota(records, replace(queue, ranks_each=None), 99)
    check_quota(records, replace(queue, user="otto", jobs_each=1), 4)


def test_a_job_that_is_being_cancelled_is_told_of() -> None:
    """It has time to end, in which nothing goes on with it; one that nobody cancelled just runs."""
    job = Job(name="slow", kind="train", state="running", is_cancelled=True)
    with pytest.raises(InvalidInput, match="job slow is being cancelled: framesift jobs wait slow"):
        check_resumable(job)
    job.is_cancelled = False
    with pytest.raises(InvalidInput, match=r"job slow is running: .* once it has ended"):
        check_resumable(job)


@pytest.mark.attacks
def test_jobs_of_one_user(workspace: Workspace, dataset: Dataset) -> None:
    """Two of anna's at most, waiting or running; a cancelled one does not count."""
    records = workspace.limited_to(("1 = 1",), Owner("anna")).records
    queue = replace(workspace.job_queue, jobs_each=2)

    def begin() -> str:
        job = submit_commands(records, queue, SLEEP, kind="train", base="t", dataset=dataset)
        return job.name

    names = [begin(), begin()]
    try:
        with pytest.raises(TooManyJobs, match="user 'anna' has 2 jobs that wait or run, as many"):
            begin()
        # Who sees every row is not counted, nor are anna's for them.
        admins = submit_commands(workspace.records, queue, SLEEP, kind="train", dataset=dataset)
        names.append(admins.name)
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
def test_quota_of_an_account(workspace: Workspace, dataset: Dataset) -> None:
    """Jobs and ranks of one who sees every row; what settings say where the account does not."""
    records = workspace.records
    user = users.add(records, "otto", ["dataadmin"], None)
    caller = Caller.of(user, "write", logged_in=False)
    sleeping: list[str] = []

    def begin(ranks: int) -> None:
        queue, resources = Call(workspace, caller).job_queue, Resources(ranks=ranks)
        job = submit_commands(
            records, queue, SLEEP, kind="train", dataset=dataset, resources=resources
        )
        sleeping.append(job.name)

    users.change(records, "otto", most_jobs=1, most_ranks=3)
    begin(2)
    try:
        with pytest.raises(TooManyJobs, match="user 'otto' has 1 jobs that wait or run, as many"):
            begin(1)
        users.change(records, "otto", most_jobs=0)
        with pytest.raises(TooManyJobs, match=r"has 2 ranks .* of 3 .*: ask for at most 1, wait"):
            begin(2)
        begin(1)
        with pytest.raises(TooManyJobs, match=r"has 3 ranks .* of 3 that the user may: wait for"):
            begin(1)
        users.change(records, "otto", most_ranks=0)
        assert Call(workspace, caller).job_queue.ranks_each == 1024
        command = Call(workspace, is_command=True).job_queue
        assert (command.jobs_each, command.ranks_each) == (None, None)
    finally:
        for name in sleeping:
            cancel(records, recorded_job(records, name))
            job = recorded_job(records, name)
            eventually(lambda job=job: refresh(records, job).state in FINISHED)  # type: ignore[misc]


@pytest.mark.attacks
def test_workers_of_one_job(workspace: Workspace, dataset: Dataset) -> None:
    """As many as there are cores, or settings say; nothing is recorded of one that has more."""
    queue = replace(workspace.job_queue, workers=3)
    resources = Resources(ranks=1024)
    with pytest.raises(InvalidInput, match=r"workers 1,024: .* may have at most 3; ask for fewer"):
        submit_commands(
            workspace.records, queue, SLEEP, kind="train", dataset=dataset, resources=resources
        )
    assert recorded_jobs(workspace.records) == []


def test_workers_by_default(tmp_path: Path) -> None:
    """What a training has by default is never too many."""
    assert JobQueue(tmp_path).most_workers >= 2
