"""Figures of jobs that run, and the machines that they run on: for monitoring."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.errors import UnknownName
from catalog.records.tables import Job
from framesift.progress import number_of
from pipeline.jobs.backends.batch.backend import BatchBackend
from pipeline.jobs.backends.batch.standing import Handle
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.request import JobPaths, read_json

FIGURES = ("loss", "miou", "images_per_s", "step")
"""Metrics of a job that have a gauge."""
_MOST_HOSTS = 64


@dataclass(frozen=True)
class RunningJob:
    """A job that runs, as monitoring shows it."""

    name: str
    kind: str
    figures: Mapping[str, float]
    """By names of FIGURES, as far as it has measured them."""
    hosts: tuple[str, ...]
    """Machines or pods that its programs run on, as far as they are known."""
    scheduler_ids: tuple[str, ...]
    """Its batch jobs, as Slurm, LSF or PBS call them."""


def running_job(job: Job) -> RunningJob:
    """What is known of a job that runs."""
    figures = {
        name: float(value)
        for name in FIGURES
        if (value := number_of(job.metrics, name)) is not None
    }
    return RunningJob(job.name, job.kind, figures, _hosts(job), _scheduler_ids(job))


def _hosts(job: Job) -> tuple[str, ...]:
    """By its runner; on clusters by the record of a training, which has that of its first rank."""
    paths = JobPaths(Path(job.paths["folder"]))
    hosts = read_json(paths.status).get("hosts")
    if isinstance(hosts, list):
        return tuple(str(host) for host in hosts[:_MOST_HOSTS])
    begun = read_json(paths.model / "run.json").get("begun")
    last: Any = begun[-1] if isinstance(begun, list) and begun else {}
    host = last.get("host") if isinstance(last, dict) else None
    return (str(host),) if host else ()


def _scheduler_ids(job: Job) -> tuple[str, ...]:
    try:
        is_batch = isinstance(backend(job.backend), BatchBackend)
    except UnknownName:
        return ()
    return Handle.parse(job.handle).numbers if is_batch else ()
