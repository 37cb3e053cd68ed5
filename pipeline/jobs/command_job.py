"""A job that is one of this program's own commands, such as a scan that a server was asked for."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from framesift_start import start
from pipeline.jobs.environment import Need
from pipeline.jobs.names import free_name
from pipeline.jobs.plan import Plan
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, Stage
from pipeline.jobs.submit import submit
from pipeline.jobs.work import Work

_COMMAND = "command"
_ALL: tuple[Need, ...] = ("catalog", "sources")
_NEEDS: Mapping[str, tuple[Need, ...]] = {"stage": ("sources",)}
"""Needs of the kinds of commands that do not open both catalog and sources."""


def submit_command(
    records: RecordStore,
    queue: JobQueue,
    kind: str,
    base: str,
    arguments: Sequence[str],
    *,
    name: str | None = None,
    environment: Mapping[str, str] = {},
    dataset: Dataset | None = None,
    settings: Mapping[str, Any] = {},
) -> Job:
    """Start a command of ``framesift`` as a job; its record.

    The command runs in a process of its own, which outlives whoever started it, and inherits what
    its kind needs of that one's variables. What it prints is the job's log. The JSON document that
    it ends with is in the job's result.json, and in its metrics as far as it is no list.

    Args:
        records: The records.
        queue: The home's jobs.
        kind: "scan", "stage", "policy"...
        base: What a name that is made up begins with; any characters.
        arguments: Of the command line, such as ("ingest", "a2d2", "--json").
        name: The job's name; made up when None.
        environment: Variables set for the command. The record shows them: nothing secret.
        dataset: What it works on, where it is one.
        settings: What was asked for, as its record shows it.

    Raises:
        InvalidInput: A bad name.
        AlreadyExists: A job has that name.
        StorageError: The job's folder cannot be written.
    """

    def plan() -> Plan:
        chosen = free_name(records, queue.folder, _fit_for_a_folder(base), name)
        paths = JobPaths(queue.folder / chosen)
        command = (sys.executable, *start("api.cli.job_command"), str(paths.folder), *arguments)
        work = Work(
            (Stage(_COMMAND, (command,)),),
            environment=environment,
            needs=_NEEDS.get(kind, _ALL),
            settings=settings,
        )
        return Plan(chosen, kind, paths, dataset=dataset, work=work)

    return submit(records, queue, plan)


def _fit_for_a_folder(base: str) -> str:
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in base)
    return safe[:100].lstrip("._-") or "job"
