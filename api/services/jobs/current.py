"""Jobs as they stand now: records that have ended are read, the others are brought up to date.

Looking at a job's backend needs SQLAlchemy and the backends; jobs that have all ended are listed
without both.
"""

from typing import TYPE_CHECKING

from api.workspace import Workspace
from catalog.records.jobs import recorded_job, recorded_jobs
from pipeline.job_state import FINISHED, UNFINISHED

if TYPE_CHECKING:
    from catalog.records.tables import Job


def current_job(workspace: Workspace, name: str, *, account: str | None = None) -> "Job":
    """A job as it stands now.

    Args:
        account: Of the user who must have begun it; None for anybody.

    Raises:
        NotFound: There is none of that name.
    """
    job = recorded_job(workspace.readable_records, name, account=account)
    if job.state in FINISHED:
        return job
    from pipeline.jobs.follow import refresh

    records = workspace.records
    return refresh(records, recorded_job(records, name, account=account))


def bring_up_to_date(workspace: Workspace) -> None:
    """Bring the records of jobs that have not ended to what their backends say now."""
    if recorded_jobs(workspace.readable_records, states=UNFINISHED, limit=1):
        from pipeline.jobs.follow import refresh_all

        refresh_all(workspace.records)
