"""Submitting a job, and its next attempts: name, record, folder, and the backend that starts it."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.errors import AlreadyExists, InvalidInput, TooManyJobs
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from pipeline.jobs.accounting.quotas import check_quota
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.changes import Changes
from pipeline.jobs.environment import Need, need_variables, submitted_variables
from pipeline.jobs.follow import refresh, refresh_all
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, JobRequest, Stage, StagingBeside
from pipeline.jobs.resources import Resources
from pipeline.jobs.state import FINISHED
from pipeline.jobs.workflow.moves import (
    POSITIONS,
    RUN,
    add_task,
    current,
    next_attempt,
    paths_of,
    show,
    tasks_of,
)
from pipeline.jobs.workflow.submission import name_attempt, submit_attempt, submitting

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")
_LONGEST_NAME = 128
_NOTHING_CHANGES = Changes()


@dataclass(frozen=True)
class Described:
    """A step of a job that was described: its name, its backend, and what that would be handed."""

    name: str
    backend: str
    submission: str


class DryRun(Exception):
    """A job was described, and not submitted.

    Attributes:
        job: The name that it would have.
        dataset: What it would work on.
        steps: Those that were described, in their order.
    """

    def __init__(self, job: str, dataset: Dataset | None, steps: Sequence[Described]) -> None:
        """Create the error for that job."""
        super().__init__(job)
        self.job, self.dataset, self.steps = job, dataset, tuple(steps)


@dataclass(frozen=True)
class JobOrder:
    """The order for a job, before its folder is known.

    Attributes:
        kind: "train", "validate", "scan"...
        base: What a name that is made up begins with.
        name: The job's name; made up when None.
        dataset: What it works on, where it is one.
        backend: Where it runs.
        resources: What it asks of the machines there.
        attempts: Attempts that begin without a user's word where one is lost.
    """

    kind: str
    base: str
    name: str | None = None
    dataset: Dataset | None = None
    backend: str = "local"
    resources: Resources = field(default_factory=Resources)
    attempts: int = 1


@dataclass(frozen=True)
class Plan:
    """The plan of a job, once its folder is known.

    Attributes:
        stages: What runs, in order.
        shown: Further paths that its record shows.
        parallel: Commands of one stage that run at once, each with all its ranks.
        environment: Variables set for every command.
        needs: What of the home its commands open.
        settings: What was asked for, as its record shows it.
        reads: Manifests that its commands read, each with its dataset, NAME@VERSION.
        staging: What fetches its frames meanwhile; None where nothing does.
        order: What was asked for, which the process of the home's own jobs reads in the record.
    """

    stages: tuple[Stage, ...]
    shown: Mapping[str, str] = field(default_factory=dict)
    parallel: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    staging: StagingBeside | None = None
    order: Mapping[str, Any] | None = None


def submit(
    records: RecordStore, queue: JobQueue, order: JobOrder, plan: Callable[[JobPaths], Plan]
) -> Job:
    """Record a job and start it; its record.

    Raises:
        DryRun: The queue has jobs described only.
        InvalidInput: A bad name, resources that the backend cannot give, or a variable
            that is not set or not passed on.
        TooManyJobs: The user has as many jobs, or ranks, as may be.
        AlreadyExists: A job has that name.
        UnknownName: There is no such backend.
        StorageError: The job's folder cannot be written.
        JobFailed: The backend refuses it.
    """
    chosen = backend(order.backend)
    chosen.check(order.resources, queue)
    if not queue.begun:  # else they were looked for where it was submitted
        need_variables(order.resources.environment, os.environ, queue.inherits)
    settle(records, queue, order.resources.ranks)
    with ExitStack() as stack:
        # Name and record in one transaction: two submissions at once get two names.
        with records.session() as session:
            if not queue.begun:
                check_quota(records, queue, order.resources.ranks)
            name = queue.begun or free_name(session, queue.folder, order, records.own_names)
            paths = JobPaths(queue.folder / name)
            planned = plan(paths)
            if planned.staging is not None and not chosen.stages_beside:
                raise InvalidInput(
                    f"backend {chosen.name}: fetches nothing beside a job; stage the dataset first "
                    "(framesift stage), or leave it where its sources are mounted (--no-stage)"
                )
            request = JobRequest(
                name,
                order.kind,
                planned.stages,
                {**_QUIET, **planned.environment},
                planned.parallel,
                planned.needs,
                dict(planned.settings),
                reads=dict(planned.reads),
                owner=records.user,
                staging=planned.staging,
                resources=order.resources,
                user=queue.user or records.user,
                submitted=submitted_variables(os.environ, queue.inherits),
            )
            if queue.begun:
                return _planned(session, request, planned)
            job = Job(
                name=name,
                kind=order.kind,
                backend=order.backend,
                state="pending",
                dataset_id=order.dataset.id if order.dataset is not None else None,
                request={**request.to_json(), **_order_of(planned)},
                paths={"folder": str(paths.folder), "logs": str(paths.logs), **planned.shown},
                owner=records.user,
                user=queue.user or records.user,
                account=queue.account or records.owner.account,
            )
            session.add(job)
            session.flush()
            task = add_task(session, job, RUN, most_attempts=order.attempts, backend=order.backend)
            name_attempt(job, task)
            job.submitted = task.submitted
            if queue.dry_run:
                told = chosen.describe(request, paths, queue, task.backend_name)
                raise DryRun(name, order.dataset, [Described(RUN, chosen.name, told)])
            # From before it is recorded: a reconciler takes an unlocked one for an orphan.
            stack.enter_context(submitting(paths.folder))
        submit_attempt(records, queue, job.id, is_new=True)
    return recorded(records, job.id)


def resume(
    records: RecordStore, queue: JobQueue, job: Job, changes: Changes = _NOTHING_CHANGES
) -> Job:
    """Start the next attempt of a job that failed or was cancelled; its record.

    It runs the same commands in the same folder, where they find what the last attempt left: a
    training its checkpoint, a validation the shards that are done, a scan what is catalogued.

    Args:
        records: The records.
        queue: The home's jobs.
        job: The job.
        changes: What it goes on with otherwise than it began.

    Raises:
        InvalidInput: It has not ended, is done, is the run of a policy, or cannot be changed so.
        TooManyJobs: The user has as many jobs, or ranks, as may be.
        UnknownName: Its backend is not known here.
        StorageError: The job's folder cannot be written.
        JobFailed: The backend refuses it.
    """
    job = refresh(records, job)
    chosen, ranks = backend(job.backend), changes.ranks(job)
    settle(records, queue, ranks)
    with submitting(Path(job.paths["folder"])):
        with records.session() as session:
            check_quota(records, queue, ranks)
            record = session.get_one(Job, job.id)
            _check_resumable(record)
            task = current(tasks_of(session, record))
            if task is None:
                raise InvalidInput(f"job {job.name} is done: there is nothing left to do")
            if changes != _NOTHING_CHANGES:
                if POSITIONS[task.name] > POSITIONS[RUN]:
                    raise InvalidInput(
                        f"job {job.name} has run, and only its step {task.name} is left: resume it "
                        "without changes"
                    )
                record.request = changes.request(record)
                chosen.check(Resources.from_json(record.request.get("resources", {})), queue)
            # Of its last attempt.
            paths_of(record, task).cancel.unlink(missing_ok=True)
            record.is_cancelled = False
            spared = task.most_attempts - task.attempt
            next_attempt(session, record, task)
            task.most_attempts = task.attempt + max(0, spared)
            name_attempt(record, task)
            show(session, record)
        submit_attempt(records, queue, job.id, is_new=True)
    return recorded(records, job.id)


def _planned(session: Session, request: JobRequest, planned: Plan) -> Job:
    """Have the record of a job of steps say what it runs."""
    job = session.scalars(select(Job).where(Job.name == request.name)).one()
    settings = {
        **request.settings,
        **{key: value for key, value in job.request["settings"].items() if key == "question"},
    }
    of_job = {key: job.request.get(key) for key in ("attempt", "submitted")}
    job.request = {**job.request, **request.to_json(), "settings": settings, **of_job}
    job.paths = {**job.paths, **planned.shown}
    return job


def _order_of(planned: Plan) -> dict[str, Any]:
    return {} if planned.order is None else {"order": dict(planned.order)}


def recorded(records: RecordStore, job_id: int) -> Job:
    """A job's record as it is now."""
    with records.reading() as session:
        return session.get_one(Job, job_id)


def settle(records: RecordStore, queue: JobQueue, ranks: int) -> None:
    """Count a user's jobs no more that have ended since somebody looked."""
    try:
        check_quota(records, queue, ranks)
    except TooManyJobs:
        refresh_all(records)


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


def free_name(session: Session, jobs_folder: Path, order: JobOrder, own_names: str) -> str:
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


_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"}
"""Environment variables of each task."""
