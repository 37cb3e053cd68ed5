"""Jobs that were submitted: how they stand, followed to their end, asked to end."""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from catalog.errors import JobFailed, UnknownName
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.store import RecordStore
from catalog.records.tables import Job, now
from pipeline.jobs.registry import backend
from pipeline.jobs.request import JobPaths, read_json
from pipeline.jobs.state import FINISHED, UNFINISHED

_POLL_S = 0.3
_SUBMITTING = timedelta(seconds=60)
"""For how long a record without a handle is taken for a job that is being submitted just now."""


def refresh(records: RecordStore, job: Job) -> Job:
    """The job's record, brought to what its backend and its metrics say now."""
    if job.state in FINISHED or _is_being_submitted(job):
        return job
    paths = JobPaths(Path(job.paths["folder"]))
    submitted = job.submitted
    status = backend(job.backend).status(job.handle, paths)
    job = recorded_job(records, job.name)  # the caller's may be old
    metrics = _metrics(job.kind, paths) or job.metrics
    seen = (status.state, status.error, status.waits, status.started, status.finished, metrics)
    if seen == (job.state, job.error, job.waits, job.started, job.finished, job.metrics):
        return job  # whoever follows a job asks often, and a transaction that writes waits
    with records.session() as session:
        record = session.get_one(Job, job.id)
        if record.state in FINISHED or record.submitted != submitted:
            return record  # somebody looked later than we did, or began the next attempt
        record.state, record.error, record.waits = status.state, status.error, status.waits
        record.started, record.finished = status.started, status.finished
        if status.state in FINISHED and record.finished is None:
            record.finished = now()
        record.metrics = metrics
        return record


def refresh_all(records: RecordStore) -> None:
    """Bring the record of every job that has not ended to what its backend says now.

    One whose backend this version does not know stays as it is.
    """
    for job in recorded_jobs(records, states=UNFINISHED):
        with suppress(UnknownName):
            refresh(records, job)


def wait(records: RecordStore, job: Job, progress: Callable[[Job], None] | None = None) -> Job:
    """Follow a job to its end.

    Raises:
        JobFailed: It failed or was cancelled; the message says why.
    """
    while True:
        job = refresh(records, job)
        if progress is not None:
            progress(job)
        if job.state in FINISHED:
            break
        time.sleep(_POLL_S)
    if job.state != "done":
        raise JobFailed(job.name, f"job {job.name} {job.state}: {job.error}")
    return job


def cancel(records: RecordStore, job: Job) -> Job:
    """Ask the job to end, with time for a checkpoint; its record, which shows it once it has."""
    job = refresh(records, job)
    if job.state not in FINISHED:
        backend(job.backend).cancel(job.handle, JobPaths(Path(job.paths["folder"])))
    return job


def _metrics(kind: str, paths: JobPaths) -> dict[str, Any]:
    if kind == "train":
        return read_json(paths.model / "metrics.json")
    if kind == "validate":
        return read_json(paths.report / "metrics.json")
    return command_metrics(paths)


def command_metrics(paths: JobPaths) -> dict[str, Any]:
    """The result of a job's command, lists left out; its progress until then; empty before."""
    document = read_json(paths.result) or read_json(paths.progress)
    return {key: value for key, value in document.items() if not isinstance(value, list)}


def _is_being_submitted(job: Job) -> bool:
    return not job.handle and now() - (job.submitted or job.created) < _SUBMITTING
