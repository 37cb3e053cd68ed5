"""Jobs of several steps: those on the home's machine before and after what the job runs."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from catalog.records.store import RecordStore
from catalog.records.tables import Job, Task
from pipeline.jobs.accounting.quotas import check_quota
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.environment import need_variables, submitted_variables
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, JobRequest, Stage
from pipeline.jobs.submit import Described, DryRun, JobOrder, free_name, recorded, settle
from pipeline.jobs.workflow.moves import ASKED, RUN, add_task, attempt_name, paths_of, request_of
from pipeline.jobs.workflow.submission import name_attempt, submit_attempt, submitting

_STEP_ATTEMPTS = 3
"""Attempts of each step that is lost: it goes on from what the last attempt left."""

_BESIDE = ("backend", "resources", "attempts")
"""Options that are no settings of a job."""


def submit_steps(
    records: RecordStore,
    queue: JobQueue,
    order: JobOrder,
    steps: Sequence[str],
    submission: Mapping[str, Any],
) -> Job:
    """Record a job of several steps and start the first one; its record.

    Each but "run" is a process of ``api.cli.job_step`` on this machine; the step "prepare" plans
    what "run" hands to the job's backend.

    Args:
        records: The records.
        queue: The home's jobs.
        order: The job.
        steps: Their names, in the order of pipeline.jobs.workflow.moves.POSITIONS.
        submission: What was asked for, as JSON: the steps read it.

    Raises:
        DryRun: The queue has jobs described only; "run" is left to the step "prepare".
        InvalidInput: A bad name, resources that the backend cannot give, or a variable
            that is not set or not passed on.
        TooManyJobs: The user has as many jobs, or ranks, as may be.
        AlreadyExists: A job has that name.
        UnknownName: There is no such backend.
        StorageError: The job's folder cannot be written.
    """
    chosen = backend(order.backend)
    chosen.check(order.resources, queue)
    need_variables(order.resources.environment, os.environ, queue.inherits)
    settle(records, queue, order.resources.ranks)
    with ExitStack() as stack:
        with records.session() as session:
            check_quota(records, queue, order.resources.ranks)
            name = free_name(session, queue.folder, order, records.own_names)
            paths = JobPaths(queue.folder / name)
            description = {
                key: value
                for key, value in submission["options"].items()
                if value is not None and key not in _BESIDE
            }
            if "question" in submission:
                description["question"] = submission["question"]
            request = JobRequest(
                name,
                order.kind,
                (),
                settings=description,
                owner=records.user,
                resources=order.resources,
                user=queue.user or records.user,
                submitted=submitted_variables(os.environ, queue.inherits),
            )
            job = Job(
                name=name,
                kind=order.kind,
                backend=order.backend,
                state="pending",
                dataset_id=order.dataset.id if order.dataset is not None else None,
                request={**request.to_json(), ASKED: dict(submission)},
                paths={"folder": str(paths.folder), "logs": str(paths.logs)},
                owner=records.user,
                user=queue.user or records.user,
            )
            session.add(job)
            session.flush()
            tasks = [
                add_task(session, job, RUN, most_attempts=order.attempts, backend=order.backend)
                if step == RUN
                else add_task(
                    session,
                    job,
                    step,
                    most_attempts=_STEP_ATTEMPTS,
                    request=_request(request, paths, queue, step).to_json(),
                )
                for step in steps
            ]
            if queue.dry_run:
                raise DryRun(name, order.dataset, _described(job, tasks, queue))
            name_attempt(job, tasks[0])
            # From before it is recorded: a reconciler takes an unlocked one for an orphan.
            stack.enter_context(submitting(paths.folder))
        submit_attempt(records, queue, job.id, is_new=True)
    return recorded(records, job.id)


def _described(job: Job, tasks: Sequence[Task], queue: JobQueue) -> list[Described]:
    """The steps of a job on this machine, and what their runner would be handed."""
    return [
        Described(
            task.name,
            task.backend,
            backend(task.backend).describe(
                request_of(job, task), paths_of(job, task), queue, attempt_name(job, task)
            ),
        )
        for task in tasks
        if task.name != RUN
    ]


def _request(job: JobRequest, paths: JobPaths, queue: JobQueue, step: str) -> JobRequest:
    """The request that a step runs, on this machine."""
    # -P: a folder "api" where the user happens to stand is not ours.
    command = (PYTHON, "-P", "-m", "api.cli.job_step", str(paths.folder), step)
    return replace(
        job,
        kind="step",
        stages=(Stage(step, (command,), uses_gpus=False),),
        environment=dict(queue.environment),
        needs=("catalog", "sources"),
    )
