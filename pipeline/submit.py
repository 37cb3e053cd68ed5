"""Submitting a job: its name, its record, its folder, and the backend that starts it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.errors import AlreadyExists, InvalidInput, JobFailed, StorageError
from catalog.record_store import RecordStore
from catalog.tables import Dataset, Job, now
from pipeline.jobs.registry import backend
from pipeline.jobs.request import JobPaths, JobRequest, Stage

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")
_LONGEST_NAME = 128


@dataclass(frozen=True)
class Wanted:
    """What is known of a job before its folder is.

    Attributes:
        kind: "train", "validate", "scan"...
        base: What a name that is made up begins with.
        name: The job's name; made up when None.
        dataset: What it works on, where it is one.
        backend: Where it runs.
    """

    kind: str
    base: str
    name: str | None = None
    dataset: Dataset | None = None
    backend: str = "local"


@dataclass(frozen=True)
class Plan:
    """What a job is, once its folder is known.

    Attributes:
        stages: What runs, in order.
        shown: Further paths that its record shows.
        parallel: Commands of one stage that run at once.
        environment: Variables set for every command.
    """

    stages: tuple[Stage, ...]
    shown: Mapping[str, str] = field(default_factory=dict)
    parallel: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)


def submit(
    records: RecordStore, jobs_folder: Path, wanted: Wanted, plan: Callable[[JobPaths], Plan]
) -> Job:
    """Record a job and start it; its record.

    Raises:
        InvalidInput: A bad name.
        AlreadyExists: A job has that name.
        UnknownName: There is no such backend.
        StorageError: The job's folder cannot be written.
        JobFailed: The backend refuses it.
    """
    chosen = backend(wanted.backend)
    # Name and record in one transaction: two submissions at once get two names.
    with records.session() as session:
        name = _free_name(session, jobs_folder, wanted, records.own_names)
        paths = JobPaths(jobs_folder / name)
        made = plan(paths)
        environment = {**_QUIET, **made.environment}
        request = JobRequest(name, wanted.kind, made.stages, environment, made.parallel)
        job = Job(
            name=name,
            kind=wanted.kind,
            backend=wanted.backend,
            state="pending",
            dataset_id=wanted.dataset.id if wanted.dataset is not None else None,
            request=request.to_json(),
            paths={"folder": str(paths.folder), "logs": str(paths.logs), **made.shown},
            owner=records.user,
        )
        session.add(job)
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
        handle = chosen.submit(request, paths)
    except (OSError, StorageError, JobFailed) as error:
        with records.session() as session:
            kept = session.get_one(Job, job.id)
            kept.state, kept.error, kept.finished = "failed", str(error), now()
        if isinstance(error, OSError):
            raise StorageError(f"{paths.folder}: {error.strerror}", str(paths.folder)) from error
        raise
    with records.session() as session:
        kept = session.get_one(Job, job.id)
        kept.handle = handle
        return kept


def _free_name(session: Session, jobs_folder: Path, wanted: Wanted, own_names: str) -> str:
    """The wanted name, or one made up.

    Args:
        session: Of the records.
        jobs_folder: Where jobs' folders lie.
        wanted: The job.
        own_names: What the wanted name begins with: one that is taken would tell of others' jobs.

    Raises:
        InvalidInput: It cannot name a folder.
        AlreadyExists: A job, or something in the jobs' folder, has it.
    """

    def taken(name: str) -> bool:
        known = session.scalar(select(Job.id).where(Job.name == name)) is not None
        return known or (jobs_folder / name).exists()

    if wanted.name is None:
        number = (session.scalar(select(func.max(Job.id))) or 0) + 1
        return next(name for n in count(number) if not taken(name := f"{wanted.base}-{n}"))
    given = wanted.name.removeprefix(own_names)
    if not _NAME.fullmatch(given) or len(own_names + given) > _LONGEST_NAME:
        raise InvalidInput(
            f"job name '{wanted.name}': expected letters, digits, '.', '_' and '-', such as train-1"
        )
    name = own_names + given
    if taken(name):
        raise AlreadyExists("job", name, "give another --name")
    return name


_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONUNBUFFERED": "1"}
"""oneDNN reorders sums from run to run; without it equal seeds give equal losses."""
