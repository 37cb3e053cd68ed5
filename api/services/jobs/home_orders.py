"""Jobs that are the home's own work: a scan, a staging, an extraction, a policy's run."""

from api.schemas.home_orders import HomeOrder, home_order_of
from api.workspace import Workspace
from catalog.records.jobs import recorded_job
from catalog.records.tables import Dataset, Job
from pipeline.jobs.command_job import submit_command
from pipeline.jobs.queue import JobQueue


def begin_order(
    workspace: Workspace,
    order: HomeOrder,
    of: str,
    *,
    dataset: Dataset | None = None,
    queue: JobQueue | None = None,
) -> Job:
    """Start an order of this home as a job; its record.

    Args:
        workspace: The home.
        order: What is to be done.
        of: What it is for, which the job's name says after the kind.
        dataset: What it works on, where it is one.
        queue: The home's jobs, with the user who submits; the workspace's when None.

    Raises:
        StorageError: The job cannot be started.
    """
    return submit_command(
        workspace.records,
        queue or workspace.job_queue,
        order.as_json(),
        of,
        environment=workspace.variables,
        dataset=dataset,
        settings=order.settings,
    )


def recorded_order(workspace: Workspace, job: str) -> HomeOrder:
    """The order that a job was begun with.

    Raises:
        NotFound: There is no such job.
    """
    return home_order_of(recorded_job(workspace.records, job).request["order"])
