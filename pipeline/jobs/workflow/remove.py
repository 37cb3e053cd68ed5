"""Removes jobs that have ended: record and folder."""

import shutil
from pathlib import Path

from sqlalchemy import delete, select

from catalog.errors import InUse, StorageError
from catalog.records.store import RecordStore
from catalog.records.tables import Job, Task, TaskMove
from pipeline.job_state import FINISHED, UNFINISHED
from pipeline.jobs.follow import refresh
from pipeline.runs.checkpoint_steps import named_checkpoint

_REMOVED = ".removed"

_MODELS = ("model", "compare", "continue_from", "checkpoint")
"""Settings that name another job's model."""


def remove(records: RecordStore, job: Job) -> None:
    """Remove a job that has ended: its record, and its folder with model, report and logs.

    The folder goes aside before the record does, so a removal cut off in between can be repeated.

    Raises:
        InUse: It has not ended, or a job that has not ended uses its model.
        StorageError: Its folder cannot be removed.
    """
    job = refresh(records, job)
    if job.state not in FINISHED:
        raise InUse("job", job.name, f"it is {job.state}; framesift jobs cancel {job.name} ends it")
    with records.reading() as session:  # of all users
        unfinished = list(session.scalars(select(Job).where(Job.state.in_(UNFINISHED))))
    for other in unfinished:
        settings = other.request.get("settings", {})
        named = (settings.get(name) or "" for name in _MODELS)
        if job.name in (named_checkpoint(name)[0] for name in named):
            raise InUse("job", job.name, "a job that has not ended uses its model")
    folder = Path(job.paths["folder"])
    removed_folder = folder.parent / _REMOVED / f"{job.id}-{folder.name}"
    try:
        if folder.exists():
            removed_folder.parent.mkdir(exist_ok=True)
            folder.rename(removed_folder)
        with records.session() as session:
            for table in (TaskMove, Task):
                session.execute(delete(table).where(table.job_id == job.id))
            session.execute(delete(Job).where(Job.id == job.id))
        if removed_folder.exists():
            shutil.rmtree(removed_folder)
    except OSError as error:
        path = error.filename or folder
        raise StorageError(f"{path}: cannot be removed: {error.strerror}", str(folder)) from error
