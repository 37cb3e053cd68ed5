"""Jobs' usage of machines, in sums by user, dataset or kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import func, select

from catalog.records.jobs import jobs_of_user
from catalog.records.store import RecordStore
from catalog.records.tables import Job

By = Literal["user", "dataset", "kind"]


@dataclass(frozen=True)
class Usage:
    """Sums of jobs that are on record, of their attempts that have ended.

    Attributes:
        jobs: Their number.
        core_s: Cores times seconds [s].
        gpu_s: GPUs times seconds [s].
        wait_s: From submission to start [s].
    """

    jobs: int
    core_s: float
    gpu_s: float
    wait_s: float


def job_usage(
    records: RecordStore, *by: By, user: str | None = None
) -> Mapping[tuple[str, ...], Usage]:
    """Sums for each combination of values that jobs have; "" for no user, or no dataset.

    Args:
        records: Where.
        by: What the sums are of.
        user: Only of jobs that this user began.
    """
    query = jobs_of_user(records)
    jobs = (query if user is None else query.where(Job.user == user)).subquery()
    names = [func.coalesce(jobs.c[name], "").label(name) for name in by]
    sums = [func.sum(jobs.c[name]) for name in ("core_s", "gpu_s", "wait_s")]
    summed = select(*names, func.count(), *sums).group_by(*names).order_by(*names)
    count = len(by)
    with records.reading() as session:
        return {
            tuple(row[:count]): Usage(row[count], *map(float, row[count + 1 :]))
            for row in session.execute(summed)
        }
