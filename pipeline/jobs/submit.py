"""Submitting a job, and its next attempts: record, folder, and the backend that starts it."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput, TooManyJobs
from catalog.records.store import RecordStore
from catalog.records.tables import Job, Task
from catalog.traces.spans import span, traceparent
from catalog.values import now
from pipeline.job_state import FINISHED
from pipeline.jobs.accounting.quotas import check_quota, ranks_of
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.environment import need_variables, submitted_variables
from pipeline.jobs.follow import refresh, refresh_all
from pipeline.jobs.names import has_name
from pipeline.jobs.plan import Plan, packages_of, settings_of
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobRequest, Stage
from pipeline.jobs.resources import Resources, asked_resources
from pipeline.jobs.work import Work
from pipeline.jobs.workflow.moves import (
    ASKED,
    TRACEPARENT,
    add_task,
    attempt_name,
    current,
    new_task,
    next_attempt,
    paths_of,
    request_of,
    show,
    tasks_of,
)
from pipeline.jobs.workflow.submission import name_attempt, submit_attempt, submitting
from pipeline.jobs.workflow.task_paths import POSITIONS, RUN
from pipeline.runs.orders import Order

_STEP_ATTEMPTS = 3
"""Attempts of each step that is lost: it goes on from what the last attempt left."""

_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"}
"""Environment variables of each task."""


@dataclass(frozen=True)
class Described:
    """A step of a job that was described: its name, its backend, and what that would be handed."""

    name: str
    backend: str
    submission: str


def submit(records: RecordStore, queue: JobQueue, make_plan: Callable[[], Plan]) -> Job:
    """Record a planned job and start it, or the first of its steps; its record.

    Args:
        records: As far as the submitting user sees them.
        queue: The home's jobs.
        make_plan: Plans the job; again where another job was given the name meanwhile.

    Raises:
        InvalidInput: Resources that the backend cannot give, or a variable that is not set or not
            passed on.
        TooManyJobs: The user has as many jobs, or ranks, as may be.
        StorageError: The job's folder cannot be written.
        JobFailed: The backend refuses it.
    """
    with span("job order") as ordered:
        job = _submitted(records, queue, make_plan)
        ordered.set({"framesift.job": job.name, "framesift.job.kind": job.kind})
    return job


def _submitted(records: RecordStore, queue: JobQueue, make_plan: Callable[[], Plan]) -> Job:
    while True:
        plan = make_plan()
        check_plan(records, queue, plan)
        with ExitStack() as stack:
            with records.session() as session:
                if has_name(session, queue.folder, plan.name):
                    continue
                check_quota(records, queue, plan.resources.ranks)
                for write in plan.work.writes if plan.work is not None else ():
                    write()
                job, tasks = _records_of(records, queue, plan)
                session.add(job)
                session.flush()
                for task in tasks:
                    add_task(session, job, task)
                name_attempt(job, tasks[0])
                show(session, job)
                # From before it is recorded: a reconciler takes an unlocked one for an orphan.
                stack.enter_context(submitting(plan.paths.folder))
            submit_attempt(records, queue, job.id, is_new=True)
        return recorded(records, job.id)


def describe(records: RecordStore, queue: JobQueue, plan: Plan) -> list[Described]:
    """The steps of a planned job, and what the backend of each would be handed; nothing begins.

    Args:
        records: As far as the submitting user sees them.
        queue: The home's jobs.
        plan: Its work is planned.

    Raises:
        InvalidInput: As of `submit`; so with TooManyJobs.
    """
    check_plan(records, queue, plan)
    job, tasks = _records_of(records, queue, plan)
    return [
        Described(
            task.name,
            task.backend,
            backend(task.backend).describe(
                request_of(job, task), paths_of(job, task), queue, attempt_name(job, task)
            ),
        )
        for task in tasks
    ]


def record_work(records: RecordStore, job: Job, work: Work) -> None:
    """Have the record of a job of several steps say what its backend is handed."""
    _check_beside(job.backend, work)
    for write in work.writes:
        write()
    with records.session() as session:
        _set_work(session.get_one(Job, job.id), work)


def resume(
    records: RecordStore,
    queue: JobQueue,
    job: Job,
    order: Order | None = None,
    work: Work | None = None,
) -> Job:
    """Start the next attempt of a job that failed or was cancelled; its record.

    It runs in the same folder, where its commands find what the last attempt left: a training its
    checkpoint, a validation the shards that are done, a scan what is catalogued.

    Args:
        records: The records.
        queue: The home's jobs.
        job: The job.
        order: What it goes on with otherwise than it began; None for no change.
        work: The work of that; None where a step has yet to plan it, and for no change.

    Raises:
        InvalidInput: It has not ended, is done, is the run of a policy, or cannot be changed so.
        TooManyJobs: The user has as many jobs, or ranks, as may be.
        UnknownName: Its backend is not known here.
        StorageError: The job's folder cannot be written.
        JobFailed: The backend refuses it.
    """
    job = refresh(records, job)
    chosen = backend(job.backend)
    ranks = ranks_of(job.request) if order is None else order.processes
    _settle(records, queue, ranks)
    with submitting(Path(job.paths["folder"])):
        with records.session() as session:
            check_quota(records, queue, ranks)
            record = session.get_one(Job, job.id)
            check_resumable(record)
            task = current(tasks_of(session, record))
            if task is None:
                raise InvalidInput(f"job {job.name} is done: there is nothing left to do")
            if order is not None:
                if POSITIONS[task.name] > POSITIONS[RUN]:
                    raise InvalidInput(
                        f"job {job.name} has run, and only its step {task.name} is left: resume it "
                        "without changes"
                    )
                for write in work.writes if work is not None else ():
                    write()
                _set_order(record, order, work)
                chosen.check(Resources.from_json(record.request["resources"]), queue)
            record.is_cancelled = False
            for again in (task, *_fetched_again(tasks_of(session, record), task)):
                # Of its last attempt.
                paths_of(record, again).cancel.unlink(missing_ok=True)
                spared = again.most_attempts - again.attempt
                next_attempt(session, record, again)
                again.most_attempts = again.attempt + max(0, spared)
                name_attempt(record, again)
            show(session, record)
        submit_attempt(records, queue, job.id, is_new=True)
    return recorded(records, job.id)


def _fetched_again(tasks: Sequence[Task], failed: Task) -> list[Task]:
    """The fetches before a task that runs again: what failed may have been mended since."""
    if POSITIONS[failed.name] > POSITIONS[RUN]:
        return []
    return [task for task in tasks if task.name == "fetch" and task.state == "done"]


def recorded(records: RecordStore, job_id: int) -> Job:
    """A job's record as it is now."""
    with records.reading() as session:
        return session.get_one(Job, job_id)


def check_plan(records: RecordStore, queue: JobQueue, plan: Plan) -> None:
    """Go on only with a job that its backend can run, and its user may have.

    Raises:
        InvalidInput: As of `submit`; so with TooManyJobs.
    """
    backend(plan.backend).check(plan.resources, queue)
    need_variables(plan.resources.environment, os.environ, queue.inherits)
    if plan.work is not None:
        _check_beside(plan.backend, plan.work)
    _settle(records, queue, plan.resources.ranks)
    check_quota(records, queue, plan.resources.ranks)


def _check_beside(name: str, work: Work) -> None:
    if work.staging is not None and not backend(name).stages_beside:
        raise InvalidInput(
            f"backend {name}: fetches nothing beside a job; stage the dataset first (framesift "
            "stage), or leave it where its sources are mounted (--no-stage)"
        )


def _records_of(records: RecordStore, queue: JobQueue, plan: Plan) -> tuple[Job, list[Task]]:
    """The job of a plan, and its tasks, as they are recorded."""
    request = JobRequest(
        plan.name,
        plan.kind,
        (),
        settings=dict(plan.settings),
        owner=records.user,
        resources=plan.resources,
        user=queue.user or records.user,
        submitted=submitted_variables(os.environ, queue.inherits),
        order=dict(plan.order),
    )
    folder = plan.paths.folder
    job = Job(
        name=plan.name,
        kind=plan.kind,
        backend=plan.backend,
        state="pending",
        dataset_id=None if plan.dataset is None else plan.dataset.id,
        request={
            **request.to_json(),
            **({ASKED: dict(plan.asked)} if plan.asked else {}),
            **({TRACEPARENT: parent} if (parent := traceparent()) else {}),
        },
        paths={"folder": str(folder), "logs": str(plan.paths.logs)},
        owner=records.user,
        user=queue.user or records.user,
        account=queue.account or records.owner.account,
        created=now(),
    )
    if plan.work is not None:
        _set_work(job, plan.work)
    return job, [
        new_task(RUN, most_attempts=plan.attempts, backend=plan.backend)
        if step == RUN
        else new_task(
            step, most_attempts=_STEP_ATTEMPTS, request=_of_step(request, plan, queue, step)
        )
        for step in plan.steps
    ]


def _of_step(job: JobRequest, plan: Plan, queue: JobQueue, step: str) -> dict[str, Any]:
    """The request that a step runs, on this machine."""
    command = (PYTHON, "-P", "-m", "api.cli.job_step", str(plan.paths.folder), step)
    request = replace(
        job,
        kind="step",
        stages=(Stage(step, (command,), uses_gpus=False),),
        environment=dict(queue.environment),
        needs=("catalog", "sources"),
    )
    return request.to_json()


def _set_work(job: Job, work: Work) -> None:
    """Have a job's record say what its backend is handed."""
    request = replace(
        JobRequest.from_json(job.request),
        stages=work.stages,
        environment={**_QUIET, **work.environment},
        parallel=work.parallel,
        needs=work.needs,
        settings={**work.settings, **_question(job.request)},
        reads=dict(work.reads),
        staging=work.staging,
        resources=work.resources,
    )
    job.request = {**job.request, **request.to_json()}
    job.paths = {**job.paths, **work.shown}


def _question(request: Mapping[str, Any]) -> dict[str, Any]:
    """The question that a job began with, which its settings go on to show."""
    return {name: value for name, value in request["settings"].items() if name == "question"}


def _set_order(job: Job, order: Order, work: Work | None) -> None:
    """Have a job go on with another order."""
    job.request = {**job.request, "order": order.as_json()}
    if work is not None:
        _set_work(job, work)
    else:
        resources = asdict(asked_resources(order, packages_of(order)))
        job.request = {**job.request, "resources": resources, "settings": settings_of(order)}


def _settle(records: RecordStore, queue: JobQueue, ranks: int) -> None:
    """Count a user's jobs no more that have ended since somebody looked."""
    try:
        check_quota(records, queue, ranks)
    except TooManyJobs:
        refresh_all(records)


def check_resumable(job: Job) -> None:
    """Accept a job that failed or was cancelled.

    Raises:
        InvalidInput: It has not ended, is done, or is the run of a policy.
    """
    if job.kind == "policy":
        raise InvalidInput(
            f"job {job.name} is a run of a policy, which has ended with it: run the policy again, "
            "and it takes the files that its condition finds then"
        )
    if job.state == "done":
        raise InvalidInput(f"job {job.name} is done: there is nothing left to do")
    if job.state not in FINISHED:
        state = "being cancelled" if job.is_cancelled else job.state
        raise InvalidInput(
            f"job {job.name} is {state}: framesift jobs wait {job.name} follows it; resume it once "
            "it has ended"
        )
