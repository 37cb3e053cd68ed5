"""Jobs, as they are recorded."""

from collections.abc import Collection, Sequence

from sqlalchemy import Select, func, select

from catalog.errors import NotFound
from catalog.records.datasets import ids_of_complete
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job, TaskMove


def recorded_job(records: RecordStore, name: str, *, account: str | None = None) -> Job:
    """The job of that name.

    Args:
        account: Of the user who must have begun it; None for anybody.

    Raises:
        NotFound: There is none.
    """
    query = jobs_of_user(records).where(Job.name == name)
    if account is not None:
        query = query.where(Job.account == account)
    with records.reading() as session:
        job = session.scalar(query)
    if job is None:
        raise NotFound("job", name, "framesift jobs list and GET /v1/jobs list them")
    return job


def recorded_jobs(
    records: RecordStore,
    *,
    kind: str | None = None,
    states: Sequence[str] | None = None,
    account: str | None = None,
    before: int | None = None,
    limit: int | None = None,
    holding: str = "",
) -> list[Job]:
    """Jobs, newest first.

    Args:
        before: Only those with a smaller id.
        holding: Only those whose name holds this text, in whatever case.
    """
    query = jobs_of_user(records).order_by(Job.id.desc()).limit(limit)
    if holding:
        query = query.where(func.lower(Job.name).contains(holding.lower(), autoescape=True))
    if kind is not None:
        query = query.where(Job.kind == kind)
    if states is not None:
        query = query.where(Job.state.in_(states))
    if account is not None:
        query = query.where(Job.account == account)
    if before is not None:
        query = query.where(Job.id < before)
    with records.reading() as session:
        return list(session.scalars(query))


def models_of_datasets(records: RecordStore, ids: Collection[int]) -> dict[int, list[str]]:
    """Names of the trainings that are done, by the datasets they read, newest first."""
    done = jobs_of_user(records).where(
        Job.kind == "train", Job.state == "done", Job.dataset_id.in_(ids)
    )
    named = done.with_only_columns(Job.dataset_id, Job.name).order_by(Job.id.desc())
    models: dict[int, list[str]] = {}
    with records.reading() as session:
        for dataset, name in session.execute(named):
            if dataset is not None:
                models.setdefault(dataset, []).append(name)
    return models


def recorded_moves(records: RecordStore, job: Job) -> list[TaskMove]:
    """Every change of the states of a job's tasks, the first one first."""
    query = select(TaskMove).where(TaskMove.job_id == job.id).order_by(TaskMove.id)
    with records.reading() as session:
        return list(session.scalars(query))


def job_counts(records: RecordStore) -> dict[tuple[str, str], int]:
    """Number of jobs of each kind in each state."""
    counted = select(Job.kind, Job.state, func.count()).group_by(Job.kind, Job.state)
    with records.reading() as session:
        return {(kind, state): number for kind, state, number in session.execute(counted)}


def jobs_of_user(records: RecordStore) -> Select[Job]:
    """Jobs; a limited user's own, as long as they see its dataset whole: jobs log files."""
    if not records.user:
        return select(Job)
    owner = records.owner
    is_own = (Job.owner == owner.name) & (Job.account == owner.account)
    own = select(Job.dataset_id).where(is_own)
    complete = ids_of_complete(records, select(Dataset).where(Dataset.id.in_(own)))
    return select(Job).where(is_own, Job.dataset_id.in_(complete))
