"""A job's tasks in the records: made, found, moved from state to state."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.records.tables import Job, Task, TaskMove
from catalog.traces.spans import VARIABLE
from catalog.values import now
from pipeline.job_state import FINISHED, JobState
from pipeline.jobs.request import JobPaths, JobRequest
from pipeline.jobs.workflow.task_paths import POSITIONS, RUN, step_paths
from pipeline.jobs.workflow.transitions import check_move

ASKED = "asked"
"""The key of a job's request where its steps find what was asked for (api.services.jobs.steps)."""

TRACEPARENT = "traceparent"
"""The key of a job's request that says which span its spans belong to; absent without traces."""

_FETCHING = ("stage", "fetch", "prepare")
"""Tasks that bring frames near the job: while one runs, the job is staging."""


def new_task(
    name: str,
    *,
    most_attempts: int = 1,
    backend: str = "local",
    request: Mapping[str, Any] = {},
) -> Task:
    """A pending task that is in no record yet.

    Args:
        name: One of POSITIONS.
        most_attempts: Attempts that begin without a user's word where one is lost.
        backend: Where it runs.
        request: What its backend is handed, where that is not the job's.
    """
    return Task(
        position=POSITIONS[name],
        name=name,
        state="pending",
        attempt=1,
        most_attempts=most_attempts,
        backend=backend,
        request=dict(request),
    )


def add_task(session: Session, job: Job, task: Task) -> None:
    """Record a job's task."""
    task.job_id = job.id
    session.add(task)
    session.add(TaskMove(job_id=job.id, task=task.name, attempt=1, before="", after="pending"))
    session.flush()


def tasks_of(session: Session, job: Job) -> list[Task]:
    """A job's tasks in their order."""
    query = select(Task).where(Task.job_id == job.id).order_by(Task.position)
    return list(session.scalars(query))


def current(tasks: Sequence[Task]) -> Task | None:
    """The first task that is not done; None where all are."""
    return next((task for task in tasks if task.state != "done"), None)


def paths_of(job: Job, task: Task) -> JobPaths:
    """The files of a task: of `run` the job's own, of each other those of a folder in it."""
    return step_paths(Path(job.paths["folder"]), task.name)


def move(session: Session, job: Job, task: Task, state: JobState, why: str = "") -> None:
    """Move a task to another state, and its job with it.

    Raises:
        JobFailed: The table of transitions lacks the move.
    """
    before = cast(JobState, task.state)
    check_move(task.name, before, state)
    session.add(
        TaskMove(
            job_id=job.id, task=task.name, attempt=task.attempt, before=before, after=state, why=why
        )
    )
    task.state = state
    show(session, job)


def show(session: Session, job: Job) -> None:
    """Have a job's record say what its tasks do."""
    session.flush()
    tasks = tasks_of(session, job)
    task = current(tasks)
    if task is None:
        job.state, job.error, job.waits = "done", "", ""
        job.finished = max((one.finished for one in tasks if one.finished), default=now())
    else:
        is_fetching = task.name in _FETCHING and task.state == "running"
        job.state = "staging" if is_fetching else task.state
        job.error = task.error if task.state in FINISHED else ""
        job.waits = task.waits
        job.finished = task.finished if task.state in FINISHED else None
    job.started = min((one.started for one in tasks if one.started), default=None)
    run = next((one for one in tasks if one.name == RUN), None)
    if run is not None:
        job.handle, job.submitted = run.handle, run.submitted


def next_attempt(
    session: Session, job: Job, task: Task, *, not_before: datetime | None = None, waits: str = ""
) -> None:
    """Have a task that failed or was cancelled begin its next attempt."""
    move(session, job, task, "pending", waits)
    task.attempt += 1
    task.backend_name = task.handle = task.error = ""
    task.waits, task.not_before = waits, not_before
    task.submitted = task.started = task.finished = None
    if task.name == RUN:
        job.request = {**job.request, "attempt": task.attempt}
    show(session, job)


def attempt_name(job: Job, task: Task) -> str:
    """The name by which a backend knows a task's attempt, the same however often it is asked for.

    With the moment when the job was made: another job of that name, later or of another home, has
    another one.
    """
    microseconds = int(job.created.timestamp() * 1_000_000)
    return f"framesift-{microseconds:x}-{job.name}-{task.name}-{task.attempt}"


def request_of(job: Job, task: Task) -> JobRequest:
    """The request that a task runs."""
    of_task = job.request if task.name == RUN else task.request
    request = JobRequest.from_json({**of_task, "attempt": task.attempt})
    parent = job.request.get(TRACEPARENT)
    return request if parent is None else _traced(request, parent)


def _traced(request: JobRequest, parent: str) -> JobRequest:
    """A request whose programs are told what their spans belong to."""
    told = {VARIABLE: parent}
    staging = request.staging
    if staging is not None:
        staging = replace(staging, environment={**staging.environment, **told})
    return replace(request, environment={**request.environment, **told}, staging=staging)
