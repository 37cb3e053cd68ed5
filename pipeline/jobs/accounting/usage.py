"""Jobs' usage of machines, in sums by user, dataset or kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, case, func, select, text

from catalog.records.jobs import jobs_of_user
from catalog.records.store import RecordStore
from catalog.records.tables import Job
from catalog.records.user_tables import User
from catalog.values import COMMAND

By = Literal["user", "dataset", "kind"]


@dataclass(frozen=True)
class Usage:
    """Sums of jobs that are on record, of their attempts that have ended."""

    jobs: int
    """Their number."""
    core_s: float
    """Cores times seconds [s]."""
    gpu_s: float
    """GPUs times seconds [s]."""
    wait_s: float
    """From submission to start [s]."""


def job_usage(
    records: RecordStore, *by: By, account: str | None = None
) -> Mapping[tuple[str, ...], Usage]:
    """Sums for each combination of values that jobs have; "" for no user, or no dataset.

    A user who was removed is "NAME (removed)", whoever has the name now.

    Args:
        records: Where.
        by: What the sums are of.
        account: Only of jobs that the user of this account began.
    """
    where, values = jobs_of_user(records)
    query = select(Job).where(text(where)) if where else select(Job)
    jobs = (query if account is None else query.where(Job.account == account)).subquery()
    with records.reading() as session:
        accounts = [user.account for user in session.scalars(select(User))]
    is_there = jobs.c.account.in_(["", COMMAND, *accounts])
    columns: dict[str, ColumnElement[str]] = {name: jobs.c[name] for name in by}
    columns["user"] = case((is_there, jobs.c.user), else_=jobs.c.user + " (removed)")
    names = [func.coalesce(columns[name], "").label(f"by_{name}") for name in by]
    sums = [func.sum(jobs.c[name]) for name in ("core_s", "gpu_s", "wait_s")]
    summed = select(*names, func.count(), *sums).group_by(*names).order_by(*names)
    count = len(by)
    with records.reading() as session:
        return {
            tuple(map(str, row[:count])): Usage(int(row[count]), *map(float, row[count + 1 :]))
            for row in session.execute(summed, values)
        }
