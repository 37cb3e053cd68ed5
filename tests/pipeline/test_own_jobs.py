"""Whose jobs a user sees; jobs that are removed, compared and followed."""

import json
from pathlib import Path

import pytest

from api.services.accounts.callers import Caller
from api.services.jobs.service import Jobs
from api.services.session import Session
from api.workspace import Workspace
from catalog.accounts import users
from catalog.errors import InUse, NotFound
from catalog.records.jobs import recorded_job, recorded_moves
from catalog.records.tables import Job
from pipeline.jobs.follow import wait
from tests.api.servers import framesift
from tests.pipeline.jobs import submit_commands
from tests.pipeline.test_local_jobs import shell


def begun(workspace: Workspace, user: str, name: str, script: str) -> Job:
    """A user's job that runs a shell script, at its end."""
    queue = session_of(workspace, user).job_queue
    settings = {"script": script}
    job = submit_commands(workspace.records, queue, shell(script), settings=settings, name=name)
    return wait(workspace.records, job, queue=workspace.job_queue)


def jobs_of(workspace: Workspace, user: str, role: str = "dataadmin") -> Jobs:
    """The jobs as a user of a role sees them."""
    return session_of(workspace, user, role).jobs


def session_of(workspace: Workspace, user: str, role: str = "dataadmin") -> Session:
    """The services of a home for a user of a role."""
    try:
        account = users.recorded(workspace.records, user)
    except NotFound:
        account = users.add(workspace.records, user, [role], None)
    return Session(workspace, Caller.of(account, "admin", logged_in=True))


def test_users_see_their_own_jobs_and_admins_all(workspace: Workspace) -> None:
    """Another user's is not told from one that there is not; it cannot be ended or removed."""
    begun(workspace, "anna", "job", "echo hello")
    anna, ben = jobs_of(workspace, "anna"), jobs_of(workspace, "ben")
    assert [job.name for job in anna.list()] == ["job"]
    assert ben.list() == []
    for ask in (ben.get, ben.cancel, ben.timeline, ben.log_sizes, ben.remove, ben.resume):
        with pytest.raises(NotFound) as told:
            ask("job")
        assert str(told.value).replace("'job'", "'none'") == _told(ben)
    assert jobs_of(workspace, "carl", "admin").get("job").state == "done"


def _told(jobs: Jobs) -> str:
    with pytest.raises(NotFound) as told:
        jobs.get("none")
    return str(told.value)


def test_a_job_is_removed_with_all_it_has(workspace: Workspace) -> None:
    """Only when it has ended, and no job that has not uses its model; its name is free again."""
    job = begun(workspace, "anna", "job", "echo hello")
    jobs, records = jobs_of(workspace, "anna"), workspace.records
    with records.session() as session:
        session.add(
            Job(
                name="user", kind="validate", backend="local", state="running", paths={},
                request={"settings": {"model": "job"}},
            )
        )  # fmt: skip
    with pytest.raises(InUse, match="a job that has not ended uses its model"):
        jobs.remove("job")
    with records.session() as session:
        session.query(Job).filter_by(name="user").one().state = "done"
    jobs.remove("job")
    assert not Path(job.paths["folder"]).exists()
    assert recorded_moves(records, job) == []
    with pytest.raises(NotFound):
        jobs.get("job")
    assert begun(workspace, "anna", "job", "echo again").state == "done"
    assert recorded_job(records, "job").tasks[0].state == "done"


@pytest.mark.wide
def test_jobs_are_compared_and_followed_by_commands(workspace: Workspace) -> None:
    """Settings in which they differ, side by side; a log to its end."""
    for name in ("one", "two"):
        begun(workspace, "anna", name, f"echo I am {name}")
    told = framesift(workspace.home, "jobs", "compare", "one", "two", "--json")
    compared = json.loads(told.stdout)
    assert compared["settings"] == {"script": ["echo I am one", "echo I am two"]}
    assert compared["job"]["state"] == ["done", "done"]
    followed = framesift(workspace.home, "jobs", "logs", "one", "--follow")
    assert followed.stdout.endswith("==> work-0.log <==\nI am one\n")
    assert framesift(workspace.home, "jobs", "remove", "one").stdout == "removed job one\n"
