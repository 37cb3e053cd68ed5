"""A job's rights when a step of it begins: those that its owner's account has by then."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from api.services.accounts.owners import caller_of
from api.services.jobs.owners import check_begin
from api.services.jobs.steps import do_step
from api.services.session import Session
from api.workspace import Workspace
from catalog.accounts import row_collections, users
from catalog.errors import NotAllowed
from catalog.records.datasets import recorded_datasets
from catalog.records.jobs import recorded_job
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from catalog.values import Owner
from pipeline.job_state import FINISHED
from pipeline.jobs.accounting.usage import job_usage
from pipeline.jobs.follow import refresh
from query.question.question import Question
from tests.api.servers import wait_until
from tests.pipeline.homes import FRAMES, REPOSITORY
from tests.pipeline.jobs import submit_commands
from tests.pipeline.test_local_jobs import shell

NAMES = ("anna", "anna-lena", "otto")
VISIBLE = "filename like '%/20260311_130314/%'"
EVERY_ROW = Question()


@pytest.fixture
def home(workspace: Workspace) -> Iterator[Workspace]:
    """Three collection admins, each with one collection; one command at a time runs here."""
    users.add(workspace.records, "root", ["admin"], None)
    row_collections.add(workspace.records, "some", VISIBLE)
    for name in NAMES:
        users.add(workspace.records, name, ["collectionadmin"], None)
        row_collections.assign(workspace.records, "some", name)
    opened = Workspace(replace(workspace.settings, command_slots=1))
    yield opened
    opened.close()


def session_of(home: Workspace, name: str) -> Session:
    """The services of the home, for a user."""
    owner = Owner(name, users.recorded(home.records, name).account)
    return Session(home, caller_of(home.records, owner, "admin", "a test", "mend it"))


def waiting_jobs(home: Workspace, *names: str) -> tuple[Job, list[Job]]:
    """A job that has the only slot, and one of each user whose first step waits for it."""
    sleeper = submit_commands(home.records, home.job_queue, shell("sleep 600"))
    wait_until(lambda: refresh(home.records, sleeper).state == "running")
    jobs = [
        session_of(home, name)
        .jobs.train(question=EVERY_ROW, name="mine", save_as="mine", workers=1, max_steps=1)
        .name
        for name in names
    ]
    return sleeper, [recorded_job(home.records, name) for name in jobs]


def ended(home: Workspace, job: Job) -> Job:
    """A job once no step of it goes on, driven by nobody."""

    def is_still() -> bool:
        now = refresh(home.records, job)
        return now.state in FINISHED or now.tasks[0].state in FINISHED

    wait_until(is_still)
    return recorded_job(home.records, job.name)


def make_room(home: Workspace, sleeper: Job) -> None:
    """End the job that has the only slot."""
    Session(home, is_command=True).jobs.cancel(sleeper.name)


@pytest.mark.wide
def test_a_removed_user_s_jobs_are_cancelled(home: Workspace) -> None:
    """And nothing is made of a waiting one; the others', of like names too, go on with their rows.

    A later user of the name sees no job of the former one, nor its usage.
    """
    sleeper, jobs = waiting_jobs(home, *NAMES)
    admin = session_of(home, "root")
    admin.users.remove("anna")
    users.add(home.records, "anna", ["dataadmin"], None)
    make_room(home, sleeper)
    states = [ended(home, job) for job in jobs]
    assert states[0].state == "cancelled"
    assert [job.tasks[0].state for job in states[1:]] == ["done", "done"]
    made = {dataset.name: dataset for dataset in recorded_datasets(home.records)}
    assert set(made) == {"anna-lena~mine", "otto~mine"}
    assert all(0 < dataset.frames < FRAMES for dataset in made.values())
    for job in states[1:]:
        admin.jobs.cancel(job.name)
    later = session_of(home, "anna")
    assert later.jobs.list() == []
    assert later.jobs.usage() == []
    names = {name for (name,) in job_usage(home.records, "user")}
    assert names == {"anna (removed)", "anna-lena", "otto", ""}


def _removed(records: RecordStore) -> None:
    """As a process leaves it that is killed before it cancels the user's jobs."""
    users.remove(records, "anna")


def _removed_and_added(records: RecordStore) -> None:
    users.remove(records, "anna")
    users.add(records, "anna", ["admin"], None)


def _disabled(records: RecordStore) -> None:
    users.change(records, "anna", disabled=True)


def _demoted(records: RecordStore) -> None:
    users.change(records, "anna", roles=["datauser"])


@pytest.mark.wide
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_removed, "owner anna was removed"),
        (_removed_and_added, "owner anna was removed"),
        (_disabled, "owner anna is disabled"),
        (_demoted, "owner anna may not write any more"),
    ],
)
def test_a_step_begins_by_the_account_s_rights(
    home: Workspace, change: Callable[[RecordStore], object], why: str
) -> None:
    """A waiting job's step fails with a sentence and makes nothing; nor is a step submitted.

    The jobs of two others, one of a like name, go on.
    """
    sleeper, jobs = waiting_jobs(home, *NAMES)
    change(home.records)
    for job in (*jobs, sleeper):
        Session(home, is_command=True).jobs.cancel(job.name)
    with pytest.raises(NotAllowed, match=why):
        do_step(home, Path(jobs[0].paths["folder"]), "select", print)
    assert recorded_datasets(home.records) == []
    with pytest.raises(NotAllowed, match=why):
        check_begin(home, jobs[0].name)
    wait_until(lambda: all(refresh(home.records, job).state in FINISHED for job in jobs))
    with pytest.raises(NotAllowed, match=why):
        Session(home, is_command=True).jobs.resume(jobs[0].name)
    assert why in recorded_job(home.records, jobs[0].name).error
    for job in jobs[1:]:
        do_step(home, Path(job.paths["folder"]), "select", print)
        check_begin(home, job.name)
    made = {dataset.name: dataset.frames for dataset in recorded_datasets(home.records)}
    assert set(made) == {"anna-lena~mine", "otto~mine"}
    assert all(0 < frames < FRAMES for frames in made.values())


@pytest.mark.wide
def test_a_process_of_a_job_says_why_it_may_not_begin(home: Workspace) -> None:
    """A step, an order of the home's own and a staging beside a job, each in its own process."""
    sleeper, (job,) = waiting_jobs(home, "anna")
    users.change(home.records, "anna", disabled=True)
    make_room(home, sleeper)
    assert "owner anna is disabled" in ended(home, job).tasks[0].error
    folder = job.paths["folder"]
    staging = ("--dataset", "none@1", "--cache", str(home.cache), "--readers", "1")
    for step in (("run",), ("beside", *staging)):
        told = _process(home, "api.cli.job_step", folder, *step)
        assert (told.returncode, told.stdout) == (1, "")
        assert told.stderr == (
            f"error: job {job.name}: its owner anna is disabled; another user may submit it anew\n"
        )


@pytest.mark.wide
def test_a_demoted_user_s_job_has_the_rows_of_the_role(home: Workspace) -> None:
    """A data admin's waiting job, whose user is a collection admin by now, finds their rows."""
    users.change(home.records, "anna", roles=["dataadmin"])
    sleeper, (job,) = waiting_jobs(home, "anna")
    users.change(home.records, "anna", roles=["collectionadmin"])
    make_room(home, sleeper)
    assert ended(home, job).tasks[0].state == "done"
    (made,) = recorded_datasets(home.records)
    assert 0 < made.frames < FRAMES
    assert (made.name, made.owner) == ("anna~mine", "anna")


def test_a_later_user_of_the_name_does_not_own_datasets(home: Workspace) -> None:
    """Nor is told how the former one's was chosen; a quota counts the account's own jobs."""
    session = session_of(home, "anna")
    session.datasets.create("mine")
    users.remove(home.records, "anna")
    users.add(home.records, "anna", ["collectionadmin"], None)
    row_collections.assign(home.records, "some", "anna")
    later = session_of(home, "anna")
    body = later.datasets.get("anna~mine")
    assert (body.owner, body.question) == ("", {})


def _process(home: Workspace, module: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", module, *arguments],
        env={**os.environ, "FRAMESIFT_HOME": str(home.home), "PYTHONPATH": str(REPOSITORY)},
        cwd=home.home,
        capture_output=True,
        text=True,
        check=False,
    )
