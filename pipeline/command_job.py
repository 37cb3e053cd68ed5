"""A job that is one of this program's own commands, such as a scan that a server was asked for."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.record_store import RecordStore
from catalog.tables import Dataset, Job
from pipeline.jobs.request import JobPaths, Stage, read_json
from pipeline.submit import Plan, Wanted, submit

_COMMAND = "command"


def submit_command(
    records: RecordStore,
    jobs_folder: Path,
    kind: str,
    base: str,
    arguments: Sequence[str],
    *,
    name: str | None = None,
    environment: Mapping[str, str] = {},
    dataset: Dataset | None = None,
) -> Job:
    """Start a command of ``framesift`` as a job; its record.

    The command runs in a process of its own, which outlives whoever started it and has that
    one's variables besides ``environment``. What it prints is the job's log. The JSON document that
    it ends with is in the job's result.json, and in its metrics as far as it is no list.

    Args:
        records: The records.
        jobs_folder: Where jobs' folders lie.
        kind: "scan", "stage", "policy"...
        base: What a name that is made up begins with; any characters.
        arguments: Of the command line, such as ("ingest", "a2d2", "--json").
        name: The job's name; made up when None.
        environment: Variables set for the command. The record shows them: nothing secret.
        dataset: What it works on, where it is one.

    Raises:
        InvalidInput: A bad name.
        AlreadyExists: A job has that name.
        StorageError: The job's folder cannot be written.
    """

    def plan(paths: JobPaths) -> Plan:
        # -P: a folder "api" where the user happens to stand is not ours.
        command = (sys.executable, "-P", "-m", "api.job_command", str(paths.folder), *arguments)
        return Plan((Stage(_COMMAND, (command,)),), environment=environment)

    wanted = Wanted(kind, _fit_for_a_folder(base), name, dataset)
    return submit(records, jobs_folder, wanted, plan)


def command_metrics(paths: JobPaths) -> dict[str, Any]:
    """What a job's command ended with, lists left out; until then how far it is; empty before."""
    found = read_json(paths.result) or read_json(paths.progress)
    return {key: value for key, value in found.items() if not isinstance(value, list)}


def _fit_for_a_folder(base: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in base)
    return kept[:100].lstrip("._-") or "job"
