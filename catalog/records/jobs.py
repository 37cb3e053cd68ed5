"""Jobs, as they are recorded."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from catalog.errors import NotFound
from catalog.records.datasets import ids_of_complete
from catalog.records.kinds import JOBS, TASK_MOVES
from catalog.records.reading import Records, all_of, holds, ids_in

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from catalog.records.tables import Job, TaskMove

Conditions = tuple[str, dict[str, Any]]
"""A condition in SQL, and its values: catalog.records.reading.Records.select."""


def recorded_job(records: Records, name: str, *, account: str | None = None) -> "Job":
    """The job of that name.

    Args:
        account: Of the user who must have begun it; None for anybody.

    Raises:
        NotFound: There is none.
    """
    where, values = jobs_of_user(records)
    where = all_of(where, "name = :name")
    if account is not None:
        where, values["of_account"] = all_of(where, "account = :of_account"), account
    jobs = records.select(JOBS, where, **values, name=name)
    if not jobs:
        raise NotFound("job", name, "framesift jobs list and GET /v1/jobs list them")
    return jobs[0]


def recorded_jobs(
    records: Records,
    *,
    kind: str | None = None,
    states: Sequence[str] | None = None,
    account: str | None = None,
    before: int | None = None,
    limit: int | None = None,
    holding: str = "",
) -> "list[Job]":
    """Jobs, newest first.

    Args:
        before: Only those with a smaller id.
        holding: Only those whose name holds this text, in whatever case.
    """
    where, values = jobs_of_user(records)
    conditions = [where]
    if holding:
        condition, values["holding"] = holds("name", holding)
        conditions.append(condition)
    if kind is not None:
        conditions.append("kind = :kind")
        values["kind"] = kind
    if states is not None:
        named = {f"state{number}": state for number, state in enumerate(states)}
        conditions.append(f"state IN ({', '.join(f':{name}' for name in named) or 'NULL'})")
        values |= named
    if account is not None:
        conditions.append("account = :of_account")
        values["of_account"] = account
    if before is not None:
        conditions.append("id < :before")
        values["before"] = before
    return records.select(JOBS, all_of(*conditions), order="id DESC", limit=limit, **values)


def models_of_datasets(records: Records, ids: Collection[int]) -> dict[int, list[str]]:
    """Names of the trainings that are done, by the datasets they read, newest first."""
    where, values = jobs_of_user(records)
    done = all_of(where, "kind = 'train' AND state = 'done'", ids_in("dataset_id", ids))
    named = f"SELECT dataset_id, name FROM jobs WHERE {done} ORDER BY id DESC"
    models: dict[int, list[str]] = {}
    for dataset, name in records.rows(named, **values):
        models.setdefault(dataset, []).append(name)
    return models


def recorded_moves(records: Records, job: "Job") -> "list[TaskMove]":
    """Every change of the states of a job's tasks, the first one first."""
    return records.select(TASK_MOVES, "job_id = :job", order="id", job=job.id)


def job_counts(records: Records) -> dict[tuple[str, str], int]:
    """Number of jobs of each kind in each state."""
    counted = records.rows("SELECT kind, state, count(*) FROM jobs GROUP BY kind, state")
    return {(kind, state): number for kind, state, number in counted}


def done_jobs_version(records: Records, kind: str) -> tuple[int, int]:
    """The number of the jobs of a kind that are done, and the sum of their ids.

    It differs once another is done, or one is removed.
    """
    where, values = jobs_of_user(records)
    done = all_of(where, "state = 'done'", "kind = :kind")
    counted = f"SELECT count(*), coalesce(sum(id), 0) FROM jobs WHERE {done}"
    ((number, of_all),) = records.rows(counted, **values, kind=kind)
    return int(number), int(of_all)


def jobs_of_user(records: Records) -> Conditions:
    """Jobs; a limited user's own, as long as they see its dataset whole: jobs log files."""
    if not records.user:
        return "", {}
    owner = {"owner": records.owner.name, "account": records.owner.account}
    is_own = "owner = :owner AND account = :account"
    read_by_own = f"id IN (SELECT dataset_id FROM jobs WHERE {is_own})"
    complete = ids_of_complete(records, read_by_own, **owner)
    return all_of(is_own, ids_in("dataset_id", complete)), {**owner}
