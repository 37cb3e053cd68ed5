"""Jobs' usage of machines, in sums by user, dataset or kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from catalog.records.jobs import jobs_of_user
from catalog.records.kinds import USERS
from catalog.records.reading import DATASET_OF_JOB, Records, all_of
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
    records: Records, *by: By, account: str | None = None
) -> Mapping[tuple[str, ...], Usage]:
    """Sums for each combination of values that jobs have; "" for no user, or no dataset.

    A user who was removed is "NAME (removed)", whoever has the name now.

    Args:
        records: Where.
        by: What the sums are of.
        account: Only of jobs that the user of this account began.
    """
    where, values = jobs_of_user(records)
    if account is not None:
        where, values["of_account"] = all_of(where, "account = :of_account"), account
    accounts = ["", COMMAND, *(user.account for user in records.select(USERS))]
    is_there = {f"there{number}": one for number, one in enumerate(accounts)}
    named = ", ".join(f":{name}" for name in is_there)
    columns = {
        "user": f"""CASE WHEN account IN ({named}) THEN "user" ELSE "user" || ' (removed)' END""",
        "dataset": "dataset",
        "kind": "kind",
    }
    names = ", ".join(f"coalesce({columns[name]}, '')" for name in by)
    numbers = ", ".join(str(number) for number in range(1, len(by) + 1))
    summed = (
        f"SELECT {names}, count(*), sum(core_s), sum(gpu_s), sum(wait_s) "
        f"FROM (SELECT jobs.*, {DATASET_OF_JOB} FROM jobs{f' WHERE {where}' if where else ''}) "
        f"AS jobs GROUP BY {numbers} ORDER BY {numbers}"
    )
    if "user" in by:
        values |= is_there
    count = len(by)
    return {
        tuple(map(str, row[:count])): Usage(int(row[count]), *map(float, row[count + 1 :]))
        for row in records.rows(summed, **values)
    }
