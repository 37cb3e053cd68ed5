"""Drives every job of a home: one look at what runs, then each step that is due.

What it does is decided by the records alone, so a process that drives may be killed anywhere and
the next one goes on. One process of a home drives at a time, the holder of its lock.
"""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

from catalog.errors import CatalogBusy, FramesiftError, StorageError
from catalog.records.jobs import recorded_jobs
from catalog.records.store import RecordStore
from catalog.records.tables import Job, Task
from catalog.values import now
from pipeline.job_state import UNFINISHED
from pipeline.jobs.backends.turn import exclusive
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.workflow.moves import current, move, tasks_of
from pipeline.jobs.workflow.poll import poll
from pipeline.jobs.workflow.submission import name_attempt, submit_attempt, submitting

_LOCK = ".driver"
_LONGEST_WAIT = timedelta(hours=1)
"""Longer than any pause: a task that waits longer was told so by a clock that was wrong."""

Told = Callable[[str], None]


def driving(queue: JobQueue) -> AbstractContextManager[bool]:
    """Hold the lock of the process that drives a home's jobs; gives whether it is held.

    Raises:
        StorageError: The jobs' folder cannot be written.
    """
    return exclusive(queue.folder / _LOCK)


def is_driven(queue: JobQueue) -> bool:
    """Return whether a process drives the home's jobs now."""
    with driving(queue) as is_free:
        return not is_free


def reconcile(records: RecordStore, queue: JobQueue, report: Told | None = None) -> int:
    """Look at every job that has not ended, and start what is due; how many have not ended.

    Args:
        records: All of the home.
        queue: The home's jobs.
        told: Told of each job that could not go on, which is tried again at the next call.

    Raises:
        StorageError: The records cannot be read.
    """
    poll(records, recorded_jobs(records, states=UNFINISHED))
    jobs = recorded_jobs(records, states=UNFINISHED)
    for job in jobs:
        task = current(job.tasks)
        if task is None or not _may_begin(task):
            continue
        try:
            advance(records, queue, job)
        except FramesiftError as error:  # of this job: the others go on
            if report is not None:
                report(f"job {job.name}: {error}")
    return len(jobs)


def advance(records: RecordStore, queue: JobQueue, job: Job, wait_s: float = 0.0) -> None:
    """Start the current task of a job, where that is due.

    Args:
        records: All of the home.
        queue: The home's jobs.
        job: The job.
        wait_s: How long to wait for another process that does it.

    Raises:
        FramesiftError: It cannot be started; its record says so, or it is tried again.
    """
    with submitting(Path(job.paths["folder"]), wait_s) as is_free:
        if is_free:
            while _step(records, queue, job):
                pass


def _step(records: RecordStore, queue: JobQueue, job: Job) -> bool:
    """Do one thing that is due; whether another may be due."""
    with records.session() as session:
        record = session.get(Job, job.id)
        if record is None:
            return False
        task = current(tasks_of(session, record))
        if task is None or not _may_begin(task):
            return False
        is_new = not task.backend_name
        if is_new:
            if record.is_cancelled:
                task.error, task.waits, task.finished = "cancelled", "", now()
                move(session, record, task, "cancelled", "cancelled")
                return False
            if not _is_due(task):
                return False
            name_attempt(record, task)
    submit_attempt(records, queue, job.id, is_new=is_new)
    return False


def _may_begin(task: Task) -> bool:
    return task.state == "pending" and not task.handle


def _is_due(task: Task) -> bool:
    if task.not_before is None:
        return True
    wait = task.not_before - now()
    return wait <= timedelta() or wait > _LONGEST_WAIT


def drive(
    records: RecordStore,
    queue: JobQueue,
    *,
    goes_on: Callable[[int], bool],
    every_s: float = 1.0,
    report: Told | None = None,
) -> bool:
    """Drive a home's jobs for as long as it is to; whether this process did.

    Args:
        records: All of the home.
        queue: The home's jobs.
        goes_on: Told after each look how many jobs have not ended; whether to look again.
        every_s: Between two looks.
        told: Told of each problem.

    Raises:
        StorageError: The jobs' folder cannot be written.
    """
    with driving(queue) as is_free:
        if not is_free:
            return False
        unfinished = 1
        while True:
            try:
                unfinished = reconcile(records, queue, report)
            except (StorageError, CatalogBusy) as error:  # the records come back, or a user ends us
                (report or _print)(str(error))
            if not goes_on(unfinished) or not (queue.folder / _LOCK).exists():
                return True  # it need not, or somebody has removed the home
            time.sleep(every_s)


def _print(line: str) -> None:
    sys.stderr.write(f"{line}\n")
