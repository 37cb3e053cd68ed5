"""Quotas: how many jobs, and ranks of jobs, one user may have waiting or running."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from catalog.errors import TooManyJobs
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from catalog.values import Owner
from pipeline.job_state import UNFINISHED
from pipeline.jobs.queue import JobQueue


def check_quota(records: RecordStore, queue: JobQueue, ranks: int) -> None:
    """Go on only where the queue's user may have one more job of so many ranks.

    Raises:
        TooManyJobs: The user may not.
    """
    owner = Owner(queue.user, queue.account) if queue.user else records.owner
    if not owner.name or (queue.jobs_each is None and queue.ranks_each is None):
        return
    had = _ranks_of_jobs(records, owner)
    if queue.jobs_each is not None and len(had) >= queue.jobs_each:
        raise TooManyJobs(owner.name, queue.jobs_each)
    if queue.ranks_each is not None and sum(had) + ranks > queue.ranks_each:
        raise TooManyJobs(owner.name, queue.ranks_each, sum(had))


def ranks_of(request: Mapping[str, Any]) -> int:
    """Ranks of a job, by its recorded request."""
    return int((request.get("resources") or {}).get("ranks", 1))


def _ranks_of_jobs(records: RecordStore, owner: Owner) -> list[int]:
    """Ranks of each of a user's jobs that wait or run."""
    own = Job.state.in_(UNFINISHED), Job.user == owner.name, Job.account == owner.account
    requests = select(Job.request).where(*own)
    with records.reading() as session:
        return [ranks_of(request) for request in session.scalars(requests)]
