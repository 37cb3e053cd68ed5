"""Jobs that were submitted: how they stand, followed to their end, asked to end."""

import time
from collections.abc import Callable

from catalog.errors import JobFailed
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from catalog.values import now
from pipeline.job_state import FINISHED, UNFINISHED
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.workflow.moves import current, move, paths_of, tasks_of
from pipeline.jobs.workflow.poll import poll
from pipeline.jobs.workflow.reconciler import drive

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.3, 2.0
_SHARE_OF_QUIET = 0.1
"""Between two looks, of the time for which a job's steps have stood as they do: an end is seen so
much later at most."""


def refresh(records: RecordStore, job: Job) -> Job:
    """The job's record, brought to what its backend and its metrics say now."""
    if job.state in FINISHED:
        return job
    poll(records, [job])
    return recorded_job(records, job.name)


def refresh_all(records: RecordStore) -> None:
    """Bring the record of every job that has not ended to what its backend says now.

    One whose backend this version does not know stays as it is.
    """
    poll(records, recorded_jobs(records, states=UNFINISHED))


def wait(
    records: RecordStore,
    job: Job,
    progress: Callable[[Job], None] | None = None,
    queue: JobQueue | None = None,
) -> Job:
    """Follow a job to its end.

    Args:
        records: The records.
        job: The job.
        progress: Told the job after every look at it.
        queue: The home's jobs, which are driven meanwhile where no other process drives them; None
            to look only.

    Raises:
        JobFailed: It failed or was cancelled; the message says why.
    """
    steps, since_s = _steps(job), time.monotonic()
    while True:
        # Who drives has just asked the backends; a scheduler is not asked twice.
        drives = queue is not None and drive(records, queue, goes_on=lambda _: False)
        job = recorded_job(records, job.name) if drives else refresh(records, job)
        if progress is not None:
            progress(job)
        if job.state in FINISHED:
            break
        if (now_steps := _steps(job)) != steps:
            steps, since_s = now_steps, time.monotonic()
        pause_s = _SHARE_OF_QUIET * (time.monotonic() - since_s)
        time.sleep(min(max(pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S))
    if job.state != "done":
        raise JobFailed(job.name, f"job {job.name} {job.state}: {job.error}")
    return job


def _steps(job: Job) -> list[tuple[str, int]]:
    return [(task.state, task.attempt) for task in job.tasks]


def cancel(records: RecordStore, job: Job) -> Job:
    """Ask the job to end, with time for a checkpoint; its record, which shows it once it has.

    Raises:
        StorageError: The job's folder cannot be written.
        JobFailed: The backend does not answer.
    """
    job = refresh(records, job)
    if job.state in FINISHED:
        return job
    with records.session() as session:
        record = session.get_one(Job, job.id)
        record.is_cancelled = True
        task = current(tasks_of(session, record))
        if task is None or record.state in FINISHED:
            return record
        if not task.backend_name:  # nobody has submitted it, and now nobody will
            task.error, task.waits, task.finished = "cancelled", "", now()
            move(session, record, task, "cancelled", "cancelled")
            return record
    backend(task.backend).cancel(task.handle, paths_of(record, task))
    return recorded_job(records, job.name)
