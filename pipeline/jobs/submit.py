"""Submitting a job, and its next attempts: name, record, folder, and the backend that starts it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.errors import AlreadyExists, InvalidInput, JobFailed, StorageError, TooManyJobs
from catalog.records.jobs import recorded_jobs
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job, now
from pipeline.jobs.backend import Backend
from pipeline.jobs.environment import Need
from pipeline.jobs.follow import refresh, refresh_all
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.registry import backend
from pipeline.jobs.request import JobPaths, JobRequest, Stage
from pipeline.jobs.state import FINISHED, UNFINISHED

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")
_LONGEST_NAME = 128


@dataclass(frozen=True)
class JobOrder:
    """The order for a job, before its folder is known.

    Attributes:
        kind: "train", "validate", "scan"...
        base: What a name that is made up begins with.
        name: The job's name; made up when None.
        dataset: What it works on, where it is one.
        backend: Where it runs.
        workers: Processes that a training or validation has.
    """

    kind: str
    base: str
    name: str | None = None
    dataset: Dataset | None = None
    backend: str = "local"
    workers: int | None = None


@dataclass(frozen=True)
class Plan:
    """The plan of a job, once its folder is known.

    Attributes:
        stages: What runs, in order.
        shown: Further paths that its record shows.
        parallel: Commands of one stage that run at once.
        environment: Variables set for every command.
        needs: What of the home its commands open.
        settings: What was asked for, as its record shows it.
    """

    stages: tuple[Stage, ...]
    shown: Mapping[str, str] = field(default_factory=dict)
    parallel: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


def submit(
    records: RecordStore, queue: JobQueue, order: JobOrder, plan: Callable[[JobPaths], Plan]
) -> Job:
    """Record a job and start it; its record.

    Raises:
        InvalidInput: A bad name, or more workers than there can be.
        TooManyJobs: The user has as many as may be.
        AlreadyExists: A job has that name.
        UnknownName: There is no such backend.
        StorageError: The job's folder cannot be written.
        JobFailed: The backend refuses it.
    """
    chosen = backend(order.backend)
    if order.workers is not None:
        chosen.check_workers(order.workers, queue)
    _settle(records, queue)
    # Name and record in one transaction: two submissions at once get two names.
    with records.session() as session:
        _check_room(records, queue)
        name = _free_name(session, queue.folder, order, records.own_names)
        paths = JobPaths(queue.folder / name)
        planned = plan(paths)
        request = JobRequest(
            name,
            order.kind,
            planned.stages,
            {**_QUIET, **planned.environment},
            planned.parallel,
            planned.needs,
            dict(planned.settings),
        )
        job = Job(
            name=name,
            kind=order.kind,
            backend=order.backend,
            state="pending",
            dataset_id=order.dataset.id if order.dataset is not None else None,
            request=request.to_json(),
            paths={"folder": str(paths.folder), "logs": str(paths.logs), **planned.shown},
            owner=records.user,
        )
        session.add(job)
    return _start(records, queue, job, request, chosen)


def resume(records: RecordStore, queue: JobQueue, job: Job) -> Job:
    """Start the next attempt of a job that failed or was cancelled; its record.

    It runs the same commands in the same folder, where they find what the last attempt left: a
    training its checkpoint, a validation the shards that are done, a scan what is catalogued.

    Raises:
        InvalidInput: It has not ended, is done, or is the run of a policy.
        TooManyJobs: The user has as many as may be.
        UnknownName: Its backend is not known here.
        StorageError: The job's folder cannot be written.
        JobFailed: The backend refuses it.
    """
    job = refresh(records, job)
    chosen = backend(job.backend)
    _settle(records, queue)
    with records.session() as session:
        _check_room(records, queue)
        record = session.get_one(Job, job.id)
        _check_resumable(record)
        JobPaths(Path(record.paths["folder"])).cancel.unlink(missing_ok=True)  # of its last attempt
        earlier = JobRequest.from_json(record.request)
        request = replace(earlier, attempt=earlier.attempt + 1)
        record.request, record.handle = request.to_json(), ""
        record.state, record.error, record.waits = "pending", "", ""
        record.submitted, record.started, record.finished = now(), None, None
    return _start(records, queue, record, request, chosen)


def _settle(records: RecordStore, queue: JobQueue) -> None:
    """Count a user's jobs no more that have ended since somebody looked."""
    if _is_full(records, queue):
        refresh_all(records)


def _check_room(records: RecordStore, queue: JobQueue) -> None:
    """Go on only where a user may have one more."""
    if _is_full(records, queue):
        raise TooManyJobs(records.user, queue.jobs_each)


def _is_full(records: RecordStore, queue: JobQueue) -> bool:
    """Return whether a user limited to collections has as many jobs as may be."""
    if not records.user:
        return False
    return len(recorded_jobs(records, states=UNFINISHED, limit=queue.jobs_each)) >= queue.jobs_each


def _check_resumable(job: Job) -> None:
    if job.kind == "policy":
        raise InvalidInput(
            f"job {job.name} is a run of a policy, which has ended with it: run the policy again, "
            "and it takes the files that its condition finds then"
        )
    if job.state == "done":
        raise InvalidInput(f"job {job.name} is done: there is nothing left to do")
    if job.state not in FINISHED:
        raise InvalidInput(
            f"job {job.name} is {job.state}: framesift jobs wait {job.name} follows it"
        )


def _start(
    records: RecordStore, queue: JobQueue, job: Job, request: JobRequest, chosen: Backend
) -> Job:
    """Have the backend start what the records hold by now."""
    paths = JobPaths(Path(job.paths["folder"]))
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
        handle = chosen.submit(request, paths, queue)
    except (OSError, StorageError, JobFailed) as error:
        with records.session() as session:
            record = session.get_one(Job, job.id)
            record.state, record.error, record.finished = "failed", str(error), now()
        if isinstance(error, OSError):
            raise StorageError(f"{paths.folder}: {error.strerror}", str(paths.folder)) from error
        raise
    with records.session() as session:
        record = session.get_one(Job, job.id)
        record.handle = handle
        return record


def _free_name(session: Session, jobs_folder: Path, order: JobOrder, own_names: str) -> str:
    """The wanted name, or one made up.

    Args:
        session: Of the records.
        jobs_folder: Where jobs' folders lie.
        order: The job.
        own_names: What the wanted name begins with: one that is taken would tell of others' jobs.

    Raises:
        InvalidInput: It cannot name a folder.
        AlreadyExists: A job, or something in the jobs' folder, has it.
    """

    def taken(name: str) -> bool:
        known = session.scalar(select(Job.id).where(Job.name == name)) is not None
        return known or (jobs_folder / name).exists()

    if order.name is None:
        number = (session.scalar(select(func.max(Job.id))) or 0) + 1
        return next(name for n in count(number) if not taken(name := f"{order.base}-{n}"))
    base = order.name.removeprefix(own_names)
    if not _NAME.fullmatch(base) or len(own_names + base) > _LONGEST_NAME:
        raise InvalidInput(
            f"job name '{order.name}': expected letters, digits, '.', '_' and '-', such as train-1"
        )
    name = own_names + base
    if taken(name):
        raise AlreadyExists("job", name, "give another --name")
    return name


_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONUNBUFFERED": "1"}
"""oneDNN reorders sums from run to run; without it equal seeds give equal losses."""
