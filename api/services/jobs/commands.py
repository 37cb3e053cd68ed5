"""Jobs that are commands of this program: a scan, a staging, an extraction."""

from collections.abc import Mapping, Sequence
from typing import Any

from api.schemas.jobs import JobBody
from api.workspace import Workspace
from catalog.records.tables import Dataset
from pipeline.jobs.command_job import submit_command
from pipeline.jobs.queue import JobQueue


def begin_command(
    workspace: Workspace,
    kind: str,
    of: str,
    arguments: Sequence[str],
    settings: Mapping[str, Any],
    dataset: Dataset | None = None,
    queue: JobQueue | None = None,
) -> JobBody:
    """Start a command of ``framesift`` on this home as a job.

    Args:
        workspace: The home.
        kind: The job's kind.
        of: What it is for, which its name says after the kind.
        arguments: Of the command line, without the home.
        settings: What was asked for, as the job's record shows it.
        dataset: What it works on, where it is one.
        queue: The home's jobs, with the user who submits; the workspace's when None.

    Raises:
        StorageError: The job cannot be started.
    """
    job = submit_command(
        workspace.records,
        queue or workspace.job_queue,
        kind,
        f"{kind}-{of}",
        arguments,
        environment=workspace.variables,
        dataset=dataset,
        settings=settings,
    )
    return JobBody.of(job, workspace.place)
