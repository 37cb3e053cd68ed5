"""Begins the jobs of triggers: what one look at a home's triggers does.

A run is recorded before its first job, and its jobs' names follow from its number; so a process
that is killed anywhere leaves a run that the next look goes on with, and no job twice.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from api.services.accounts.callers import NOBODY_ASKED
from api.services.accounts.owners import caller_of
from api.services.session import Session
from catalog.errors import CatalogBusy, FramesiftError, NotFound, StorageError
from catalog.records.automation import triggers as records_of
from catalog.records.automation.tables import Trigger, TriggerRun
from catalog.records.jobs import recorded_job
from catalog.records.tables import Job
from catalog.storage.file_lock import open_locked
from catalog.values import COMMAND, Owner, now
from pipeline.job_state import FINISHED
from pipeline.jobs.follow import refresh
from pipeline.policies.schedule import is_due, last_of
from query.frames.count_frames import count_frames
from query.question.question import Question

if TYPE_CHECKING:
    from api.workspace import Workspace

_AT_MOST = 10
"""A catalog that changes all the time is counted after so many quiet times nevertheless."""

_log = logging.getLogger(__name__)


def start_triggers(workspace: "Workspace", warn: Callable[[str], None] = _log.warning) -> int:
    """Go on with the runs of a home's triggers, and begin those that are due; how many began.

    One process does so at a time; another's call returns at once. A trigger that cannot be looked
    at says why in its `error`, and holds up no other.
    """
    with _alone(workspace) as is_alone:
        if not is_alone:
            return 0
        return sum(_started(workspace, trigger, warn) for trigger in _triggers(workspace))


@contextmanager
def _alone(workspace: "Workspace") -> Iterator[bool]:
    """True when no other process does so within the block."""
    try:
        workspace.jobs.mkdir(parents=True, exist_ok=True)
        lock = open_locked(workspace.jobs / ".triggers.lock", mode=0o600, wait_s=0)
    except OSError as error:
        raise StorageError(f"{workspace.jobs}: {error.strerror}", str(workspace.jobs)) from error
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def _triggers(workspace: "Workspace") -> list[Trigger]:
    for trigger, run in records_of.unfinished_runs(workspace.records):
        _go_on(workspace, trigger, run)
    busy = {trigger.id for trigger, _ in records_of.unfinished_runs(workspace.records)}
    every = records_of.listed(workspace.records)
    return [trigger for trigger in every if trigger.enabled and trigger.id not in busy]


def _started(workspace: "Workspace", trigger: Trigger, warn: Callable[[str], None]) -> bool:
    error = ""
    try:
        run = _due(workspace, trigger)
        if run is not None:
            _go_on(workspace, trigger, records_of.begin_run(workspace.records, trigger, run))
            return True
    except CatalogBusy:
        return False  # the next look is soon
    except FramesiftError as problem:
        error = str(problem)
        warn(f"trigger {trigger.name}: {error}")
    finally:
        if error != trigger.error:
            _keep(workspace, trigger, error=error)
    return False


def _due(workspace: "Workspace", trigger: Trigger) -> TriggerRun | None:
    """The run that begins now; None if none does."""
    last = records_of.last_run(workspace.records, trigger)
    until = now()
    since = last_of([trigger.since, *([last.started] if last is not None else [])], until)
    if trigger.schedule is not None and not is_due(trigger.schedule, since, until):
        return None
    cause = "frames" if trigger.schedule is None else "schedule"
    if not trigger.condition:
        return TriggerRun(cause=cause)
    session = _session_of(workspace, trigger)
    if trigger.schedule is None and not _is_quiet(session, trigger):
        return None
    frames, snapshot = count_frames(session.workspace.catalog, Question(where=trigger.condition))
    _keep(workspace, trigger, frames=frames, snapshot=snapshot, changed=None)
    # The number falls where frames go away: what is added after that counts from there.
    if frames < trigger.base_frames:
        _keep(workspace, trigger, base_frames=frames)
    enough = frames - min(frames, trigger.base_frames) >= trigger.min_frames and frames > 0
    return TriggerRun(cause=cause, frames=frames, snapshot=snapshot) if enough else None


def _is_quiet(session: Session, trigger: Trigger) -> bool:
    """True when the catalog has changed, and does so no more, or has for long."""
    if session.workspace.catalog.snapshot() == trigger.snapshot:
        return False
    if trigger.changed is None:
        trigger.changed = now()
        _keep(session.whole, trigger, changed=trigger.changed)
    quiet, moment = timedelta(seconds=trigger.quiet_s), now()
    is_recent = timedelta() <= moment - session.last_commit() < quiet  # not, by a clock set back
    return not is_recent or not timedelta() <= moment - trigger.changed < _AT_MOST * quiet


def _go_on(workspace: "Workspace", trigger: Trigger, run: TriggerRun) -> None:
    """Begin the next job of a run where the one before is done; end it after the last."""
    records = workspace.records
    try:
        if run.jobs:
            job = refresh(records, recorded_job(records, run.jobs[-1]))
            if job.state not in FINISHED:
                return
            if job.state != "done":
                reason = f": {job.error}" if job.error else ""
                failed = f"job {job.name} {job.state}{reason}"
                records_of.end_run(records, run.id, records_of.FAILED, failed)
                return
        if len(run.jobs) == len(trigger.steps):
            records_of.end_run(records, run.id, records_of.DONE)
            return
        _begin_next(_session_of(workspace, trigger), trigger, run)
    except CatalogBusy:
        return  # the next look is soon
    except FramesiftError as error:
        records_of.end_run(records, run.id, records_of.FAILED, str(error))


def _begin_next(session: Session, trigger: Trigger, run: TriggerRun) -> None:
    step: dict[str, Any] = dict(trigger.steps[len(run.jobs)])
    kind = step.pop("kind")
    name = f"{trigger.name}-{run.id}-{kind}{len(run.jobs) + 1}"
    records = session.whole.records
    if not _is_started(records, name, run):
        if step.get("dataset") is None:
            step["dataset"] = run.dataset = run.dataset or _dataset(session, trigger, run)
            records_of.keep_run(records, run.id, dataset=run.dataset)
        if kind in ("validate", "predict") and step.get("model") is None:
            step["model"] = _trained(trigger, run)
        session.jobs.submit({"kind": kind, "name": name, **step})
    records_of.keep_run(records, run.id, jobs=[*run.jobs, name])


def _is_started(records: Any, name: str, run: TriggerRun) -> bool:
    """True when a process that was killed had begun the job already."""
    try:
        job: Job = recorded_job(records, name)
    except NotFound:
        return False
    return job.created >= run.started


def _trained(trigger: Trigger, run: TriggerRun) -> str:
    jobs = zip(trigger.steps, run.jobs, strict=False)
    return str([job for step, job in jobs if step["kind"] == "train"][-1])


def _dataset(session: Session, trigger: Trigger, run: TriggerRun) -> str:
    """The frames as they were counted, saved; NAME@VERSION."""
    from api.schemas.new_datasets import NewDataset
    from api.services.datasets.new_dataset import make_dataset

    request = NewDataset(
        name=trigger.name, question=Question(where=trigger.condition), split=trigger.split or None
    )
    saved = make_dataset(session.workspace, request, run.snapshot, session.caller.owner)
    return f"{saved.name}@{saved.version}"


def _keep(workspace: "Workspace", trigger: Trigger, **columns: Any) -> None:
    with workspace.records.session() as session:
        stored = session.get(Trigger, trigger.id)  # it may have been removed meanwhile
        for column, value in columns.items() if stored is not None else ():
            setattr(stored, column, value)


def _session_of(workspace: "Workspace", trigger: "Trigger") -> Session:
    """The services of a home for a trigger's owner, with the rights of user and token as of now."""
    if trigger.account == COMMAND:
        return Session(workspace, is_command=True)
    if not trigger.account:  # a server that does not authenticate
        return Session(workspace, NOBODY_ASKED)
    caller = caller_of(
        workspace.records,
        Owner(trigger.owner, trigger.account),
        trigger.scope,
        f"trigger {trigger.name}",
        "remove it, and have another user add it",
    )
    return Session(workspace, caller)
