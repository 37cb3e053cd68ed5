"""A job that is the home's own work, such as a scan that a server was asked for."""

from collections.abc import Mapping
from typing import Any

from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from pipeline.jobs.environment import Need
from pipeline.jobs.names import free_name
from pipeline.jobs.plan import Plan
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import PYTHON, JobPaths, Stage
from pipeline.jobs.submit import submit
from pipeline.jobs.work import Work

_ALL: tuple[Need, ...] = ("catalog", "sources")
_NEEDS: Mapping[str, tuple[Need, ...]] = {"stage": ("sources",)}
"""Needs of the kinds that do not open both catalog and sources."""


def submit_command(
    records: RecordStore,
    queue: JobQueue,
    order: Mapping[str, Any],
    base: str,
    *,
    name: str | None = None,
    environment: Mapping[str, str] = {},
    dataset: Dataset | None = None,
    settings: Mapping[str, Any] = {},
) -> Job:
    """Start an order of the home's own as a job; its record, which has the order.

    A process of its own reads it there (``api.cli.job_step FOLDER run``), outlives whoever started
    it, and inherits what its kind needs of that one's variables. What it prints is the job's log.
    The JSON document that it ends with is in the job's result.json, and in its metrics as far as it
    is no list.

    Args:
        records: The records.
        queue: The home's jobs.
        order: As JSON, with its kind.
        base: What a name that is made up begins with after the kind; any characters.
        name: The job's name; made up when None.
        environment: Variables set for the process. The record shows them: nothing secret.
        dataset: What it works on, where it is one.
        settings: What was asked for, as its record shows it.

    Raises:
        InvalidInput: A bad name.
        AlreadyExists: A job has that name.
        StorageError: The job's folder cannot be written.
    """
    kind = str(order["kind"])

    def plan() -> Plan:
        chosen = free_name(records, queue.folder, _fit_for_a_folder(f"{kind}-{base}"), name)
        paths = JobPaths(queue.folder / chosen)
        command = (PYTHON, "-P", "-m", "api.cli.job_step", str(paths.folder), "run")
        work = Work(
            (Stage("command", (command,)),),
            environment=environment,
            needs=_NEEDS.get(kind, _ALL),
            settings=settings,
        )
        return Plan(chosen, kind, paths, order, dataset, work=work)

    return submit(records, queue, plan)


def _fit_for_a_folder(base: str) -> str:
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in base)
    return safe[:100].lstrip("._-") or "job"
