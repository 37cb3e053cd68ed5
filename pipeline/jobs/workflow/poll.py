"""Brings jobs' records to what their backends say, with one question to each backend."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.errors import JobFailed, StorageError, UnknownName
from catalog.records.store import RecordStore
from catalog.records.tables import Job, Task
from catalog.values import now
from pipeline.job_state import FINISHED
from pipeline.jobs.accounting.used import add_used
from pipeline.jobs.backends.interface import JobStatus
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.metrics import job_metrics
from pipeline.jobs.workflow.moves import current, move, next_attempt, paths_of, show
from pipeline.jobs.workflow.submission import submitting
from pipeline.jobs.workflow.task_paths import RUN
from pipeline.jobs.workflow.traces import span_of_attempt

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 10.0, 300.0
"""Before an attempt that begins without a user's word; twice as long before each further one."""


def poll(records: RecordStore, jobs: Sequence[Job]) -> None:
    """Bring the records of those that have not ended to what their backends say now.

    A job whose backend this version does not know stays as it is.
    """
    tasks = _current_tasks(records, [job for job in jobs if job.state not in FINISHED])
    by_backend: dict[str, dict[str, tuple[Job, Task]]] = defaultdict(dict)
    for job, task in tasks:
        handle = task.handle or _adopted(records, job, task)
        if handle:
            by_backend[task.backend][handle] = job, task
    for name, handles in by_backend.items():
        try:
            chosen = backend(name)
        except UnknownName:
            continue
        statuses = chosen.statuses({h: paths_of(*of) for h, of in handles.items()})
        for handle, status in statuses.items():
            _note(records, *handles[handle], status)


def _current_tasks(records: RecordStore, jobs: Sequence[Job]) -> list[tuple[Job, Task]]:
    by_job: dict[int, list[Task]] = defaultdict(list)
    query = select(Task).where(Task.job_id.in_([job.id for job in jobs])).order_by(Task.position)
    with records.reading() as session:
        for task in session.scalars(query):
            by_job[task.job_id].append(task)
    firsts = [(job, current(by_job[job.id])) for job in jobs]
    return [(job, task) for job, task in firsts if task is not None]


def _adopted(records: RecordStore, job: Job, task: Task) -> str:
    """The handle of an attempt whose submitter ended before keeping it; empty for none."""
    if not task.backend_name:
        return ""
    try:
        with submitting(Path(job.paths["folder"]), 0) as is_free:
            if not is_free:
                return ""
            handle = backend(task.backend).find(task.backend_name, paths_of(job, task))
            if not handle:
                return ""
            with records.session() as session:
                stored = session.get_one(Task, task.id)
                if stored.backend_name != task.backend_name or stored.handle:
                    return stored.handle
                stored.handle = handle
                show(session, session.get_one(Job, job.id))
    except (StorageError, JobFailed, UnknownName):
        return ""
    return handle


def _note(records: RecordStore, job: Job, task: Task, status: JobStatus) -> None:
    """Record a status, and the metrics of the job, where they are new."""
    metrics = job.metrics
    if task.name == RUN:
        metrics = job_metrics(job.kind, paths_of(job, task), metrics)
    observed = (status.state, status.error, status.waits, status.started, status.finished, metrics)
    known = (task.state, task.error, task.waits, task.started, task.finished, job.metrics)
    if observed == known:
        return  # a client that follows a job asks often, and a transaction that writes waits
    make_span: Callable[[], None] | None = None
    with records.session() as session:
        record, stored = session.get_one(Job, job.id), session.get_one(Task, task.id)
        is_other = (stored.attempt, stored.submitted) != (task.attempt, task.submitted)
        if stored.state in FINISHED or is_other:
            return  # another process looked later than we did, or began the next attempt
        stored.error, stored.waits = status.error, status.waits
        stored.started, stored.finished = status.started, status.finished
        if status.state in FINISHED and stored.finished is None:
            stored.finished = now()
        if task.name == RUN:
            record.metrics = metrics
        if status.state == stored.state:
            show(session, record)
        else:
            move(session, record, stored, status.state, status.error)
        if status.state in FINISHED:
            add_used(record, stored)
            make_span = span_of_attempt(record, stored)
        if status.state == "failed" and status.is_lost and not record.is_cancelled:
            _go_on(session, record, stored)
    if make_span is not None:
        make_span()


def _go_on(session: Session, job: Job, task: Task) -> None:
    """Have an attempt that was lost followed by the next one, where one is left."""
    if task.attempt >= task.most_attempts:
        return
    pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (task.attempt - 1))
    waits = f"{pause_s:.0f} s for attempt {task.attempt + 1}, as the one before ended: {task.error}"
    next_attempt(session, job, task, not_before=now() + timedelta(seconds=pause_s), waits=waits)
