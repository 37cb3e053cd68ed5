"""Submits a task's attempt once, also where the submitting process is killed.

The attempt's name is recorded before the backend is asked, and the handle afterwards. A process
that submits holds the job's lock meanwhile; so where the lock is free and the handle is missing,
the submitter has ended, and the backend says whether it knows the name.
"""

import os
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from catalog.errors import FramesiftError, StorageError
from catalog.records.store import RecordStore
from catalog.records.tables import Job, Task
from catalog.traces.spans import span
from catalog.values import now
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.backends.turn import exclusive
from pipeline.jobs.environment import inherited, need_inherited
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.workflow.moves import (
    attempt_name,
    current,
    move,
    paths_of,
    request_of,
    show,
    tasks_of,
)
from pipeline.jobs.workflow.owners import check_owner
from pipeline.jobs.workflow.traces import about, parent_of

_LOCKS = ".submitting"
_WAIT_S = 60.0


def submitting(folder: Path, wait_s: float = _WAIT_S) -> AbstractContextManager[bool]:
    """Hold the lock of a job's submissions for the block; gives whether it is held.

    Args:
        folder: The job's.
        wait_s: How long to wait for another process that submits.

    Raises:
        StorageError: The jobs' folder cannot be written.
    """
    return exclusive(lock_of(folder), wait_s)


def lock_of(folder: Path) -> Path:
    """The lock file of a job's submissions, beside the jobs' folders."""
    return folder.parent / _LOCKS / f"{folder.name}.lock"


def name_attempt(job: Job, task: Task) -> None:
    """Name a task's attempt, to be committed before it is submitted."""
    task.backend_name, task.submitted, task.waits = attempt_name(job, task), now(), ""


def submit_attempt(records: RecordStore, queue: JobQueue, job_id: int, *, is_new: bool) -> None:
    """Submit the named attempt of a job's current task; under the lock of `submitting`.

    Args:
        records: All of the home.
        queue: The home's jobs.
        job_id: The job.
        is_new: Whether nobody can have submitted it before.

    Raises:
        NotAllowed: The job's owner may not have it go on any more; the task has failed.
        StorageError: The job's folder cannot be written; the task has failed.
        InvalidInput: A variable that it needs is not there; the task has failed.
        JobFailed: The backend refuses it, and the task has failed; or it does not say whether it
            knows the attempt, and nothing has changed.
    """
    with records.reading() as session:
        job = session.get_one(Job, job_id)
        task = current(tasks_of(session, job))
    if task is None or task.state != "pending" or task.handle or not task.backend_name:
        return
    chosen, paths, name = backend(task.backend), paths_of(job, task), task.backend_name
    handle = None if is_new else chosen.find(name, paths)
    if handle is None:
        try:
            check_owner(records, job)
            paths.folder.mkdir(parents=True, exist_ok=True)
            request = replace(request_of(job, task), attempt=task.attempt)
            variables = inherited(os.environ, request.needs, queue.inherits, request.submitted)
            need_inherited(request.resources.environment, variables)
            with span("job submit", about(job, task), parent=parent_of(job)):
                handle = chosen.submit(request, paths, queue, name)
        except (OSError, FramesiftError) as error:
            fail(records, job_id, task.id, str(error))
            if isinstance(error, OSError):
                raise StorageError(
                    f"{paths.folder}: {error.strerror}", str(paths.folder)
                ) from error
            raise
    with records.session() as session:
        record, stored = session.get_one(Job, job_id), session.get_one(Task, task.id)
        stored.handle = handle
        show(session, record)


def fail(records: RecordStore, job_id: int, task_id: int, error: str) -> None:
    """Record that a task failed before it ran."""
    with records.session() as session:
        job, task = session.get_one(Job, job_id), session.get_one(Task, task_id)
        task.error, task.waits, task.finished = error, "", now()
        move(session, job, task, "failed", error)
