"""Jobs as workflows: tasks, moves, attempts, and what drives them."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from sqlalchemy import select

from api.workspace import Workspace
from catalog.errors import JobFailed
from catalog.records.jobs import recorded_job, recorded_moves
from catalog.records.tables import Job, Task
from pipeline.job_state import FINISHED, JobState
from pipeline.jobs.backends.process import ProcessId
from pipeline.jobs.follow import cancel, refresh, wait
from pipeline.jobs.request import JobPaths
from pipeline.jobs.workflow import poll
from pipeline.jobs.workflow.moves import show
from pipeline.jobs.workflow.reconciler import driving, reconcile
from pipeline.jobs.workflow.transitions import TRANSITIONS, check_move
from tests.pipeline.jobs import submit_commands
from tests.pipeline.test_local_jobs import eventually, shell


@pytest.fixture
def begin(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Job]:
    """Begins a job that runs a shell script; further attempts come without a pause."""
    monkeypatch.setattr(poll, "_FIRST_PAUSE_S", 0.0)

    def begun(script: str, attempts: int = 1) -> Job:
        records, queue = workspace.records, workspace.job_queue
        return submit_commands(records, queue, shell(script), attempts=attempts)

    return begun


def driven(workspace: Workspace, job: Job) -> Job:
    """The job once it has ended, driven by this process."""
    records, queue = workspace.records, workspace.job_queue
    eventually(
        lambda: (
            reconcile(records, queue) is not None
            and recorded_job(records, job.name).state in FINISHED
        )
    )
    return recorded_job(records, job.name)


def output(job: Job) -> list[str]:
    """Lines that the job's command printed."""
    return JobPaths(Path(job.paths["folder"])).log("work", 0).read_text().splitlines()


def moves(workspace: Workspace, job: Job) -> list[tuple[int, str]]:
    """Attempt and state of each move, unless a look came between."""
    listed = recorded_moves(workspace.records, job)
    return [(move.attempt, move.after) for move in listed if move.after != "running"]


def test_every_state_has_its_moves() -> None:
    """The table knows each state; what has ended moves only when it begins again."""
    assert set(TRANSITIONS) == set(get_args(JobState))
    assert {state: TRANSITIONS[state] for state in FINISHED} == {
        "done": {"pending"},
        "failed": {"pending"},
        "cancelled": {"pending"},
    }
    with pytest.raises(JobFailed, match="task run is done, which pending may follow, not running"):
        check_move("run", "done", "running")


def test_a_lost_attempt_is_followed_by_the_next(
    workspace: Workspace, begin: Callable[..., Job]
) -> None:
    """Killed by somebody at its first attempt, done at the second; every move is recorded."""
    job = begin("echo began; [ -e there ] && exit 0; touch there; kill -9 $$", attempts=3)
    done = driven(workspace, job)
    assert (done.state, done.error, done.tasks[0].attempt) == ("done", "", 2)
    assert moves(workspace, done) == [(1, "pending"), (1, "failed"), (1, "pending"), (2, "done")]
    assert output(done) == ["began", "==> attempt 2 <==", "began"]
    assert done.request["attempt"] == 2
    assert done.core_s > 0


def test_attempts_end(workspace: Workspace, begin: Callable[..., Job]) -> None:
    """What is killed each time has failed after as many attempts as it may have."""
    failed = driven(workspace, begin("echo began; kill -9 $$", attempts=2))
    assert (failed.state, failed.tasks[0].attempt) == ("failed", 2)
    assert "was killed by signal 9" in failed.error
    assert output(failed).count("began") == 2


def test_a_fault_of_the_input_is_not_tried_again(
    workspace: Workspace, begin: Callable[..., Job]
) -> None:
    """A program that ends with its own error would end so again."""
    failed = driven(workspace, begin("echo error: no such frame; exit 1", attempts=3))
    assert (failed.state, failed.tasks[0].attempt) == ("failed", 1)
    assert failed.error.startswith("no such frame")


def test_a_submitter_killed_before_it_kept_the_handle(
    workspace: Workspace, begin: Callable[..., Job]
) -> None:
    """The runner is found by its name and not started twice; before it was there, it is started."""
    records = workspace.records
    job = begin("echo began; sleep 1")
    handle = job.handle
    with records.session() as session:
        task = session.scalars(select(Task).where(Task.job_id == job.id)).one()
        task.handle = ""
        show(session, session.get_one(Job, job.id))
    assert recorded_job(records, job.name).handle == ""
    reconcile(records, workspace.job_queue)
    assert recorded_job(records, job.name).handle == handle
    assert driven(workspace, job).state == "done"
    assert output(job) == ["began"]

    never = begin("echo began")
    ProcessId.parse(never.handle).signal(signal.SIGKILL)
    eventually(lambda: not ProcessId.parse(never.handle).is_alive())
    JobPaths(Path(never.paths["folder"])).status.unlink()
    JobPaths(Path(never.paths["folder"])).log("work", 0).unlink(missing_ok=True)
    with records.session() as session:
        task = session.scalars(select(Task).where(Task.job_id == never.id)).one()
        task.handle = ""
    assert driven(workspace, never).state == "done"
    assert output(never) == ["began"]


def test_a_job_is_cancelled_while_it_waits_for_its_next_attempt(
    workspace: Workspace, begin: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what it waits for; cancelled, it ends without another attempt."""
    monkeypatch.setattr(poll, "_FIRST_PAUSE_S", 600.0)
    job = begin("kill -9 $$", attempts=2)
    eventually(lambda: refresh(workspace.records, job).waits.startswith("300 s for attempt 2"))
    assert refresh(workspace.records, job).state == "pending"
    assert cancel(workspace.records, job).state == "cancelled"
    reconcile(workspace.records, workspace.job_queue)
    ended = recorded_job(workspace.records, job.name)
    assert (ended.state, ended.tasks[0].attempt) == ("cancelled", 2)


def test_one_process_drives(workspace: Workspace, begin: Callable[..., Job]) -> None:
    """A second one is told no; a client that follows a job drives where nobody does."""
    queue = workspace.job_queue
    with driving(queue) as first, driving(queue) as second:
        assert (first, second) == (True, False)
    job = begin("[ -e there ] && exit 0; touch there; kill -9 $$", attempts=2)
    assert wait(workspace.records, job, queue=queue).state == "done"


def test_a_clock_that_jumps_back_holds_no_attempt_for_ever(
    workspace: Workspace, begin: Callable[..., Job]
) -> None:
    """A task that is told to wait for years begins: no pause is that long."""
    job = begin("[ -e there ] && exit 0; touch there; kill -9 $$", attempts=2)
    eventually(lambda: refresh(workspace.records, job).tasks[0].attempt == 2)
    with workspace.records.session() as session:
        task = session.scalars(select(Task).where(Task.job_id == job.id)).one()
        assert task.not_before is not None
        task.not_before = task.not_before.replace(year=task.not_before.year + 20)
    assert driven(workspace, job).state == "done"


def test_the_runner_is_gone(workspace: Workspace, begin: Callable[..., Job]) -> None:
    """A runner that was killed is a machine that was lost: the next attempt goes on."""
    job = begin("[ -e there ] && exit 0; touch there; exec sleep 600", attempts=2)
    eventually(lambda: (Path(job.paths["folder"]) / "there").exists())
    os.kill(ProcessId.parse(job.handle).pid, signal.SIGKILL)
    assert driven(workspace, job).state == "done"
